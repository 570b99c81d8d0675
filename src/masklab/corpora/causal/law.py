"""The exact law of sentences of a restricted causal model (Liu et al. 2023, A.2).

Pr(x_t = v | x_-t, length) is proportional to the joint probability of the sentence with v at t, a product of the
model's conditionals. For all V candidates at a position what stands before it is read once; each candidate runs only
the words that follow, on a copy of that cache. The last word of a sentence of full length needs one pass alone.
"""

import numpy as np
import torch

from masklab.corpora.causal.loading import found, load, weights_of
from masklab.corpora.causal.restricted_model import Restricted, Rules
from masklab.corpora.given import checked
from masklab.errors import MaskLabError

TOGETHER = 32  # sentences whose beginnings are read together
MEMORY = {"cpu": 1 << 26, "cuda": 1 << 33}  # bytes of caches and logits of the candidates that run together
SHARE = 4  # of a GPU: not more than one in so many of its bytes
FLOPS = {"cpu": 5e11, "cuda": 2e14}  # of some seconds


class Law:
    """The law of sentences of `restricted`: symbols [N, T] int with lengths [N] int (None: all are T long)."""

    def __init__(self, restricted: Restricted):
        self.restricted, self.rules, self.symbols = restricted, restricted.rules, restricted.rules.words

    def work(self, lengths, asked) -> np.ndarray:
        """How much of some seconds the passes of sentences take, see `masklab.corpora.laws`."""
        weights = sum(weight.numel() for weight in self.restricted.model.parameters())
        return lengths / 2 * asked * self.symbols * 2 * weights / FLOPS[self.restricted.device.type]

    def conditionals(self, sequences, lengths=None) -> np.ndarray:
        """Pr(x_t = v | x_-t, length), [N, T, V] float64; zeros past a row's length.

        MaskLabError if a sentence is impossible whatever stands at t.
        """
        sequences, lengths = self._checked(sequences, lengths)
        rows, columns = np.nonzero(np.arange(sequences.shape[1]) < lengths[:, None])
        probabilities = np.zeros((*sequences.shape, self.symbols))
        probabilities[rows, columns] = self.conditionals_at(sequences, lengths, rows, columns)
        return probabilities

    def conditionals_at(self, sequences, lengths, rows, columns) -> np.ndarray:
        """The same at the chosen words (rows, columns) [M] alone, columns from 0: [M, V]."""
        sequences, lengths = self._checked(sequences, lengths)
        rows, columns = np.asarray(rows), np.asarray(columns)
        probabilities = np.empty((len(rows), self.symbols))
        kinds, kind = np.unique(np.stack([lengths[rows], columns], 1), axis=0, return_inverse=True)
        for number, (length, column) in enumerate(kinds):
            members = np.flatnonzero(kind.ravel() == number)
            for start in range(0, len(members), TOGETHER):
                part = members[start : start + TOGETHER]
                joint = self._joint(sequences[rows[part], :length], int(column))
                top = joint.max(1, keepdims=True)
                if not np.isfinite(top).all():
                    bad = rows[part][np.argmin(top)]
                    raise MaskLabError(f"sequence {bad}: impossible under the law of its corpus")
                joint = np.exp(joint - top)
                probabilities[part] = joint / joint.sum(1, keepdims=True)
        return probabilities

    def log_probability(self, sequences, lengths=None) -> np.ndarray:
        """Natural logarithm of the probability of each sentence, [N]; -inf where it is impossible."""
        sequences, lengths = self._checked(sequences, lengths)
        logs = np.empty(len(sequences))
        for length in np.unique(lengths):
            members = np.flatnonzero(lengths == length)
            for start in range(0, len(members), TOGETHER):
                part = members[start : start + TOGETHER]
                logs[part] = self._log_probability(sequences[part, :length])
        return logs

    @torch.inference_mode()
    def _log_probability(self, words):
        words = torch.from_numpy(words).to(self.restricted.device)
        targets = self._targets(words, 0)
        logits, _ = self.restricted(self._tokens(words)[:, : targets.shape[1]])
        logs = self.restricted.log_probs(logits, 0).double().gather(-1, targets[..., None]).sum((1, 2))
        return np.where(self._ends_well(words).cpu().numpy(), logs.cpu().numpy(), -np.inf)

    @torch.inference_mode()
    def _joint(self, words, t) -> np.ndarray:
        """log of the joint probability of sentences [n, T] with each candidate at word t, up to a constant, [n, V]."""
        words = torch.from_numpy(words).to(self.restricted.device)
        logits, past = self.restricted(self._tokens(words[:, :t]))
        joint = self.restricted.log_probs(logits[:, -1:], t)[:, 0, : self.symbols].double()
        if self.rules.end is None:
            joint = joint.masked_fill(~self._allowed_at(words, t), -torch.inf)
        targets = self._targets(words, t + 1)
        if targets.shape[1]:
            joint = joint + self._suffixes(past, words, targets, t).view(len(words), self.symbols)
        return joint.cpu().numpy()

    def _suffixes(self, past, words, targets, t):
        """log Pr(what follows word t | candidate at t) for all pairs of a sentence and a candidate, [n V]."""
        layers = [(layer.keys, layer.values) for layer in past.layers]
        known = self.restricted.ids[words[:, t + 1 : t + targets.shape[1]]]
        pairs = len(words) * self.symbols
        log_sums = torch.empty(pairs, dtype=torch.float64, device=words.device)
        for start in range(0, pairs, size := self._pairs(layers, targets.shape[1])):
            pair = torch.arange(start, min(start + size, pairs), device=words.device)
            row, candidate = pair // self.symbols, pair % self.symbols
            tokens = torch.cat([self.restricted.ids[candidate, None], known[row]], 1)
            logits, _ = self.restricted(tokens, _cache([(k[row], v[row]) for k, v in layers]))
            logs = self.restricted.log_probs(logits, t + 1)
            log_sums[pair] = logs.gather(-1, targets[row][..., None]).double().sum((1, 2))
        return log_sums

    def _pairs(self, layers, suffix) -> int:
        """How many candidates run together: the memory is two copies of their caches and three of their logits."""
        cached = sum(2 * keys[0].nbytes // keys.shape[2] * (keys.shape[2] + suffix) for keys, _ in layers)
        logits = suffix * (self.symbols + 1) * layers[0][0].element_size()
        return max(1, memory(self.restricted.device) // (2 * cached + 3 * logits))

    def _tokens(self, words):
        """Token ids of the start and the words, [n, 1 + T]."""
        start = torch.full((len(words), 1), self.rules.start, device=words.device)
        return torch.cat([start, self.restricted.ids[words]], 1)

    def _targets(self, words, first):
        """The outcomes to be drawn from word `first` on: words, and the end of a sentence that is not full, [n, S]."""
        targets = words[:, first:]
        if self.rules.end is not None and words.shape[1] < self.rules.length:
            end = torch.full((len(words), 1), self.symbols, device=words.device)
            targets = torch.cat([targets, end], 1)
        return targets

    def _ends_well(self, words):
        """Whether sentences [n, T] end where a sentence of the law may, [n] bool."""
        rules, length = self.rules, words.shape[1]
        if rules.last is None:
            fits = length >= rules.shortest if rules.end is not None else length == rules.length
            return torch.full((len(words),), fits, device=words.device)
        last = words == rules.last
        return ~last[:, :-1].any(1) & (last[:, -1] if length < rules.length else True)

    def _allowed_at(self, words, t):
        """Which candidates at word t leave sentences [n, T] that may end where they do, [n, V] bool."""
        candidates = torch.arange(self.symbols, device=words.device).expand(len(words), -1)
        cases = words.repeat_interleave(self.symbols, 0)
        cases[:, t] = candidates.reshape(-1)
        return self._ends_well(cases).view(len(words), self.symbols)

    def _checked(self, sequences, lengths):
        return checked(sequences, lengths, self.symbols, self.rules.length)


def memory(device: torch.device) -> int:
    """Bytes of the candidates that run together on a device: a small GPU, which others may use too, holds fewer."""
    most = MEMORY[device.type]
    return min(most, torch.cuda.get_device_properties(device).total_memory // SHARE) if device.type == "cuda" else most


def _cache(layers):
    from transformers import DynamicCache

    return DynamicCache(layers)


def of_header(header: dict) -> Law:
    """The law of a corpus from its header (`symbols.read_header`), on a GPU where there is one.

    MaskLabError if the model is gone, or its weights are not those that the corpus was drawn from.
    """
    settings = dict(header["law"])
    model = found(settings)
    causal, _ = load(model, "cuda" if torch.cuda.is_available() else "cpu")
    if weights_of(model, causal) != settings["weights"]:
        raise MaskLabError(f"{model}: its weights are not those that the corpus was drawn from")
    for key in ("model", "weights", "local"):
        del settings[key]
    return Law(Restricted(causal, Rules(**settings | {"ids": tuple(settings["ids"])})))
