import numpy as np
import pytest
import torch

from masklab.config.schema import Decoder, Encoder
from masklab.models.dropout import keep_mask
from masklab.models.encoder import MaskedLM
from masklab.models.stacked import in_fp32_alone, supports
from masklab.models.stacked.dropout import keeps, mask, sites
from masklab.models.stacked.encoder import StackedEncoder
from masklab.models.stacked.parameters import StackedParameters
from masklab.models.stacked.ragged import Ragged

CONFIG = Encoder(positions="absolute", layers=2, hidden=32, heads=4, intermediate=48, max_positions=24, init_range=0.2)
SHAPES = [(5, 20), (4, 9), (5, 13)]  # rows and longest row of each copy's batch


def models(config):
    found = [MaskedLM(config, 30, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    for seed, model in enumerate(found):  # layer norms and biases that do something
        generator = torch.Generator().manual_seed(100 + seed)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 1:
                    parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return found


def stacked(models, config, first):
    names = {name: value for name, value in models[0].named_parameters() if not name.startswith("head.")}
    parameters = StackedParameters(names, len(models), table="embeddings.word")
    for copy, model in enumerate(models):
        for name in names:
            parameters[name][copy] = model.get_parameter(name).detach()
    return parameters, StackedEncoder(parameters, config, first, prefix="")


def batch(shapes):
    """(ids [S, B, T], lengths [S, B]), every copy's own rows in the first places."""
    rng = np.random.default_rng(0)
    size, length = map(max, zip(*shapes, strict=True))
    ids, lengths = torch.full((len(shapes), size, length), 3), torch.ones(len(shapes), size, dtype=torch.int64)
    for copy, (rows, longest) in enumerate(shapes):
        lengths[copy, :rows] = torch.from_numpy(rng.integers(3, longest + 1, rows))
        lengths[copy, rng.integers(rows)] = longest
        for row in range(size):
            count = int(lengths[copy, row])
            ids[copy, row, :count] = torch.from_numpy(rng.integers(5, 30, count))
    return ids, lengths


@pytest.mark.parametrize("shapes", [SHAPES, SHAPES[:1], [SHAPES[0]] * 3], ids=["different", "one", "equal"])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("p", [0.0, 0.2])
@pytest.mark.parametrize(
    "positions", ["absolute", "disentangled", "relative", "absolute by libraries", "lstm", "lstm by libraries"]
)
def test_every_copy_has_the_states_and_gradients_of_its_model_alone(positions, shapes, first, p, monkeypatch):
    if positions.endswith("by libraries"):
        monkeypatch.setattr("masklab.models.stacked.products.faster_compiled", lambda _: False)
        positions = positions.partition(" ")[0]
    kind, norm = "transformer", "pre" if len(shapes) == 1 else "post"
    if positions == "lstm":
        kind, positions, norm = "lstm", "none", "pre"
    config = CONFIG.model_copy(update={"kind": kind, "dropout": p, "positions": positions, "norm": norm})
    alone = models(config)[: len(shapes)]
    parameters, together = stacked(alone, config, first)
    ids, lengths = batch(shapes)
    own = [sites(config, *shape, first) for shape in shapes]
    keep = keeps(range(len(shapes)), own, p) if p else None
    states = together.forward(ids, Ragged.of(lengths, ids.shape[2]), keep)
    states = states.unflatten(1, (ids.shape[1], -1))  # [S, B, T or 1, H]
    weights = torch.randn(states.shape, generator=torch.Generator().manual_seed(9))
    gradient = torch.zeros_like(states)
    parameters.gradient.fill_(torch.nan)  # nothing is left unwritten
    parameters.gradient[:, sum(shape.numel() for shape in parameters.shapes.values()) :] = 0
    for copy, (model, (rows, longest)) in enumerate(zip(alone, shapes, strict=True)):
        torch.manual_seed(copy)
        at = torch.arange(rows) * longest if first else None
        wanted = model.encode(ids[copy, :rows, :longest], lengths[copy, :rows], at=at).view(rows, -1, 32)
        real = torch.arange(wanted.shape[1]) < lengths[copy, :rows, None]
        found = states[copy, :rows, : wanted.shape[1]]
        torch.testing.assert_close(found[real], wanted[real], atol=2e-5, rtol=0)
        chosen = weights[copy, :rows, : wanted.shape[1]] * real[..., None]
        (wanted * chosen).sum().backward()
        gradient[copy, :rows, : wanted.shape[1]] = chosen
    together.backward(gradient.flatten(1, 2))
    for copy, model in enumerate(alone):
        for name in parameters.shapes:
            wanted = model.get_parameter(name).grad
            found = parameters.gradient_of(name)[copy]
            torch.testing.assert_close(found, wanted, atol=3e-5 * float(1 + wanted.abs().max()), rtol=0, msg=name)
    assert torch.isfinite(parameters.gradient).all()


@pytest.mark.parametrize("other", [[(7, 5), (2, 3, 3)], [(3, 5), (2, 3, 7)]], ids=["different", "equal"])
def test_masks_are_those_of_a_model_alone(other):
    shapes = [[(3, 5), (2, 3, 7)], other, [(3, 5), (2, 3, 7)]]
    masks = [mask(keep) for keep in keeps([7, 8, 7], shapes, 0.3)]
    assert [tuple(kept.shape) for kept in masks] == [(3, other[0][0], 5), (3, 2, 3, 7)]
    for copy, (seed, own) in enumerate(zip([7, 8, 7], shapes, strict=True)):
        torch.manual_seed(seed)
        for kept, shape in zip(masks, own, strict=True):
            start = (kept.shape[1] - shape[0]) // 2 if len(shape) == 2 else 0  # distances are centred
            place = kept[(copy, slice(start, start + shape[0]), *map(slice, shape[1:]))]
            assert torch.equal(place, keep_mask(shape, 0.3))
            assert kept[copy].sum() == place.sum()


def test_steps_equal_torchs_adamw_of_each_copy_alone():
    alone = models(CONFIG)
    parameters, _ = stacked(alone, CONFIG, True)
    lists = [[model.get_parameter(name) for name in parameters.shapes] for model in alone]
    optimisers = [torch.optim.AdamW(own, weight_decay=0.1) for own in lists]
    generator = torch.Generator().manual_seed(0)
    for step, lr in enumerate((1e-2, 5e-3, 1e-3)):
        if step == 2:  # a copy leaves; the others keep their moments
            parameters.keep([0, 2])
            lists, optimisers = [lists[0], lists[2]], [optimisers[0], optimisers[2]]
        for copy, (own, optimiser) in enumerate(zip(lists, optimisers, strict=True)):
            for name, parameter in zip(parameters.shapes, own, strict=True):
                parameter.grad = (copy + 0.01) * torch.randn(parameter.shape, generator=generator)
                parameters.gradient_of(name)[copy] = parameter.grad
            torch.nn.utils.clip_grad_norm_(own, 30.0)  # clips some, not all
            optimiser.param_groups[0]["lr"] = lr
            optimiser.step()
        parameters.step(lr, weight_decay=0.1, clip=30.0)
    for copy, own in enumerate(lists):
        for name, parameter in zip(parameters.shapes, own, strict=True):
            torch.testing.assert_close(parameters[name][copy], parameter.detach(), atol=1e-5, rtol=0, msg=name)


def test_a_gradient_that_is_no_number_spoils_its_copy_whoever_is_beside_it():
    for others in (0, 1):
        parameters = StackedParameters({"w": torch.ones(4, 8)}, 1 + others, table="w")
        parameters.gradient.fill_(1.0 if others else 1e-3)  # one that is clipped, or not
        parameters.gradient[0, 3] = torch.nan
        parameters.step(0.1, clip=1.0)
        assert parameters["w"][0].isnan().all()
        assert not others or not parameters["w"][1].isnan().any()


def test_which_encoders_are_supported():
    assert supports(CONFIG)
    for keys in ({"positions": "disentangled"}, {"positions": "none", "norm": "pre"}, {"decoder": Decoder()}):
        assert supports(CONFIG.model_copy(update=keys))
    assert supports(CONFIG.model_copy(update={"kind": "lstm", "positions": "none", "norm": "pre"}))
    for keys in ({"kind": "words"}, {"attention_dropout": 0.2}, {"dropout": 0.995}):
        assert not supports(CONFIG.model_copy(update=keys))
    assert supports(CONFIG, "bf16") and not in_fp32_alone(CONFIG)
    for keys in ({"norm": "pre"}, {"embedding_norm": False}):
        assert in_fp32_alone(CONFIG.model_copy(update=keys))
    assert not in_fp32_alone(CONFIG.model_copy(update={"norm": "pre", "attention_dropout": 0.2}))
