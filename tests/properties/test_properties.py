"""Latent properties to look at: words and contexts, coherence against random ones, agreement of codes."""

import tracemalloc

import numpy as np
import pytest
import torch

from masklab.properties import agreement
from masklab.properties.coded_words import Sample, Words, with_marks, words_of_pieces, words_of_text
from masklab.properties.coherence import coherence
from masklab.properties.inventory import inventory
from masklab.properties.similarity import Neighbours
from masklab.properties.tradeoff import penalties, sizes
from masklab.sparse.lasso import SOLVERS
from masklab.sparse.targets import Codes

ANIMALS, FOODS = ["cat", "dog", "horse", "sheep"], ["bread", "soup", "cake", "pie"]


@pytest.fixture(scope="module")
def sample():
    """Sentences of animals and of foods: property 0 is active on animals, 1 on foods, 2 at random, 3 never."""
    rng, sequences, dense = np.random.default_rng(0), [], []
    for at in range(400):
        kind, words = at % 2, ANIMALS if at % 2 == 0 else FOODS
        word = words[rng.integers(4)]
        text = ["the", word, "runs", "."] if kind == 0 else ["they", "eat", word, "now"]
        codes = np.zeros((4, 4))
        codes[1 + kind, kind] = 1 + rng.random()
        codes[:, 2] = rng.random(4) * (rng.random(4) < 0.3)
        sequences.append(Words(text, [False] * 3 + [kind == 0], np.arange(4)))
        dense.append(codes)
    return Sample.of(sequences, Codes.of_dense(torch.tensor(np.concatenate(dense), dtype=torch.float32)), 4)


def test_a_property_has_its_words_in_context(sample):
    first, second, _, dead = inventory(sample)
    assert {word for word, _ in first.words} == set(ANIMALS) and {word for word, _ in second.words} == set(FOODS)
    assert first.active == 200 / 1600 and 1.4 < first.mean < 1.6 and first.covered == pytest.approx(1)
    assert first.words == sorted(first.words, key=lambda pair: -pair[1])
    means = {form: sample.codes[sample.form == at, 0].mean() for at, form in enumerate(sample.forms)}
    assert all(value == pytest.approx(means[word]) for word, value in first.words)
    assert len(first.occurrences) == 6 and first.occurrences[0].value == first.largest
    assert {at.before for at in first.occurrences} == {"the"} and {at.after for at in first.occurrences} == {"runs."}
    words = [at.word for at in first.occurrences]
    assert max(map(words.count, words)) <= 2
    assert not dead.words and not dead.occurrences and dead.active == dead.mean == dead.covered == 0
    assert not any(each.words for each in inventory(sample, least=1000))


def test_properties_of_like_words_are_coherent_and_random_ones_are_not(sample):
    found = coherence(inventory(sample), Neighbours(sample), np.random.default_rng(0))
    assert found.of[0] == pytest.approx(1) and found.of[1] == pytest.approx(1) and 3 not in found.of
    assert found.found[0] == found.found[1] == 1 and found.of[2] < 0.7
    assert found.coherence.value > found.random_coherence.value + 0.2
    assert 1 / 7 <= found.chance <= 1 / 5


def test_of_words_as_frequent_the_first_are_contexts():
    """Each stands beside itself alone, and is known where that counts."""
    names = [f"w{at:04}" for at in range(3000)]
    sequences = [Words([name, name], [False, False], np.arange(2)) for name in names]
    found = Neighbours(Sample.of(sequences, Codes.of_dense(torch.ones(6000, 1)), 1))
    assert [found.knows(name) for name in names] == [True] * 2000 + [False] * 1000


def test_intruders_among_words_that_are_all_alike_are_found_by_chance():
    class Same:
        name = "same"

        def knows(self, word):
            return True

        def between(self, words):
            return np.ones((len(words), len(words)))

    from masklab.properties.inventory import Property

    lists = [[f"w{at}{letter}" for letter in "abcd"] for at in range(9)]
    found = [Property(at, 0.1, 1, 1, [(w, 1.0) for w in words], 1, []) for at, words in enumerate(lists)]
    scored = coherence(found, Same(), np.random.default_rng(0))
    assert scored.intrusion.value == scored.random_intrusion.value == scored.chance == 0.2


def coded(words):
    """A sample of sequences of one word each, (pieces, code) in their order; every piece has the code of its word."""
    sequences = [Words([word], [False], np.zeros(pieces, np.int64)) for word, pieces, _ in words]
    codes = torch.tensor([code for _, pieces, code in words for _ in range(pieces)], dtype=torch.float32)
    return Sample.of(sequences, Codes.of_dense(codes), codes.shape[1])


def test_agreement_of_one_word_by_hand():
    """The two codes of `one` share a half, those of `two` all; each of `one` and each of `two` share a half.

    `two` is much more frequent and counts no more; words that occur once count nothing, whatever their codes.
    """
    words = [("one", 1, [1.0, 1, 0]), ("one", 1, [0.0, 2, 2]), *[("two", 1, [0.0, 3, 0])] * 40]
    words += [(f"once{at}", 1, [0.0, 0, 1]) for at in range(40)]
    same, other = agreement.of_one_word(coded(words), np.random.default_rng(0))
    assert (same.value, same.error, same.count) == (0.75, 0.25, 2)
    assert (other.value, other.error, other.count) == (0.5, 0, 2)
    alone = agreement.of_one_word(coded(words[:2] + words[-9:]), np.random.default_rng(0))
    assert [mean.count for mean in alone] == [0, 0]  # one word is beside no other


def test_a_word_is_as_frequent_as_it_occurs_whatever_pieces_it_has():
    words = [("schroedinger", 6, [1.0]), *[("cat", 1, [0.5])] * 5]
    sample = coded(words)
    assert sample.occurrences.tolist() == [5, 1] and sample.counts.tolist() == [5, 6]
    (only,) = inventory(sample)
    assert only.words == [("cat", 0.5)] and only.active == 1 and only.covered == pytest.approx(2.5 / 8.5)


def test_pieces_of_a_word_are_one_occurrence():
    codes = {"one": [[1.0, 0], [0.0, 1]], "two": [[2.0, 0], [0.0, 2]]}
    words = [(word, 3, code) for word, both in codes.items() for code in both]
    for seed in range(5):
        same, _ = agreement.of_one_word(coded(words), np.random.default_rng(seed))
        assert same.value == 0 and same.count == 2


def test_one_endless_word_makes_no_other_wider():
    """As an array of text, in which all are as wide as the longest, the words took 200 MB."""
    endless = "ab" * 50_000
    words = [(endless, 1, [1.0, 0]), *[("Cat", 1, [0.0, 1]), ("dog", 1, [0.0, 2])] * 250]
    tracemalloc.start()
    try:
        sample = coded(words)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 20_000_000
    assert sample.forms == sorted([endless, "cat", "dog"]) and sample.counts.tolist() == [1, 250, 250]
    assert [sample.forms[at] for at in sample.form[:3]] == [endless, "cat", "dog"]


def test_overlaps():
    left = torch.tensor([[1.0, 1, 0], [2, 0, 0], [0, 0, 0]])
    right = torch.tensor([[0.0, 3, 1], [4, 0, 0], [1, 0, 0]])
    from scipy import sparse

    found = agreement.overlaps(*(sparse.csr_matrix(each.numpy()) for each in (left, right)))
    assert found[:2].tolist() == [0.5, 1.0] and np.isnan(found[2])


def test_words_of_pieces():
    pieces = ["▁The", "▁deli", "cious", "▁cake", ",", "▁", "x", "▁don", "'", "t", "!", "!"]
    words = words_of_pieces(pieces)
    assert words.words == ["The", "delicious", "cake", ",", "x", "don", "'", "t", "!!"]
    assert words.of.tolist() == [0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8]
    assert words.shown(0, 99) == "The delicious cake, x don't!!" and words.shown(-3, 2) == "The delicious"
    symbols = words_of_pieces(["a1", "b2"], marked=False)
    assert symbols.words == ["a1", "b2"] and symbols.shown(0, 2) == "a1 b2"


def test_a_piece_may_hold_parts_of_several_words():
    """As those of a tokenizer that cuts at spaces alone: `know,` is an occurrence of `know`."""
    words = words_of_pieces(["▁I", "▁know", ",", "▁you", "▁know,", "▁B:\tand", "▁state", "s.", "'", "▁", "▁have_to"])
    assert words.words == ["I", "know", ",", "you", "know", ",", "B", ":", "and", "states", ".'", "have_to"]
    assert words.of.tolist() == [0, 1, 2, 3, 4, 6, 9, 9, 10, 11, 11]
    assert words.shown(0, 99) == "I know, you know, B: and states.' have_to"
    unknown = words_of_pieces([".", "<unk>", ".", "▁<unk>", "ing", "▁"])
    assert unknown.words == [".", "<unk>", ".", "<unk>", "ing"] and unknown.of.tolist() == [0, 1, 2, 3, 4, 4]
    assert words_of_pieces(["▁", "▁"]).words == [""]


@pytest.mark.parametrize(
    ("vocabulary", "pieces"),
    [
        (["a", "##s"], ["The", "del", "##icious", "cake", "##s", "!"]),
        (["a", "Ġa"], ["The", "Ġdel", "icious", "Ġcake", "s", "!"]),
    ],
    ids=["word pieces", "byte pairs"],
)
def test_words_are_whole_whatever_marks_their_beginnings(vocabulary, pieces):
    read, marked = with_marks(vocabulary + pieces)
    assert words_of_pieces(read[len(vocabulary) :], marked).words == ["The", "delicious", "cakes", "!"]


def test_marks_of_other_vocabularies():
    assert with_marks(["▁a", "▁b", "##"]) == (["▁a", "▁b", "##"], True), "a text may hold the mark of another"
    assert with_marks(["Ġcaf", "Ã©"]) == (["▁caf", "é"], True), "what is written byte by byte"
    assert with_marks(["a1", "b2"]) == (["a1", "b2"], False), "symbols: each is a word"


def test_words_of_text():
    text = " Délicieux, cats"
    words, kept = words_of_text(text, [(0, 0), (0, 5), (5, 10), (10, 11), (11, 13), (13, 16)])
    assert words.words == ["Délicieux", ",", "cats"] and words.shown(0, 3) == "Délicieux, cats"
    assert kept.tolist() == [False, True, True, True, True, True] and words.of.tolist() == [0, 0, 1, 2, 2]


@pytest.mark.parametrize("text", ["हिन्दी भाषा", "cafe\u0301 is", "می\u200cخواهم این", "שָׁלוֹם לך"])
def test_marks_are_part_of_the_words_that_they_stand_in(text):
    """Vowel signs of Hindi, accents written apart from their letters, joiners of Persian, points of Hebrew."""
    words, kept = words_of_text(text, [(at, at + 1) for at in range(len(text))])
    assert words.words == text.split() and words.of.tolist() == [0] * text.index(" ") + [1] * len(text.split()[1])
    assert kept.tolist() == [char != " " for char in text]
    pieces = words_of_pieces([f"▁{word[:2]}" if at == 0 else word[2:] for word in text.split() for at in (0, 1)])
    assert pieces.words == text.split() and pieces.of.tolist()[:3] == [0, 0, 1]


def test_more_penalty_is_sparser_and_more_atoms_keep_more():
    from masklab.sparse.dictionary import learn

    x = torch.nn.functional.normalize(torch.randn(3000, 16, generator=torch.Generator().manual_seed(0)), dim=1)
    dictionary = learn(x, 32, 0.1, 40, 100)
    rows = penalties(x[:300], dictionary, 0.1, "exact")
    assert [row["penalty"] for row in rows] == [0.025, 0.05, 0.1, 0.2, 0.4]
    assert [row["nonzeros"] for row in rows] == sorted((row["nonzeros"] for row in rows), reverse=True)
    assert [row["kept"] for row in rows] == sorted((row["kept"] for row in rows), reverse=True)
    dense = torch.zeros(300, 32)
    from masklab.sparse.lasso import lasso

    codes = lasso(x[:300], dictionary, 0.1)
    dense[codes.rows, codes.indices] = codes.values
    assert rows[2]["kept"] == pytest.approx(
        1 - float((x[:300] - dense @ dictionary.T).square().sum(1).mean()), abs=1e-5
    )
    settings = {"penalty": 0.1, "solver": "exact", "iterations": 40, "batch_size": 100}
    rows = sizes(x[300:], x[:300], 32, settings)
    assert [row["atoms"] for row in rows] == [8, 16, 32, 64] and rows[-1]["kept"] > rows[0]["kept"]
    assert [row["atoms"] for row in sizes(x[300:340], x[:300], 32, settings)] == [8, 16, 32]


def test_codes_are_those_of_the_solver():
    """A hundred steps of FISTA are not enough here, so that its codes have other entries than the optimum."""
    from masklab.sparse.lasso import lasso

    x = torch.nn.functional.normalize(torch.rand(200, 16, generator=torch.Generator().manual_seed(0)), dim=1)
    dictionary, settings = x[:64].T.contiguous(), {"penalty": 0.01, "iterations": 5, "batch_size": 50}
    means = {solver: float(lasso(x, dictionary, 0.01, solver).counts.double().mean()) for solver in SOLVERS}
    assert means["fista"] > 1.1 * means["exact"]
    for solver, mean in means.items():
        assert penalties(x, dictionary, 0.01, solver)[2]["nonzeros"] == mean
    made = {solver: sizes(x, x, 64, settings | {"solver": solver})[2]["nonzeros"] for solver in SOLVERS}
    assert made["fista"] > 1.1 * made["exact"]
