"""Terms put together: what they are made from, what they weigh, and what is refused."""

import math
import subprocess
import sys
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from scipy.special import rel_entr, softmax

from masklab.config import kinds
from masklab.config.schema import Encoder, Masking, Objective, Weight
from masklab.errors import MaskLabError
from masklab.models.encoder import Output
from masklab.objectives import Setup, Term
from masklab.objectives.batch import Batch
from masklab.objectives.returned import worth_of
from masklab.objectives.terms import Terms

SETUP = Setup(Encoder(layers=1, hidden=8, heads=1), 500, "tokens", "tokenizer")


class Reads(Weight):
    """Settings of a term that hides or reads tokens in its own way."""

    reads: ClassVar = True


@pytest.fixture
def register():
    """kinds.term for one test."""
    before = set(kinds._yours["terms"])
    yield lambda name, make, settings=Weight: kinds.term(name, settings)(make)
    for name in kinds._yours["terms"].keys() - before:
        del kinds._yours["terms"][name]


def test_uniform_predictions():
    def uniform(vocab_size, atoms, **objective):
        return Terms(Objective(**objective), SETUP).uniform(vocab_size, atoms)

    assert uniform(500, 0, mlm=1) == pytest.approx(math.log(500))
    assert uniform(500, 48, mlm=1, mlsm=0.5) == pytest.approx(math.log(500) + 0.5 * math.log(48))


@torch.no_grad()
def test_distillation_is_the_divergence_at_its_temperature():
    """KL(softmax(teacher / T) || softmax(student / T)) of each token, by SciPy; terms are summed by their weights.

    What a teacher has behind the student's vocabulary is no part of it.
    """
    rng = np.random.default_rng(2)
    teacher, student, latent = rng.normal(size=(5, 503)) * 3, rng.normal(size=(5, 500)), rng.normal(size=(5, 48))
    codes = np.tile([3, 7, 40], (5, 1)), np.tile([0.5, 0.3, 0.2], (5, 1))

    class Teacher:
        def logits(self, batch):
            return torch.from_numpy(teacher)

        def codes(self, batch):
            return torch.from_numpy(codes[0]), torch.from_numpy(codes[1]).float()

    output = type("Output", (), {"logits": torch.from_numpy(student), "latent": torch.from_numpy(latent)})
    terms = Terms(Objective(kd={"temperature": 2.5, "weight": 3}, mlsm=0.25, mlm=2), SETUP)
    batch = Batch(*[None] * 4, targets=torch.arange(5), positions=None)
    total, parts = terms.losses(batch, output, Teacher())
    kd = rel_entr(softmax(teacher[:, :500] / 2.5, 1), softmax(student / 2.5, 1)).sum(1)
    mlsm = rel_entr([0.5, 0.3, 0.2], softmax(latent, 1)[:, [3, 7, 40]]).sum(1)
    mlm = -np.log(softmax(student, 1)[range(5), range(5)])
    assert {name: float(part) for name, part in parts.items()} == pytest.approx(
        {"kd": kd.sum(), "mlsm": mlsm.sum(), "mlm": mlm.sum()}, rel=1e-5
    )
    assert float(total) == pytest.approx(3 * kd.sum() + 0.25 * mlsm.sum() + 2 * mlm.sum(), rel=1e-5)
    each = terms.per_token[terms.names.index("kd")].loss(batch, output, Teacher())
    np.testing.assert_allclose(each.numpy(), kd, rtol=1e-5)


def test_an_autoencoder_predicts_what_is_there_and_keeps_what_is_left():
    """A causal decoder predicts every token that is not padding; a batch is as wide as the most that a row keeps."""
    encoder = Encoder(layers=1, hidden=8, heads=1, decoder={"layers": 1, "attention": "causal+cross"})
    (term,) = Terms(Objective(mae=1), Setup(encoder, 500, "tokens", "tokenizer")).per_token
    ids, lengths = np.full((3, 9), 7), np.array([9, 4, 6])
    _, rows, columns, extra = term.corrupt(ids, lengths, Masking(rate=0.5), 500, np.random.default_rng(1))
    assert list(zip(rows, columns, strict=True)) == [(r, c) for r, n in enumerate(lengths) for c in range(n)]
    assert np.bincount(extra["dropped"][0]).tolist() == [4, 2, 3]

    def width(*dropped):
        shown, extra = torch.zeros(3, 9), {"dropped": torch.tensor(dropped)}
        batch = Batch(shown, shown, torch.from_numpy(lengths), *[None] * 3, extra=extra)
        term.arrange(batch)
        return batch.extra["width"]

    first, second, third = (np.arange(9 * r, 9 * r + n).tolist() for r, n in enumerate(lengths))
    assert width(0, 8) == 7 and width(*first) == 6 and width(*first, *third[:3]) == 4 and width(*first, *third) == 4
    assert width(*first, *second[:3], *third) == 1 == width(*first, *second, *third)


def test_only_the_modules_of_its_own_terms_are_imported():
    script = """
import sys
import masklab.objectives
assert "torch" not in sys.modules, "a file that registers terms is read with the config"
import masklab.training.loop
from masklab.config.schema import Encoder, Objective
from masklab.objectives import Setup
from masklab.objectives.terms import Terms
Terms(Objective(mlm=1), Setup(Encoder(), 9, "", ""))
print(*sorted(name for name in sys.modules if name.startswith("masklab.objectives.")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {name.removeprefix("masklab.objectives.") for name in done.stdout.split()}
    assert found == {"term", "terms", "returned", "batch", "mlm"}


@torch.no_grad()
def test_a_term_of_no_hooks_is_mlm(register):
    register("plain", Term)
    terms = [Terms(Objective(**{name: 0.5}), SETUP) for name in ("mlm", "plain")]
    logits = torch.randn(6, 500, generator=torch.Generator().manual_seed(1))
    batch = Batch(*[None] * 4, targets=torch.arange(6), positions=None)
    (mlm, parts), (plain, own) = (each.losses(batch, type("Output", (), {"logits": logits}), None) for each in terms)
    assert mlm == plain == 0.5 * parts["mlm"] and own["plain"] == parts["mlm"]
    assert parts["mlm"] == pytest.approx(float(-logits.log_softmax(-1)[range(6), range(6)].sum()))


@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda loss: loss.mean(), "a Tensor of shape () and type torch.float32"),
        (lambda loss: loss[:-1], "a Tensor of shape (5,) and type torch.float32"),
        (lambda loss: loss[:, None], "a Tensor of shape (6, 1) and type torch.float32"),
        (lambda loss: loss.detach(), "a Tensor of shape (6,) and type torch.float32 without a gradient"),
        (lambda loss: loss.long(), "a Tensor of shape (6,) and type torch.int64 without a gradient"),
        (lambda loss: None, "None"),
    ],
)
def test_a_loss_that_is_not_one_number_for_each_token_is_refused(register, monkeypatch, change, got):
    """Its sum would be trained on without a word."""

    class Wrong(Term):
        def loss(self, *batch):
            return change(super().loss(*batch))

    register("wrong", Wrong)
    monkeypatch.setitem(kinds._yours["terms"], "wrong", replace(kinds.find("terms", "wrong"), file="mine.py"))
    logits = torch.zeros(6, 500, requires_grad=True)
    batch = Batch(*[None] * 4, targets=torch.arange(6), positions=None)
    with pytest.raises(MaskLabError) as caught:
        Terms(Objective(wrong=1), SETUP).losses(batch, Output(logits), None)
    assert str(caught.value) == (
        "mine.py: 'wrong' of terms must return a loss for each token: a floating tensor of shape (6,) that needs a"
        f" gradient (got loss: {got})"
    )
    if "without" in got and "float" in got:
        with torch.no_grad():
            assert Terms(Objective(wrong=1), SETUP).losses(batch, Output(logits), None)[0] > 0


@pytest.mark.parametrize("worth", [0.5, torch.zeros(2, requires_grad=True), torch.tensor(0.5)])
def test_what_is_added_once_is_one_number_with_a_gradient(register, worth):
    class Once(Term):
        def per_update(self, *given):
            return worth

    register("once", Once)
    (term,) = Terms(Objective(mlm=1, once=1), SETUP).once
    with pytest.raises(MaskLabError, match="'once' of terms must return None, or a floating tensor of one number"):
        worth_of(term, None, 1, None)


def test_what_does_not_fit_is_one_line(register):
    class Shown(Term):
        def corrupt(self, *arguments):
            raise NotImplementedError

    class Read(Term):
        def forward(self, *arguments):
            raise NotImplementedError

    class Both(Term):
        def loss(self, *arguments):
            raise NotImplementedError

        def per_update(self, *arguments):
            raise NotImplementedError

    class Once(Term):
        def per_update(self, *arguments):
            raise NotImplementedError

    for name, make in {"shown": Shown, "read": Read, "both": Both, "once": Once, "loss": Term, "mask": Term}.items():
        register(name, make)
    for objective, said in (
        ({"mlm": 1, "read": 1}, "objective: read: it hides or reads tokens in a way of its own; say so"),
        ({"mae": 1, "shown": 1}, "objective: shown: it hides or reads tokens in a way of its own"),
        ({"mlm": 1, "both": 1}, "both: a term has `loss` or `per_update`; make two terms of it"),
        ({"once": 1}, "objective: once: no term has a loss for masked tokens"),
        ({"loss": 1}, "objective: loss: the name of a column of metrics.parquet or of a random stream"),
        ({"mask": 1}, "objective: mask: the name of a column"),
    ):
        with pytest.raises(MaskLabError, match=said):
            Terms(Objective(**objective), SETUP)
    register("own", Read, Reads)
    assert Terms(Objective(own=1, mlm=1), SETUP).reader.name == "own"
