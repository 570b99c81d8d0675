"""Random hidden Markov models with block-diagonal transition and emission matrices, and their sampler."""

from dataclasses import dataclass

import numpy as np

from masklab.config.schema import HiddenMarkov
from masklab.errors import MaskLabError
from masklab.rng import generator

ROUNDS = 10_000  # of scaling columns and rows; at a contrast of 2 some 50 are enough
SLACK = 1e-13  # by which a column's sum may miss 1


@dataclass(frozen=True)
class Model:
    """B blocks of k states and v words each: transition [B, k, k], emission [B, k, v], rows summing to 1.

    State s belongs to block s // k, word w to block w // v: a sentence never leaves the block of its first state,
    which is uniform over all states.
    """

    transition: np.ndarray
    emission: np.ndarray

    @property
    def states(self) -> int:
        return self.transition.shape[0] * self.transition.shape[1]

    @property
    def symbols(self) -> int:
        return self.emission.shape[0] * self.emission.shape[2]

    def sample(self, count: int, length: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """(words, hidden states) of `count` independent sentences, [count, length] uint16 each."""
        move, emit = _Rows(self.transition), _Rows(self.emission)
        words, hidden = (np.empty((length, count), np.uint16) for _ in range(2))
        state = rng.integers(self.states, size=count)
        for t in range(length):
            if t:
                state = move.draw(state, rng)
            hidden[t], words[t] = state, emit.draw(state, rng)
        return np.ascontiguousarray(words.T), np.ascontiguousarray(hidden.T)


class _Rows:
    """Draws from the rows of a block-diagonal matrix [B, k, n]: a search in the cumulative rows put end to end."""

    def __init__(self, blocks):
        count, rows, self.columns = blocks.shape
        cumulative = np.cumsum(blocks.reshape(-1, self.columns), axis=1)
        self.cumulative = (cumulative / cumulative[:, -1:] + np.arange(count * rows)[:, None]).ravel()
        self.shift = np.repeat(np.arange(count), rows) * self.columns  # first column of a row's block

    def draw(self, row, rng):
        """Columns drawn from rows [N], numbered over all blocks."""
        at = np.searchsorted(self.cumulative, row + rng.random(len(row)), side="right") - row * self.columns
        return np.clip(at, 0, self.columns - 1) + self.shift[row]  # row + u may round up to the next row


def draw_model(config: HiddenMarkov, seed: int) -> Model:
    """The matrices of an entry of `hmms`; equal settings and seeds give equal ones.

    Rows are Dirichlet(`concentration`, ...): Gamma draws divided by their sum. Under `log_rank` a state is a word, and
    the transition matrix is diag(a) exp(S) diag(b), S being a product of two normal matrices of that rank, and a and b
    such that it is doubly stochastic: so all words are equally frequent in every place of a sentence.
    """
    rng = generator(seed, "hmm", config.seed)
    if config.log_rank is not None:
        left, right = rng.normal(size=(2, config.symbols, config.log_rank))
        transition = doubly_stochastic(config.contrast * left @ right.T / config.log_rank**0.5)
        return Model(transition[None], np.eye(config.symbols)[None])
    k, v = config.states // config.blocks, config.symbols // config.blocks
    transition = rng.dirichlet(np.full(k, config.concentration), size=(config.blocks, k))
    return Model(transition, rng.dirichlet(np.full(v, config.concentration), size=(config.blocks, k)))


def doubly_stochastic(logits) -> np.ndarray:
    """diag(a) exp(logits) diag(b) [n, n] whose rows and columns sum to 1, but for `SLACK` (Sinkhorn 1964).

    Raises:
        MaskLabError: it was not found in `ROUNDS` rounds, as where logits differ by hundreds.
    """
    weights = np.exp(logits - logits.max(1, keepdims=True))
    for _ in range(ROUNDS):
        with np.errstate(divide="ignore", invalid="ignore"):
            weights /= weights.sum(0)
            weights /= weights.sum(1, keepdims=True)
        if not np.isfinite(weights).all():
            break
        if np.abs(weights.sum(0) - 1).max() < SLACK:
            return weights
    raise MaskLabError("log_rank: no equal frequencies of words at so high a `contrast`; take a lower one")
