"""Updates on a GPU that computes nothing (fake_gpu.py): every encoder, objective and teacher, forward and backward."""

import copy
import math

import numpy as np
import pytest
import torch
from runs import make_run

from fake_gpu import GPU, REAL, Autocast, fake_gpu
from masklab.config import kinds
from masklab.config.schema import Encoder, Masking, Objective
from masklab.models.encoder import MaskedLM
from masklab.objectives import Setup
from masklab.objectives.batch import Batch
from masklab.objectives.teacher import Teacher
from masklab.objectives.terms import Terms
from masklab.optim.flat import FlatParameters
from masklab.sparse.codes import CodeStore, write_codes
from masklab.sparse.targets import Codes
from masklab.tasks.encoding import Split
from masklab.training import numbers
from masklab.training.learner import Learner

SIZES = {"layers": 2, "hidden": 32, "heads": 2, "max_positions": 64}
POSITIONS = ("disentangled", "absolute", "relative", "none")
ENCODERS = {f"{positions}, {norm}": {"positions": positions, "norm": norm} for positions in POSITIONS
            for norm in ("post", "pre")}  # fmt: skip
ENCODERS |= {
    "relative alone": {"positions": "relative", "absolute": False},
    "bare": {"positions": "absolute", "norm": "pre", "embedding_norm": False, "tied_head": False, "dropout": 0.0},
    "lstm": {"kind": "lstm", "positions": "absolute", "norm": "pre"},
}
DECODERS = ("self", "self+cross", "causal+cross", "cross")
OBJECTIVES = {
    "mlm": {"mlm": 1},
    "kd": {"kd": {"temperature": 2}, "mlm": 1},
    "mlsm": {"mlsm": 1, "mlm": 1},
    "adversarial": {"mlm": 1, "adversarial": {"task": "t", "weight": 0.1, "support": 20, "query": 5}},
    "sharpness": {"mlm": 1, "sharpness": {"weight": 0.01, "sequences": 4}},
    "mae": {"mae": {"reset": True}},
}


class OnGpu(Learner):
    """A learner whose model, optimiser and teacher lie on the fake GPU; its batches are drawn on the CPU."""

    def draw_all(self):
        """Draw the batches of two updates, while the CPU is a CPU."""
        self.drawn = [self.draw(step) for step in range(2)]
        return self

    def to_gpu(self, to, teacher=None):
        for step in self.drawn:
            step.micro = [to_fake_cpu(batch) for batch in step.micro]
        self.device, self.model = GPU, to(self.model)
        self.trained, self.teacher = self.model, teacher
        self.flat = FlatParameters(self.model.parameters(), direct=True)
        return self

    def step(self, step):
        return self.drawn[step]

    def _autocast(self):
        return Autocast()


def to_fake_cpu(batch: Batch) -> Batch:
    if REAL:
        return batch.pinned()
    return batch._each(lambda tensor: torch.empty(tensor.shape, dtype=tensor.dtype))


def updates(learner):
    """Two updates; their rows, unread."""
    learner.model.train()
    found = [learner.update(step) for step in range(2)]
    assert learner.flat.gradient.device == learner.flat.mean.device == GPU
    assert learner.flat.values.dtype == learner.flat.gradient.dtype == torch.float32
    return found


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that updates do not wait for."""
    monkeypatch.setattr(numbers, "sent", lambda values: lambda: [math.nan] * len(values))
    monkeypatch.setattr(torch, "manual_seed", lambda seed: None)
    return lambda: fake_gpu(monkeypatch, waits=False)


def learner_of(english, folder, encoder, objective=None, **keys):
    encoder = Encoder(**SIZES | encoder)
    return OnGpu(make_run(english, encoder, folder, objective=objective, precision="bf16", **keys))


@pytest.mark.parametrize("form", ENCODERS.values(), ids=ENCODERS)
def test_every_encoder(form, english, tmp_path, gpu):
    learner = learner_of(english, tmp_path, form, micro_batch=20).draw_all()
    with gpu() as to:
        rows = updates(learner.to_gpu(to))
    assert all(len(found.coming) == 2 for found in rows) and math.isnan(rows[0]["loss"])


def test_cudnn_has_no_backward_of_an_lstm_in_eval_mode(gpu, monkeypatch):
    """In which terms and probes take gradients: there, and there alone, the LSTMs do without it."""
    asked, flags = [], torch.backends.cudnn.flags
    monkeypatch.setattr(torch.backends.cudnn, "flags", lambda **how: asked.append(how) or flags(**how))
    model = MaskedLM(Encoder(**SIZES | ENCODERS["lstm"]), 50)
    with gpu() as to:
        to(model)
        ids, lengths = to((torch.zeros(3, 9, dtype=torch.long), torch.full((3,), 9)))
        model.train()(ids, lengths)
        with torch.no_grad():
            model.eval()(ids, lengths)
        assert not asked
        model(ids, lengths).logits.sum().backward()
    assert asked == [{"enabled": False}] * 4  # two layers of two directions


@pytest.mark.parametrize("attention", DECODERS)
def test_every_decoder(attention, english, tmp_path, gpu):
    form = {"positions": "relative", "decoder": {"layers": 1, "attention": attention, "hidden": 16}}
    objective = Objective(mae={"reset": attention == "self"})
    learner = learner_of(english, tmp_path, form, objective, masking=Masking(count="rounded", specials=True)).draw_all()
    with gpu() as to:
        updates(learner.to_gpu(to))


def test_every_objective_is_here():
    assert set(OBJECTIVES) == set(kinds.OURS["terms"])


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_and_its_teacher(name, english, tmp_path, gpu):
    atoms = 24 if name == "mlsm" else 0
    terms = {term: value for term, value in OBJECTIVES[name].items() if term != "adversarial"}
    form = {"positions": "absolute"} | ({"decoder": {"layers": 1}} if name == "mae" else {})
    learner = learner_of(english, tmp_path, form)
    setup = Setup(learner.run.encoder, learner.vocab_size, english / "tokens", english / "tokenizer", device=GPU)
    learner.terms = Terms(Objective(**terms), setup)
    learner.model = MaskedLM(learner.run.encoder, learner.vocab_size, latent=atoms)
    teacher = Teacher(copy.deepcopy(learner.model)) if name == "kd" else None
    if name == "mlsm":
        teacher = learner.teacher = Teacher(store=stored_codes(learner.train_store, atoms, tmp_path))
    learner.draw_all()
    with gpu() as to:
        if name == "kd":
            to(teacher.model).requires_grad_(False)
        if name == "adversarial":
            learner.terms.once = [adversarial(to)]
        rows = updates(learner.to_gpu(to, teacher))
        assert set(rows[0].read()) >= {"loss", "grad_norm", *OBJECTIVES[name]}


def adversarial(to):
    term = kinds.find("terms", "adversarial").function()(Objective(**OBJECTIVES["adversarial"]).terms["adversarial"])
    ids, lengths = to(torch.zeros(30, 12, dtype=torch.int32)), np.arange(30) % 9 + 3
    term.name, term.classes, term.split = "adversarial", 3, Split(ids, lengths, np.arange(30) % 3, {})
    return term


def stored_codes(store, atoms, folder):
    tokens = len(store.ids)
    codes = Codes(torch.arange(tokens + 1), torch.arange(tokens) % atoms, torch.ones(tokens))
    write_codes(folder / "codes", "train", [codes], atoms)
    return CodeStore(folder / "codes", "train")


def test_what_a_gpu_would_refuse_is_found(english, tmp_path, gpu, monkeypatch):
    """A tensor made on the CPU, a product of two dtypes, a number that is read, a copy that is waited for."""
    from masklab.objectives import mlm

    def broken(what):
        def loss(term, batch, output, teacher):
            logits = output.logits
            if what == "device":
                return logits.float().logsumexp(1) * torch.ones(len(logits))
            if what == "index":
                return torch.nn.functional.embedding(torch.zeros(len(logits), dtype=torch.long), logits).sum(1)
            if what == "dtype":
                return torch.ops.aten.mm(logits, torch.ones(len(logits[0]), 1, device=GPU))[:, 0]
            if what == "number":
                return logits.sum(1) * float(logits.sum())
            return logits.sum(1) * torch.ones(len(logits)).to(GPU)

        return loss

    said = {"device": "CPU", "index": "CPU", "dtype": "product", "number": "local_scalar", "wait": "waits"}
    for what, words in said.items():
        learner = learner_of(english, tmp_path, {"positions": "absolute"}).draw_all()
        monkeypatch.setattr(mlm.Mlm, "loss", broken(what))
        with pytest.raises(Exception, match=words), gpu() as to:
            learner.to_gpu(to).update(0)
