"""Teachers of runs that train as one stacked model: what each says is what it says alone."""

import dataclasses
from functools import partial

import pytest
import torch
from several import FORMS, replicates
from test_together import assert_alike, assert_ordinary, learners

from masklab.config.schema import Encoder, Objective
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.objectives.teacher import Teacher
from masklab.training.stack import Stack
from masklab.training.teachers import Teachers

MODELS = [form for form in FORMS if not form.startswith("autoencoder")]
OBJECTIVES = {"KD": {"kd": {"temperature": 2}}, "KD+MLM": {"kd": 1, "mlm": 0.5}}


def taught(english, folder, count, form, objective="KD", teachers=(), **keys):
    """Replicates of a second phase, each with a teacher of its own, which has the form of the student, or its own."""
    made = []
    for run in replicates(english, folder, count, form, **keys):
        encoder = run.encoder.model_copy(update=dict(teachers))
        drawn = torch.Generator().manual_seed(100 + run.replicate)
        teacher = folder / f"teacher-{run.replicate}"
        save_checkpoint(MaskedLM(encoder, run.vocab_size, generator=drawn), teacher, metadata={})
        goal = Objective(**OBJECTIVES[objective])
        made.append(dataclasses.replace(run, teacher=teacher, phase=1, objective=goal))
    return made


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("form", MODELS)
def test_gradients_are_those_of_the_ordinary_loop(english, tmp_path, form, objective):
    assert_ordinary(taught(english, tmp_path, 3, form, objective))


def test_a_teacher_may_be_of_another_form(english, tmp_path):
    runs = taught(english, tmp_path, 2, "absolute", teachers={"positions": "disentangled", "hidden": 48, "layers": 1})
    assert_ordinary(runs)
    assert Stack(learners(runs)).teachers.config.hidden == 48


def test_micro_batches_have_logits_of_their_own(english, tmp_path):
    assert_ordinary(taught(english, tmp_path, 2, "absolute", micro_batch=12))


@pytest.mark.parametrize("library", ["as here", "MKL", "two threads"])
@pytest.mark.parametrize("form", ["absolute", "disentangled"])
def test_a_replicate_is_not_told_who_is_beside_it(english, tmp_path, form, library, monkeypatch, request):
    """To the bit, also where copies go through several passes."""
    if library == "MKL":
        for module in ("training.stack", "models.stacked.products", "models.linear"):
            monkeypatch.setattr(f"masklab.{module}.faster_compiled", lambda _: False)
        for module in ("models.products", "models.batched"):
            monkeypatch.setattr(f"masklab.{module}.prefers_onednn", lambda: False)
    if library == "two threads":
        request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
        torch.set_num_threads(2)
    runs = taught(english, tmp_path, 5, form)
    several = {}
    for members in ([0, 1, 2, 3, 4], [4, 2], [0], [2], [4]):
        several[tuple(members)] = Stack(learners([runs[k] for k in members]))
    assert_alike(several, 3)


def test_those_that_go_on_keep_their_teachers(english, tmp_path):
    runs = taught(english, tmp_path, 3, "absolute")
    whole, rest = Stack(learners(runs)), Stack(learners(runs[1:]))
    whole.keep([1, 2])
    assert whole.gradients(0) == rest.gradients(0)
    assert torch.equal(whole.parameters.gradient, rest.parameters.gradient)


def test_all_are_asked_at_once_and_only_when_one_is(english, tmp_path, monkeypatch):
    asked = []
    forward = Teachers._forward
    monkeypatch.setattr(Teachers, "_forward", lambda self: asked.append(len(self._batches)) or forward(self))
    stack = Stack(learners(taught(english, tmp_path, 3, "absolute")))
    stack.gradients(0)
    assert asked == [3]
    batch = stack.learners[1].draw(5).micro[0]  # of no pass
    teacher = stack.learners[1].teacher
    alone = load_checkpoint(stack.learners[1].run.teacher).eval()
    with torch.no_grad():
        wanted = alone(batch.original, batch.lengths, at=batch.at).logits
    torch.testing.assert_close(teacher.logits(batch), wanted)
    assert asked == [3]
    for learner in stack.learners:
        learner.terms.per_token[0].loss = lambda batch, output, teacher: output.logits.square().sum(-1)
    stack.gradients(1)
    assert asked == [3]


def test_they_learn_nothing_and_take_no_memory_for_it(english, tmp_path):
    stack = Stack(learners(taught(english, tmp_path, 2, "absolute")))
    parameters = stack.teachers.parameters
    before = parameters.values.clone()
    for step in range(2):
        stack.apply(stack.gradients(step))
    assert torch.equal(parameters.values, before)
    assert parameters.gradient.is_meta and not parameters.mean.numel() and not parameters.square.numel()
    assert all(parameter.grad is None for parameter in stack.learners[0].teacher.model.parameters())


def test_in_bf16_they_are_asked_in_bf16(english, tmp_path):
    """Logits within .05 of those in fp32, whose standard deviation is 1."""
    runs = taught(english, tmp_path, 2, "absolute", precision="bf16", encoder={"hidden": 64})
    stack = Stack(learners(runs))
    batches = [learner.draw(0).micro[0] for learner in stack.learners]
    stack.teachers.expect([0, 1], batches)
    for learner, batch in zip(stack.learners, batches, strict=True):
        found = learner.teacher.logits(batch)
        with torch.no_grad():
            wanted = load_checkpoint(learner.run.teacher).eval()(batch.original, batch.lengths, at=batch.at).logits
        assert found.dtype == torch.bfloat16
        torch.testing.assert_close(found.float() / wanted.std(), wanted / wanted.std(), atol=0.05, rtol=0.02)


def test_what_cannot_be_stacked_is_asked_alone():
    shape = {"layers": 1, "hidden": 16, "heads": 2, "max_positions": 32}
    other = MaskedLM(Encoder(positions="absolute", attention_dropout=0.2, **shape), 50)
    for model in (None, other, torch.nn.Linear(2, 2)):
        assert Teachers.of([Teacher(model)]) is None
    assert Teachers.of([None]) is None
