"""Every derivation of a small grammar, one by one: the truth that charts are compared with."""

import functools
import itertools


def derivations(rules, length, start=None):
    """[(probability, words, nodes)] of all trees with `length` leaves; nodes: [(symbol, first word, width)].

    start: weights of roots [n]; None: the grammar's own.
    """
    binary, lexical = {}, {}
    for (a, b, c), p in zip(rules.binary.tolist(), rules.binary_probabilities, strict=True):
        binary.setdefault(a, []).append((b, c, p))
    for (a, w), p in zip(rules.lexical.tolist(), rules.lexical_probabilities, strict=True):
        lexical.setdefault(a, []).append((w, p))

    @functools.cache
    def grown(symbol, width):
        if width == 1:
            return [(p, (w,), ((symbol, 0, 1),)) for w, p in lexical.get(symbol, [])]
        found = []
        for b, c, p in binary.get(symbol, []):
            for left in range(1, width):
                for (pl, wl, nl), (pr, wr, nr) in itertools.product(grown(b, left), grown(c, width - left)):
                    moved = tuple((s, at + left, n) for s, at, n in nr)
                    found.append((p * pl * pr, wl + wr, ((symbol, 0, width), *nl, *moved)))
        return found

    return [
        (weight * p, words, nodes)
        for root, weight in enumerate(rules.start if start is None else start)
        if weight > 0
        for p, words, nodes in grown(root, length)
    ]


def sentences(rules, length):
    """{words: probability} of all sentences of `length` words."""
    table = {}
    for p, words, _ in derivations(rules, length):
        table[words] = table.get(words, 0.0) + p
    return table
