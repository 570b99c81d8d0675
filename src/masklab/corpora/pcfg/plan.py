"""Which spans of a sentence of T words can be nodes of a tree, by group of symbols, and how they are composed.

Only spans that some symbol of a group can derive (bottom up) and that can occur below the root (top down) are kept.
Of a grammar of levels that is little: a symbol of the second level begins or ends a sentence, one of the third begins
or ends it or lies within, and none is wider than its level allows.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tables:
    """A grammar of V words, n symbols and G groups as arrays.

    first [G + 1]: first symbol of each group. rows [G]: its rows in a chart, its size rounded up to 4s, the rest 0.
    child [G]: the group that its symbols are rewritten to, -1 for none; heights [G]: rows of that. A cell of a group is
    a pair (i, j) of rows of its child, number i * height + j. Rules by parent: those of symbol s are
    by_parent[s]:by_parent[s + 1], with cell and parent_probability. Rules by cell: those of cell c of group g are
    by_cell[k]:by_cell[k + 1], k = cells[g] + c, with parent (number within its group) and cell_probability.
    scale [V]: sum of a word's emissions; scaled [V, n]: emissions / scale, which keeps products of them in range.
    entries [V + 1], entry_symbol, entry_probability: emissions by word.
    """

    first: np.ndarray
    rows: np.ndarray
    child: np.ndarray
    heights: np.ndarray
    by_parent: np.ndarray
    cell: np.ndarray
    parent_probability: np.ndarray
    cells: np.ndarray
    by_cell: np.ndarray
    parent: np.ndarray
    cell_probability: np.ndarray
    scale: np.ndarray
    scaled: np.ndarray
    entries: np.ndarray
    entry_symbol: np.ndarray
    entry_probability: np.ndarray

    @classmethod
    def of(cls, rules) -> "Tables":
        groups, n = rules.groups, len(rules)
        count = int(groups.max()) + 1
        first = np.searchsorted(groups, np.arange(count + 1))
        rows = -(-np.diff(first) // 4) * 4
        child = np.full(count, -1)
        child[groups[rules.binary[:, 0]]] = groups[rules.binary[:, 1]]
        heights = np.where(child >= 0, rows[child], 0)
        above = groups[rules.binary[:, 0]]
        left, right = (rules.binary[:, 1:] - first[child[above]][:, None]).T
        cell = left * heights[above] + right
        cells = np.concatenate([[0], np.cumsum(heights**2)])
        everywhere = cells[above] + cell
        order = np.argsort(everywhere, kind="stable")
        emissions = rules.emissions()
        scale = emissions.sum(0)
        by_word = np.lexsort((rules.lexical[:, 0], rules.lexical[:, 1]))
        return cls(
            first,
            rows,
            child,
            heights,
            _starts(rules.binary[:, 0], n),
            cell,
            rules.binary_probabilities,
            cells,
            _starts(everywhere, int(cells[-1])),
            (rules.binary[:, 0] - first[above])[order],
            rules.binary_probabilities[order],
            scale,
            np.ascontiguousarray((emissions / np.where(scale > 0, scale, 1)).T),
            _starts(rules.lexical[:, 1], len(rules.words)),
            rules.lexical[by_word, 0].astype(np.int64),
            rules.lexical_probabilities[by_word],
        )

    def compiled(self) -> tuple:
        """What `chart.inside` and `chart.outside` take."""
        return (self.first, self.rows, self.heights, self.by_parent, self.cell, self.parent_probability, self.cells,
                self.by_cell, self.parent, self.cell_probability)  # fmt: skip

    def emissions(self) -> tuple:
        """What `chart.read` takes."""
        return self.entries, self.entry_symbol, self.entry_probability


def _starts(keys, count):
    """Where each key's entries start in a table sorted by key, [count + 1] int64."""
    return np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=count))]).astype(np.int64)


@dataclass(frozen=True)
class Plan:
    """The chart of sentences of one length: each span of a group has its `Tables.rows` from an offset on.

    rows: their number. leaves [L, 3]: (offset, group, position). jobs [J, 4]: (offset, group, first, end of its
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

    def compiled(self) -> tuple:
        """What the sweeps of `chart` take."""
        return self.leaves, self.jobs, self.pairs, _table(list(self.top.items()), 2)

    def symbol_rows(self, tables, width: int) -> np.ndarray:
        """Row of each symbol over the first `width` words, [n]; -1 where it has none."""
        rows = np.full(int(tables.first[-1]), -1, np.int64)
        for group, first in enumerate(tables.first[:-1]):
            if (group, 0, width) in self.spans:
                size = tables.first[group + 1] - first
                rows[first : first + size] = self.spans[group, 0, width] + np.arange(size)
        return rows


def make_plan(tables: Tables, length: int, tops) -> Plan:
    """Plan for sentences of `length` words whose root is of one of the groups `tops`."""
    groups = len(tables.first) - 1
    can = derivable(tables, length)
    waiting = [(group, 0, length) for group in tops if can[group, length]]
    splits = {}
    while waiting:  # top down
        span = waiting.pop()
        if span in splits:
            continue
        group, start, width = span
        splits[span] = []
        below = int(tables.child[group])
        if below < 0:
            continue
        for left in range(1, width):
            if can[below, left] and can[below, width - left]:
                two = (below, start, left), (below, start + left, width - left)
                splits[span].append(two)
                waiting.extend(two)
    ordered = sorted(splits, key=lambda span: (span[2], -span[0], span[1]))
    offsets, rows = {}, 0
    for span in ordered:
        offsets[span] = rows
        rows += int(tables.rows[span[0]])
    leaves, jobs, pairs = [], [], []
    leaf_rows = np.full((length, int(tables.first[-1])), -1, np.int64)
    for span in ordered:
        group, start, width = span
        if width == 1:
            leaves.append((offsets[span], group, start))
            symbols = np.arange(tables.first[group], tables.first[group + 1])
            leaf_rows[start, symbols] = offsets[span] + np.arange(len(symbols))
        elif splits[span]:
            jobs.append((offsets[span], group, len(pairs), len(pairs) + len(splits[span])))
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
        for group, below in enumerate(tables.child):
            if below < 0:
                continue
            can[group, width] = (can[below, 1:width] & can[below, width - 1 : 0 : -1]).any()
    return can


def _table(rows, width):
    return np.array(rows, np.int64).reshape(-1, width)
