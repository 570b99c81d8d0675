"""Probabilistic context-free grammars in Chomsky normal form, and random ones level by level.

Liu, Xie, Li & Ma (2023), appendix A.1: 50 non-terminals, 200 words, all rules with two symbols on the right side,
sentences of at most 32 words, trees of depth at most 6. The grammar itself was not published. The shape drawn here is
that of the rule file in the authors' code, one level deeper, so that trees reach 32 words: a distribution over start
symbols, symbols of one level rewritten to pairs of the next, now and then to a word, those of the last one to words.
"""

from dataclasses import dataclass

import numpy as np

from masklab.errors import MaskLabError
from masklab.rng import generator

TRIES = 1000  # grammars that are drawn before giving up
SAMPLED = 500  # sentences that tell how frequent labels are


@dataclass(frozen=True)
class Rules:
    """n symbols, V words; probabilities of each symbol's rules sum to 1.

    names [n], words [V]: strings. start [n]: probability that a tree's root is each symbol. binary [R, 3] int32:
    parent, left, right; lexical [E, 2] int32: parent, word; with their probabilities. No rule occurs twice.
    groups [n] int32, ascending: symbols of one level have one number; a grammar without levels is one group.
    """

    names: list[str]
    words: list[str]
    start: np.ndarray
    binary: np.ndarray
    binary_probabilities: np.ndarray
    lexical: np.ndarray
    lexical_probabilities: np.ndarray
    groups: np.ndarray

    def __len__(self):
        return len(self.names)

    def emissions(self) -> np.ndarray:
        """P(word | symbol), dense, [n, V]."""
        dense = np.zeros((len(self.names), len(self.words)))
        dense[tuple(self.lexical.T)] = self.lexical_probabilities
        return dense

    def longest(self) -> int | None:
        """Words of the longest sentence; None where there is no limit."""
        longest = np.zeros(len(self), np.int64)
        longest[self.lexical[:, 0]] = 1
        for _ in range(len(self)):
            longer = longest.copy()
            np.maximum.at(longer, self.binary[:, 0], longest[self.binary[:, 1:]].sum(1))
            if (longer == longest).all():
                return int(longest[self.start > 0].max())
            longest = longer
        return None


def make_rules(names, words, start, binary, lexical, where: str) -> Rules:
    """Rules from weights: duplicates are summed, each symbol's weights (and `start`'s) normalised to 1.

    start: {symbol: weight}; binary: [(parent, left, right, weight)]; lexical: [(parent, word, weight)], symbols and
    words being numbers into names and words. MaskLabError, beginning with `where`, for a symbol that derives nothing.
    """
    n = len(names)
    tables = []
    for rows, width in ((binary, 3), (lexical, 2)):
        keys = np.array([row[:width] for row in rows], np.int64).reshape(-1, width)
        keys, index = np.unique(keys, axis=0, return_inverse=True)
        weights = np.bincount(index.ravel(), [row[width] for row in rows], minlength=len(keys))
        tables.append((keys[weights > 0], weights[weights > 0]))
    (binary, binary_weights), (lexical, lexical_weights) = tables
    total = np.bincount(binary[:, 0], binary_weights, n) + np.bincount(lexical[:, 0], lexical_weights, n)
    derives = np.zeros(n, bool)
    derives[lexical[:, 0]] = True
    for _ in range(n):
        derives[binary[derives[binary[:, 1:]].all(1), 0]] = True
    if not derives.all():
        raise MaskLabError(f"{where}: symbol {names[int(np.argmin(derives))]!r} derives no sequence of words")
    roots = np.zeros(n)
    for symbol, weight in start.items():
        roots[symbol] += weight
    groups = _groups(n, roots, binary)
    order = np.argsort(groups, kind="stable")
    rank = np.argsort(order)
    binary_p, lexical_p = binary_weights / total[binary[:, 0]], lexical_weights / total[lexical[:, 0]]
    binary, lexical = rank[binary], np.stack([rank[lexical[:, 0]], lexical[:, 1]], 1)
    by_binary, by_lexical = np.lexsort(binary.T[::-1]), np.lexsort(lexical.T[::-1])
    return Rules(
        [names[s] for s in order],
        list(words),
        (roots / roots.sum())[order],
        binary[by_binary].astype(np.int32),
        binary_p[by_binary],
        lexical[by_lexical].astype(np.int32),
        lexical_p[by_lexical],
        groups[order],
    )


def _groups(n, roots, binary):
    """Level of each symbol if every rule leads from one level to the next; else 0 for all."""
    above, below = binary[:, [0, 0]].ravel(), binary[:, 1:].ravel()
    level = np.where(roots > 0, 0, -1)
    for _ in range(n):
        down = (level[above] >= 0) & (level[below] < 0)
        level[below[down]] = level[above[down]] + 1
        up = (level[above] < 0) & (level[below] > 0)  # what no tree has stands on a level, too
        level[above[up]] = level[below[up]] - 1
    level[level < 0] = 0  # joined to no root by any rules
    layered = (level[below] == level[above] + 1).all()
    return level.astype(np.int32) if layered else np.zeros(n, np.int32)


def draw_rules(config, seed: int) -> Rules:
    """The grammar of a `config.schema.Grammar`: read from its file, or drawn at (seed, its `seed`).

    With `label_spans` grammars are drawn until no label of these spans is too frequent. MaskLabError if `TRIES` are.
    """
    if config.file is not None:
        from masklab.corpora.pcfg.read import read_rules

        return read_rules(config.file)
    for again in range(TRIES if config.label_spans else 1):
        rules = _drawn(config, generator(seed, "grammars", config.seed, *([again] if again else [])))
        if not config.label_spans or _most_frequent(rules, config.label_spans) <= config.label_share:
            return rules
    raise MaskLabError(
        f"grammars: of {TRIES} drawn none gives at most {config.label_share:g} of the sentences (label_share) one label"
        f" over their first {', '.join(map(str, config.label_spans))} words (label_spans)"
    )


def _most_frequent(rules, spans) -> float:
    """The largest share of sentences, of `SAMPLED` such as a task of the span has, that have one label, over all spans.

    A task draws sentences shorter than its span again, unless that is the longest one.
    """
    from masklab.corpora.pcfg.law import Law
    from masklab.corpora.pcfg.sample import sample
    from masklab.corpora.pcfg.span_scores import span_scores

    law, longest = Law(rules), rules.longest() or 32
    shares = []
    for span in spans:
        shortest = span if span < longest else 1
        words, lengths = sample(rules, SAMPLED, 1, "labels", min_length=shortest, max_length=longest)
        scores = span_scores(law, words, lengths, span, "marginal")
        labels = scores[scores.any(1)].argmax(1)
        shares.append(np.bincount(labels).max() / len(labels) if len(labels) else 1.0)
    return max(shares)


def _drawn(config, rng) -> Rules:
    """Words are dealt to the symbols of the last level from shuffled decks, so that every word is used."""
    levels, words = config.levels, config.words
    firsts = np.concatenate([[0], np.cumsum(levels)])
    names = [f"{'S' if not level else f'A{level}_'}{k + 1}" for level, size in enumerate(levels) for k in range(size)]
    binary, lexical = [], []
    for level, size in enumerate(levels[:-1]):
        for parent in range(firsts[level], firsts[level] + size):
            stop = 2 * config.stop * rng.random() if level else 0.0  # a sentence has at least two words
            count = config.rules if level else config.start_rules
            pairs = firsts[level + 1] + rng.integers(levels[level + 1], size=(count, 2))
            weights = (1 - stop) * _weights(config, config.rule_concentration, count, rng)
            binary += [(parent, *pair, weight) for pair, weight in zip(pairs, weights, strict=True)]
            if stop:
                chosen = rng.choice(words, config.stop_words, replace=False)
                weights = stop * _weights(config, config.word_concentration, config.stop_words, rng)
                lexical += [(parent, *pair) for pair in zip(chosen, weights, strict=True)]
    for parent, dealt in enumerate(_deal(levels[-1], config.emissions, words, rng), firsts[-2]):
        weights = _weights(config, config.word_concentration, config.emissions, rng)
        lexical += [(parent, *pair) for pair in zip(dealt, weights, strict=True)]
    start = dict(enumerate(_weights(config, config.start_concentration, levels[0], rng)))
    return make_rules(names, [f"w{k}" for k in range(words)], start, binary, lexical, "grammars")


def _weights(config, concentration, count, rng):
    """Probabilities that sum to 1: uniform numbers or Gamma(concentration) ones, normalised."""
    draws = rng.random(count) if config.law == "uniform" else rng.gamma(concentration, size=count)
    return np.maximum(draws, 1e-12) / np.maximum(draws, 1e-12).sum()


def _deal(hands, size, words, rng):
    """Words of each of `hands` symbols, [hands, size], different within one, every word as often, give or take one."""
    dealt = np.empty((hands, size), np.int64)
    deck = rng.permutation(words)
    for hand in dealt:
        if len(deck) >= size:
            hand[:], deck = deck[:size], deck[size:]
        else:
            fresh = rng.permutation(words)
            held = np.isin(fresh, deck)
            missing = size - len(deck)
            hand[:] = np.concatenate([deck, fresh[~held][:missing]])
            deck = np.concatenate([fresh[~held][missing:], fresh[held]])
    return dealt
