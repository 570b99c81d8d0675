"""What a manifest says of a run: sizes, costs, losses, and that of word frequencies beside them."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from runs import make_run

from masklab.config.schema import Encoder, Masking, Objective
from masklab.files import read_json
from masklab.models.flops import count_parameters, pretraining_flops_per_token, training_flops
from masklab.tokens import TokenStore
from masklab.training.launch import launch
from masklab.training.learner import Learner
from masklab.training.loop import train
from masklab.training.manifest import facts as facts_of
from masklab.training.manifest import unigram_loss
from masklab.training.validation import Validation
from tablelaw import run_of

ENCODER = Encoder(layers=1, hidden=32, heads=4, max_positions=8, positions="absolute")


@pytest.fixture(scope="module")
def trained(table, tmp_path_factory):
    """One token of each sequence of a corpus of four symbols is to be predicted."""
    run = run_of(table.root, "facts", ENCODER, 150, checkpoints=[20, 150])
    folder = tmp_path_factory.mktemp("facts")
    run = dataclasses.replace(run, output=folder / "facts", state=folder / "state")
    train(run)
    return run, read_json(run.output / "manifest.json")["facts"]


def by_hand(store, targets, allowed):
    counts = np.bincount(store.ids, minlength=allowed[-1] + 1) + 1
    share = counts[allowed] / counts[allowed].sum()
    return -np.log(share[np.searchsorted(allowed, targets)]).mean()


def test_facts_of_a_run(trained, table):
    run, facts = trained
    metrics = pd.read_parquet(run.output / "metrics.parquet").set_index("step")
    store = TokenStore(table.tokens, "train")
    assert facts["parameters"] == count_parameters(ENCODER, 9) and facts["vocab_size"] == 9
    assert facts["tokens"] == metrics["tokens"].sum()
    each = pretraining_flops_per_token(ENCODER, Objective(mlm=1), Masking(count="one"), 9, 64, store.lengths)
    assert facts["flops"] == pytest.approx(each * facts["tokens"])
    assert facts["valid_loss"] == {str(step): metrics["valid_loss"][step] for step in (20, 150)}
    targets = np.concatenate([batch.targets.numpy() for batch in Validation(Learner(run)).batches()])
    assert facts["unigram_loss"] == pytest.approx(by_hand(store, targets, [2, *range(5, 9)]))
    assert facts["valid_loss"]["150"] < facts["unigram_loss"] < 1.1 * math.log(4)


def test_flops_are_those_of_whole_batches(table):
    """What disentangled positions compute once for a batch is shared by its sequences, as many as a forward pass has.

    Of 18 tokens `floor` hides 2, although 15 % of them are nearer to 3.
    """
    encoder, rows = Encoder(layers=2, hidden=32, heads=4), [{"step": 10, "tokens": 1000, "valid_loss": 2.0}]
    for keys, size in (({}, 64), ({"micro_batch": 16}, 16), ({"micro_batch": 99}, 64), ({"processes": 4}, 16)):
        run = run_of(table.root, "whole", encoder, 10, masking=Masking(), **keys)
        found = facts_of(run, 45, 0, rows, np.full(100, 18), None)
        assert found["flops"] == pytest.approx(1000 * training_flops(encoder, 45, size, 18, 2) / (size * 18))


def test_special_tokens_have_a_share_only_where_they_are_to_be_predicted(english, monkeypatch):
    store = TokenStore(english / "tokens", "valid")
    counts = store.counts(500)
    assert counts[0] == counts[1] == len(store) and counts[5:].sum() + counts[2] == len(store.ids)
    monkeypatch.setattr("masklab.tokens.COUNTED", 100)
    assert np.array_equal(store.counts(500), counts)
    plain, ends = np.array([7, 8, 9]), np.array([7, 8, 9, 0])
    assert unigram_loss(store, 500, plain) == pytest.approx(by_hand(store, plain, [2, *range(5, 500)]))
    every = counts[[0, 1, 2, *range(5, 500)]] + 1
    share = (counts + 1) / every.sum()
    assert unigram_loss(store, 500, ends) == pytest.approx(-np.log(share[ends]).mean())
    assert unigram_loss(store, 500, np.array([], int)) is None


def test_a_starting_point_has_its_losses(english, tiny_encoder, tmp_path):
    run = make_run(english, tiny_encoder, tmp_path, steps=0)
    train(run)
    facts = read_json(run.output / "manifest.json")["facts"]
    assert facts["tokens"] == facts["flops"] == 0
    assert facts["valid_loss"]["0"] > facts["unigram_loss"] > 0


def test_models_without_weights(table):
    run = run_of(table.root, "table", Encoder(kind="lookup"), 0)
    launch(run)
    facts = read_json(run.output / "manifest.json")["facts"]
    assert facts["valid_loss"] == {"0": None} and facts["parameters"] == facts["flops"] == 0
    validation = Validation(Learner(run_of(table.root, "trained", ENCODER, 0)))
    assert facts["unigram_loss"] == validation.unigram_loss, "of the same masked tokens"
    run = run_of(table.root, "words", Encoder(kind="words"), 0)
    launch(run)
    facts = read_json(run.output / "manifest.json")["facts"]
    assert facts["valid_loss"] == {"0": validation.unigram_loss} and facts["unigram_loss"] == validation.unigram_loss


def test_a_run_that_learned_no_more_than_word_frequencies_says_so(english, tiny_encoder, tmp_path, caplog):
    """At checkpoints of its second half alone."""
    run = make_run(english, tiny_encoder, tmp_path, steps=8, checkpoints=[2, 4, 6, 8], optimiser={"lr": 1e-6})
    train(run)
    said = [record.getMessage() for record in caplog.records if "word frequencies" in record.getMessage()]
    assert len(said) == 2 and said[0].startswith("m: at step 6 the validation loss, ")
    facts = read_json(run.output / "manifest.json")["facts"]
    assert said[1].endswith(f"{facts['valid_loss']['8']:.4f}, is not below that of word frequencies alone,"
                            f" {facts['unigram_loss']:.4f}")  # fmt: skip


def test_a_good_run_says_nothing(trained, caplog):
    run, facts = trained
    validation = Validation(Learner(run))
    validation.warn(150, facts["valid_loss"]["150"])
    validation.warn(75, 99.0)
    assert not caplog.records
