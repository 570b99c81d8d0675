"""The chart against every derivation, one by one."""

import numpy as np
import pytest
from derivations import derivations, sentences

from masklab import symbols
from masklab.config.schema import Grammar, PcfgCorpus
from masklab.corpora import generate, laws
from masklab.corpora.pcfg.law import Law
from masklab.corpora.pcfg.read import parse_rules
from masklab.corpora.pcfg.rules import draw_rules
from masklab.corpora.pcfg.sample import pad, sample
from masklab.errors import MaskLabError
from masklab.intervals import mean_and_error

LEVELS = Grammar(levels=[2, 2, 3], words=5, start_rules=2, rules=3, emissions=3, stop=0.4, stop_words=2)
DEEP = Grammar(levels=[2, 1, 2, 2], words=3, start_rules=2, rules=2, emissions=2, stop=0.5)
# not level by level: S and A recur on both sides
RECURSIVE = "S S1 .5\nS S2 .5\nS1 A S2 .6\nS1 A A .4\nS2 A B 1\nA A B .3\nA a .5\nA b .2\nB B B .25\nB b .4\nB c .35\n"


def rules_of(case):
    return parse_rules(case, "test") if isinstance(case, str) else draw_rules(case, 1)


CASES = pytest.mark.parametrize("case", [LEVELS, DEEP, RECURSIVE], ids=["levels", "deep", "recursive"])


@CASES
def test_sentence_probabilities_equal_enumeration(case):
    law, total = Law(rules_of(case)), 0.0
    for length in range(1, 5):
        table = sentences(law.rules, length)
        if table:
            rows = np.array(list(table))
            found = np.exp(law.log_probability(rows, np.full(len(rows), length)))
            assert np.abs(found - np.array(list(table.values()))).max() < 1e-14
            total += found.sum()
    longest = law.rules.longest()
    assert (case is RECURSIVE) == (longest is None)
    if longest == 4:
        assert total == pytest.approx(1, abs=1e-12)


@CASES
def test_conditionals_equal_enumeration(case):
    """Pr(x_t | x_-t) of sentences of all lengths to 5 words mixed in one batch, to 1e-10."""
    law = Law(rules_of(case))
    values, lengths, wanted = [], [], []
    for length in range(1, 6):
        table = sentences(law.rules, length)
        for words in list(table)[:: max(1, len(table) // 60)]:
            values += words
            lengths.append(length)
            found = np.zeros((length, law.symbols))
            for t, v in np.ndindex(found.shape):
                found[t, v] = table.get((*words[:t], v, *words[t + 1 :]), 0.0)
            wanted.append(found / found.sum(1, keepdims=True))
    rows, lengths = pad(np.array(values), np.array(lengths))
    order = np.random.default_rng(0).permutation(len(rows))
    found = law.conditionals(rows[order], lengths[order])
    for at, row in enumerate(order):
        length = lengths[row]
        assert np.abs(found[at, :length] - wanted[row]).max() < 1e-10
        assert (found[at, length:] == 0).all()
    assert len(rows) > 60


def test_losses_of_a_corpus_have_the_mean_of_its_entropies():
    """Mean of -log q(x_t) - H(q) over 1e5 sentences within 4 standard errors of 0, and the error is small."""
    config = PcfgCorpus(kind="pcfg", grammar=DEEP, sentences=100_000, valid=1, test=1)
    table = generate(config, "c", 1)["train"]
    words, lengths = pad(*symbols.rows(table["symbols"]))
    law = laws.law_of(symbols_facts(table))
    q = law.conditionals(words, lengths)
    rows, columns = np.nonzero(np.arange(words.shape[1]) < lengths[:, None])
    q = q[rows, columns]
    entropy = -(q * np.log(np.where(q > 0, q, 1))).sum(1)
    mean, error = mean_and_error(-np.log(q[np.arange(len(q)), words[rows, columns]]) - entropy, rows)
    assert abs(mean) < 4 * error and error < 0.002 < entropy.mean()


def symbols_facts(table):
    import json

    return json.loads(table.schema.metadata[b"masklab"])


def test_threads_do_not_change_anything():
    law = Law(draw_rules(Grammar(), 1))
    words, lengths = sample(law.rules, 300, 1, "threads")
    assert lengths.max() > 24
    assert (law.conditionals(words, lengths) == law.conditionals(words, lengths, threads=3)).all()


def test_memory_can_be_given():
    law = Law(draw_rules(DEEP, 1))
    words, lengths = sample(law.rules, 50, 1, "memory")
    out = np.full((*words.shape, law.symbols), np.nan)
    assert law.conditionals(words, lengths, out=out) is out
    assert (out == law.conditionals(words, lengths)).all()
    for bad in (out[:-1], out.astype(np.float32), np.asfortranarray(out)):
        with pytest.raises(MaskLabError, match="out: must be float64, contiguous, of shape"):
            law.conditionals(words, lengths, out=bad)


def test_conditionals_at_some_places():
    law = Law(draw_rules(Grammar(), 1))
    words, lengths = sample(law.rules, 100, 1, "places")
    rng = np.random.default_rng(1)
    rows = rng.integers(100, size=150)  # some rows never, some repeatedly, in no order
    columns = rng.integers(lengths[rows])
    found = law.conditionals_at(words, lengths, rows, columns)
    assert np.abs(found - law.conditionals(words, lengths)[rows, columns]).max() < 1e-14
    assert (found == law.conditionals_at(words, lengths, rows, columns, threads=2)).all()
    with pytest.raises(MaskLabError, match="columns: must be 0 or more and below the lengths"):
        law.conditionals_at(words, lengths, [0], lengths[:1])


def test_conditionals_of_the_default_grammar_are_ratios_of_joint_probabilities():
    """Pr(x_t = v | x_-t) by |V| inside passes, as the paper computes it, to 1e-10."""
    law = Law(draw_rules(Grammar(), 1))
    words, lengths = sample(law.rules, 3, 1, "ratios", min_length=20)
    found = law.conditionals(words, lengths)
    for row, (sentence, length) in enumerate(zip(words, lengths, strict=True)):
        for t in (0, 7, length - 1):
            variants = np.repeat(sentence[None].astype(int), law.symbols, 0)
            variants[:, t] = np.arange(law.symbols)
            joint = np.exp(law.log_probability(variants, np.full(law.symbols, length)))
            assert np.abs(found[row, t] - joint / joint.sum()).max() < 1e-10


def test_bad_sequences_are_refused():
    law = Law(parse_rules("S A B 1\nA a 1\nB b 1\n", "test"))
    assert law.conditionals([[0, 1]], [2])[0].tolist() == [[1, 0], [0, 1]]
    with pytest.raises(MaskLabError, match="sequence 1: impossible"):
        law.conditionals([[0, 1], [1, 1]], [2, 2])
    with pytest.raises(MaskLabError, match="sequence 0: impossible"):
        law.conditionals([[0, 1, 1]], [3])
    with pytest.raises(MaskLabError, match="symbols must be 0 to 1, got 0 to 2"):
        law.conditionals([[0, 2]], [2])
    with pytest.raises(MaskLabError, match="lengths must be 1 to 2, got 3 to 3"):
        law.conditionals([[0, 1]], [3])
    assert law.log_probability([[1, 1]], [2])[0] == -np.inf


@CASES
def test_every_symbol_as_root_recursive_or_not(case):
    """Inside scores of all symbols, and both tables of entropies, against derivations; up to a factor of each row."""
    rules = rules_of(case)
    law = Law(rules)
    for length in (1, 2, 3):
        table = sentences(rules, length)
        rows = np.array(list(table))[:40]
        if not len(rows):
            continue
        wanted = np.zeros((len(rows), len(rules)))
        for symbol in range(len(rules)):
            for p, words, _ in derivations(rules, length, np.eye(len(rules))[symbol]):
                found = (rows == words).all(1)
                wanted[found, symbol] += p
        found = law.root_inside(rows, np.full(len(rows), length))
        assert found.shape == wanted.shape
        np.testing.assert_allclose(shares(found), shares(wanted), atol=1e-12)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_nodes_over_the_first_words_recursive(width):
    """Pr(a node with this symbol is over them | all words), up to a factor of each row, in sentences of two lengths."""
    rules = rules_of(RECURSIVE)
    for lengths in ([4, 3, 4, 4], [3, 3, 3]):
        rows, posterior = [], []
        for number, length in enumerate(lengths):
            words = sorted(sentences(rules, length))[7 * number + 1]
            counted = np.zeros(len(rules))
            for p, found, nodes in derivations(rules, length):
                if found == words:
                    for symbol, at, wide in nodes:
                        counted[symbol] += p * (at == 0 and wide == width)
            rows.append([*words, *[0] * (max(lengths) - length)])
            posterior.append(counted)
        found, wanted = Law(rules).prefix_posterior(rows, lengths, width), np.array(posterior)
        assert (found.sum(1) > 0).tolist() == (wanted.sum(1) > 0).tolist()
        some = wanted.sum(1) > 0
        np.testing.assert_allclose(shares(found[some]), shares(wanted[some]), atol=1e-12)


def shares(scores):
    return scores / scores.sum(1, keepdims=True)


def test_entropies_recursive_by_enumeration():
    """Of more sentences than are taken at a time, of several lengths: each position's entropy from the sentences."""
    law, tables = Law(rules_of(RECURSIVE)), {n: sentences(rules_of(RECURSIVE), n) for n in (2, 3)}
    entropies = {}
    for length, table in tables.items():
        for words in table:
            each = []
            for t in range(length):
                p = np.array([table.get((*words[:t], v, *words[t + 1 :]), 0.0) for v in range(law.symbols)])
                p = p[p > 0] / p.sum()
                each.append(-(p * np.log(p)).sum())
            entropies[words] = each
    rng, every = np.random.default_rng(1), list(entropies)
    drawn = [every[i] for i in rng.integers(len(every), size=700)]
    lengths = np.array([len(words) for words in drawn])
    rows = np.array([[*words, *[0] * (3 - len(words))] for words in drawn])
    found, sums = law.mlm_entropy(rows, lengths), np.array([sum(entropies[words]) for words in drawn])
    means = sums / lengths
    assert found["per_sentence"] == pytest.approx(means.mean(), abs=1e-12)
    assert found["per_sentence_se"] == pytest.approx(means.std(ddof=1) / 700**0.5, rel=1e-9)
    assert found["per_token"] == pytest.approx(sums.sum() / lengths.sum(), abs=1e-12) and len(set(lengths)) == 2


def test_many_sentences_of_a_length_are_one_by_one_recursive(monkeypatch):
    """More than a thread takes at a time, and not a multiple of the sentences that are computed side by side."""
    import masklab.corpora.pcfg.law as module

    rules = rules_of(RECURSIVE)
    every = {n: np.array(list(sentences(rules, n))) for n in (1, 2, 3, 4)}
    rng = np.random.default_rng(2)
    lengths = rng.choice([2, 3, 4], size=61)
    rows = np.zeros((61, 4), int)
    for row, length in enumerate(lengths):
        rows[row, :length] = every[length][rng.integers(len(every[length]))]
    alone = [Law(rules).conditionals(rows[i : i + 1], lengths[i : i + 1])[0] for i in range(0, 61, 7)]
    singly = [  # and without what is past the end
        Law(rules).log_probability(rows[i : i + 1, : lengths[i]], lengths[i : i + 1])[0] for i in range(0, 61, 7)
    ]
    for part in (module.PART, module.LANES, 3):
        monkeypatch.setattr(module, "PART", part)
        for threads in (1, 3):
            law = Law(rules)
            np.testing.assert_array_equal(law.conditionals(rows, lengths, threads)[::7], alone)
        np.testing.assert_array_equal(Law(rules).log_probability(rows, lengths)[::7], singly)


def test_what_is_refused_at_its_limits():
    law = Law(parse_rules("S A B 1\nA a 1\nB b 1\n", "test"))
    for columns in ([-1], [2]):
        with pytest.raises(MaskLabError, match="columns: must be 0 or more and below"):
            law.conditionals_at([[0, 1]], [2], [0], columns)
    assert law.conditionals_at([[0, 1]], [2], [0, 0], [0, 1]).tolist() == [[1, 0], [0, 1]]
    assert law.conditionals_at([[0, 1]], [2], [], []).shape == (0, 2)
    with pytest.raises(MaskLabError, match="symbols must be 0 to 1, got -1 to 1"):
        law.conditionals([[-1, 1]], [2])
    with pytest.raises(MaskLabError, match="lengths must be 1 to 2, got 0 to 2"):
        law.conditionals([[0, 1], [0, 1]], [0, 2])
    assert law.conditionals([[0, 1, -7]], [2]).shape == (1, 3, 2), "what is past the end does not count"
    assert law.conditionals(np.zeros((0, 3)), []).shape == (0, 3, 2)


@pytest.mark.parametrize("grammar", [LEVELS, RECURSIVE], ids=["levels", "recursive"])
def test_memory_of_a_thread_has_room_for_its_charts(grammar):
    """As much as the sweeps write to, which are compiled and look at no bounds; kept for charts that are no larger."""
    from masklab.corpora.pcfg.lanes import LANES

    law = Law(rules_of(grammar))
    small, large = law.plan(2), law.plan(4)
    for plan in (large, small, large):
        inner, outer, products, wide, words = law._space(plan)
        assert inner.shape == outer.shape == (plan.rows, LANES) and words.shape == (plan.length, LANES)
        assert products.shape == (max(law.tables.heights) ** 2, LANES) and wide.shape == (law.symbols + 1, LANES)
        assert law._space(large)[0].base is inner.base and not np.shares_memory(inner, outer)


@pytest.mark.parametrize("grammar", [LEVELS, RECURSIVE], ids=["levels", "recursive"])
def test_what_lies_in_memory_counts_for_nothing(grammar):
    law, rules = Law(rules_of(grammar)), rules_of(grammar)
    rows = np.array(list(sentences(rules, 4)))[:30]
    lengths = np.full(len(rows), 4)
    ways = [
        lambda law: law.conditionals(rows, lengths),
        lambda law: law.conditionals_at(rows, lengths, np.arange(len(rows)), np.arange(len(rows)) % 4),
        lambda law: law.log_probability(rows, lengths),
        lambda law: law.prefix_posterior(rows, lengths, 2),
    ]
    for way in ways:
        wanted = way(Law(rules))
        for part in law._space(law.plan(4))[:4]:
            part[:] = np.nan
        np.testing.assert_array_equal(way(law), wanted)
