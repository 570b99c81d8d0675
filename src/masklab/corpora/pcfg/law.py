"""The exact law of a grammar's sentences: their probabilities, and every word given all the others.

One inside-outside pass gives Pr(x_t | x_-t) at all T positions: the outside score of the leaf over x_t does not depend
on x_t (Lari & Young 1990; Liu et al. 2023, appendix A.2, compute |V| x T inside passes). Lengths are known to the
reader, so that a conditional is one among the sentences of that length. Words are scaled by their total emission.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from masklab.corpora.pcfg import chart
from masklab.corpora.pcfg.plan import Tables, make_plan
from masklab.corpora.pcfg.rules import Rules
from masklab.errors import MaskLabError


class Law:
    """The law of sentences of a grammar; `symbols` is the number V of its words.

    Sequences are [N, T] int, padded with anything past their lengths [N]. Results do not depend on `threads`.
    """

    def __init__(self, rules: Rules):
        self.rules, self.symbols, self.tables = rules, len(rules.words), Tables.of(rules)
        self.roots = tuple(int(g) for g in np.unique(rules.groups[rules.start > 0]))
        self._plans = {}

    def plan(self, length: int, tops=None):
        """The plan for sentences of `length` words; tops: groups of their roots (None: those of start symbols)."""
        key = length, self.roots if tops is None else tuple(tops)
        if key not in self._plans:
            self._plans[key] = make_plan(self.tables, *key)
        return self._plans[key]

    def conditionals(self, sequences, lengths, threads: int = 1) -> np.ndarray:
        """Pr(x_t = v | x_-t, length), [N, T, V] float64, 0 past a row's length.

        MaskLabError names the first row whose sentence is impossible.
        """
        sequences, lengths = self._checked(sequences, lengths)
        found = np.zeros((*sequences.shape, self.symbols))

        def part(plan, words, rows):
            inner = self._inside(plan, words)
            outer = self._outside(plan, inner)
            values = np.empty((len(rows), plan.length, self.symbols))
            wide = np.empty((self.symbols, chart.LANES))
            t = self.tables
            chart.read(plan.leaf_rows, t.entries, t.entry_symbol, t.entry_probability, outer, wide, values)
            found[rows, : plan.length] = values
            return self._evidence(plan, inner)[: len(rows)]

        self._possible(self._run(part, sequences, lengths, threads), sequences)
        return found

    def log_probability(self, sequences, lengths, threads: int = 1) -> np.ndarray:
        """Natural logarithm of the probability of each sentence (among all lengths), [N]; -inf if impossible."""
        sequences, lengths = self._checked(sequences, lengths)

        def part(plan, words, rows):
            with np.errstate(divide="ignore"):
                scaled = np.log(self._evidence(plan, self._inside(plan, words)))
                return (scaled + np.log(self.tables.scale[words]).sum(0))[: len(rows)]

        return self._run(part, sequences, lengths, threads)

    def root_inside(self, sequences, lengths, threads: int = 1) -> np.ndarray:
        """Proportional to Pr(all words | symbol) for every symbol as root, [N, n]; the scale is of each row."""
        sequences, lengths = self._checked(sequences, lengths)
        groups = range(len(self.tables.first) - 1)

        def part(plan, words, rows):
            return self._span(plan, self._inside(plan, words), plan.length)[: len(rows)]

        return self._run(part, sequences, lengths, threads, groups, len(self.rules))

    def prefix_posterior(self, sequences, lengths, width, threads: int = 1) -> np.ndarray:
        """Proportional to Pr(the first `width` words are those below a node with this symbol | all words), [N, n].

        width: one number, at most every length.
        """
        sequences, lengths = self._checked(sequences, lengths)

        def part(plan, words, rows):
            inner = self._inside(plan, words)
            return (self._span(plan, inner, width) * self._span(plan, self._outside(plan, inner), width))[: len(rows)]

        return self._run(part, sequences, lengths, threads, None, len(self.rules))

    def _checked(self, sequences, lengths):
        sequences, lengths = np.asarray(sequences), np.asarray(lengths, np.int64)
        if len(lengths) and (lengths.min() < 1 or lengths.max() > sequences.shape[1]):
            raise MaskLabError(f"lengths must be 1 to {sequences.shape[1]}, got {lengths.min()} to {lengths.max()}")
        return sequences, lengths

    def _possible(self, evidence, sequences):
        if len(evidence) and not evidence.min() > 0:
            raise MaskLabError(f"sequence {int(np.argmin(evidence))}: impossible under the grammar of its corpus")

    def _run(self, part, sequences, lengths, threads, tops=None, width=None):
        """part(plan, words [T, LANES], rows) -> values [rows, ...] of chunks of rows of one length; rows' values."""
        found = np.zeros(len(lengths) if width is None else (len(lengths), width))
        chunks = []
        for length in np.unique(lengths):
            rows, plan = np.flatnonzero(lengths == length), self.plan(int(length), tops)
            chunks += [(plan, rows[at : at + chart.LANES]) for at in range(0, len(rows), chart.LANES)]

        def one(chunk):
            plan, rows = chunk
            filled = rows[np.minimum(np.arange(chart.LANES), len(rows) - 1)]  # the last one again in empty lanes
            words = np.ascontiguousarray(sequences[filled, : plan.length].T, np.int64)
            if words.min() < 0 or words.max() >= self.symbols:
                raise MaskLabError(f"symbols must be 0 to {self.symbols - 1}, got {words.min()} to {words.max()}")
            found[rows] = part(plan, words, rows)

        if threads == 1 or len(chunks) < 2:
            for chunk in chunks:
                one(chunk)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(one, chunks))
        return found

    def _space(self):
        return np.empty((int(np.diff(self.tables.cells).max(initial=0)), chart.LANES))

    def _inside(self, plan, words):
        t, inner = self.tables, np.empty((plan.rows, chart.LANES))
        chart.inside(words, plan.leaves, plan.jobs, plan.pairs, t.first, t.cells, t.cell, t.rules, t.rule,
                     t.probability, t.scaled, inner, self._space())  # fmt: skip
        return inner

    def _outside(self, plan, inner):
        t, outer = self.tables, np.zeros((plan.rows, chart.LANES))
        for group, row in plan.top.items():
            start = self.rules.start[t.first[group] : t.first[group + 1]]
            outer[row : row + len(start)] = start[:, None]
        chart.outside(plan.jobs, plan.pairs, t.cells, t.cell, t.rules, t.rule, t.probability, inner, outer,
                      self._space())  # fmt: skip
        return outer

    def _evidence(self, plan, inner):
        """Scaled probability of each lane's sentence, [LANES]."""
        total = np.zeros(chart.LANES)
        for group, row in plan.top.items():
            start = self.rules.start[self.tables.first[group] : self.tables.first[group + 1]]
            total += start @ inner[row : row + len(start)]
        return total

    def _span(self, plan, values, width):
        """Values [rows, LANES] of all symbols over the first `width` words, [LANES, n]; 0 where there are none."""
        found, first = np.zeros((chart.LANES, len(self.rules))), self.tables.first
        for group in range(len(first) - 1):
            row = plan.spans.get((group, 0, width))
            if row is not None:
                found[:, first[group] : first[group + 1]] = values[row : row + first[group + 1] - first[group]].T
        return found


def rules_of(facts: dict):
    """The grammar of a corpus, from its facts (`corpora.symbols.read_facts`)."""
    from masklab.config.schema import Grammar
    from masklab.corpora.pcfg.read import parse_rules
    from masklab.corpora.pcfg.rules import draw_rules

    grammar = Grammar(**facts["config"]["grammar"])
    if grammar.file is not None:
        return parse_rules(facts["rules"], grammar.file)
    return draw_rules(grammar, facts["seed"])


def from_facts(facts: dict) -> Law:
    """The law of a corpus from its facts (`corpora.symbols.read_facts`)."""
    return Law(rules_of(facts))
