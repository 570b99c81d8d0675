"""bf16 on a CPU: the gradients of fp32 up to rounding, runs that resume to the bit, the same loss in the end."""

import dataclasses
import os
import statistics

import pytest
import torch
from runs import make_run

from masklab.config.schema import Objective
from masklab.files import read_json
from masklab.jobs import store
from masklab.kernels.processor import faster_compiled
from masklab.models import products
from masklab.training import arithmetic
from masklab.training.learner import Learner
from masklab.training.loop import Trainer, train
from masklab.training.stack import Alone, learner_of
from masklab.training.validation import Validation

FORMS = {
    "absolute": {"positions": "absolute"},
    "disentangled": {"positions": "disentangled"},
    "relative": {"positions": "relative", "norm": "pre"},
    "lstm": {"kind": "lstm", "positions": "absolute", "norm": "pre"},
    "decoder": {"positions": "absolute", "decoder": {"layers": 1}},
}


def still(encoder, **changes):
    values = encoder.model_dump() | {"dropout": 0.0} | changes
    return type(encoder)(**values)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_gradients_are_those_of_fp32_up_to_rounding(form, english, tiny_encoder, tmp_path):
    objective = Objective(mae=1) if "decoder" in form else Objective(mlm=1)
    encoder = still(tiny_encoder, **form)
    found = []
    for precision in ("fp32", "bf16"):
        run = make_run(english, encoder, tmp_path / precision, objective=objective, precision=precision)
        learner = Learner(run)
        row = learner.gradients(3)
        found.append((row["loss"], learner.flat.gradient.clone()))
    (loss, gradient), (low_loss, low_gradient) = found
    assert low_loss == pytest.approx(loss, rel=3e-3) and low_loss != loss
    assert low_gradient.dtype == torch.float32
    assert torch.cosine_similarity(gradient, low_gradient, dim=0) > 0.995
    assert float(low_gradient.norm()) == pytest.approx(float(gradient.norm()), rel=0.03)


@pytest.mark.parametrize("decoder", [None, {"layers": 1}, {"layers": 1, "hidden": 48}], ids=["", "decoder", "resized"])
@pytest.mark.parametrize("positions", ["absolute", "relative", "none"])
def test_gradients_written_by_hand_are_those_of_fp32_up_to_rounding(
    positions, decoder, english, tiny_encoder, tmp_path
):
    """With dropout: it is the same in both, and in the ordinary loop."""
    shape = {"dropout": 0.1, "positions": positions, "decoder": decoder}
    encoder = type(tiny_encoder)(**tiny_encoder.model_dump() | shape)
    objective, found = Objective(mae=1) if decoder else Objective(mlm=1), {}
    for precision, make in (("fp32", Learner), ("bf16", learner_of)):
        learner = make(make_run(english, encoder, tmp_path / precision, objective=objective, precision=precision))
        learner.model.train()
        row = learner.gradients(3)
        found[precision] = row["loss"], [p.grad.clone().flatten() for p in learner.model.parameters()]
    assert type(learner) is Alone and learner.model.embeddings.word.low.dtype == torch.bfloat16
    (loss, gradients), (low_loss, low_gradients) = found.values()
    assert low_loss == pytest.approx(loss, rel=3e-3) and low_loss != loss
    assert {each.dtype for each in low_gradients} == {torch.float32}
    gradient, low_gradient = torch.cat(gradients), torch.cat(low_gradients)
    assert torch.cosine_similarity(gradient, low_gradient, dim=0) > 0.995
    assert float(low_gradient.norm()) == pytest.approx(float(gradient.norm()), rel=0.03)


def test_what_is_computed_in_bf16_and_what_is_not(english, tiny_encoder, tmp_path):
    learner = Learner(make_run(english, tiny_encoder, tmp_path, precision="bf16"))
    seen = {}

    def watch(name):
        return lambda module, given, result: seen.update({name: (given[0].dtype, result.dtype)})

    block = learner.model.blocks[0]
    for name, module in {"ffn": block.ffn_in, "norm": block.ffn_norm, "head": learner.model.head.norm}.items():
        module.register_forward_hook(watch(name))
    learner.update(0)
    assert set(seen.values()) == {(torch.bfloat16, torch.bfloat16)} and len(seen) == 3
    assert {p.dtype for p in learner.model.parameters()} == {learner.flat.mean.dtype} == {torch.float32}
    # the validation loss reads the fp32 weights, and is that of a learner in fp32
    seen.clear()
    loss = Validation(learner).loss()
    assert {dtype for pair in seen.values() for dtype in pair} == {torch.float32}
    plain = Learner(make_run(english, tiny_encoder, tmp_path, precision="fp32"))
    plain.flat.load(learner.flat.state())
    assert Validation(plain).loss() == loss


def test_an_update_reads_the_weights_of_the_last_one(english, tiny_encoder, tmp_path):
    one, other = (Learner(make_run(english, tiny_encoder, tmp_path / name, precision="bf16")) for name in "ab")
    for step in range(3):
        one.update(step)
    other.flat.load(one.flat.state())  # as a run that is resumed does
    assert one.update(3) == other.update(3)
    assert torch.equal(one.flat.values, other.flat.values)


@pytest.mark.parametrize(
    ("has_bf16", "hidden", "kind", "norm", "expected"),
    [
        (True, 128, "transformer", "post", "bf16"),
        (True, 48, "transformer", "post", "bf16"),
        (True, 32, "transformer", "post", "fp32"),
        (True, 128, "transformer", "pre", "fp32"),
        (True, 128, "lstm", "pre", "fp32"),
        (False, 128, "transformer", "post", "fp32"),
    ],
)
def test_auto_goes_by_shape(has_bf16, hidden, kind, norm, expected, english, tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(products, "has_bf16", lambda: has_bf16)
    encoder = still(tiny_encoder, hidden=hidden, kind=kind, norm=norm, positions="absolute")
    run = make_run(english, encoder, tmp_path, precision="auto")
    assert arithmetic.settle(run, torch.device("cpu"))["precision"] == expected
    fixed = dataclasses.replace(run, model=run.model.model_copy(update={"precision": "bf16"}))
    assert arithmetic.settle(fixed, torch.device("cpu"))["precision"] == "bf16"


def test_what_a_gpu_began_in_bf16_a_cpu_goes_on_with_by_the_ordinary_loop(english, tiny_encoder, tmp_path):
    """Where compiled code takes the encoder in fp32 alone."""
    run = make_run(english, still(tiny_encoder, hidden=64, norm="pre"), tmp_path, precision="auto")
    assert type(learner_of(run)) is Alone
    arithmetic.keep(run, {"precision": "bf16", "products": "cuBLAS"})
    (run.state / "state.safetensors").touch()
    learner = learner_of(run)
    assert type(learner) is Learner and learner.arithmetic["precision"] == "bf16"


def test_a_resumed_run_keeps_what_it_began_with(english, tiny_encoder, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(products, "has_bf16", lambda: True)
    run = make_run(english, still(tiny_encoder, hidden=128), tmp_path, precision="auto")
    trainer = Trainer(run)
    with caplog.at_level("INFO", logger="masklab"):
        trainer.resume()
    assert "m: precision bf16, fp32 products by" in caplog.text
    trainer.record.save(0, trainer.learner.flat, trainer.guard)
    monkeypatch.setattr(products, "has_bf16", lambda: False)  # another machine
    assert arithmetic.settle(run, torch.device("cpu"))["precision"] == "bf16"
    os.replace(run.state / "state.safetensors", run.state / "state.previous.safetensors")  # killed while it was saved
    assert arithmetic.settle(run, torch.device("cpu"))["precision"] == "bf16"
    for other in ({"precision": "fp32"}, {"steps": 7}):  # a state that such a run begins anew from
        changed = dataclasses.replace(run, model=run.model.model_copy(update=other))
        assert arithmetic.settle(changed, torch.device("cpu"))["precision"] == "fp32"
    (run.state / "state.previous.safetensors").unlink()  # what is left of a run that never saved binds nobody
    assert arithmetic.settle(run, torch.device("cpu"))["precision"] == "fp32"


def test_a_run_that_goes_on_elsewhere_says_by_which_library(english, tiny_encoder, tmp_path, monkeypatch, caplog):
    run = make_run(english, tiny_encoder, tmp_path, steps=4, checkpoints=[4])
    trainer = Trainer(run)
    here = trainer.learner.arithmetic["products"]
    assert here == products.library() and (here == "MaskLab") == faster_compiled(torch.float32)
    trainer.resume()
    trainer.update(0)
    trainer.record.save(1, trainer.learner.flat, trainer.guard)
    monkeypatch.setattr(products, "library", lambda: "another")
    train(run)
    changed = f"m: products: {here!r} before, 'another' now; weights may differ in their last bits from those of a run"
    assert changed in caplog.text
    manifest = read_json(run.output / "manifest.json")
    assert manifest["facts"]["arithmetic"] == {"precision": "fp32", "products": "another"}
    assert [way["products"] for way in manifest[store.CHANGED]] == [here, "another"]


def test_trained_to_the_end_both_precisions_learn_as_much(english, tiny_encoder, tmp_path):
    """5 replicates each of one recipe; benchmarks/precision.py does the same at larger size."""
    losses = {}
    for precision in ("fp32", "bf16"):
        for seed in range(5):
            run = make_run(english, tiny_encoder, tmp_path / f"{precision}{seed}", precision=precision, steps=80)
            learner = Learner(dataclasses.replace(run, seed=seed))
            learner.model.train()
            first = Validation(learner).loss()
            for step in range(80):
                learner.update(step)
            losses.setdefault(precision, []).append(Validation(learner).loss())
            assert losses[precision][-1] < first - 0.5
    spread = statistics.stdev(losses["fp32"])
    assert abs(statistics.mean(losses["fp32"]) - statistics.mean(losses["bf16"])) < spread, losses
