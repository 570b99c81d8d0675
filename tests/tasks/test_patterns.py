"""The pattern task: labels against Python's `re`, mixes and domains as declared."""

import re

import numpy as np
import pytest

from masklab import symbols
from masklab.config.schema import Chains, PatternsTask
from masklab.corpora.markov.chains import draw_chains, walk
from masklab.corpora.markov.features import draw_features
from masklab.errors import MaskLabError
from masklab.rng import generator
from masklab.tasks import build, write_task
from masklab.tasks.patterns import DOMAINS, draw_sets, match, mixed

CHAINS = Chains(synsets=50)


def task(**keys):
    keys = {"chains": CHAINS, "length": 24, "train": 200, "valid": 60, "test": 80, "set_size": 2, **keys}
    return PatternsTask(kind="patterns", **keys)


def expression(three):
    parts = ["[" + "".join(map(chr, 0x4E00 + members)) + "]" for members in three]
    return re.compile(".*" + ".*".join(parts) + ".*", re.DOTALL)


@pytest.mark.parametrize("chains,length,size", [(CHAINS, 24, 2), (Chains(edges="released"), 100, 12)])
def test_labels_are_those_of_the_regular_expressions(chains, length, size):
    """3,000 sequences x 5 patterns, each pattern alone and any of them."""
    config = task(chains=chains, length=length, set_size=size)
    sets = draw_sets(config, generator(1, "sets"))
    synsets = walk(draw_chains(chains, 1)[0], 3000, length, generator(1, "walks"))
    texts = ["".join(map(chr, 0x4E00 + row)) for row in synsets.astype(int)]
    wanted = np.array([[bool(expression(three).fullmatch(text)) for three in sets] for text in texts])
    for index in range(5):
        assert (match(synsets, sets[index : index + 1]) == wanted[:, index]).all()
    assert (match(synsets, sets) == wanted.any(1)).all()
    assert 0.05 < wanted.any(1).mean() < 0.95


def test_sets_differ_within_and_may_overlap_between():
    sets = draw_sets(task(set_size=12), generator(1, "sets"))
    assert sets.shape == (5, 3, 12)
    assert all(len(set(members)) == 12 for three in sets for members in three)


@pytest.mark.parametrize("mix", [0.0, 0.1, 0.5, 0.37, 1.0])
def test_every_prefix_has_the_mix(mix):
    other = mixed(1000, mix)
    counts = np.concatenate([[0], np.cumsum(other)])
    assert (counts == np.floor(np.arange(1001) * mix + 1e-9)).all()
    assert mix != 0.1 or [int(counts[n]) for n in (10, 100, 1000)] == [1, 10, 100]


@pytest.fixture(scope="module")
def half():
    return build(task(mix=0.5), "p", 1)


def rows(table, domain):
    part = table.filter(np.asarray(table["domain"]) == domain)
    return np.array(part[symbols.COLUMN].to_pylist()), part["label"].to_numpy()


def test_domains_share_synsets_and_labels(half):
    splits, facts = half
    found = {domain: rows(splits["test"], domain) for domain in DOMAINS}
    for chain in ("D1", "D2"):
        (a, labels), (b, same) = found[f"A-{chain}"], found[f"B-{chain}"]
        assert (b == a + 50).all() and a.max() < 50 and (labels == same).all() and len(a) == 80
    assert (found["A-D1"][0] != found["A-D2"][0]).any()
    assert facts["domains"] == list(DOMAINS) and facts["labels"] == 2 and facts["kind"] == "labels"
    assert facts["positive"]["test"]["A-D2"] == found["A-D2"][1].mean()


def test_training_rows_follow_the_mix_and_the_chains(half):
    splits, facts = half
    assert facts["mix"] == 0.5 and facts["rows"] == {"train": 200, "valid": 60, "test": 320}
    for split, count in (("train", 200), ("valid", 60)):
        domains = np.asarray(splits[split]["domain"])
        assert (domains == np.where(mixed(count, 0.5), "B-D2", "A-D1")).all()
        for domain, (form, which) in (("A-D1", (0, 0)), ("B-D2", (1, 1))):
            symbol, _ = rows(splits[split], domain)
            assert (symbol // 50 == form).all()
            matrix = draw_chains(CHAINS, 1)[which].matrix()
            assert (matrix[symbol[:, :-1] % 50, symbol[:, 1:] % 50] > 0).all()


def test_tasks_of_other_mixes_share_walks_and_tests(half):
    splits, _ = half
    pure, _ = build(task(mix=0.0), "another name", 1)
    assert pure["test"].equals(splits["test"])
    ours, theirs = rows(pure["train"], "A-D1")[0], rows(splits["train"], "A-D1")[0]
    assert len(ours) == 200 and len(theirs) == 100
    longer, _ = build(task(mix=0.0, train=300), "p", 1)
    assert set(np.asarray(longer["train"]["domain"])) == {"A-D1"}


def test_multi_token_tasks_spell_the_same_synsets(half):
    config = CHAINS.model_copy(update={"features": "multi", "vocabularies": "shared"})
    splits, _ = build(task(chains=config, mix=0.5), "m", 1)
    features = draw_features(config, 1)
    single = half[0]
    for split in ("train", "test"):
        assert splits[split]["label"].equals(single[split]["label"])
        for spelt, feature in zip(*(s[split][symbols.COLUMN].to_pylist() for s in (splits, single)), strict=True):
            assert features.decode(spelt) == feature


def test_files_hold_the_columns(half, tmp_path):
    import pyarrow.parquet as pq

    write_task(tmp_path, *half)
    table = pq.read_table(tmp_path / "train.parquet")
    assert table.column_names == ["symbols", "label", "domain", "units"]
    assert table["units"].to_pylist() == [[s % 50 for s in row] for row in table["symbols"].to_pylist()]
    assert symbols.read_header(tmp_path / "train.parquet")["names"][50] == "b0"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_balanced_by_construction(seed):
    """Half of every domain, split and first half of it; walks are the chains', labels the patterns'."""
    chains = Chains(synsets=24, edges="released")
    config = task(chains=chains, balanced=True, length=12, set_size=4, patterns=2, mix=0.1, train=2000, test=301)
    splits, facts = build(config, "p", seed)
    for split, positive in facts["positive"].items():
        for domain, share in positive.items():
            labels = rows(splits[split], domain)[1]
            assert abs(2 * labels.sum() - len(labels)) <= 1 and share == labels.mean()
            counts = np.cumsum(2 * labels - 1)
            assert np.abs(counts).max() <= 1 and {*labels[:2]} == {0, 1}
            assert (rows(splits[split], domain)[0] < 48).all()
    labels = rows(splits["train"], "A-D1")[1]
    assert 0.4 < labels[::2].mean() < 0.6  # which of two neighbours is positive, a coin says
    _, facts = build(config.model_copy(update={"balanced": False}), "p", seed)
    assert any(share != 0.5 for share in facts["positive"]["test"].values())


def test_patterns_that_cannot_be_balanced_are_refused():
    with pytest.raises(MaskLabError, match=r"tasks.p.balanced: 1000 draws .* set balanced: false"):
        build(task(balanced=True, patterns=1, set_size=1, length=4), "p", 1)


@pytest.mark.parametrize(
    "keys,said",
    [({"set_size": 51}, "p.set_size: 51 of 50"), ({"chains": Chains(synsets=50, chains=1)}, "p.chains: the domains")],
)
def test_impossible_tasks_are_refused(keys, said):
    with pytest.raises(MaskLabError, match=said):
        build(task(**keys), "p", 1)
