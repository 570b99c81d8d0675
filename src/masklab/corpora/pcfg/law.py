"""The exact law of a grammar's sentences: their probabilities, and every word given all the others.

One inside-outside pass gives Pr(x_t | x_-t) at all T positions: the outside score of the leaf over x_t does not depend
on x_t (Lari & Young 1990; Liu et al. 2023, appendix A.2, compute |V| x T inside passes). Lengths are known to the
reader, so that a conditional is one among the sentences of that length. Words are scaled by their total emission.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from masklab.corpora.pcfg import chart
from masklab.corpora.pcfg.lanes import LANES
from masklab.corpora.pcfg.plan import Tables, make_plan
from masklab.corpora.pcfg.rules import Rules
from masklab.errors import MaskLabError
from masklab.intervals import mean_and_error

PART = 64 * LANES  # sentences of one length that a thread takes at a time, at most
CUBES = 1 << 27  # cubes of lengths of which the sums of a recursive grammar take seconds


class Law:
    """The law of sentences of a grammar; `symbols` is the number V of its words.

    Sequences are [N, T] int, padded with anything past their lengths [N]. Results do not depend on `threads`.
    """

    def __init__(self, rules: Rules):
        self.rules, self.symbols, self.tables = rules, len(rules.words), Tables.of(rules)
        self.roots = tuple(int(g) for g in np.unique(rules.groups[rules.start > 0]))
        self._plans, self._spaces = {}, threading.local()

    def plan(self, length: int, tops=None):
        """The plan for sentences of `length` words; tops: groups of their roots (None: those of start symbols)."""
        key = length, self.roots if tops is None else tuple(tops)
        if key not in self._plans:
            self._plans[key] = make_plan(self.tables, *key)
        return self._plans[key]

    def work(self, lengths, asked) -> np.ndarray:
        """How much of some seconds the sums of sentences take, see `masklab.corpora.laws`."""
        return lengths**3 / CUBES

    def conditionals(self, sequences, lengths, threads: int = 1, out=None) -> np.ndarray:
        """Pr(x_t = v | x_-t, length), [N, T, V] float64, 0 past a row's length.

        out: [N, T, V] float64 to fill instead of new memory, which costs as much as the sums. MaskLabError names the
        first row whose sentence is impossible.
        """
        sequences, lengths = self.checked(sequences, lengths)
        if out is None:
            out = np.empty((*sequences.shape, self.symbols))
        elif out.shape != (*sequences.shape, self.symbols) or out.dtype != np.float64 or not out.flags.c_contiguous:
            raise MaskLabError(f"out: must be float64, contiguous, of shape {(*sequences.shape, self.symbols)}")
        self._conditionals(chart.conditionals, sequences, lengths, threads, (), out)
        return out

    def conditionals_at(self, sequences, lengths, rows, columns, threads: int = 1) -> np.ndarray:
        """The conditionals of the words at (rows, columns) [M] alone, [M, V] float64; rows may occur repeatedly."""
        sequences, lengths = self.checked(sequences, lengths)
        rows, columns = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
        if len(columns) and not ((columns >= 0) & (columns < lengths[rows])).all():
            raise MaskLabError("columns: must be 0 or more and below the lengths of their rows")
        order, probabilities = np.argsort(rows, kind="stable"), np.empty((len(rows), self.symbols))
        asked = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(lengths)))])
        self._conditionals(chart.conditionals_at, sequences, lengths, threads, (asked, order, columns), probabilities)
        return probabilities

    def _conditionals(self, sweep, sequences, lengths, threads, asked, out):
        evidence, tables = np.empty(len(lengths)), self.tables

        def part(plan, rows):
            inner, outer, products, wide, words = self._space(plan)
            space = (inner, outer, products, *asked) if asked else (inner, outer, products, wide)
            sweep(sequences, rows, words, plan.compiled(), tables.compiled(), tables.scaled, self.rules.start,
                  plan.leaf_rows, tables.emissions(), *space, evidence, out)  # fmt: skip

        self._run(part, lengths, threads)
        if len(evidence) and not evidence.min() > 0:
            raise MaskLabError(f"sequence {int(np.argmin(evidence))}: impossible under the grammar of its corpus")

    def mlm_entropy(self, sequences, lengths) -> dict:
        """Mean entropy of a word given all others, in nats: `per_sentence` (a position drawn uniformly from each
        sentence, as in the paper) with its standard error `per_sentence_se`, and `per_token` (all positions alike).
        """
        sums = np.zeros(len(lengths))
        for at in range(0, len(lengths), 512):
            part = slice(at, at + 512)
            p = self.conditionals(sequences[part], lengths[part])
            sums[part] = -(p * np.log(np.where(p > 0, p, 1))).sum((1, 2))
        mean, error = mean_and_error(sums / lengths, np.arange(len(sums)))
        return {"per_sentence": mean, "per_sentence_se": error, "per_token": float(sums.sum() / np.sum(lengths))}

    def log_probability(self, sequences, lengths) -> np.ndarray:
        """Natural logarithm of the probability of each sentence (among all lengths), [N]; -inf if impossible."""
        sequences, lengths = self.checked(sequences, lengths)
        scaled = self._scores(sequences, lengths, self.roots) @ self.rules.start
        inside = np.arange(sequences.shape[1]) < lengths[:, None]
        with np.errstate(divide="ignore"):
            scale = np.log(self.tables.scale)[np.where(inside, sequences, 0)]
            return np.log(scaled) + np.where(inside, scale, 0).sum(1)

    def root_inside(self, sequences, lengths) -> np.ndarray:
        """Proportional to Pr(all words | symbol) for every symbol as root, [N, n]; the scale is of each row."""
        groups = range(len(self.tables.first) - 1)
        return self._scores(*self.checked(sequences, lengths), groups)

    def prefix_posterior(self, sequences, lengths, width: int) -> np.ndarray:
        """Proportional to Pr(the first `width` words are those below a node with this symbol | all words), [N, n].

        width: at most every length.
        """
        return self._scores(*self.checked(sequences, lengths), None, width)

    def _scores(self, sequences, lengths, tops, width=None):
        """Inside scores of whole sentences below `tops`, or (width given) inside x outside of their beginnings."""
        scores, tables = np.zeros((len(lengths), len(self.rules))), self.tables

        def part(plan, rows):
            inner, outer, products, _, words = self._space(plan)
            picked = plan.symbol_rows(tables, plan.length if width is None else width)
            chart.scores(sequences, rows, words, plan.compiled(), tables.compiled(), tables.scaled, self.rules.start,
                         picked, width is not None, inner, outer, products, scores)  # fmt: skip

        self._run(part, lengths, tops=tops)
        return scores

    def checked(self, sequences, lengths):
        """Sequences and lengths as contiguous int64 arrays; MaskLabError for symbols or lengths that cannot be."""
        sequences, lengths = np.ascontiguousarray(sequences, np.int64), np.asarray(lengths, np.int64)
        if len(lengths) and (lengths.min() < 1 or lengths.max() > sequences.shape[1]):
            raise MaskLabError(f"lengths must be 1 to {sequences.shape[1]}, got {lengths.min()} to {lengths.max()}")
        words = sequences[np.arange(sequences.shape[1]) < lengths[:, None]]
        if len(words) and (words.min() < 0 or words.max() >= self.symbols):
            raise MaskLabError(f"symbols must be 0 to {self.symbols - 1}, got {words.min()} to {words.max()}")
        return sequences, lengths

    def _run(self, part, lengths, threads=1, tops=None):
        """part(plan, rows) for all rows, those of one length together."""
        order = np.argsort(lengths, kind="stable")
        parts = []
        for rows in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1) if len(order) else ():
            plan = self.plan(int(lengths[rows[0]]), tops)
            size = min(PART, -(-len(rows) // (threads * LANES)) * LANES)
            parts += [(plan, rows[at : at + size]) for at in range(0, len(rows), size)]
        if threads == 1:
            for plan, rows in parts:
                part(plan, rows)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(lambda one: part(*one), parts))

    def _space(self, plan):
        """Charts (inside, outside), products of a span, scores of words, words: kept by each thread.

        Fresh memory would cost more than the sums.
        """
        kept = self._spaces.__dict__
        if kept.get("rows", -1) < plan.rows:
            kept["rows"], kept["charts"] = plan.rows, np.empty((2, plan.rows, LANES))
            kept["products"] = np.empty((int(self.tables.heights.max()) ** 2, LANES))
            kept["wide"] = np.empty((self.symbols + 1, LANES))
        inner, outer = kept["charts"][:, : plan.rows]
        return inner, outer, kept["products"], kept["wide"], np.empty((plan.length, LANES), np.int64)


def rules_of(header: dict):
    """The grammar of a corpus, from its header (`symbols.read_header`)."""
    from masklab.config.schema import Grammar
    from masklab.corpora.pcfg.read import parse_rules
    from masklab.corpora.pcfg.rules import draw_rules

    grammar = Grammar(**header["config"]["grammar"])
    if grammar.file is not None:
        return parse_rules(header["rules"], grammar.file, header["names"])  # numbered as in the corpus
    return draw_rules(grammar, header["seed"])


def of_header(header: dict) -> Law:
    """The law of a corpus from its header (`symbols.read_header`)."""
    return Law(rules_of(header))
