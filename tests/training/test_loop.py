"""The loop on a real corpus: it learns, resumes bit for bit, and losses are what they say."""

import dataclasses
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from runs import make_run
from torch.nn import functional as F

from masklab.config.schema import Dictionary, Objective
from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.sparse.codes import CodeStore
from masklab.sparse.dictionary import learn
from masklab.sparse.lasso import lasso, unit_rows
from masklab.sparse.states import code_corpus, sample_states
from masklab.tokenizers import load_tokenizer
from masklab.tokens import TokenStore, write_tokens
from masklab.training.learner import Learner
from masklab.training.loop import Trainer, train


@pytest.fixture(scope="module")
def phase1(english, tiny_encoder, tmp_path_factory):
    run = make_run(english, tiny_encoder, tmp_path_factory.mktemp("phase1"), name="phase1", steps=80)
    train(run)
    return run


@pytest.fixture(scope="module")
def coded(phase1, english, tmp_path_factory):
    """The run's dictionary and stored codes."""
    from safetensors.torch import save_file

    from masklab.models.checkpoint import load_checkpoint

    folder = tmp_path_factory.mktemp("codes")
    config = Dictionary(model="phase1@80", layer=2, atoms=48, penalty=0.05, sample=3000, iterations=30, batch_size=200)
    model, store = load_checkpoint(phase1.output / "step-80"), TokenStore(english / "tokens", "train")
    states = sample_states(model, store, config.layer, config.sample, draw="random", seed=1)
    dictionary = learn(states, config.atoms, config.penalty, config.iterations, config.batch_size, seed=1)
    (folder / "dictionary").mkdir()
    save_file({"D": dictionary.contiguous()}, folder / "dictionary" / "dictionary.safetensors")
    code_corpus(model, store, dictionary, config.layer, config.penalty, "exact", folder / "codes", "train")
    return folder, config, model, store, dictionary


def phase2(phase1, coded, english, encoder, folder, objective, **model):
    root, config, *_ = coded
    run = make_run(english, encoder, folder, objective=objective, init="phase1@80", dictionary="d", **model)
    return dataclasses.replace(
        run, init=phase1.output / "step-80", dictionary=root / "dictionary", dictionary_config=config,
        codes=root / "codes", phase=1,
    )  # fmt: skip


def test_mlm_learns_and_writes_what_it_declares(phase1):
    metrics = pd.read_parquet(phase1.output / "metrics.parquet")
    assert metrics["loss"].iloc[-1] < metrics["loss"].iloc[0] - 1
    assert metrics["valid_loss"].iloc[-1] < metrics["loss"].iloc[0] - 1
    assert metrics["step"].iloc[-1] == 80
    manifest = read_json(phase1.output / "manifest.json")
    assert set(manifest["steps"]) == {"16", "32", "48", "64", "80"}
    assert not list(Path(phase1.state).glob("state*")), "the state is removed on success"


def test_a_second_phase_resumes_with_the_same_weights(phase1, coded, english, tiny_encoder, tmp_path):
    """Stopped by SIGTERM in the middle, MLSM + MLM."""
    objective = Objective(mlsm=1, mlm=1)
    whole, torn = (
        phase2(phase1, coded, english, tiny_encoder, tmp_path / name, objective, steps=40) for name in ("whole", "torn")
    )
    train(whole)

    class Stopped(Trainer):
        def update(self, step):
            if step == 17:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().update(step)

    with pytest.raises(MaskLabError, match="stopped by signal 15 at step 17; the state of step 17 is saved"):
        Stopped(torn).run_all()
    assert not (torn.output / "manifest.json").exists()
    train(torn)
    hashes = [read_json(run.output / "manifest.json")["steps"] for run in (whole, torn)]
    assert hashes[0] == hashes[1]


def test_a_state_of_another_configuration_is_not_resumed(english, tiny_encoder, tmp_path):
    first = make_run(english, tiny_encoder, tmp_path, steps=20)
    trainer = Trainer(first)
    trainer.update(0)
    trainer.record.made_of = {"config": "another"}
    trainer.record.save(19, trainer.learner.flat, trainer.guard)
    train(first)
    reference = make_run(english, tiny_encoder, tmp_path / "clean", steps=20)
    train(reference)
    assert read_json(first.output / "manifest.json")["steps"] == read_json(reference.output / "manifest.json")["steps"]


def test_a_starting_point_needs_no_batch(english, tiny_encoder, tmp_path):
    run = make_run(english, tiny_encoder, tmp_path, steps=0, batch_size=10**7)
    train(run)
    assert set(read_json(run.output / "manifest.json")["steps"]) == {"0"}


def test_two_writers_are_refused(english, tiny_encoder, tmp_path):
    from masklab.jobs.state import locked

    run = make_run(english, tiny_encoder, tmp_path, steps=2)
    with locked(run.state), pytest.raises(MaskLabError, match="another process is writing here"):
        train(run)


def test_accumulated_gradients_equal_the_whole_batch(english, tiny_encoder, tmp_path):
    """Loss, gradient and its norm to 1e-6 of theirs (dropout off), from micro-batches that do not divide the batch."""
    still = tiny_encoder.model_copy(update={"dropout": 0.0})
    found = []
    for size in (None, 5):
        learner = Learner(make_run(english, still, tmp_path, micro_batch=size))
        found.append((learner.gradients(3)["loss"], learner.flat.gradient.double()))
        assert len(learner.batches(3)) == (1 if size is None else 7)
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    assert (found[0][1] - found[1][1]).norm() < 1e-6 * found[0][1].norm()


@pytest.mark.parametrize("stack", [True, False])
@pytest.mark.parametrize("form", [{}, {"positions": "absolute"}, {"positions": "relative", "decoder": {"layers": 1}}])
def test_an_update_that_chance_hides_nothing_of_is_one_without_a_gradient(english, tiny_encoder, tmp_path, form, stack):
    """Small batches and a low rate: such updates have no loss, and the run goes on."""
    objective = Objective(mae=1) if "decoder" in form else Objective(mlm=1)
    keys = {"masking": {"count": "bernoulli", "rate": 0.05}, "stack": stack, "checkpoints": [20]}
    encoder = type(tiny_encoder)(**tiny_encoder.model_dump() | form)
    run = make_run(english, encoder, tmp_path, objective=objective, steps=20, batch_size=1, log_every=1, **keys)
    train(run)
    frame = pd.read_parquet(run.output / "metrics.parquet")
    nothing = frame["masked"] == 0
    assert 0 < nothing.sum() < len(frame) == 20
    assert frame["loss"].isna().equals(nothing) and (frame["grad_norm"] == 0).equals(nothing)
    assert np.isfinite(frame["valid_loss"].iloc[-1])


def test_a_validation_split_without_a_token_to_hide_is_refused(english, tiny_encoder, tmp_path):
    """Its loss would be the mean of nothing, a 0 that no model has."""
    tokens = shutil.copytree(english / "tokens", tmp_path / "tokens")
    write_tokens(["a"] * 9, load_tokenizer(english / "tokenizer"), 40, tokens, "valid")
    run = dataclasses.replace(make_run(english, tiny_encoder, tmp_path, steps=5), tokens=tokens)
    with pytest.raises(MaskLabError, match=r"^m: the corpus has no validation sequence with a maskable token$"):
        train(run)


def test_a_validation_split_that_chance_hides_no_token_of_is_refused(english, tiny_encoder, tmp_path):
    """Here, too, it would be a 0 that no model has."""
    masking = {"count": "bernoulli", "rate": 1e-9}
    run = make_run(english, tiny_encoder, tmp_path, steps=5, masking=masking)
    with pytest.raises(MaskLabError, match=r"^m: models\.m\.masking: chance hides no token of any validation sequence"):
        train(run)
    assert not (run.output / "manifest.json").exists()


def test_stored_and_on_the_fly_codes_give_the_same_loss(phase1, coded, english, tiny_encoder, tmp_path):
    """Same batch, same student: relative difference below 1e-4 (codes solved twice, under other padding)."""
    objective = Objective(mlsm=1)
    found = []
    for mode in ("stored", "on-the-fly"):
        run = phase2(phase1, coded, english, tiny_encoder, tmp_path / mode, objective, codes=mode)
        learner = Learner(run)
        learner.model.eval()
        with torch.no_grad():
            found.append([float(learner.loss_of(batch)[0]) for step in range(5) for batch in learner.batches(step)])
    assert np.allclose(found[0], found[1], rtol=1e-4) and min(found[0]) > 0


def test_losses_equal_their_definitions(phase1, coded, english, tiny_encoder, tmp_path):
    """MLM, KD and MLSM against dense formulas, to 1e-4 relative."""
    _, config, teacher, _, dictionary = coded
    run = phase2(phase1, coded, english, tiny_encoder, tmp_path, Objective(mlm=1, kd={"temperature": 2}, mlsm=1))
    learner = Learner(run)
    learner.model.eval()
    (batch,) = learner.batches(0)
    with torch.no_grad():
        total, parts = learner.loss_of(batch)
        student = learner.model(batch.ids, batch.lengths)
        logits, latent = student.logits[batch.at], student.latent[batch.at]
        target = (teacher(batch.original, batch.lengths).logits[batch.at] / 2).softmax(-1)
        states = teacher.encode(batch.original, batch.lengths, layer=config.layer).flatten(0, 1)[batch.at]
        code = lasso(unit_rows(states), dictionary, config.penalty).dense(config.atoms)
        code = F.normalize(code, p=1, dim=1)
        expected = {
            "mlm": -logits.log_softmax(-1)[torch.arange(len(batch.at)), batch.original.flatten()[batch.at]].sum(),
            "kd": (target * (target.log() - (logits / 2).log_softmax(-1))).sum(),
            "mlsm": torch.nn.functional.kl_div(latent.log_softmax(-1), code, reduction="sum"),
        }
    for name, value in expected.items():
        assert float(parts[name]) == pytest.approx(float(value), rel=1e-4), name
    assert float(total) == pytest.approx(sum(float(v) for v in expected.values()), rel=1e-4)


def test_stored_codes_belong_to_their_tokens(coded):
    """A stored code equals the lasso solution of that token's own state, computed alone, to 1e-3."""
    root, config, model, store, dictionary = coded
    codes = CodeStore(root / "codes", "train")
    row = 17
    ids, lengths = store.batch(np.array([row]))
    with torch.no_grad():
        states = unit_rows(model.encode(ids, lengths, layer=config.layer)[0, 1:-1])
    expected = F.normalize(lasso(states, dictionary, config.penalty).dense(config.atoms), p=1, dim=1)
    indices, values = codes.gather(np.arange(store.offsets[row], store.offsets[row + 1]))
    found = torch.zeros_like(expected).scatter_add_(1, indices, values)
    assert torch.allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("terms", [{"mlm": 1}, {"kd": 1}, {"mlsm": 1}, {"kd": 1, "mlm": 1}, {"mlsm": 1, "mlm": 1}])
def test_ordinary_runs_are_not_stopped(phase1, coded, english, tiny_encoder, tmp_path, terms):
    """Every objective, at a learning rate on the high side: no loss of 25 updates is even half way to high."""
    run = phase2(phase1, coded, english, tiny_encoder, tmp_path, Objective(**terms), steps=25)
    trainer = Trainer(run)
    assert all(trainer.guard.calm(trainer.update(step)["loss"]) for step in range(25))
    assert not any(trainer.guard.high)


def test_spams_and_ours_agree_on_states_of_a_trained_model(coded):
    """Lasso objectives to 1e-4 relative, vector by vector; dictionaries learned by either to 1% on held-out states."""
    pytest.importorskip("spams")  # some machines have no build of it
    from masklab.sparse import spams_backend
    from masklab.sparse.lasso import objective

    _, config, model, store, dictionary = coded
    states = sample_states(model, store, config.layer, 6000, draw="random", seed=5)
    sample, held_out = states[:4000], states[4000:]
    ours, theirs = (
        objective(held_out, dictionary, code(held_out, dictionary, config.penalty), config.penalty)
        for code in (lasso, spams_backend.lasso)
    )
    assert ((ours - theirs).abs() <= 1e-4 * theirs).all()
    means = [
        float(objective(held_out, learned, lasso(held_out, learned, config.penalty), config.penalty).mean())
        for learned in (
            learn(sample, config.atoms, config.penalty, 100, 200, seed=1, backend=backend)
            for backend in ("torch", "spams")
        )
    ]
    assert means[0] <= 1.01 * means[1]
