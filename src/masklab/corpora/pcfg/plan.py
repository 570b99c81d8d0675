"""Which spans of a sentence of T words can be nodes of a tree, by group of symbols, and how they are composed.

Only spans that some symbol of a group can derive (bottom up) and that can occur below the root (top down) are kept.
Of a grammar of levels that is little: a symbol of the second level begins or ends a sentence, one of the third begins
or ends it or lies within, and none is wider than its level allows.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tables:
    """A grammar as arrays: V words, n symbols, blocks of rules, one for each group that is rewritten.

    first [G + 1]: first symbol of each group. Of block b, whose parents are of group `parent[b]` and children of
    `child[b]`: cells `cell[cells[b]:cells[b + 1]]` [., 2] are the pairs of children that occur (numbers within their
    group); rules `rule[rules[b]:rules[b + 1]]` [., 2] are (parent within its group, cell within the block).
    emissions [n, V] dense; word, entries: the same by word as lists of (symbol, probability).
    scale [V]: sum of a word's emissions; scaled [V, n]: emissions / scale, which keeps products of them in range.
    """

    first: np.ndarray
    parent: np.ndarray
    child: np.ndarray
    cells: np.ndarray
    cell: np.ndarray
    rules: np.ndarray
    rule: np.ndarray
    probability: np.ndarray
    scale: np.ndarray
    scaled: np.ndarray
    entries: np.ndarray
    entry_symbol: np.ndarray
    entry_probability: np.ndarray

    @classmethod
    def of(cls, rules) -> "Tables":
        groups = rules.groups
        count = int(groups.max()) + 1
        first = np.searchsorted(groups, np.arange(count + 1))
        parent, child, cells, cell, ends, rule, probability = [], [], [0], [], [0], [], []
        for group in range(count):
            mine = np.flatnonzero(groups[rules.binary[:, 0]] == group)
            if not len(mine):
                continue
            below = int(groups[rules.binary[mine[0], 1]])
            pairs, which = np.unique(rules.binary[mine, 1:] - first[below], axis=0, return_inverse=True)
            parent.append(group)
            child.append(below)
            cell.append(pairs)
            cells.append(cells[-1] + len(pairs))
            rule.append(np.stack([rules.binary[mine, 0] - first[group], which.ravel()], 1))
            ends.append(ends[-1] + len(mine))
            probability.append(rules.binary_probabilities[mine])
        emissions = rules.emissions()
        scale = emissions.sum(0)
        by_word = np.lexsort((rules.lexical[:, 0], rules.lexical[:, 1]))
        return cls(
            first,
            np.array(parent, np.int64),
            np.array(child, np.int64),
            np.array(cells, np.int64),
            np.concatenate([np.zeros((0, 2), np.int64), *cell]).astype(np.int64),
            np.array(ends, np.int64),
            np.concatenate([np.zeros((0, 2), np.int64), *rule]).astype(np.int64),
            np.concatenate([np.zeros(0), *probability]),
            scale,
            np.ascontiguousarray((emissions / np.where(scale > 0, scale, 1)).T),
            np.concatenate([[0], np.cumsum(np.bincount(rules.lexical[:, 1], minlength=len(rules.words)))]),
            rules.lexical[by_word, 0].astype(np.int64),
            rules.lexical_probabilities[by_word],
        )


@dataclass(frozen=True)
class Plan:
    """The chart of sentences of one length: each span of a group has rows, one per symbol, from an offset on.

    rows: their number. leaves [L, 3]: (offset, group, position). jobs [J, 4]: (offset, block, first, end of its
    pairs), children before parents; pairs [P, 2]: offsets of the left and the right child. top: {group: offset} of
    the whole sentence. leaf_rows [T, n]: row of a symbol over each single word, -1 where there is none. spans:
    {(group, start, width): offset}.
    """

    length: int
    rows: int
    leaves: np.ndarray
    jobs: np.ndarray
    pairs: np.ndarray
    top: dict
    leaf_rows: np.ndarray
    spans: dict


def make_plan(tables: Tables, length: int, tops) -> Plan:
    """Plan for sentences of `length` words whose root is of one of the groups `tops`."""
    groups = len(tables.first) - 1
    block = {int(group): b for b, group in enumerate(tables.parent)}
    can = derivable(tables, length)
    waiting = [(group, 0, length) for group in tops if can[group, length]]
    splits = {}
    while waiting:  # top down
        span = waiting.pop()
        if span in splits:
            continue
        group, start, width = span
        splits[span] = []
        if width == 1 or group not in block:
            continue
        below = int(tables.child[block[group]])
        for left in range(1, width):
            if can[below, left] and can[below, width - left]:
                two = (below, start, left), (below, start + left, width - left)
                splits[span].append(two)
                waiting.extend(two)
    ordered = sorted(splits, key=lambda span: (span[2], -span[0], span[1]))
    offsets, rows = {}, 0
    for span in ordered:
        offsets[span] = rows
        rows += int(tables.first[span[0] + 1] - tables.first[span[0]])
    leaves, jobs, pairs = [], [], []
    leaf_rows = np.full((length, int(tables.first[-1])), -1, np.int64)
    for span in ordered:
        group, start, width = span
        if width == 1:
            leaves.append((offsets[span], group, start))
            symbols = np.arange(tables.first[group], tables.first[group + 1])
            leaf_rows[start, symbols] = offsets[span] + np.arange(len(symbols))
        elif splits[span]:
            jobs.append((offsets[span], block[group], len(pairs), len(pairs) + len(splits[span])))
            pairs += [(offsets[left], offsets[right]) for left, right in splits[span]]
    top = {group: offsets[group, 0, length] for group in range(groups) if (group, 0, length) in offsets}
    return Plan(
        length, rows, _table(leaves, 3), _table(jobs, 4), _table(pairs, 2), top, leaf_rows, offsets
    )  # fmt: skip


def derivable(tables: Tables, length: int) -> np.ndarray:
    """Whether some symbol of a group derives some sequence of w words, [groups, length + 1] bool."""
    groups = len(tables.first) - 1
    can = np.zeros((groups, length + 1), bool)
    for group in range(groups):
        can[group, 1:2] = (tables.scaled[:, tables.first[group] : tables.first[group + 1]] > 0).any()
    for width in range(2, length + 1):
        for group, below in zip(tables.parent, tables.child, strict=True):
            can[group, width] = (can[below, 1:width] & can[below, width - 1 : 0 : -1]).any()
    return can


def _table(rows, width):
    return np.array(rows, np.int64).reshape(-1, width)
