"""The exact law of a Markov corpus whose features are several tokens: masked conditionals by forward-backward.

A sequence is a chain, a walk of a known number of synsets, a form of each, and the tokens that spell these. A reader
sees the tokens through a `Channel`, and how many there are, but not where a feature begins: messages run over (place
between tokens, features before it, hidden node), and a step reads a whole feature. Probabilities are not rescaled: a
sequence of many hundred tokens would underflow.
"""

import numpy as np

from masklab.corpora.markov.law import HIDDEN, MEMORY, Channel, Messages, form_shares
from masklab.errors import MaskLabError

END = -2  # behind the last token of a shorter row


class SpeltLaw:
    """The law of sequences of `length` features; symbols are those of `features` (`markov.features.Features`)."""

    whole = True  # it is the law of whole sequences, and says nothing of those that are cut

    def __init__(self, chains, features, length: int, distributional: float):
        self.features, self.length, self.symbols = features, length, len(features.names)
        self.chains = [Messages(chain, features.synsets) for chain in chains]
        self.forms = form_shares(len(chains), distributional)
        numbers = np.arange(2 * features.synsets)
        self.synset, self.form = numbers % features.synsets, numbers // features.synsets
        longest = features.spelling.shape[1]
        self.has = np.arange(longest)[:, None] < features.lengths  # [offset, feature]
        self.spells = np.zeros((longest, len(numbers), self.symbols))  # 1 at the token of a feature at an offset
        for offset, has in enumerate(self.has):
            self.spells[offset, has, features.spelling[has, offset]] = 1

    def log_probability(self, symbols) -> np.ndarray:
        """Natural logarithm of the probability of each sequence among those of its number of tokens and all others.

        symbols: [B, T], `END` behind shorter ones. Minus infinity where it is impossible.
        """
        symbols = np.asarray(symbols)
        letters = self._letters(symbols, Channel(rate=0.0))
        with np.errstate(divide="ignore"):
            return np.log(np.mean([self._evidence(k, symbols, letters) for k in range(len(self.chains))], 0))

    def posterior(self, seen, targets, channel: Channel | None = None) -> np.ndarray:
        """P(token | everything seen) of the chosen tokens, as `Law.posterior` has it.

        seen: [B, T] symbols, `HIDDEN` for [MASK], `END` behind shorter sequences; targets: [B, T] bool. Returns
        [N, symbols]. channel: None: [MASK]s alone. MaskLabError if a sequence is impossible.
        """
        channel, seen, targets = channel or Channel(), np.asarray(seen), np.asarray(targets, bool)
        states = (seen.shape[1] + 1) * (self.length + 1) * max(map(len, self.chains))
        size = max(1, MEMORY // states)
        parts = [np.zeros((0, self.symbols))]
        for at in range(0, len(seen), size):
            parts.append(self._posterior(seen[at : at + size], targets[at : at + size], channel, at))
        return np.concatenate(parts)

    def _posterior(self, seen, targets, channel, start):
        row, column = np.nonzero(targets)
        letters = self._letters(seen, channel)
        joint = sum(self._joint(k, seen, letters, row, column) for k in range(len(self.chains)))
        shown = seen[row, column]
        visible = np.flatnonzero(shown != HIDDEN)
        base, peak = channel.chosen(self.symbols)
        likelihood = np.full((len(visible), self.symbols), base)
        likelihood[np.arange(len(visible)), shown[visible]] += peak
        joint[visible] *= likelihood
        total = joint.sum(1, keepdims=True)
        if not (total > 0).all():
            raise MaskLabError(f"sequence {start + row[total.argmin()]}: impossible under the law of its corpus")
        return joint / total

    def _letters(self, seen, channel):
        """P(what is seen at t + offset | a feature begins at t), [offset, T, feature, B]; 1 beyond a feature's end."""
        longest, (rows, width) = len(self.has), seen.shape
        base, peak = channel.seen(self.symbols)
        padded = np.full((rows, width + longest), END)
        padded[:, :width] = seen
        letters = np.ones((longest, width, len(self.synset), rows))
        for offset, has in enumerate(self.has):
            shown = padded[:, offset : offset + width].T[:, None]
            token = self.features.spelling[:, offset].astype(int)[:, None]
            likelihood = np.where(shown == HIDDEN, 1.0, base + peak * (shown == token))
            letters[offset] = np.where(has[:, None], np.where(shown == END, 0.0, likelihood), 1.0)
        return letters

    def _read(self, k, letters):
        """P(what is seen of a feature of that many tokens, it | synset, chain), [tokens - 1, T, synset, B]."""
        whole = letters.prod(0) * self.forms[k][self.form][:, None]
        read = np.zeros((len(self.has), whole.shape[0], self.features.synsets, whole.shape[2]))
        for feature, (synset, tokens) in enumerate(zip(self.synset, self.features.lengths, strict=True)):
            read[tokens - 1, :, synset] += whole[:, feature]
        return read

    def _forward(self, k, seen, read):
        """Per place: P(seen before it, so many features, node), of the next feature and of the one that ends there.

        Arrays [features, nodes, B] of the T + 1 places.
        """
        chain, (rows, width) = self.chains[k], seen.shape
        synset = chain.chain.synset
        begin = np.zeros((width + 1, self.length + 1, len(chain), rows))
        ended = np.zeros_like(begin)
        begin[0, 0] = 1 / len(chain)
        for place in range(1, width + 1):
            for tokens in range(1, min(len(read), place) + 1):
                before = place - tokens
                ended[place, 1:] += begin[before, :-1] * read[tokens - 1, before][synset]
            begin[place] = _along(chain.push, ended[place])
        return begin, ended

    def _evidence(self, k, seen, letters):
        """P(seen | chain), [B]."""
        _, ended = self._forward(k, seen, self._read(k, letters))
        lengths = (seen != END).sum(1)
        return ended[lengths, self.length, :, np.arange(len(seen))].sum(1)

    def _joint(self, k, seen, letters, row, column):
        """P(token at (row, column), everything else that is seen | chain), [N, symbols]."""
        chain, read, (rows, width) = self.chains[k], self._read(k, letters), seen.shape
        synset, lengths = chain.chain.synset, (seen != END).sum(1)
        begin, _ = self._forward(k, seen, read)
        # after[place]: P(seen from there on | node of the feature before it, so many features)
        after = np.zeros((width + len(read) + 1, *begin.shape[1:]))
        around = np.zeros((len(read), width, self.features.synsets, rows))
        for place in reversed(range(width + 1)):
            following = np.zeros(begin.shape[1:])
            if place < width:
                for tokens in range(1, len(read) + 1):
                    rest = after[place + tokens, 1:]
                    following[:-1] += rest * read[tokens - 1, place][synset]
                    both = np.einsum("jnb,jnb->nb", begin[place, :-1], rest)
                    around[tokens - 1, place] = np.add.reduceat(both[chain.order], chain.first, axis=0)
            after[place] = _along(chain.pull, following)
            after[place, -1] = (lengths == place)[None]
        joint = np.zeros((len(row), self.symbols))
        for offset, has in enumerate(self.has):
            where = np.flatnonzero(column >= offset)
            first, at = column[where] - offset, row[where]
            features = np.flatnonzero(has)
            others = np.delete(letters, offset, 0).prod(0)[first, :, at][:, features]
            outside = around[self.features.lengths[features] - 1, first[:, None], self.synset[features], at[:, None]]
            weights = outside * others * self.forms[k][self.form[features]]
            joint[where] += weights @ self.spells[offset, features]
        return joint


def _along(step, state):
    """A step of messages over nodes applied to [features, nodes, B]."""
    counts, nodes, rows = state.shape
    flat = np.ascontiguousarray(state.transpose(1, 0, 2)).reshape(nodes, -1)
    return step(flat).reshape(nodes, counts, rows).transpose(1, 0, 2)
