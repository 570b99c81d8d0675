"""Replicates that train side by side are the replicates that train alone, whatever happens to them on the way."""

import contextlib
import dataclasses
import os
import shutil
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from runs import warm
from several import AUTOENCODERS, FORMS, hashes, left, metrics, replicates, start, stop_at, weights

from masklab.config import read
from masklab.config.schema import Encoder, Model, Objective
from masklab.errors import MaskLabError
from masklab.files import read_json, write_json
from masklab.jobs import stacks as told
from masklab.models.stacked import supports_masked
from masklab.training import together
from masklab.training.launch import launch
from masklab.training.learner import Learner
from masklab.training.side_by_side import by_hand, stacks
from masklab.training.stack import Alone, Stack
from masklab.training.together import folder_of, take, train_together

LIBRARIES = ("as here", "MKL")


def learners(runs):
    made = [Learner(run) for run in runs]
    for learner in made:
        learner.model.train()
    return made


@pytest.mark.parametrize("rate", [0.15, 0.6, None], ids=["few", "many", "one"])
@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_those_of_the_ordinary_loop(english, tmp_path, form, rate):
    """In fp32, dropout on."""
    masking = {"count": "one"} if rate is None else {"count": "bernoulli", "rate": rate}
    assert_ordinary(replicates(english, tmp_path, 3, form, masking=masking))


@pytest.mark.parametrize("form", ["absolute", "disentangled", "autoencoder"])
def test_gradients_of_micro_batches_are_added_as_in_the_ordinary_loop(english, tmp_path, form):
    runs = replicates(english, tmp_path, 2, form, micro_batch=12)
    assert [len(batch.ids) for batch in Learner(runs[0]).draw(0).micro] == [12, 12, 8]
    assert_ordinary(runs)


@pytest.mark.parametrize("form", AUTOENCODERS)
def test_a_row_of_which_nothing_stays_in_the_encoder_is_that_of_the_ordinary_loop(english, tmp_path, form):
    runs = replicates(english, tmp_path, 2, form, masking={"count": "bernoulli", "rate": 0.97, "specials": True})
    batch = Learner(runs[0]).draw(0).micro[0]
    gone = np.bincount(batch.extra["dropped"].numpy() // batch.ids.shape[1], minlength=len(batch.ids))
    assert (gone == batch.lengths.numpy()).any() or AUTOENCODERS[form].get("delta")
    assert_ordinary(runs)


def assert_ordinary(runs):
    """Losses and gradients of three steps are those of the ordinary loop: within 1e-5 of the largest number of each."""
    alone, stack = learners(runs), Stack(learners(runs))
    for step in range(3):
        stack.parameters.gradient.fill_(torch.nan)
        rows = stack.gradients(step)
        for learner, row, beside in zip(alone, rows, stack.learners, strict=True):
            learner.flat.gradient.zero_()
            wanted = learner.gradients(step)
            assert row == pytest.approx(wanted, rel=1e-5) and list(row) == list(wanted)
            for name, parameter in learner.model.named_parameters():
                found = beside.model.get_parameter(name).grad
                bound = 1e-5 * float(parameter.grad.abs().max()) + 1e-9
                torch.testing.assert_close(found, parameter.grad, atol=bound, rtol=0, msg=f"{name}, step {step}")


def moments(learner) -> dict[str, dict]:
    """AdamW's moments of each parameter, read from memory as the learner has laid it out."""
    stacked = isinstance(learner, Alone)
    shapes = {name: parameter.shape for name, parameter in learner.model.named_parameters()}
    sizes = {name: shape.numel() for name, shape in (learner.stack.parameters.shapes if stacked else shapes).items()}
    parts = {kind: getattr(learner.flat, kind).split(list(sizes.values())) for kind in ("mean", "square")}
    return {kind: dict(zip(sizes, vectors, strict=True)) for kind, vectors in parts.items()}


@pytest.mark.parametrize(("first", "then"), [(Alone, Learner), (Learner, Alone)], ids=["to a GPU", "from a GPU"])
@pytest.mark.parametrize("form", ["absolute", "disentangled", "relative", "autoencoder, narrow"])
def test_a_state_is_of_the_same_weights_whoever_goes_on_from_it(english, tmp_path, form, first, then):
    """What trains on a CPU as a stack of one lies in memory in another order than what trains by the ordinary loop."""
    (run,) = replicates(english, tmp_path, 1, form)
    began, other = first(run), then(run)
    for step in range(3):
        began.update(step)
    state = {name: tensor.clone() for name, tensor in began.flat.state().items()}
    other.flat.load(state)
    for name, tensor in other.flat.state().items():
        assert torch.equal(tensor, state[name]), name
    found = other.model.state_dict()
    for name, tensor in began.model.state_dict().items():
        assert torch.equal(found[name], tensor), name
    found = moments(other)
    for kind, parts in moments(began).items():
        assert parts.keys() == found[kind].keys()
        for name, part in parts.items():
            assert torch.equal(found[kind][name], part), name
        assert parts["embeddings.word"].any() and parts["head.bias"].any()
    assert other.update(3)["loss"] == pytest.approx(began.update(3)["loss"], rel=1e-4)


def company(english, folder, form, **keys):
    """Stacks of five replicates, of some of them, and of each alone."""
    several = {}
    for members in ([0, 1, 2, 3, 4], [4, 2], [0], [2], [4]):
        runs = replicates(english, folder, 5, form, **keys)
        several[tuple(members)] = Stack(learners([runs[k] for k in members]))
    return several


def assert_alike(several, steps):
    """Make some updates: every replicate has one loss, one gradient and one set of weights, whoever is beside it."""
    for step in range(steps):
        found = {}
        for members, stack in several.items():
            rows = stack.gradients(step)
            gradients = stack.parameters.gradient.clone()
            stack.apply(rows)
            for k, row, gradient, values in zip(members, rows, gradients, stack.parameters.values, strict=True):
                found.setdefault(k, []).append((row, gradient, values.clone()))
        for (row, gradient, values), *others in found.values():
            for other in others:
                assert row == other[0]
                assert torch.equal(gradient, other[1])
                assert torch.equal(values, other[2])


@pytest.mark.parametrize("rate", [0.15, 0.6, None], ids=["few", "many", "one"])
@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_those_of_a_replicate_alone_to_the_bit(english, tmp_path, form, rate):
    masking = {"count": "one"} if rate is None else {"count": "bernoulli", "rate": rate}
    several = company(english, tmp_path, form, masking=masking)
    assert_alike(several, 2)
    assert {None, 0} & {first for first, size in several[0, 1, 2, 3, 4].models if size > 1}  # some have shared a pass


@pytest.mark.parametrize("library", [None, *LIBRARIES])
@pytest.mark.parametrize("form", ["absolute", "relative alone", "none", "linear head", "autoencoder"])
def test_in_bf16_too_they_are_those_of_a_replicate_alone_to_the_bit(english, tmp_path, form, library, monkeypatch):
    """With compiled products, and with those of either library."""
    if library:
        made_by(library, monkeypatch)
    several = company(english, tmp_path, form, precision="bf16")
    assert several[(0,)].parameters.low is not None
    assert_alike(several, 2)


def made_by(library, monkeypatch):
    """Have a library make all products, MKL or that which is preferred here."""
    for module in ("training.stack", "models.stacked.products", "models.linear"):
        monkeypatch.setattr(f"masklab.{module}.faster_compiled", lambda _: False)
    if library.startswith("MKL"):
        for module in ("models.products", "models.batched"):
            monkeypatch.setattr(f"masklab.{module}.prefers_onednn", lambda: False)


def test_no_more_copies_share_a_pass_than_a_cache_holds(english, tmp_path, monkeypatch):
    shape = {"hidden": 32, "heads": 2}
    monkeypatch.setattr("masklab.training.stack.CACHE", 3 * 64 * 20 * 32)  # two of the longest batches, or one
    several = company(english, tmp_path, "absolute", encoder=shape, batch_size=64)
    assert_alike(several, 4)
    assert {size for _, size in several[0, 1, 2, 3, 4].models} == {1, 2}


@pytest.mark.parametrize("form", ["absolute", "disentangled"])
@pytest.mark.parametrize(
    "hidden, heads, batch_size, library",
    [
        *((*shape, library) for shape in [(16, 4, 8), (48, 3, 24), (64, 2, 64)] for library in LIBRARIES),
        (32, 2, 32, "two threads"),
        (32, 2, 32, "MKL, two threads"),
    ],
)
def test_no_shape_tells_a_replicate_who_is_beside_it(
    english, tmp_path, form, hidden, heads, batch_size, library, monkeypatch, request
):
    if library.startswith("MKL"):
        made_by(library, monkeypatch)
    if library.endswith("two threads"):
        request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
        torch.set_num_threads(2)
    shape = {"hidden": hidden, "heads": heads} | ({"norm": "pre"} if hidden == 48 else {})
    how = {"clip": None, "kind": "sgd", "momentum": 0.5, "lr": 0.1} if heads == 3 else {}
    assert_alike(company(english, tmp_path, form, encoder=shape, batch_size=batch_size, optimiser=how), 2)


@pytest.mark.parametrize("how", [{}, {"clip": None, "kind": "sgd", "momentum": 0.5, "lr": 0.1}], ids=["adamw", "sgd"])
@pytest.mark.parametrize("form", ["absolute", "autoencoder"])
def test_weights_are_those_of_the_ordinary_loop(english, tmp_path, form, how):
    """After 60 updates, fp32, dropout on: every weight within 1e-4, every loss within 1e-4 of itself.

    But for biases of keys: they change no attention, so that their gradient is nothing but rounding, which AdamW takes
    for a direction.
    """
    beside, alone = (
        replicates(
            english, tmp_path / name, 3, form, optimiser={"lr": 2e-3, "warmup": 0.1} | how, stack=name == "beside"
        )
        for name in ("beside", "alone")
    )
    train_together(beside[0], beside[1:])
    for run in beside[1:] + alone:
        launch(run)
    for one, other in zip(beside, alone, strict=True):
        found, wanted = weights(one), weights(other)
        assert list(found) == list(wanted) == ["step-20", "step-60"]
        for step, tensors in wanted.items():
            for name, tensor in tensors.items():
                if "key.bias" not in name:
                    torch.testing.assert_close(found[step][name], tensor, atol=1e-4, rtol=0, msg=f"{step} {name}")
        pd.testing.assert_frame_equal(metrics(one), metrics(other), rtol=1e-4)
        manifest, of_other = (read_json(run.output / "manifest.json") for run in (one, other))
        assert manifest["config"]["model"].pop("stack") and not of_other["config"]["model"].pop("stack")
        assert manifest["config"] == of_other["config"]
        assert manifest["facts"]["parameters"] == of_other["facts"]["parameters"]
    assert len({str(hashes(run)) for run in beside}) == 3
    left = [path for path in beside[0].state.parent.rglob("*") if path.is_file() and path.name != "lock"]
    assert not left


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_what_a_replicate_leaves_does_not_tell_its_company(english, tmp_path, caplog, precision):
    """Whole runs, byte for byte: alone, in twos, all five, and stopped in the company of some to go on with others."""
    caplog.set_level("INFO", "masklab")
    companies, found = [[[1], [2], [3], [4], [5]], [[2, 5], [3, 4], [1]], [[1, 2, 3, 4, 5]]], []
    short = {"steps": 24, "checkpoints": [8, 24], "log_every": 6, "precision": precision}
    for number, company in enumerate(companies):
        runs = replicates(english, tmp_path / str(number), 5, **short)
        for members in company:
            own, *others = (runs[k - 1] for k in members)
            launch(own, beside=others)
            for run in others:
                assert not (run.output / "manifest.json").exists()
                launch(run)
        found.append([left(run) for run in runs])
    runs = replicates(english, tmp_path / "torn", 5, **short)
    stop_at(11, runs[:3])
    launch(runs[0], beside=[dataclasses.replace(runs[1], seed=5), runs[2]])
    launch(runs[2])
    launch(runs[1], beside=runs[3:])
    launch(runs[3])
    launch(runs[4])
    for k, run in enumerate(runs):
        manifest, rows = left(run)
        for company in found:
            assert company[k][0] == manifest
            pd.testing.assert_frame_equal(company[k][1], rows, check_exact=True)
    for said in ("r1, r2, r3, r4, r5 train side by side, from step 0", "r1, r3 train side by side, from step 11"):
        assert f"m: {said} of 24" in caplog.text
    assert "m: r2, r4, r5 train side by side, from step 0 of 24" in caplog.text


def saved_step(file) -> int:
    try:
        return together.saved._read(file)[0].facts["step"]
    except Exception:
        return 0


@pytest.mark.slow
@pytest.mark.parametrize(("form", "precision"), [("absolute", "fp32"), ("autoencoder", "fp32"), ("absolute", "bf16")])
def test_twenty_kills_and_the_same_weights(english, tmp_path, form, precision):
    """SIGKILL at 20 random moments of the job that trains three, or of the jobs that take what it made."""
    keys = {"save_minutes": 1e-6, "steps": 80, "checkpoints": [30, 80], "precision": precision}
    torn, whole = (replicates(english, tmp_path / name, 3, form, **keys) for name in ("torn", "whole"))
    rng, errors = np.random.default_rng(3), tmp_path / "errors"
    file, reached = folder_of(torn[0]) / together.FILE, []
    for target in [0, 0, *np.sort(rng.choice(np.arange(2, 78), 17, replace=False)).tolist(), 80]:
        process = warm.Process(target=start, args=(torn, str(errors)), daemon=True)
        process.start()
        done = folder_of(torn[0]) / "r3.json"
        while process.is_alive() and saved_step(file) < target and not (target == 80 and done.exists()):
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.01 if target else 0.2))
        process.kill()
        process.join()
        reached.append(saved_step(file))
    assert max(reached) >= 60 and len(set(reached)) > 10
    for runs in (torn, whole):
        process = warm.Process(target=start, args=(runs, str(errors)), daemon=True)
        process.start()
        process.join()
        assert process.exitcode == 0, errors.read_text()
    assert [hashes(run) for run in torn] == [hashes(run) for run in whole]
    for one, other in zip(torn, whole, strict=True):
        pd.testing.assert_frame_equal(metrics(one), metrics(other), check_exact=True)


def test_a_replicate_whose_loss_explodes_leaves_the_others(english, tmp_path, monkeypatch, caplog):
    runs, fewer = (replicates(english, tmp_path / name, 3, save_minutes=1e-6) for name in ("three", "two"))
    judged = together.Trainer.judge

    def judge(trainer, row):
        if trainer.run.replicate == 1 and row["step"] == 7:
            trainer._fail(7, "the loss is nan")
        judged(trainer, row)

    monkeypatch.setattr(together.Trainer, "judge", judge)
    caplog.set_level("INFO", "masklab")
    with pytest.raises(MaskLabError, match="the loss is nan at step 7"):
        launch(runs[0], beside=runs[1:])  # its own job: it trains the others to the end, then itself alone, and fails
    assert "r1 leaves the others and is left to its own job" in caplog.text
    assert "the same command begins anew" in caplog.text and "kept in" not in caplog.text  # the state saved is of all
    for run in runs[1:]:
        launch(run)
    assert "was trained side by side with r2" in caplog.text
    train_together(fewer[1], fewer[2:])
    launch(fewer[2])
    for one, other in zip(runs[1:], fewer[1:], strict=True):
        assert hashes(one) == hashes(other)


def test_what_was_left_is_taken_only_by_whom_it_belongs_to(english, tmp_path, monkeypatch):
    first, *others = replicates(english, tmp_path, 4)
    (others[2].state).mkdir(parents=True)
    (others[2].state / "code").write_text('{"code": {"another": "1"}, "versions": {}}')
    train_together(first, others)
    changed = dataclasses.replace(others[0], model=others[0].model.model_copy(update={"batch_size": 16}))
    assert not take(changed) and not take(others[0])  # once forgotten, it is gone
    monkeypatch.setenv("MASKLAB_ANEW", "1")  # somebody wants it done again
    monkeypatch.setenv(told.VARIABLE, "another run")
    assert not take(others[1])
    monkeypatch.delenv("MASKLAB_ANEW")
    assert not take(others[2]) and not others[2].output.exists()  # made by other code


def test_what_was_left_is_taken_where_files_cannot_be_linked(english, tmp_path, monkeypatch):
    first, other = replicates(english, tmp_path, 2)
    train_together(first, [other])

    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert take(other) and hashes(other).keys() == {"20", "60"}
    assert weights(other).keys() == {"step-20", "step-60"} and not folder_of(other).joinpath("r2").exists()


def test_what_a_replicate_had_begun_alone_goes_once_it_was_trained_beside_others(english, tmp_path):
    first, other = replicates(english, tmp_path, 2, steps=3, checkpoints=[3])
    trainer = together.Trainer(other)
    trainer.resume()
    trainer.update(0)
    trainer.record.save(1, trainer.learner.flat, trainer.guard)
    train_together(first, [other])
    assert (other.state / together.FILE).is_file() and take(other)
    assert [path.name for path in other.state.iterdir()] == ["lock"]


def test_a_replicate_that_somebody_else_trains_is_left_out(english, tmp_path, caplog):
    caplog.set_level("INFO", "masklab")
    runs = replicates(english, tmp_path, 3, steps=3, checkpoints=[3])
    with together.state.locked(runs[1].state):
        launch(runs[0], beside=runs[1:])
    assert "was trained side by side with r3" in caplog.text


def test_a_replicate_whose_vocabulary_has_another_size_trains_by_itself(english, tmp_path, caplog):
    """As where each replicate draws its own corpus, and its tokenizer knows the words of that."""
    caplog.set_level("INFO", "masklab")
    runs = replicates(english, tmp_path, 3, steps=3, checkpoints=[3])
    more = shutil.copytree(english / "tokens", tmp_path / "tokens")
    meta = read_json(more / "meta.json")
    write_json(meta | {"vocab_size": meta["vocab_size"] + 2}, more / "meta.json")
    runs[1] = dataclasses.replace(runs[1], tokens=more)
    launch(runs[0], beside=runs[1:])
    assert "m: r1, r3 train side by side" in caplog.text
    assert "m: r2 has a vocabulary of another size and trains by itself" in caplog.text
    for run in runs[1:]:
        launch(run)
    sizes = [read_json(run.output / "manifest.json")["facts"]["vocab_size"] - meta["vocab_size"] for run in runs]
    assert sizes == [0, 2, 0]


@pytest.mark.parametrize("odd", [1, 2])
def test_a_replicate_that_cannot_begin_keeps_no_other_from_it(english, tmp_path, caplog, odd):
    """As where chance hides no token of its few validation sequences: own job or sibling's, it alone fails."""
    runs = replicates(english, tmp_path, 3, steps=3, checkpoints=[3])
    bare = shutil.copytree(english / "tokens", tmp_path / "tokens")
    ids = np.load(bare / "valid.ids.npy")
    np.save(bare / "valid.ids.npy", ids[:2])
    np.save(bare / "valid.offsets.npy", np.array([0, 2], np.load(bare / "valid.offsets.npy").dtype))
    runs[odd - 1] = dataclasses.replace(runs[odd - 1], tokens=bare)
    own, *others = runs
    said = "the corpus has no validation sequence with a maskable token"
    with pytest.raises(MaskLabError, match=said) if odd == 1 else contextlib.nullcontext():
        launch(own, beside=others)
    for run in others:
        with pytest.raises(MaskLabError, match=said) if run is runs[odd - 1] else contextlib.nullcontext():
            launch(run)
    assert f"r{odd} is left to its own job: m: {said}" in caplog.text
    made = [(run.output / "manifest.json").is_file() for run in runs]
    assert made == [run is not runs[odd - 1] for run in runs]


def test_which_recipes_of_the_default_run_train_side_by_side():
    config = read()
    found = {
        name
        for name, model in config.models.items()
        if stacks(model, config.encoders[model.encoder], config.objectives[model.objective])
    }
    trained = {name for name, model in config.models.items() if model.steps and config.encoders[model.encoder].network}
    alone = {name for name in trained - found}
    by_cross = {"mae-self+cross", "mae-causal+cross", "mae-cross"}
    assert alone == {"mae-mlm", "mae-mae"} | by_cross
    assert {"mae-rank-3-mlm", "dh-single-with", "ib-hmm-l"} <= found
    model, encoder, mlm = config.models["dh-single-with"], config.encoders["dh"], Objective(mlm=1)
    low = Model(**model.model_dump() | {"precision": "bf16"})
    assert stacks(model, encoder, mlm) and encoder.positions == "disentangled" and not stacks(low, encoder, mlm)
    relative = Encoder(**encoder.model_dump() | {"positions": "relative"})
    assert stacks(low, relative, mlm) and not stacks(low, Encoder(**relative.model_dump() | {"norm": "pre"}), mlm)
    for keys in ({"stack": False}, {"precision": "auto"}, {"processes": 2}, {"steps": 0}):
        assert not stacks(Model(**model.model_dump() | keys), encoder, mlm)
    for keys in ({"attention_dropout": 0.2}, {"decoder": {}}):  # and distances are embedded
        assert not supports_masked(Encoder(**encoder.model_dump() | keys))


def test_which_recipes_are_trained_by_hand():
    """Any width, and in bf16 where states are normalised after every sum."""
    encoder, mlm = Encoder(positions="absolute", hidden=256, heads=4), Objective(mlm=1)
    names = {name: "x" for name in ("corpus", "tokenizer", "encoder", "objective")}
    plain, low = (Model(steps=1, precision=precision, **names) for precision in ("fp32", "bf16"))

    def of(model, objective=mlm, **keys):
        return by_hand(model, Encoder(**encoder.model_dump() | keys), objective)

    assert of(plain) and of(low) and not stacks(plain, encoder, mlm)
    assert of(plain, norm="pre") and not of(low, norm="pre") and not of(low, embedding_norm=False)
    auto = Model(steps=1, precision="auto", **names)  # of a CPU, which makes fp32 of it
    assert of(auto) and of(auto, norm="pre")
    assert of(plain, positions="disentangled") and of(low, positions="disentangled")
    assert not of(Model(**plain.model_dump() | {"compile": True}))
    by_itself = Model(**plain.model_dump() | {"stack": "alone"})
    assert of(by_itself) and not stacks(by_itself, Encoder(positions="absolute", hidden=64, heads=4), mlm)
    mae = Objective(mae=1)
    for keys in ({}, {"positions": "relative"}, {"decoder": {"hidden": 64}}):
        assert of(plain, mae, **{"decoder": {}} | keys) and of(low, mae, **{"decoder": {}} | keys)
    assert of(plain, mae) and not of(plain, mlm, decoder={})  # with one, [MASK]s leave under MLM too
    assert not of(plain, mae, decoder={}, positions="disentangled")
    for attention in ("self+cross", "causal+cross", "cross"):
        assert not of(plain, mae, decoder={"attention": attention})


def test_a_row_longer_than_its_positions_is_an_error(english, tmp_path):
    (learner,) = learners(replicates(english, tmp_path, 1, "absolute"))
    batch = learner.draw(0).micro[0]
    model = Stack([learner])._model([0])
    many = learner.model.config.max_positions + 1
    long = dataclasses.replace(batch, ids=torch.full((2, many), 7), lengths=torch.full((2,), many))
    long.at, long.targets = torch.tensor([1, 2]), torch.tensor([7, 7])
    with torch.no_grad(), pytest.raises(IndexError, match=f"rows have {many} tokens, positions end at {many - 1}"):
        model.forward([long], None)


def test_a_token_that_the_vocabulary_does_not_have_is_an_error(english, tmp_path, monkeypatch):
    (learner,) = learners(replicates(english, tmp_path, 1, "absolute"))
    stack = Stack([learner])

    def damaged(step, name, token):
        drawn = learner.draw(step)
        getattr(drawn.micro[0], name).view(-1)[0] = token
        return drawn

    for name in ("targets", "ids"):
        for token in (-1, learner.vocab_size):
            monkeypatch.setattr(learner, "step", partial(damaged, name=name, token=token))
            with pytest.raises(IndexError, match=f"{name} must lie in 0 .. {learner.vocab_size - 1}"):
                stack.gradients(0)
