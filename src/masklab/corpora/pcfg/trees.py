"""Example trees of a grammar (Liu et al. 2023, Figure 7)."""

import numpy as np

from masklab.errors import MaskLabError
from masklab.rng import generator

TRIES = 10_000


def sample_tree(rules, seed: int, *address, min_length: int = 1, max_length: int = 32) -> tuple:
    """A tree drawn from the grammar: (name, left, right), or (name, word); drawn again unless of these lengths."""
    rng = generator(seed, *address)
    options = [
        [((int(b), int(c)), p) for (a, b, c), p in zip(rules.binary, rules.binary_probabilities, strict=True) if a == s]
        + [((int(w),), p) for (a, w), p in zip(rules.lexical, rules.lexical_probabilities, strict=True) if a == s]
        for s in range(len(rules))
    ]

    def grow(symbol, room):
        sides, weights = zip(*options[symbol], strict=True)
        side = sides[rng.choice(len(sides), p=np.array(weights) / sum(weights))]
        if len(side) == 1:
            return (rules.names[symbol], rules.words[side[0]]), 1
        if room < 2:
            raise _TooLong
        left, used = grow(side[0], room - 1)
        right, more = grow(side[1], room - used)
        return (rules.names[symbol], left, right), used + more

    for _ in range(TRIES):
        try:
            tree, length = grow(rng.choice(len(rules), p=rules.start), max_length)
        except _TooLong:
            continue
        if length >= min_length:
            return tree
    raise MaskLabError(f"grammar: no tree of {min_length} to {max_length} words in {TRIES:,} draws")


class _TooLong(Exception):
    pass


def brackets(tree) -> str:
    """`(S1 (A1_2 w4) (A1_3 ...))`."""
    return f"({tree[0]} {' '.join(part if isinstance(part, str) else brackets(part) for part in tree[1:])})"


def leaves(tree) -> list[str]:
    """The sentence of a tree."""
    return [word for part in tree[1:] for word in ([part] if isinstance(part, str) else leaves(part))]
