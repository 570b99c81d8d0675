"""Where randomness comes from: the seed of the replicate, the phase and a purpose; never a name."""

import dataclasses

import numpy as np
import pytest
import torch
from runs import make_run

from masklab.config.schema import Decoder, Objective
from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.training.learner import Learner
from masklab.training.loop import train
from masklab.training.validation import Validation


def batches(learner, step):
    return [(batch.ids, batch.original, batch.at) for batch in learner.step(step).micro]


def same(one, other):
    return all(torch.equal(*pair) for pair in zip(sum(one, ()), sum(other, ()), strict=True))


def test_renaming_a_run_changes_no_weight(english, tiny_encoder, tmp_path):
    hashes = []
    for name in ("first", "second"):
        run = make_run(english, tiny_encoder, tmp_path, name=name, steps=10)
        train(run)
        hashes.append(read_json(run.output / "manifest.json")["steps"])
    assert hashes[0] == hashes[1]
    other = dataclasses.replace(run, name="third", seed=2, output=tmp_path / "3", state=tmp_path / "s3")
    train(other)
    assert read_json(other.output / "manifest.json")["steps"]["10"] != hashes[0]["10"]


def test_recipes_of_one_phase_share_batches_masks_and_weights(english, tiny_encoder, tmp_path):
    """Other objectives, optimisers, encoders: what has one shape begins with one value."""
    relative = tiny_encoder.model_copy(update={"positions": "relative"})
    deeper = tiny_encoder.model_copy(update={"layers": 3, "positions": "absolute", "dropout": 0.0})
    decoder = relative.model_copy(update={"decoder": Decoder(layers=1)})
    plain = Learner(make_run(english, tiny_encoder, tmp_path, name="plain"))
    others = [
        Learner(make_run(english, deeper, tmp_path, name="deeper", steps=9, optimiser={"lr": 1e-2})),
        Learner(make_run(english, relative, tmp_path, name="relative", micro_batch=32)),
        Learner(make_run(english, decoder, tmp_path, name="mae", objective=Objective(mae=1))),
    ]
    state = plain.model.state_dict()
    for other in others:
        for step in (0, 5, 200):
            assert np.array_equal(other.plan.batch(step), plain.plan.batch(step))
            assert same(batches(other, step), batches(plain, step))
        shared = {name: value for name, value in other.model.state_dict().items() if name in state and value.dim() == 2}
        equal = [torch.equal(value, state[name]) for name, value in shared.items() if value.shape == state[name].shape]
        assert all(equal) and len(equal) >= 8
        targets = [torch.cat([batch.targets for batch in Validation(each).batches()]) for each in (other, plain)]
        assert torch.equal(*targets)


def test_phases_and_replicates_do_not_share(english, tiny_encoder, tmp_path):
    first = make_run(english, tiny_encoder, tmp_path, steps=4)
    train(first)
    second = dataclasses.replace(first, phase=1, init=first.output / "step-4")
    one, two, again = (Learner(run) for run in (first, second, dataclasses.replace(first, seed=2)))
    assert not np.array_equal(one.plan.batch(0), two.plan.batch(0))
    assert not np.array_equal(one.plan.batch(0), again.plan.batch(0))
    assert not torch.equal(one.flat.values, again.flat.values)
    shuffled = dataclasses.replace(second, model=first.model.model_copy(update={"shuffle": True}))
    values = [Learner(dataclasses.replace(shuffled, name=name)).flat.values for name in "ab"]
    assert torch.equal(*values) and not torch.equal(values[0], two.flat.values)


def test_a_phase_without_a_start_is_refused(english, tiny_encoder, tmp_path):
    run = make_run(english, tiny_encoder, tmp_path)
    for wrong in ({"phase": 1}, {"init": tmp_path}):
        with pytest.raises(
            MaskLabError, match=r"m: phase .: a run has a phase above 0 if it has `init` or `teacher`, and on"
        ):
            dataclasses.replace(run, **wrong)
