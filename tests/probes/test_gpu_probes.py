"""What probes ask of models, on a GPU that computes nothing (fake_gpu.py): no tensor of the wrong device or dtype."""

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fake_gpu import GPU, Autocast, fake_gpu
from masklab.config.schema import Encoder, Masking
from masklab.curvature.slices import random_direction, slice_loss
from masklab.curvature.trace import random_signs, squared_norms
from masklab.models.encoder import MaskedLM
from masklab.probes import answer_spans, goals, loss, minimal_pairs, prediction, rank, representations
from masklab.probes.goals import Classification, Regression
from masklab.probes.heads import Heads, train_heads
from masklab.probes.representations import EncoderSource, projected, projections
from masklab.probes.single import OneByOne
from masklab.tasks.encoding import Split
from masklab.tokenizers import MASK

VOCABULARY, LENGTHS = 50, np.array([9, 7, 9, 4])
FORMS = {
    "disentangled": {"positions": "disentangled"},
    "absolute, latent": {"positions": "absolute"},
    "relative, pre": {"positions": "relative", "norm": "pre"},
    "lstm": {"kind": "lstm", "positions": "absolute", "norm": "pre"},
}


@pytest.fixture(params=FORMS.values(), ids=FORMS)
def model(request):
    """On the CPU still."""
    encoder = Encoder(layers=2, hidden=32, heads=2, max_positions=64, **request.param)
    return MaskedLM(encoder, VOCABULARY, latent=12 if request.param["positions"] == "absolute" else 0).eval()


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setitem(goals.EVALUATION_TOKENS, GPU.type, 16)
    monkeypatch.setattr(torch, "manual_seed", lambda seed: None)
    return lambda: fake_gpu(monkeypatch)


def split_of(to, labels):
    return Split(to(torch.zeros(4, 9, dtype=torch.int32)), LENGTHS, labels, {})


def test_scores_of_sentences(model, gpu):
    ids = np.random.default_rng(0).integers(5, VOCABULARY, (4, 9))
    with gpu() as to:
        model = to(model)
        scores = minimal_pairs._score_equal_length(model, ids, np.zeros(4, int), 64, GPU)
        tokens, atoms = prediction.predict(model, [0, 7, MASK, 9, 1], GPU)
        rows, columns = np.arange(4), np.array([3, 2, 3, 1])
        losses = loss.token_losses(model, ids, ids, rows, columns, torch.from_numpy(LENGTHS), GPU)
    assert scores.shape == (2, 4) and losses.shape == (4,) and losses.dtype == np.float64
    assert tokens.shape == (VOCABULARY,) and (atoms is None) == (model.latent is None)


def test_ranks(model, gpu):
    given, lengths = np.full((4, 9), 7), LENGTHS
    batch = SimpleNamespace(numpy=lambda: given), SimpleNamespace(numpy=lambda: lengths)
    with gpu() as to:
        model, (shown, counts) = to(model), to((torch.zeros(4, 9, dtype=torch.long), torch.from_numpy(lengths)))
        rngs = [np.random.default_rng(seed) for seed in (1, 2)]
        grams = rank.state_grams(lambda *_: model.states(shown, counts), [batch], Masking(rate=0.5), VOCABULARY, *rngs)
        found = {(gram.products.device, gram.products.dtype) for gram in grams.values() if gram.count}
        assert len(found) == 1 and all(grams[split, 1, 0].count for split in rank.PLACES)
        assert found == {(GPU, torch.float64)}


@pytest.mark.parametrize("pooling", ["concat", "mean", "cls"])
def test_linear_classifiers(pooling, model, gpu):
    probe = SimpleNamespace(batch_size=2, epochs=1, lr=1e-3, schedule="constant", warmup=0.0, weight_decay=0.1)
    generators = [torch.Generator().manual_seed(seed) for seed in (1, 2)]
    with gpu() as to:
        source, split = EncoderSource(to(model), pooling), split_of(to, np.arange(4) % 3)
        features = projected(source, split, 7, projections(source.size(7), 10, generators, GPU))
        heads = Heads(10, 3, generators, GPU)
        train_heads(heads, features, split.labels[None], [lambda epoch: np.arange(4)] * 2, probe)
        assert heads.weight.device == heads.bias.device == GPU
        assert heads.predictions(features).shape == (2, 4)


GOALS = {
    "labels": (Classification(3), np.arange(4) % 3),
    "ratings": (Regression(0.0, 5.0), np.linspace(0, 5, 4)),
    "spans": (answer_spans.Extraction("f1", 5), np.array([[2, 3, 1]] * 4)),
}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", GOALS)
def test_fine_tuning(name, precision, model, gpu):
    """The update of each goal, and what the model says of other rows."""
    goal, labels = GOALS[name]
    probe = SimpleNamespace(pooling="mean", activation=None, clip=1.0, weight_decay=0.1, betas=(0.9, 0.999), eps=1e-8)
    autocast = Autocast if precision == "bf16" else contextlib.nullcontext  # as `OneByOne.autocast` gives on CUDA
    with gpu() as to:
        split = split_of(to, labels)
        tuned = OneByOne(to(model), goal, probe, GPU)
        tuned.flat.restart(tuned.start)
        tuned.model.reset_head(torch.Generator())
        tuned.model.train()
        with autocast():
            loss = goal.loss(tuned.model, *split.batch(np.arange(3)))
        loss.backward()
        tuned.flat.step(1e-3, 0.1, 1.0)
        assert tuned.flat.values.device == GPU and tuned.flat.values.dtype == torch.float32
        ids, lengths, labels = split.batch(np.arange(2))
        given = (labels[:, 2],) if name == "spans" else ()
        with torch.inference_mode(), autocast():
            found = tuned.model.eval()(ids, lengths, *given)
            assert {part.device for part in (found if isinstance(found, tuple) else [found])} == {GPU}


def test_curvature(model, gpu, monkeypatch):
    """Traces, directions and slices of the loss; numbers that are read are 0."""
    ids, at = torch.zeros(4, 9, dtype=torch.long), torch.arange(4) * 9 + 2
    signs = random_signs(np.random.default_rng(0), 4, VOCABULARY)
    for name in ("item", "__float__"):
        monkeypatch.setattr(torch.Tensor, name, lambda tensor: 0.0)
    with gpu() as to:
        model, batch = to(model), to((ids, torch.from_numpy(LENGTHS), at, signs))
        assert squared_norms(model, [batch]).shape[1] == 3
        labels = to(torch.zeros(4, dtype=torch.long))
        generator = torch.Generator().manual_seed(1)
        direction = random_direction(model, "filter", generator)
        assert {part.device for part in direction.values()} == {GPU}
        assert len(slice_loss(model, direction, [0.0, 1.0], [(*batch[:3], labels)])) == 2


def test_what_a_gpu_would_refuse_is_found(gpu, monkeypatch):
    model = MaskedLM(Encoder(layers=1, hidden=32, heads=2, max_positions=64, positions="absolute"), VOCABULARY)
    arange = torch.arange
    monkeypatch.setattr(representations.torch, "arange", lambda *given, device=None: arange(*given))
    with pytest.raises(Exception, match="CPU"), gpu() as to:
        projected(EncoderSource(to(model), "cls"), split_of(to, np.arange(4)), 7)
