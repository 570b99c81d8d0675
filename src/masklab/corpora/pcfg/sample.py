"""Sentences and trees drawn from a grammar, top down.

Sentences are drawn in blocks, each from a stream of its own. A symbol's rule is drawn by Walker's alias method from
one 64-bit number (splitmix64), exact to 2**-32.
"""

import numba
import numpy as np

from masklab.embeddings import alias_table
from masklab.errors import MaskLabError
from masklab.rng import seed_at

BLOCK = 1 << 16  # sentences of one stream
TRIES = 1_000_000  # sentences of a wrong length in a row before giving up
WORD = -1  # in place of a rule's right symbol: the left one is a word


class Sampler:
    """Draws sentences of min_length to max_length words; others are drawn again."""

    def __init__(self, rules, min_length: int = 1, max_length: int = 32):
        self.limits = min_length, max_length
        parents = np.concatenate([rules.binary[:, 0], rules.lexical[:, 0]])
        rights = np.concatenate([rules.binary[:, 2], np.full(len(rules.lexical), WORD, np.int32)])
        lefts = np.concatenate([rules.binary[:, 1], rules.lexical[:, 1]])
        weights = np.concatenate([rules.binary_probabilities, rules.lexical_probabilities])
        order = np.argsort(parents, kind="stable")
        ends = np.cumsum(np.bincount(parents, minlength=len(rules)))
        self.firsts = np.concatenate([[0], ends, [len(order) + len(rules)]])  # the roots are symbol n's options
        self.lefts = np.concatenate([lefts[order], np.arange(len(rules))]).astype(np.int32)
        self.rights = np.concatenate([rights[order], np.full(len(rules), WORD)]).astype(np.int32)
        weights = np.concatenate([weights[order], rules.start])
        tables = [alias_table(weights[a:b]) for a, b in zip(self.firsts[:-1], self.firsts[1:], strict=True)]
        self.accept = np.minimum(np.concatenate([t[0] for t in tables]) * 2.0**32, 2.0**32).astype(np.uint64)
        self.alias = np.concatenate([t[1] + a for t, a in zip(tables, self.firsts[:-1], strict=True)]).astype(np.int32)

    def draw(self, count: int, seed: int, *address, progress=None):
        """Yield (values [sum of lengths] uint16, lengths [<= BLOCK] int64) of `count` sentences, block by block.

        Block k's stream is `seed_at(seed, *address, k)`. MaskLabError if sentences of these lengths hardly occur.
        """
        for k, start in enumerate(range(0, count, BLOCK)):
            size = min(BLOCK, count - start)
            yield self._block(size, seed_at(seed, *address, k))
            if progress:
                progress(start + size, count)

    def _block(self, size, seed):
        values = np.empty(size * self.limits[1], np.uint16)
        lengths = np.empty(size, np.int64)
        tables = self.firsts, self.lefts, self.rights, self.accept, self.alias
        used = _sentences(*tables, *self.limits, np.uint64(seed), values, lengths)
        if used < 0:
            low, high = self.limits
            raise MaskLabError(f"grammar: no sentence of {low} to {high} words in {TRIES:,} draws")
        return values[:used].copy(), lengths


def sample(rules, count: int, seed: int, *address, min_length=1, max_length=32):
    """(symbols [count, longest] uint16 padded with 0, lengths [count] int64)."""
    blocks = list(Sampler(rules, min_length, max_length).draw(count, seed, *address))
    return pad(np.concatenate([v for v, _ in blocks]), np.concatenate([n for _, n in blocks]))


def pad(values, lengths):
    """Rows end to end -> (rows [N, longest], 0 past their ends; lengths)."""
    rows = np.zeros((len(lengths), int(lengths.max(initial=0))), values.dtype)
    rows[np.arange(rows.shape[1]) < np.asarray(lengths)[:, None]] = values
    return rows, lengths


@numba.njit(cache=True, nogil=True)
def _sentences(firsts, lefts, rights, accept, alias, low, high, state, values, lengths):
    """Fill values and lengths; the number of values, -1 if no sentence is found."""
    stack = np.empty(2 * high + 2, np.int32)
    roots = len(firsts) - 2
    used = 0
    for sentence in range(len(lengths)):
        tries = 0
        while True:
            stack[0], depth, begin = roots, 1, used
            while depth > 0 and used - begin + depth <= high:  # each waiting symbol is at least one word
                depth -= 1
                symbol = stack[depth]
                state += np.uint64(0x9E3779B97F4A7C15)  # splitmix64
                z = state
                z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                z = z ^ (z >> np.uint64(31))
                options = np.uint64(firsts[symbol + 1] - firsts[symbol])
                rule = firsts[symbol] + np.int64(((z >> np.uint64(32)) * options) >> np.uint64(32))
                if (z & np.uint64(0xFFFFFFFF)) >= accept[rule]:
                    rule = np.int64(alias[rule])
                if symbol == roots:
                    stack[0] = lefts[rule]
                    depth = 1
                elif rights[rule] == WORD:
                    values[used] = lefts[rule]
                    used += 1
                else:
                    stack[depth] = rights[rule]
                    stack[depth + 1] = lefts[rule]
                    depth += 2
            if depth == 0 and used - begin >= low:
                break
            used = begin
            tries += 1
            if tries == TRIES:
                return -1
        lengths[sentence] = used - begin
    return used
