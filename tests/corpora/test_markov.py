"""Chains, walks and features against their definitions."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from masklab import symbols
from masklab.config.schema import Chains, MarkovCorpus
from masklab.corpora import generate
from masklab.corpora.markov.chains import draw_chains, walk
from masklab.corpora.markov.entropy import edge_entropy, push, sequence_entropy
from masklab.corpora.markov.features import draw_features
from masklab.errors import MaskLabError
from masklab.rng import generator

SMALL = Chains(synsets=20)


def corpus(chains=SMALL, **keys):
    keys = {"distributional": True, "sequences": 300, "valid": 50, "test": 50, "length": 16, **keys}
    return MarkovCorpus(kind="markov", chains=chains, **keys)


def dense(table):
    values, counts = symbols.rows(table[symbols.COLUMN])
    return values.reshape(len(counts), counts[0])


def test_paper_chains_have_two_edges_to_two_nodes():
    chains = draw_chains(Chains(synsets=1000), 1)
    for chain in chains:
        assert len(chain) == 1000 and (chain.targets[:, 0] != chain.targets[:, 1]).all()
        assert (chain.synset == np.arange(1000)).all() and chain.probabilities.tolist() == pytest.approx([0.9, 0.1])
    assert (chains[0].targets != chains[1].targets).any()


def test_released_chains_are_a_cycle_with_shortcuts():
    (chain, _) = draw_chains(Chains(edges="released"), 1)
    nodes = np.arange(5000)
    assert (chain.targets[:, 0] == (nodes + 1) % 5000).all()
    ahead = (chain.targets[:, 1] - nodes) % 5000
    assert ahead.min() == 0 and ahead.max() == 998
    copies = chain.synset.reshape(5, 1000)
    assert (copies == copies[0]).all() and (np.sort(copies[0]) == np.arange(1000)).all()


@pytest.mark.parametrize("edges", ["paper", "released"])
def test_a_million_tokens_follow_the_chain(edges):
    """Bigrams of nodes' synsets, unigrams of forms and starts within 4 standard errors of the exact expectation."""
    config = Chains(synsets=20, edges=edges, copies=3)
    table = generate(corpus(config, sequences=25_000, length=20), "c", 1)["train"]
    tokens, which = dense(table), table["chain"].to_numpy()
    assert tokens.size == 1_000_000
    forms, synsets = np.divmod(tokens, 20)
    assert abs(forms.mean() - 0.5) < 4 * 0.5 / 1000
    repeats = (forms[:, 1:] == forms[:, :-1]).mean()  # coins are independent of each other
    assert abs(repeats - 0.5) < 4 * 0.5 / np.sqrt(forms[:, 1:].size)
    for k, chain in enumerate(draw_chains(config, 1)):
        rows, indicator = synsets[which == k], np.eye(20)[chain.synset]
        weights = np.full(len(chain), 1 / len(chain))
        for step in (0, 1, 18):
            marginal = weights
            for _ in range(step):
                marginal = push(chain, marginal)
            joint = (indicator.T * marginal) @ chain.matrix() @ indicator  # of the synsets at step and step + 1
            counts = np.bincount(rows[:, step] * 20 + rows[:, step + 1].astype(int), minlength=400).reshape(20, 20)
            error = np.sqrt(joint * (1 - joint) / len(rows))
            assert (counts[joint == 0] == 0).all()
            # 4 standard errors for each of the cells' sum of squares: chi-squared has mean d, variance 2 d
            inside = joint > 0
            chi = (((counts / len(rows) - joint)[inside]) ** 2 / joint[inside]).sum() * len(rows)
            freedom = inside.sum() - 1
            assert abs(chi - freedom) < 4 * np.sqrt(2 * freedom)
            assert np.abs((counts / len(rows) - joint)[inside] / error[inside]).max() < 4


def test_corpora_with_and_without_the_property_hold_the_same_synsets():
    with_dh, without = (generate(corpus(distributional=flag), "x" * flag or "y", 1) for flag in (True, False))
    for split in ("train", "valid", "test"):
        a, b = dense(with_dh[split]), dense(without[split])
        assert (a % 20 == b % 20).all()
        assert (b // 20 == without[split]["chain"].to_numpy()[:, None]).all()  # chain 1 all a, chain 2 all b
    assert (dense(with_dh["train"])[:50] != dense(with_dh["test"])[:50]).any()
    assert generate(corpus(), "z", 1)["train"].equals(with_dh["train"])
    assert not generate(corpus(), "z", 2)["train"].equals(with_dh["train"])


def test_facts_name_the_symbols(tmp_path):
    from masklab.files import write_table

    table = generate(corpus(), "c", 1)["test"]
    assert table[symbols.COLUMN].type.value_type == "uint16" and table.num_rows == 100
    write_table(table, tmp_path / "test.parquet")
    facts = symbols.read_header(tmp_path / "test.parquet")
    assert facts["names"][:2] == ["a0", "a1"] and facts["names"][20] == "b0" and len(facts["names"]) == 40
    assert Chains(**facts["config"]["chains"]) == SMALL and facts["seed"] == 1


def sardinas_patterson(words) -> bool:
    """Whether every sequence of words can be cut into words in one way only."""

    def rests(left, right):
        return {b[len(a) :] for a in left for b in right if len(b) > len(a) and b[: len(a)] == a}

    words = set(words)
    dangling, seen = rests(words, words), set()
    while dangling - seen:
        if dangling & words:
            return False
        seen |= dangling
        dangling = rests(words, dangling) | rests(dangling, words) | (dangling & words)
    return not (dangling & words)


@pytest.mark.parametrize("vocabularies", ["separate", "shared"])
def test_multi_token_features_are_one_to_one_and_read_in_one_way(vocabularies):
    config = Chains(synsets=60, features="multi", vocabularies=vocabularies)
    features = draw_features(config, 1)
    words = features.words()
    assert len(set(words)) == 120 and sardinas_patterson(words)
    assert set(map(len, words)) == {1, 2, 3}
    sides = [{s for word in part for s in word} for part in (words[:60], words[60:])]
    assert sides[0].isdisjoint(sides[1]) == (vocabularies == "separate")
    assert len(features.names) == (60 if vocabularies == "shared" else 120) == len(set(features.names))
    rng = generator(1, "features")
    synsets, forms = rng.integers(60, size=(50, 30)), rng.integers(2, size=(50, 30))
    values, counts = features.spell(synsets, forms)
    for row, spelt in enumerate(np.split(values.tolist(), np.cumsum(counts)[:-1])):
        assert features.decode(spelt.tolist()) == (forms * 60 + synsets)[row].tolist()
    with pytest.raises(MaskLabError, match="not a sequence of features"):
        longest = max(words, key=len)
        features.decode(longest[:-1])


def test_the_papers_random_spelling_is_one_to_one_but_may_be_ambiguous():
    features = draw_features(Chains(synsets=60, features="multi", vocabularies="shared", code="random"), 1)
    assert len(set(features.words())) == 120 and not sardinas_patterson(features.words())


def test_too_small_an_alphabet_is_refused():
    with pytest.raises(MaskLabError, match="alphabet: 2 tokens are too few to spell 40 features"):
        draw_features(SMALL.model_copy(update={"features": "multi", "alphabet": 2}), 1)


def test_multi_token_corpora_spell_the_single_token_ones():
    single = generate(corpus(), "s", 1)["train"]
    config = SMALL.model_copy(update={"features": "multi", "vocabularies": "shared"})
    multi = generate(corpus(config), "m", 1)["train"]
    features = draw_features(config, 1)
    for spelt, feature in zip(multi[symbols.COLUMN].to_pylist(), dense(single).tolist(), strict=True):
        assert features.decode(spelt) == feature


def test_entropies_equal_brute_force():
    """Entropy of all sequences of 4 synsets enumerated; of the edges of a node by a dense matrix."""
    config = Chains(synsets=5, chains=1, seed=3)
    (chain,) = draw_chains(config, 1)
    matrix, total = chain.matrix(), 0.0
    for path in np.ndindex(5, 5, 5, 5):
        p = matrix[path[0], path[1]] * matrix[path[1], path[2]] * matrix[path[2], path[3]] / 5
        total -= p * np.log(p) if p else 0
    assert sequence_entropy([chain], 4, False) == pytest.approx(total, abs=1e-12)
    assert sequence_entropy([chain], 4, True) == pytest.approx(total + 4 * np.log(2), abs=1e-12)
    (chain,) = draw_chains(Chains(synsets=30, chains=1, edges="released"), 1)
    edges = -(chain.matrix() * np.log(np.where(chain.matrix() > 0, chain.matrix(), 1))).sum(1)
    assert edge_entropy(chain) == pytest.approx(edges, abs=1e-12)


def test_walks_start_anywhere():
    (chain, _) = draw_chains(SMALL, 1)
    starts = np.bincount(walk(chain, 20_000, 1, generator(1, "w"))[:, 0], minlength=20)
    assert np.abs(starts - 1000).max() < 4.5 * np.sqrt(950)


@pytest.mark.parametrize("distributional", [True, False])
def test_entropies_of_several_chains_by_brute_force(distributional):
    """Of (chain, walk, forms): every path of every chain, and a bit for each form where it is free."""
    chains = draw_chains(Chains(synsets=4, chains=3, seed=2), 1)
    for length in (1, 2, 3):
        total = 0.0
        for chain in chains:
            matrix = chain.matrix()
            for path in np.ndindex(*[4] * length):
                p = np.prod([matrix[a, b] for a, b in itertools.pairwise(path)]) / 4 / 3
                total -= p * np.log(p) if p else 0
        wanted = total + distributional * length * np.log(2)
        assert sequence_entropy(chains, length, distributional) == pytest.approx(wanted, abs=1e-12)


def test_entropies_of_edges_and_what_a_step_moves():
    """Edges to one node are no choice; certain edges have no entropy; mass goes where the edges lead."""
    targets = np.array([[1, 2], [0, 0], [2, 1]])

    def chain(first):
        class Made(SimpleNamespace):
            def __len__(self):
                return 3

        return Made(probabilities=np.array([first, 1 - first]), targets=targets)

    entropy = -(0.3 * np.log(0.3) + 0.7 * np.log(0.7))
    assert edge_entropy(chain(0.3)) == pytest.approx([entropy, 0, entropy])
    assert edge_entropy(chain(1.0)) == pytest.approx([0, 0, 0])
    assert push(chain(0.3), np.array([0.5, 0.2, 0.3])) == pytest.approx(
        [0.2, 0.5 * 0.3 + 0.3 * 0.7, 0.5 * 0.7 + 0.3 * 0.3]
    )
