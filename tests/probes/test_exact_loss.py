"""The loss against exact conditionals: by its definition, never below the entropy, equal to it for the lookup table."""

import dataclasses

import numpy as np
import pytest
import torch

from checked_run import run
from masklab.conditionals import Conditionals, write_conditionals
from masklab.config.schema import LossProbe
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint
from masklab.probes import Context
from masklab.probes.exact_loss import divergences, summary
from masklab.tokenizers import MASK
from masklab.tokens import TokenStore

PROBE = LossProbe(kind="loss", masks="one", batch_size=16)


@pytest.fixture(scope="module")
def exact(table, tmp_path_factory):
    root = tmp_path_factory.mktemp("conditionals")
    for positions in ("all", "one"):
        write_conditionals(table.tokens, root / positions, 120, positions, 1, root)
    return root


def measured(table, conditionals, name):
    rows = run(Context(PROBE, table.folders[name], tokens=table.tokens, conditionals=conditionals))
    assert {(row["task"], row["split"], row["n"]) for row in rows} == {
        ("corpus", "test", len(Conditionals(conditionals)))
    }
    return {row["metric"]: row["value"] for row in rows}


def test_divergences_equal_their_definition(table, exact):
    """One sequence, one mask and one forward pass at a time, the law counted from its table; to 1e-6."""
    store, stored = TokenStore(table.tokens, "test"), Conditionals(exact / "all")
    model = load_checkpoint(table.folders["bert"]).eval()
    found = divergences(model, store, stored, 16)
    assert (found >= 0).all() and len(found) == len(stored) > 200
    for pair in range(0, len(stored), 23):
        ids, lengths = store.batch([stored.rows[pair]])
        t = int(stored.columns[pair])
        exactly = table.law.conditionals(ids.numpy()[:, 1:-1] - 5)[0, t - 1]
        ids[0, t] = MASK
        with torch.no_grad():
            f = model(ids, lengths).logits[t].double().softmax(-1).numpy()[5:]
        wanted = sum(p * np.log(p / q) for p, q in zip(exactly, f, strict=True) if p > 0)
        assert found[pair] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("name", ["bert", "lstm"])
def test_loss_is_floor_and_gap_and_that_of_true_tokens(table, exact, name):
    found, one = measured(table, exact / "all", name), measured(table, exact / "one", name)
    assert found["loss"] == pytest.approx(found["floor"] + found["gap"], abs=1e-12)
    assert 0 < found["gap"] < np.log(10) and found["floor"] > 0.3
    sampled = run(Context(LossProbe(kind="loss", masks="one", sequences=200), table.folders[name], tokens=table.tokens))
    sampled = {row["metric"]: row["value"] for row in sampled}
    assert abs(sampled["loss"] - found["loss"]) < 4 * np.hypot(sampled["loss_se"], found["loss_se"])
    assert abs(one["loss"] - found["loss"]) < 4 * np.hypot(one["loss_se"], found["loss_se"])
    parameters = sum(p.numel() for p in load_checkpoint(table.folders[name]).parameters())
    assert found["parameters"] == sampled["parameters"] == parameters
    assert set(sampled) == {"loss", "loss_se", "parameters"}  # this law has no posterior of other masks


def test_training_closes_the_gap_and_the_lookup_table_has_none(table, exact):
    trained, table_ = measured(table, exact / "all", "bert"), measured(table, exact / "all", "lookup")
    assert (
        table_["parameters"] == table_["gap"] == 0
        and table_["gap_se"] == 0
        and table_["loss"] == table_["floor"] == trained["floor"]
    )
    assert trained["gap"] < 0.15


def test_a_sequence_counts_once_and_subsets_give_the_deviation():
    rows = np.array([4, 4, 4, 7, 9, 9, 11, 12])
    values = np.array([1.0, 2.0, 3.0, 5.0, 1.0, 2.0, 0.0, 4.0])
    sequences, found = summary(rows, values, np.zeros(8))
    means = np.array([2.0, 5.0, 1.5, 0.0, 4.0])
    assert sequences["loss"] == pytest.approx(means) and (sequences["gap"] == 0).all()
    assert found["loss_se"] == pytest.approx(means.std(ddof=1) / np.sqrt(5)) and found["gap_se"] == 0
    assert found["loss_std"] == pytest.approx(means.std(ddof=1))
    assert set(summary(rows[:4], values[:4], np.zeros(4))[1]) == {"loss_se", "floor_se", "gap_se"}
    sequences, found = summary(rows[:3], values[:3], np.zeros(3))
    assert sequences["loss"] == [2.0] and found == {}  # one sequence has no error


def test_a_law_of_other_symbols_is_refused(table, exact, make_checkpoint):
    context = Context(PROBE, make_checkpoint("absolute"), tokens=table.tokens, conditionals=exact / "all")
    with pytest.raises(MaskLabError, match="the law has 4 symbols"):
        run(dataclasses.replace(context))
