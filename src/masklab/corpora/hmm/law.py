"""The exact law of a hidden Markov model: masked conditionals and hidden states by forward-backward.

The emission of the masked word itself is left out (Liu et al. 2023, A.2, who name the Viterbi algorithm for it):
Pr(x_t | x_-t) is proportional to sum_z Pr(z_t | x_<t) Pr(x_>t | z_t) Pr(x_t | z_t). A sentence lives in one block, so
that T words cost O(T k^2) with k the states of a block.
"""

import numpy as np

from masklab.config.schema import HiddenMarkov
from masklab.corpora.given import checked
from masklab.corpora.hmm.model import Model, draw_model
from masklab.errors import MaskLabError
from masklab.intervals import mean_and_error

CHUNK = 1024  # sentences whose messages are in memory together


class Law:
    """The law of sentences from `model`. Sentences are words [N, T] int and lengths [N] int (None: all are T long)."""

    def __init__(self, model: Model):
        self.model, self.symbols, self.states = model, model.symbols, model.states

    def conditionals(self, sequences, lengths=None) -> np.ndarray:
        """Pr(x_t = v | x_-t), [N, T, V]; zeros past a row's length. MaskLabError if a sentence is impossible."""
        k, v = self.model.transition.shape[1], self.model.emission.shape[2]
        probabilities = np.zeros((*np.shape(sequences), self.symbols))
        for rows, block, words, inside in self._by_block(sequences, lengths):
            before, after, _ = self._messages(rows, block, words, inside)
            hidden = before * after
            hidden /= hidden.sum(-1, keepdims=True)
            probabilities[rows, :, block * v : (block + 1) * v] = hidden @ self.model.emission[block]
            alone = rows[inside.sum(0) == 1]  # nothing tells the block of a sentence of one word
            probabilities[alone, 0] = (self.model.emission.sum(1) / (len(self.model.emission) * k)).ravel()
            probabilities[rows[:, None], np.arange(len(inside))] *= inside.T[..., None]
        return probabilities

    def hidden(self, sequences, lengths=None) -> np.ndarray:
        """Pr(z_t = s | x), [N, T, states]; zeros past a row's length."""
        k = self.model.transition.shape[1]
        posterior = np.zeros((*np.shape(sequences), self.states))
        for rows, block, words, inside in self._by_block(sequences, lengths):
            before, after, emitted = self._messages(rows, block, words, inside)
            here = before * after * emitted
            posterior[rows, :, block * k : (block + 1) * k] = here / here.sum(-1, keepdims=True) * inside.T[..., None]
        return posterior

    def mlm_entropy(self, sequences, lengths=None) -> tuple[float, float]:
        """Mean entropy of Pr(x_t | x_-t) over all words of the sentences, in nats, and its standard error."""
        values, groups = [], []
        sequences, lengths = checked(sequences, lengths, self.symbols)
        for start in range(0, len(sequences), CHUNK):
            part = slice(start, start + CHUNK)
            p = self.conditionals(sequences[part], lengths[part])
            entropy = -(p * np.log(p, out=np.zeros_like(p), where=p > 0)).sum(-1)
            row, column = np.nonzero(np.arange(p.shape[1]) < lengths[part, None])
            values.append(entropy[row, column])
            groups.append(start + row)
        return mean_and_error(np.concatenate(values), np.concatenate(groups))

    def _by_block(self, sequences, lengths):
        """Yield (rows [n], block, words [T, n] within the block, inside [T, n] bool) of sentences of one block."""
        sequences, lengths = checked(sequences, lengths, self.symbols)
        v = self.model.emission.shape[2]
        inside = np.arange(sequences.shape[1]) < lengths[:, None]
        blocks = sequences // v
        strange = np.flatnonzero(((blocks != blocks[:, :1]) & inside).any(1))
        if len(strange):
            raise MaskLabError(f"sequence {strange[0]}: impossible under the law of its corpus (words of two blocks)")
        for block in np.unique(blocks[:, 0]):
            rows = np.flatnonzero(blocks[:, 0] == block)
            for start in range(0, len(rows), CHUNK):
                part = rows[start : start + CHUNK]
                words = np.where(inside[part], sequences[part] - block * v, 0)
                yield part, block, words.T, inside[part].T

    def _messages(self, rows, block, words, inside):
        """(Pr(z_t | x_<t), Pr(x_>t | z_t) up to a factor, Pr(x_t | z_t)), [n, T, k] each.

        Scaled at every step, so that long sentences do not underflow; past the end of a sentence everything is 1.
        """
        length, count = words.shape
        transition = self.model.transition[block]
        emitted = np.where(inside[..., None], self.model.emission[block].T[words], 1.0)
        before, after = np.empty_like(emitted), np.ones_like(emitted)
        state = np.full((count, len(transition)), 1 / len(transition))
        for t in range(length):
            before[t] = state
            state = state * emitted[t]
            total = state.sum(1, keepdims=True)
            if not total.all():
                raise MaskLabError(f"sequence {rows[np.argmin(total)]}: impossible under the law of its corpus")
            state = (state / total) @ transition
        for t in range(length - 2, -1, -1):
            state = (after[t + 1] * emitted[t + 1]) @ transition.T
            after[t] = state / state.max(1, keepdims=True)
        return before.swapaxes(0, 1), after.swapaxes(0, 1), emitted.swapaxes(0, 1)


def of_header(header: dict) -> Law:
    """The law of a corpus from its header (`symbols.read_header`)."""
    return Law(draw_model(HiddenMarkov(**header["config"]["hmm"]), header["seed"]))
