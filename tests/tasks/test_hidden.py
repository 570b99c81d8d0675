"""Task-k of hidden Markov models: labels against enumeration of hidden paths and against what was drawn."""

import itertools

import numpy as np
import pytest

from masklab import symbols
from masklab.config.schema import HiddenMarkov, HmmTask
from masklab.corpora.hmm.model import draw_model
from masklab.errors import MaskLabError
from masklab.tasks import build, write_task

SMALL = HiddenMarkov(symbols=6, states=4, blocks=2)


def task(**keys):
    keys = {"hmm": SMALL, "position": 2, "length": 4, "train": 60, "valid": 20, "test": 30, **keys}
    return HmmTask(kind="hmm", **keys)


def words_of(table):
    return symbols.rows(table["symbols"])[0].reshape(len(table), -1)


def posterior(model, words, position):
    """Pr(z_k | x), [states], by summing over every hidden path."""
    blocks, k, v = model.emission.shape
    found = np.zeros(blocks * k)
    for path in itertools.product(range(blocks * k), repeat=len(words)):
        p = 1.0
        for t, (state, word) in enumerate(zip(path, words, strict=True)):
            block, at = divmod(state, k)
            p *= model.emission[block, at, word - block * v] if word // v == block else 0
            if t:
                p *= model.transition[block, path[t - 1] % k, at] if path[t - 1] // k == block else 0
        found[path[position - 1]] += p
    return found / found.sum()


@pytest.mark.parametrize("position", [1, 3])
def test_map_labels_equal_enumeration(position):
    splits, facts = build(task(position=position), "t", 1)
    model = draw_model(SMALL, 1)
    wanted = [posterior(model, row, position).argmax() for row in words_of(splits["test"]).astype(int)]
    assert splits["test"]["label"].to_pylist() == wanted and len(set(wanted)) > 2
    assert facts["labels"] == 4 and facts["rows"] == {"train": 60, "valid": 20, "test": 30}
    assert facts["best"]["test"] == 1 and facts["majority"]["test"] == max(np.bincount(wanted)) / 30


def test_sampled_labels_are_those_drawn_and_have_a_ceiling(tmp_path):
    """The most probable state is right as often as its probability says, within four standard errors."""
    keys = {"hmm": HiddenMarkov(), "length": 16, "position": 6, "train": 10, "valid": 10, "test": 4000}
    drawn, facts = build(task(**keys, label="sampled"), "t", 1)
    likely, _ = build(task(**keys), "other", 1)
    assert np.array_equal(words_of(drawn["test"]), words_of(likely["test"]))
    agreement = np.mean(np.array(drawn["test"]["label"]) == np.array(likely["test"]["label"]))
    best = facts["best"]["test"]
    assert abs(agreement - best) < 4 * np.sqrt(best * (1 - best) / 4000) and 0.3 < best < 0.6
    write_task(tmp_path / "t", drawn, facts)
    assert symbols.read_header(tmp_path / "t/train.parquet")["names"] == [f"w{i}" for i in range(200)]


def test_positions_share_sentences_and_splits_do_not():
    first, second = (build(task(position=k), "t", 1)[0] for k in (1, 4))
    assert first["train"]["symbols"].equals(second["train"]["symbols"])
    assert not np.array_equal(words_of(first["train"])[:20], words_of(first["valid"]))
    with pytest.raises(MaskLabError, match=r"tasks.t.position: 5 is after the last word \(4\)"):
        build(task(position=5), "t", 1)
