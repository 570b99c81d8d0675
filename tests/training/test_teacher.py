"""A teacher apart from the start: new weights, the phase of the teacher's pupils, and nothing else of it."""

import dataclasses
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from runs import make_run
from torch.nn import functional as F

sys.path.append(str(Path(__file__).parents[1] / "models"))
from test_adopt import SIZES, trained

from masklab.config.schema import Encoder, Objective
from masklab.errors import MaskLabError
from masklab.foreign_tokenizers import renumbered
from masklab.models.adopt import adopt
from masklab.models.checkpoint import load_checkpoint
from masklab.objectives.teacher import Teacher
from masklab.tokenizers import CLS, SEP, save_tokenizer
from masklab.tokens import write_tokens
from masklab.training.learner import Learner
from masklab.training.loop import train


@pytest.fixture(scope="module")
def phase1(english, tiny_encoder, tmp_path_factory):
    run = make_run(english, tiny_encoder, tmp_path_factory.mktemp("phase1"), name="phase1", steps=12)
    train(run)
    return run.output / "step-12"


@pytest.fixture(scope="module")
def learners(phase1, english, tiny_encoder, tmp_path_factory):
    """Recipes of a second phase: KD with copied weights, KD with new ones, MLM with copied ones."""

    def learner(name, objective, **links):
        run = make_run(english, tiny_encoder, tmp_path_factory.mktemp(name), name=name, objective=objective)
        return Learner(dataclasses.replace(run, phase=1, **links))

    return {
        "copied": learner("copied", Objective(kd=1), init=phase1),
        "anew": learner("anew", Objective(kd=1), teacher=phase1),
        "mlm": learner("mlm", Objective(mlm=1), init=phase1),
    }  # fmt: skip


def test_recipes_of_the_second_phase_share_batches_and_masks(learners):
    anew = learners["anew"]
    for other in ("copied", "mlm"):
        for step in (0, 7):
            assert np.array_equal(anew.plan.batch(step), learners[other].plan.batch(step))
            for ours, theirs in zip(anew.step(step).micro, learners[other].step(step).micro, strict=True):
                assert torch.equal(ours.ids, theirs.ids) and torch.equal(ours.at, theirs.at)


def test_it_starts_from_new_weights(learners, phase1, english, tiny_encoder, tmp_path):
    assert not torch.equal(learners["anew"].flat.values, learners["copied"].flat.values)
    first = Learner(make_run(english, tiny_encoder, tmp_path)).flat.values
    assert not torch.equal(learners["anew"].flat.values, first), "not those that phase 1 began with"
    assert learners["anew"].flat.values.std() == pytest.approx(float(first.std()), rel=0.05)


def test_its_loss_is_the_divergence_from_the_teacher(learners, phase1):
    anew = learners["anew"]
    anew.model.eval()
    batch = anew.batches(3)[0]
    total, _ = anew.loss_of(batch)
    with torch.no_grad():
        target = F.log_softmax(load_checkpoint(phase1).eval()(batch.original, batch.lengths, at=batch.at).logits, -1)
        student = F.log_softmax(anew.model(batch.ids, batch.lengths, at=batch.at).logits, -1)
    assert total.item() == pytest.approx((target.exp() * (target - student)).sum().item(), rel=1e-4)


LINES = [f"the old cat number {n} sees dogs far from here, today a teacher runs" for n in range(50)]


def taught_from_elsewhere(folder, more):
    """(run of a KD from a BERT made elsewhere with `more` rows than its tokenizer has tokens, how many these are)."""
    theirs = trained("word pieces", LINES)
    config = transformers.BertConfig(
        vocab_size=len(theirs) + more, max_position_embeddings=40, pad_token_id=theirs.pad_token_id,
        initializer_range=0.3, **SIZES,
    )  # fmt: skip
    torch.manual_seed(1)
    transformers.BertForMaskedLM(config).save_pretrained(folder / "theirs")
    theirs.save_pretrained(folder / "theirs")
    adopt(folder / "theirs", folder / "adopted")
    tokenizer, _ = renumbered(folder / "theirs")
    save_tokenizer(tokenizer, folder / "tokenizer", 32)
    write_tokens(LINES, tokenizer, 32, folder / "tokens", "train")
    encoder = Encoder(layers=1, hidden=16, heads=2, max_positions=32)
    run = make_run(folder, encoder, folder, objective=Objective(kd=1, mlm=1))
    return dataclasses.replace(run, teacher=folder / "adopted", phase=1), len(theirs)


def test_rows_of_a_teacher_without_a_token_are_no_predictions(tmp_path):
    run, tokens = taught_from_elsewhere(tmp_path, 3)
    learner = Learner(run)
    learner.model.eval()
    batch = learner.batches(3)[0]
    _, parts = learner.loss_of(batch)
    with torch.no_grad():
        given = load_checkpoint(run.teacher).eval()(batch.original, batch.lengths, at=batch.at).logits
        student = F.log_softmax(learner.model(batch.ids, batch.lengths, at=batch.at).logits, -1)
    assert given.shape[1] == tokens + 3 and student.shape[1] == tokens
    target = F.log_softmax(given[:, :tokens], -1)
    assert parts["kd"].item() == pytest.approx((target.exp() * (target - student)).sum().item(), rel=1e-4)


def test_a_teacher_has_a_row_for_every_token(tmp_path):
    run, tokens = taught_from_elsewhere(tmp_path, -1)
    with pytest.raises(MaskLabError, match=f"has rows for {tokens - 1} tokens, and its tokenizer has {tokens}"):
        Learner(run)


def test_the_state_of_a_run_belongs_to_its_teacher(learners, phase1):
    from masklab.training.record import Record

    inputs = Record(learners["anew"].run).what()["inputs"]
    assert "teacher" in inputs and "init" not in inputs
    assert inputs["teacher"] == Record(learners["copied"].run).what()["inputs"]["init"]


@pytest.mark.parametrize("hidden", [CLS, SEP])
def test_the_ends_of_a_sequence_have_no_stored_codes(hidden):
    """A term of a user's may hide them; at their places in the store lie the codes of neighbours."""
    teacher = Teacher(store=SimpleNamespace(gather=lambda positions: (positions, positions)))
    batch = SimpleNamespace(targets=torch.tensor([7, 8]), positions=np.arange(2), extra={})
    teacher.look_up(batch)
    assert set(batch.extra) == {"codes", "code_values"}
    batch.targets[1] = hidden
    with pytest.raises(MaskLabError, match=r"^codes: \[CLS\] and \[SEP\] are hidden and have no stored codes; use"):
        teacher.look_up(batch)


def test_logits_are_bf16_where_they_are_asked_to_be(phase1):
    """A GPU in a run in bf16 asks; a CPU, whose bf16 products want copies of the weights, does not."""
    teacher = Teacher(load_checkpoint(phase1))
    ids = torch.full((2, 5), 7)
    batch = SimpleNamespace(original=ids, lengths=torch.full((2,), 5), at=torch.tensor([1, 8]))
    whole, teacher.low = teacher.logits(batch), True
    low = teacher.logits(batch)
    assert whole.dtype == torch.float32 and low.dtype == torch.bfloat16
    torch.testing.assert_close(low.float(), whole, rtol=0.05, atol=0.05)


def test_no_teacher_of_a_cpu_is_asked_for_bf16(phase1, english, tiny_encoder, tmp_path):
    keys = {"objective": Objective(kd=1), "precision": "bf16"}
    run = make_run(english, tiny_encoder, tmp_path, **keys)
    assert not Learner(dataclasses.replace(run, init=phase1, phase=1)).teacher.low
