"""The exact law of a single-token Markov corpus: likelihoods and masked conditionals by forward-backward.

A sequence is drawn in three steps: a chain, all equally likely; a walk over its hidden nodes; a form for each synset
(a or b with probability 1/2 w/ DH; the form of the chain w/o DH; one or the other for a share of mixed forms). What is
seen of a token goes through a channel: [MASK], a random token, or the token itself (`Channel`). All messages are per
chain; chains are weighed by evidence. Features of several tokens: `spelt`.
"""

from dataclasses import dataclass

import numpy as np

from masklab.config.schema import Chains, Masking
from masklab.corpora.markov.chains import Chain, draw_chains
from masklab.corpora.markov.features import draw_features
from masklab.errors import MaskLabError

HIDDEN = -1  # a [MASK] among the symbols
MEMORY = 1 << 24  # floats of one chunk's messages


@dataclass(frozen=True)
class Channel:
    """What a reader sees of a token: P(seen | token, whether chosen for prediction).

    rate: probability that a token is chosen; mask, random: shares of the chosen ones shown as [MASK] or as a token
    drawn uniformly. With `mask` 1 the rate does not matter: what is not [MASK] is the token itself.
    """

    rate: float = 0.15
    mask: float = 1.0
    random: float = 0.0

    @classmethod
    def of(cls, masking: Masking) -> "Channel":
        """The channel of a model's masking; MaskLabError for corrupted tokens of a fixed number per sequence."""
        if masking.specials:
            raise MaskLabError("masking.specials: special tokens are no symbols of the law; there is no floor")
        if masking.mask < 1 and masking.count != "bernoulli":
            raise MaskLabError(
                "masking.count: 'floor' with visible or random tokens has no exact floor here: tokens are not chosen"
                " independently; use 'bernoulli' (the released code) or mask: 1"
            )
        return cls(masking.rate, masking.mask, masking.random)

    def seen(self, symbols: int) -> tuple[float, float]:
        """P(seen = y | token x) = base + peak [x = y] of a token that is visible, chosen or not."""
        base = self.rate * self.random / symbols
        return base, 1 - self.rate + self.rate * max(0.0, 1 - self.mask - self.random)

    def chosen(self, symbols: int) -> tuple[float, float]:
        """The same of a chosen token that is visible."""
        return self.random / symbols, max(0.0, 1 - self.mask - self.random)


def form_shares(chains: int, distributional: float) -> np.ndarray:
    """P(form | chain), [chains, 2], of which a share `distributional` is mixed: 1 w/ DH, 0 w/o DH."""
    return distributional / 2 + (1 - distributional) * np.eye(2)[np.arange(chains) % 2]


class Law:
    """The law of sequences from `chains` over n synsets; symbols 0..n-1 are forms a, n..2n-1 forms b."""

    def __init__(self, chains: list[Chain], synsets: int, distributional: float):
        self.synsets, self.symbols = synsets, 2 * synsets
        self.chains = [Messages(chain, synsets) for chain in chains]
        self.forms = form_shares(len(chains), distributional)

    def log_probability(self, symbols) -> np.ndarray:
        """Natural logarithm of the probability of each sequence, [B, T] -> [B]; minus its mean is the entropy."""
        symbols = np.asarray(symbols)
        likelihoods = self._likelihoods(symbols, Channel(rate=0.0))
        logs = [
            chain.forward(symbols % self.synsets, *part)[1]
            for chain, part in zip(self.chains, likelihoods, strict=True)
        ]
        return _log_sum(np.stack(logs)) - np.log(len(self.chains))

    def posterior(self, seen, targets, channel: Channel = Channel()) -> np.ndarray:
        """P(token | everything seen) of the chosen tokens.

        seen: [B, T] symbols, `HIDDEN` for [MASK]; targets: [B, T] bool, the chosen ones. Returns [N, symbols], in
        row-major order of the targets. What is seen at a target counts as that of a chosen token. MaskLabError if a
        sequence is impossible.
        """
        seen, targets = np.asarray(seen), np.asarray(targets, bool)
        length, nodes = seen.shape[1], max(len(chain) for chain in self.chains)
        size = max(1, MEMORY // (length * nodes))
        parts = [np.zeros((0, self.symbols))]
        for at in range(0, len(seen), size):
            part = slice(at, at + size)
            parts.append(self._posterior(seen[part], targets[part], channel, at))
        return np.concatenate(parts)

    def conditionals(self, sequences, lengths=None) -> np.ndarray:
        """Pr(token | all other tokens) at every position: sequences [N, T] -> [N, T, symbols].

        lengths: [N], must all be T: every sequence of a corpus has one length.
        """
        sequences = np.asarray(sequences)
        if lengths is not None and (np.asarray(lengths) != sequences.shape[1]).any():
            raise MaskLabError("the sequences of a Markov corpus have one length")
        # every token is a target, seen through a channel that says nothing of it
        blind = Channel(rate=0.0, mask=0.0, random=1.0)
        probabilities = self.posterior(sequences, np.ones(sequences.shape, bool), blind)
        return probabilities.reshape(*sequences.shape, self.symbols)

    def _posterior(self, seen, targets, channel, start):
        row, column = np.nonzero(targets)
        weights, synsets = [], []
        likelihoods = self._likelihoods(seen, channel)
        for chain, likelihood in zip(self.chains, likelihoods, strict=True):
            weight, distribution = chain.without(seen % self.synsets, *likelihood, row, column)
            weights.append(weight)
            synsets.append(distribution)
        weights = np.stack(weights)
        total = _log_sum(weights)
        if not np.isfinite(total).all():
            raise MaskLabError(f"sequence {start + row[np.argmin(total)]}: impossible under the law of its corpus")
        weights = np.exp(weights - total)  # of the chains, given all else that is seen, [K, N]
        probabilities = np.einsum("kn,kf,kns->nfs", weights, self.forms, np.stack(synsets)).reshape(-1, self.symbols)
        shown = seen[row, column]
        visible = np.flatnonzero(shown != HIDDEN)
        base, peak = channel.chosen(self.symbols)
        likelihood = np.full((len(visible), self.symbols), base)
        likelihood[np.arange(len(visible)), shown[visible]] += peak
        probabilities[visible] *= likelihood
        return probabilities / probabilities.sum(1, keepdims=True)

    def _likelihoods(self, seen, channel):
        """Per chain (base [B, T], peak [B, T]): P(seen | node) = base + peak [the node's synset is the one seen]."""
        hidden = seen == HIDDEN
        base, peak = channel.seen(self.symbols)
        form = np.where(hidden, 0, seen // self.synsets)
        # the factor of a [MASK] is the same for every token and chain, and left out
        return [(np.where(hidden, 1.0, base), np.where(hidden, 0.0, peak * forms[form])) for forms in self.forms]


class Messages:
    """Forward and backward messages of one chain, arrays [nodes, B] of a step side by side."""

    def __init__(self, chain: Chain, synsets: int):
        self.chain = chain
        self.order = np.argsort(chain.synset, kind="stable")
        self.first = np.searchsorted(chain.synset[self.order], np.arange(synsets))  # of each synset's nodes
        edges = chain.targets.T.ravel()
        by_target = np.argsort(edges, kind="stable")
        self.sources = np.tile(np.arange(len(chain)), 2)[by_target]
        self.weights = np.repeat(chain.probabilities, len(chain))[by_target, None]
        self.reached, self.starts = np.unique(edges[by_target], return_index=True)

    def __len__(self):
        return len(self.chain)

    def push(self, state):
        """One step along the edges, of [nodes, B]."""
        out = np.zeros_like(state)
        out[self.reached] = np.add.reduceat(state[self.sources] * self.weights, self.starts, axis=0)
        return out

    def pull(self, state):
        """One step against them."""
        first, second = self.chain.probabilities
        return first * state[self.chain.targets[:, 0]] + second * state[self.chain.targets[:, 1]]

    def _times(self, state, synset, base, peak):
        """state x P(seen | node), [nodes, B]."""
        out = state * base
        hit = self.chain.synset[:, None] == synset
        return np.add(out, state * peak, out=out, where=hit)

    def forward(self, synset, base, peak):
        """(predictions P(node_t | seen before t) [T, nodes, B], log P(seen) [B]); -inf if it is impossible."""
        predicted, logs = self._forward(synset, base, peak)
        return predicted, logs[-1]

    def _forward(self, synset, base, peak):
        batch, length = synset.shape
        predicted = np.empty((length, len(self), batch))
        logs = np.zeros((length + 1, batch))
        state = np.full((len(self), batch), 1 / len(self))
        for t in range(length):
            predicted[t] = state
            state = self._times(state, synset[:, t], base[:, t], peak[:, t])
            total = state.sum(0)
            logs[t + 1] = logs[t] + _log(total)
            state = self.push(state / np.where(total > 0, total, 1))
        return predicted, logs

    def without(self, synset, base, peak, row, column):
        """What the rest of its sequence says about the token at (row, column) [N].

        Returns log P(everything seen but this token) [N] and P(synset | the same) [N, synsets].
        """
        predicted, logs = self._forward(synset, base, peak)
        batch, length = synset.shape
        weight, distribution = np.empty(len(row)), np.empty((len(row), len(self.first)))
        state, log = np.ones((len(self), batch)), np.zeros(batch)
        for t in reversed(range(length)):
            here = np.flatnonzero(column == t)
            if len(here):
                at = row[here]
                joint = predicted[t][:, at] * state[:, at]
                total = joint.sum(0)
                weight[here] = logs[t, at] + log[at] + _log(total)
                joint = np.add.reduceat(joint[self.order], self.first, axis=0)
                distribution[here] = (joint / np.where(total > 0, total, 1)).T
            state = self.pull(self._times(state, synset[:, t], base[:, t], peak[:, t]))
            total = state.max(0)
            log = log + _log(total)
            state /= np.where(total > 0, total, 1)
        return weight, distribution


def _log(values):
    with np.errstate(divide="ignore"):
        return np.log(values)


def _log_sum(values):
    """log sum exp over the first axis; -inf where all are."""
    top = values.max(0)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(top), top + _log(np.exp(values - np.where(np.isfinite(top), top, 0)).sum(0)), top)


def of_header(header: dict):
    """The law of a corpus from its header (`symbols.read_header`), by how its features are spelt."""
    config, drawn = Chains(**header["config"]["chains"]), header["config"]
    chains = draw_chains(config, header["seed"])
    if config.features == "single":
        return Law(chains, config.synsets, drawn["distributional"])
    from masklab.corpora.markov.spelt import SpeltLaw

    return SpeltLaw(chains, draw_features(config, header["seed"]), drawn["length"], drawn["distributional"])
