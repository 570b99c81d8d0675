"""Sentences of a grammar: our sampler against nltk, one core, the same grammar.

nltk draws no sentences: its generator, `nltk.parse.generate`, enumerates them in order, the first million differing in
their last words alone (timed for completeness). People who draw them, the authors of the paper among them, walk over
nltk's `PCFG` from the start symbol, choosing one of a symbol's productions by weight. So does the first peer; the
second has right sides and cumulative weights of every symbol prepared, which nltk does not. Ends in `ratio:`, our
sentences per second over the faster peer's. CPU seconds, so that other work on the machine counts little.
"""

import argparse
import itertools
import random
import time

import numpy as np
from nltk import PCFG
from nltk.grammar import Nonterminal, ProbabilisticProduction
from nltk.parse.generate import generate

from masklab.config.schema import Grammar
from masklab.corpora.pcfg.rules import draw_rules
from masklab.corpora.pcfg.sample import Sampler

ENUMERATED, WALKED, PREPARED = "nltk.parse.generate (enumerates)", "nltk PCFG, walked", "nltk PCFG, weights prepared"


def nltk_grammar(rules):
    """The same grammar as nltk's; its start symbol is rewritten to the roots."""
    symbols = [Nonterminal(name) for name in rules.names]
    start = Nonterminal("ROOT")
    productions = [ProbabilisticProduction(start, [s], prob=p) for s, p in zip(symbols, rules.start, strict=True) if p]
    for (a, b, c), p in zip(rules.binary, rules.binary_probabilities, strict=True):
        productions.append(ProbabilisticProduction(symbols[a], [symbols[b], symbols[c]], prob=p))
    for (a, w), p in zip(rules.lexical, rules.lexical_probabilities, strict=True):
        productions.append(ProbabilisticProduction(symbols[a], [rules.words[w]], prob=p))
    return PCFG(start, productions)


def walked(grammar, symbol):
    """A sentence drawn by walking over the productions."""
    productions = grammar.productions(lhs=symbol)
    chosen = random.choices(productions, weights=[production.prob() for production in productions])[0]
    words = []
    for part in chosen.rhs():
        words += walked(grammar, part) if isinstance(part, Nonterminal) else [part]
    return words


def prepared(options, symbol):
    """The same with (right sides, cumulative weights) of every symbol at hand."""
    sides, weights = options[symbol]
    words = []
    for part in random.choices(sides, cum_weights=weights)[0]:
        if part in options:
            words += prepared(options, part)
        else:
            words.append(part)
    return words


def prepare(grammar):
    found = {}
    for production in grammar.productions():
        found.setdefault(production.lhs(), []).append(production)
    return {
        symbol: ([p.rhs() for p in own], list(itertools.accumulate(p.prob() for p in own)))
        for symbol, own in found.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", type=int, default=1_000_000, help="sentences a round")
    parser.add_argument("--theirs", type=int, default=4000, help="sentences a round")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved; the fastest of each counts")
    arguments = parser.parse_args()
    rules = draw_rules(Grammar(), 1)
    grammar, sampler = nltk_grammar(rules), Sampler(rules)
    options, start = prepare(grammar), grammar.start()
    list(sampler.draw(1, 1, "compile"))
    random.seed(1)
    ways = {
        "ours": lambda: np.concatenate([lengths for _, lengths in sampler.draw(arguments.ours, 1, "benchmark")]),
        ENUMERATED: lambda: list(map(len, generate(grammar, n=arguments.theirs))),
        WALKED: lambda: [len(walked(grammar, start)) for _ in range(arguments.theirs)],
        PREPARED: lambda: [len(prepared(options, start)) for _ in range(arguments.theirs)],
    }
    best = dict.fromkeys(ways, 0.0)
    for _ in range(arguments.rounds):
        for name, way in ways.items():
            began = time.process_time()
            lengths = way()
            seconds = time.process_time() - began
            best[name] = max(best[name], len(lengths) / seconds)
            print(f"{name}: {len(lengths) / seconds:,.0f} sentences/s, mean length {np.mean(lengths):.2f}", flush=True)
    for name, rate in best.items():
        print(f"{name}: {rate:,.0f} sentences/s, ours {best['ours'] / rate:.1f} times as many")
    print(f"ratio: {best['ours'] / max(best[PREPARED], best[WALKED]):.1f}")


if __name__ == "__main__":
    main()
