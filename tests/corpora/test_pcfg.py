"""Grammars, rule files, sentences and trees against their definitions."""

import json

import numpy as np
import pyarrow as pa
import pytest
from derivations import derivations, sentences

from masklab import symbols
from masklab.cli import main
from masklab.config.schema import Grammar, PcfgCorpus
from masklab.corpora import generate, laws
from masklab.corpora.pcfg.read import parse_rules, read_rules, write_rules
from masklab.corpora.pcfg.rules import draw_rules
from masklab.corpora.pcfg.sample import BLOCK, sample
from masklab.corpora.pcfg.trees import brackets, leaves, sample_tree
from masklab.errors import MaskLabError
from masklab.files import write_table

SMALL = Grammar(levels=[2, 2, 3], words=5, start_rules=2, rules=3, emissions=3, stop=0.4, stop_words=2)


def test_the_default_grammar_has_the_papers_sizes():
    rules = draw_rules(Grammar(), 1)
    assert (len(rules), len(rules.words), rules.longest(), int(rules.groups.max()) + 1) == (50, 200, 32, 6)
    assert len(np.unique(rules.lexical[:, 1])) == 200
    levels = rules.groups[rules.binary]
    assert (levels[:, 1:] == levels[:, :1] + 1).all()
    total = np.bincount(rules.binary[:, 0], rules.binary_probabilities, 50)
    total += np.bincount(rules.lexical[:, 0], rules.lexical_probabilities, 50)
    assert np.allclose(total, 1) and rules.start.sum() == pytest.approx(1)
    assert not np.isin(rules.lexical[:, 0], np.flatnonzero(rules.groups == 0)).any()  # no sentences of one word
    per_word = np.bincount(rules.lexical[rules.groups[rules.lexical[:, 0]] == 5, 1])
    assert per_word.min() >= 1 and per_word.max() - per_word.min() <= 1


@pytest.mark.parametrize("law", ["uniform", "dirichlet"])
def test_grammars_are_drawn_at_their_seed(law):
    first, again, other = (draw_rules(Grammar(law=law, seed=seed), 1) for seed in (1, 1, 2))
    assert (first.binary_probabilities == again.binary_probabilities).all() and first.names == again.names
    assert not np.array_equal(first.binary, other.binary)


def test_symbols_that_no_tree_has_stand_on_their_level():
    """Else one of them would make a grammar of levels a single group, whose law costs many times as much."""
    text = "S S1 1\nS1 A A 1\nA C C 1\nB C D 1\nC c 1\nD d 1\nE e 1\n"
    rules = parse_rules(text, "test")
    level = dict(zip(rules.names, rules.groups.tolist(), strict=True))
    assert level == {"S1": 0, "A": 1, "B": 1, "C": 2, "D": 2, "E": 0}
    assert parse_rules(f"{text}B S1 A 1\n", "test").groups.max() == 0  # which has no levels
    numbered = [f"S{k}" for k in range(1, 11)] + [f"A{level}_{k}" for level in range(1, 6) for k in range(1, 9)]
    for seed in range(1, 21):
        rules = draw_rules(Grammar(), seed)
        assert rules.groups.max() == 5 and rules.names == numbered


RULES = """
S S1 0.3
S S2 0.1
S S1 0.2
S1 A B 0.5
S1 A B 0.25
S1 A A 0.5
S2 B B 2
A a 0.4
A b 0.4
B b 1.0
"""


def test_rule_files_are_summed_and_normalised(tmp_path):
    (tmp_path / "rules.txt").write_text(RULES)
    rules = read_rules(tmp_path / "rules.txt")
    assert rules.names == ["S1", "S2", "A", "B"] and rules.words == ["a", "b"]  # S is only the choice of a root
    assert rules.start.tolist() == pytest.approx([5 / 6, 1 / 6, 0, 0])
    assert rules.binary.tolist() == [[0, 2, 2], [0, 2, 3], [1, 3, 3]]
    assert rules.binary_probabilities.tolist() == pytest.approx([0.4, 0.6, 1])
    assert rules.lexical_probabilities.tolist() == pytest.approx([0.5, 0.5, 1])
    assert rules.groups.tolist() == [0, 0, 1, 1]
    (tmp_path / "marked.txt").write_text(RULES.strip(), encoding="utf-8-sig")  # by a byte-order mark
    assert read_rules(tmp_path / "marked.txt").names == rules.names
    again = parse_rules(write_rules(rules), "again")
    assert again.start.tolist() == pytest.approx(rules.start.tolist()) and (again.binary == rules.binary).all()


def test_written_rules_are_read_with_their_words_as_they_were_numbered():
    """Symbols that take turns, a word that is never drawn, and a symbol called ROOT."""
    rules = parse_rules("S ROOT B 1\nROOT a .5\nB b 1\nROOT c .5\nB d 0\n", "test")
    assert rules.words == ["a", "b", "c", "d"]
    again = parse_rules(write_rules(rules), "again", rules.words)
    assert again.words == rules.words

    def lexicon(own):
        return {
            (own.names[symbol], own.words[word]): p
            for (symbol, word), p in zip(own.lexical.tolist(), own.lexical_probabilities.tolist(), strict=True)
        }

    assert lexicon(again) == lexicon(rules) and again.lexical.tolist()
    assert sorted(again.lexical[:, 1].tolist()) == sorted(rules.lexical[:, 1].tolist())


def test_a_start_symbol_with_rules_of_its_own_is_a_root_too():
    rules = parse_rules("S S1 .5\nS a .25\nS A A .25\nS1 A A 1\nA a 1\n", "test")
    assert rules.names == ["S", "S1", "A"] and rules.start.tolist() == pytest.approx([0.5, 0.5, 0])
    assert sentences(rules, 1) == {(0,): 0.25} and sentences(rules, 2) == {(0, 0): 0.75}


@pytest.mark.parametrize(
    "text,said",
    [
        ("", "f: no rules"),
        ("S a\n", "f: row 1: 2 fields; a rule is"),
        ("S a 1\n\nS b c d 1\n", "f: row 3: 5 fields; a rule is"),
        ("S a x\n", "f: row 1: 'x' is not a probability"),
        ("S a -1\n", "f: row 1: '-1' is not a probability"),
        ("S A A 1\nA a 1\nA S A 1\n", "f: row 3: the start symbol 'S' stands on a right side"),
        ("S A b 1\nA a 1\n", "f: row 1: 'b' has no rules; only single words may"),
        ("S A A 1\nA B 1\nB b 1\n", "f: row 2: A -> B: only the start symbol 'S' may become one symbol"),
        ("S A A 1\nA A A 1\n", "f: symbol 'S' derives no sequence of words"),
        ("S a 0\n", "f: every rule of the start symbol 'S' has probability 0"),
    ],
)
def test_bad_rule_files_are_one_line(text, said):
    with pytest.raises(MaskLabError) as error:
        parse_rules(text, "f")
    assert str(error.value).startswith(said) and "\n" not in str(error.value)


def test_a_missing_rule_file_is_one_line(tmp_path):
    with pytest.raises(MaskLabError, match=r"none\.txt: cannot be read"):
        draw_rules(Grammar(file=str(tmp_path / "none.txt")), 1)


def test_sentences_have_their_exact_probabilities():
    """Frequencies of every sentence of a small grammar in 400,000 draws: chi-squared within 4 standard deviations."""
    rules = draw_rules(SMALL, 1)
    table = {words: p for length in range(1, 5) for words, p in sentences(rules, length).items()}
    words, lengths = sample(rules, 400_000, 1, "frequencies")
    keys, counts = np.unique(np.c_[words, lengths], axis=0, return_counts=True)
    drawn = {tuple(key[: key[-1]].tolist()): n for key, n in zip(keys, counts, strict=True)}
    assert set(drawn) <= set(table)
    expected = np.array(list(table.values())) * 400_000
    seen = np.array([drawn.get(key, 0) for key in table])
    common = expected > 5
    rest = expected[~common].sum()
    squared = ((seen - expected)[common] ** 2 / expected[common]).sum() + (seen[~common].sum() - rest) ** 2 / rest
    cells = common.sum()
    assert abs(squared - cells) < 4 * np.sqrt(2 * cells) and cells > 100


def test_lengths_are_kept_and_condition_the_rest():
    rules = draw_rules(SMALL, 1)
    _, free = sample(rules, 50_000, 1, "lengths")
    _, kept = sample(rules, 50_000, 1, "lengths", min_length=3, max_length=3)
    assert set(free.tolist()) == {2, 3, 4} and set(kept.tolist()) == {3}
    with pytest.raises(MaskLabError, match="no sentence of 5 to 32 words"):
        sample(rules, 1, 1, "lengths", min_length=5)
    endless = parse_rules("S S1 1\nS1 S1 S1 .9\nS1 a .1\n", "endless")
    _, lengths = sample(endless, 1000, 1, "endless", max_length=7)
    assert lengths.max() <= 7


def test_each_block_has_a_stream_of_its_own():
    rules = draw_rules(SMALL, 1)
    words, _ = sample(rules, 2 * BLOCK + 100, 1, "blocks")
    assert (words[:BLOCK] == sample(rules, BLOCK, 1, "blocks")[0]).all()
    assert not (words[:100] == words[BLOCK : BLOCK + 100]).all()


def test_a_corpus_and_its_law():
    config = PcfgCorpus(kind="pcfg", grammar=Grammar(), sentences=500, valid=50, test=60, min_length=3)
    tables = generate(config, "any name", 1)
    assert {split: len(table) for split, table in tables.items()} == {"train": 500, "valid": 50, "test": 60}
    values, lengths = symbols.rows(tables["train"]["symbols"])
    assert values.max() < 200 and lengths.min() >= 3 and lengths.max() <= 32
    assert tables["train"]["symbols"].equals(generate(config, "another", 1)["train"]["symbols"])
    facts = json.loads(tables["test"].schema.metadata[b"masklab"])
    law = laws.law_of(facts)
    assert law.symbols == len(facts["names"]) == 200 and facts["nonterminals"] == law.rules.names


def test_the_default_grammar_is_calibrated_to_the_paper(tmp_path, capsys):
    """Entropy 3.196 nats with the mask drawn uniformly from each sentence, 17 words; `masklab corpus` prints both."""
    table = generate(PcfgCorpus(kind="pcfg", grammar=Grammar(), sentences=1, valid=1, test=4096), "c", 1)["test"]
    write_table(table, tmp_path / "test.parquet")
    assert main(["corpus", str(tmp_path / "test.parquet")]) == 0
    header = json.loads(capsys.readouterr().out)
    assert abs(header["mlm_entropy"] - 3.196) < 0.05 and header["mlm_entropy_se"] < 0.015
    assert header["mlm_entropy"] < header["mlm_entropy_per_token"]
    assert abs(header["mean_length"] - 17) < 0.7
    assert header["words"] == 200 and "names" not in header  # how many, not all of them


def test_a_file_that_is_no_corpus_is_one_line(tmp_path, capsys):
    write_table(pa.table({"text": ["a"]}), tmp_path / "text.parquet")
    assert main(["corpus", str(tmp_path / "text.parquet")]) == main(["corpus", str(tmp_path / "none")]) == 1
    assert "text.parquet: no corpus of symbols" in capsys.readouterr().err


def test_the_law_of_a_corpus_does_not_need_its_rule_file(tmp_path):
    (tmp_path / "rules.txt").write_text(RULES)
    grammar = Grammar(file=str(tmp_path / "rules.txt"))
    table = generate(PcfgCorpus(kind="pcfg", grammar=grammar, sentences=5, valid=1, test=1), "c", 1)["test"]
    wanted = draw_rules(grammar, 1)
    (tmp_path / "rules.txt").unlink()
    law = laws.law_of(json.loads(table.schema.metadata[b"masklab"]))
    assert (law.rules.binary_probabilities == wanted.binary_probabilities).all() and law.rules.words == wanted.words
    assert (law.rules.start == wanted.start).all()


def test_trees_are_derivations_of_their_sentences():
    rules = draw_rules(SMALL, 1)
    known = {(words, nodes) for n in (2, 3, 4) for _, words, nodes in derivations(rules, n)}
    for k in range(50):
        tree = sample_tree(rules, 1, "tree", k, min_length=3)
        words = tuple(rules.words.index(word) for word in leaves(tree))
        assert (words, tuple(nodes(rules, tree))) in known and 3 <= len(words) <= 4
    assert brackets(("S1", ("A1_1", "w0"), ("A1_2", "w3"))) == "(S1 (A1_1 w0) (A1_2 w3))"
    assert max(len(leaves(sample_tree(rules, 1, "t", k, max_length=2))) for k in range(20)) == 2
    with pytest.raises(MaskLabError, match="no tree of 5 to 32 words"):
        sample_tree(rules, 1, "tree", min_length=5)


def nodes(rules, tree, at=0):
    yield rules.names.index(tree[0]), at, len(leaves(tree))
    for part in tree[1:]:
        if not isinstance(part, str):
            yield from nodes(rules, part, at)
            at += len(leaves(part))
