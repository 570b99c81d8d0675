"""The inside-outside pass in torch, for GPUs: all sentences of one length, and all spans of a width and group, at once.

Charts are [spans, sentences, rows] by group; span 0 of each is empty and stands for splits that a span does not have.
"""

import numpy as np
import torch

from masklab.errors import MaskLabError

NUMBERS = 1 << 28  # of the charts and conditionals of one batch


class BatchedLaw:
    """Conditionals of a `law.Law` on a torch device; equal to its own up to rounding (float64: some 1e-12)."""

    def __init__(self, law, device="cuda", dtype=torch.float64):
        self.law, self.symbols, self.device, self.dtype = law, law.symbols, torch.device(device), dtype
        tables, self.starts = law.tables, np.concatenate([[0], np.cumsum(law.tables.rows)])
        # where each symbol stands among the rows of all groups
        at = np.concatenate(
            [start + np.arange(n) for start, n in zip(self.starts, np.diff(tables.first), strict=False)]
        )
        scaled = np.zeros((law.symbols, self.starts[-1]))
        emissions, start = np.zeros((self.starts[-1], law.symbols)), np.zeros(self.starts[-1])
        scaled[:, at], emissions[at], start[at] = tables.scaled, law.rules.emissions(), law.rules.start
        self.scaled, self.emissions, self.start = (self._tensor(part) for part in (scaled, emissions, start))
        self.weights = []  # P(cell | symbol), [rows, height^2], by group
        for group, height in enumerate(tables.heights):
            dense = np.zeros((tables.rows[group], height**2))
            for k, symbol in enumerate(range(*tables.first[group : group + 2])):
                mine = slice(*tables.by_parent[symbol : symbol + 2])
                dense[k, tables.cell[mine]] = tables.parent_probability[mine]
            self.weights.append(self._tensor(dense))
        self._layouts = {}

    def _tensor(self, values):
        return torch.as_tensor(np.asarray(values), device=self.device, dtype=self.dtype)

    def _index(self, values):
        return torch.as_tensor(np.asarray(values, np.int64), device=self.device)

    @torch.no_grad()
    def conditionals(self, sequences, lengths) -> torch.Tensor:
        """Pr(x_t = v | x_-t, length) on the device, [N, T, V], 0 past a row's length; see `Law.conditionals`."""
        sequences, lengths = self.law.checked(sequences, lengths)
        probabilities = torch.zeros((*sequences.shape, self.symbols), dtype=self.dtype, device=self.device)
        words = torch.as_tensor(sequences, device=self.device)
        for length in np.unique(lengths):
            rows, layout = np.flatnonzero(lengths == length), self._layout(int(length))
            size = max(1, NUMBERS // layout.numbers)
            for at in range(0, len(rows), size):
                part = self._index(rows[at : at + size])
                evidence, probabilities[part, :length] = self._part(words[part, :length], layout)
                if not bool((evidence > 0).all()):
                    bad = rows[at + int(evidence.argmin())]
                    raise MaskLabError(f"sequence {bad}: impossible under the grammar of its corpus")
        return probabilities

    def _part(self, words, layout):
        """(scaled probabilities [B], conditionals [B, T, V]) of sentences of one length."""
        batch, rows = len(words), self.law.tables.rows
        empty = [(count, batch, int(rows[group])) for group, count in enumerate(layout.spans)]
        inner = [torch.zeros(shape, dtype=self.dtype, device=self.device) for shape in empty]
        outer = [torch.zeros(shape, dtype=self.dtype, device=self.device) for shape in empty]
        for group, spans, positions in layout.leaves:
            inner[group][spans] = self._of(self.scaled, group)[words[:, positions].T]
        for group, below, spans, left, right in layout.steps:
            cells = torch.einsum("skbi,skbj->sbij", inner[below][left], inner[below][right])
            inner[group][spans] = cells.flatten(2) @ self.weights[group].T
        evidence = 0
        for group, span in layout.tops:
            outer[group][span] = start = self._of(self.start, group)
            evidence = evidence + inner[group][span] @ start
        for group, below, spans, left, right in reversed(layout.steps):
            height = inner[below].shape[2]
            cells = (outer[group][spans] @ self.weights[group]).unflatten(2, (height, height))
            to_left = torch.einsum("sbij,skbj->skbi", cells, inner[below][right])
            to_right = torch.einsum("sbij,skbi->skbj", cells, inner[below][left])
            outer[below].index_add_(0, left.flatten(), to_left.flatten(0, 1))
            outer[below].index_add_(0, right.flatten(), to_right.flatten(0, 1))
        scores = 0
        for group, spans, positions in layout.leaves:
            leaf = torch.zeros((words.shape[1], batch, int(rows[group])), dtype=self.dtype, device=self.device)
            leaf[positions] = outer[group][spans]
            scores = scores + leaf @ self.emissions[self.starts[group] : self.starts[group + 1]]
        scores = scores.transpose(0, 1)
        return evidence, scores / scores.sum(-1, keepdim=True)

    def _of(self, values, group):
        return values[..., self.starts[group] : self.starts[group + 1]]

    def _layout(self, length):
        if length not in self._layouts:
            self._layouts[length] = _Layout(self, self.law.plan(length))
        return self._layouts[length]


class _Layout:
    """A `plan.Plan` as index tensors.

    spans: number of spans by group, the empty one included; leaves: (group, spans, positions); steps: (group, child,
    spans [S], left [S, K], right [S, K]), children before parents; tops: (group, span); numbers: per sentence.
    """

    def __init__(self, law, plan):
        tables, number, self.spans = law.law.tables, {}, [1] * len(law.law.tables.rows)
        group_of = {}
        for (group, start, width), offset in plan.spans.items():
            number[offset], group_of[offset] = self.spans[group], (group, start, width)
            self.spans[group] += 1
        leaves, jobs = {}, {}
        for offset, group, position in plan.leaves.tolist():
            leaves.setdefault(group, []).append((number[offset], position))
        for job in plan.jobs.tolist():
            group, _, width = group_of[job[0]]
            jobs.setdefault((width, group), []).append(job)
        self.leaves = [(group, *map(law._index, zip(*rows, strict=True))) for group, rows in leaves.items()]
        self.tops = [(group, number[offset]) for group, offset in plan.top.items()]
        self.steps, wide = [], 0
        for width, group in sorted(jobs):
            rows = jobs[width, group]
            sides = np.zeros((2, len(rows), max(end - begin for *_, begin, end in rows)), np.int64)
            for k, (_, _, begin, end) in enumerate(rows):
                sides[:, k, : end - begin] = [
                    [number[offset] for offset in side] for side in plan.pairs[begin:end].T.tolist()
                ]
            below, height = int(tables.child[group]), int(tables.heights[group])
            wide = max(wide, len(rows) * height * (height + 4 * sides.shape[2]))
            spans = law._index([number[offset] for offset, *_ in rows])
            self.steps.append((group, below, spans, *map(law._index, sides)))
        charts = 2 * sum(count * int(rows) for count, rows in zip(self.spans, tables.rows, strict=True))
        self.numbers = charts + wide + 2 * plan.length * law.symbols
