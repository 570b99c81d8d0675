"""An encoder by hand in a model that autograd trains is the encoder that autograd trains."""

import copy

import pytest
import torch

from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.models.encoder import MaskedLM
from masklab.models.stacked import encoding_by_hand
from masklab.models.stacked.by_hand import ByHand, Views
from masklab.models.stacked.encoder import StackedEncoder
from masklab.models.stacked.ragged import Ragged

FORMS = {
    "absolute": {"positions": "absolute"},
    "disentangled": {"positions": "disentangled"},
    "relative, pre": {"positions": "relative", "relative_buckets": 8, "relative_distance": 12, "norm": "pre"},
    "none": {"positions": "none", "norm": "pre", "embedding_norm": False},
    "lstm": {"kind": "lstm", "positions": "absolute", "norm": "pre"},
}
LENGTHS = torch.tensor([17, 3, 9, 17, 1, 12])
PLACES = {"all": None, "first": torch.arange(6) * 17, "some": torch.tensor([53, 3, 18, 0, 40])}


def made(form, dropout):
    sizes = {"layers": 2, "hidden": 48, "heads": 3, "max_positions": 30, "init_range": 0.2, "dropout": dropout}
    return MaskedLM(Encoder(**sizes | FORMS[form]), 50, generator=torch.Generator().manual_seed(1)).train()


def states_and_gradients(model, at, times=1):
    """(states of tokens, gradients by name, the next random number) with dropout of seed 3."""
    ids = torch.randint(5, 50, (6, 17), generator=torch.Generator().manual_seed(2))
    model.zero_grad()
    torch.manual_seed(3)
    real = 1 if at is not None else (torch.arange(17) < LENGTHS[:, None])[..., None]
    states = [model.encode(ids, LENGTHS, at=at) * real for _ in range(times)]
    weights = torch.randn(states[0].shape, generator=torch.Generator().manual_seed(4))
    sum((each * weights).square().sum() for each in states).backward()
    gradients = {name: own.grad for name, own in model.named_parameters() if own.grad is not None}
    return torch.stack(states).detach(), gradients, torch.rand(())


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice before its gradient is asked for"])
@pytest.mark.parametrize("at", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("form", FORMS)
def test_states_and_gradients_are_autograds(form, dropout, at, times):
    """fp32: states within 1e-5, gradients within 1e-5 of the largest number of each; the same dropout."""
    model = made(form, dropout)
    wanted, of_autograd, number = states_and_gradients(model, at, times)
    model.by_hand = ByHand(model)
    for _ in range(2):  # the second time with what the first one has left
        found, gradients, other = states_and_gradients(model, at, times)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)
        assert number == other and gradients.keys() == of_autograd.keys()
        for name, gradient in of_autograd.items():
            bound = 1e-5 * float(gradient.abs().max()) + 1e-6
            torch.testing.assert_close(gradients[name], gradient, atol=bound, rtol=0, msg=name)


@pytest.mark.parametrize("at", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("form", FORMS)
def test_states_that_no_gradient_is_wanted_of(form, at, monkeypatch):
    """Those of the model without dropout, within 1e-5; scores of tokens are made of them."""
    model, ids = made(form, 0.2).eval(), torch.randint(5, 50, (6, 17), generator=torch.Generator().manual_seed(2))
    real = True if at is not None else (torch.arange(17) < LENGTHS[:, None])[..., None]
    with torch.no_grad():
        wanted, scores = model.encode(ids, LENGTHS, at=at), model(ids, LENGTHS, at=at).logits
    assert encoding_by_hand(model) is model and model.by_hand is not None
    asked, ask = [], ByHand.ask
    monkeypatch.setattr(ByHand, "ask", lambda *given: asked.append(1) or ask(*given))
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            found = model.encode(ids, LENGTHS, at=at)
            torch.testing.assert_close(found * real, wanted * real, atol=1e-5, rtol=0)
            if at is not None:
                torch.testing.assert_close(model(ids, LENGTHS, at=at).logits, scores, atol=1e-5, rtol=0)
    assert len(asked) == (2 if at is None else 4)
    with torch.no_grad():  # it reads weights as they are now
        next(own for own in model.blocks.parameters() if own.dim() == 2).mul_(0.5)
        other = model.encode(ids, LENGTHS, at=at)
        assert not torch.allclose(other * real, found * real, atol=1e-3)
        model.by_hand = None
        torch.testing.assert_close(other * real, model.encode(ids, LENGTHS, at=at) * real, atol=1e-5, rtol=0)


def test_in_bf16_they_are_those_of_fp32_but_for_rounding():
    model, ids = made("absolute", 0.0).eval(), torch.randint(5, 50, (6, 17))
    by_hand = encoding_by_hand(model).by_hand
    with torch.no_grad():
        wanted = model.encode(ids, LENGTHS, at=PLACES["some"])
        with torch.autocast("cpu", torch.bfloat16):
            found = by_hand.ask(ids, LENGTHS, PLACES["some"])
    assert 0 < float((found.float() - wanted).abs().max()) < 0.1


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_remembered_of_a_layer_that_is_only_asked(form):
    model = made(form, 0.0).eval()
    encoder = StackedEncoder(Views(dict(model.named_parameters()), trained=False), model.config, False, prefix="")
    encoder.forward(torch.randint(5, 50, (1, 6, 17)), Ragged.of(LENGTHS[None], 17))
    for block in encoder.blocks.blocks:
        parts = [block, *(part for part in vars(block).values() if hasattr(part, "forward"))]
        assert len(parts) >= 3 and all(part.saved is None for part in parts)


def test_what_by_hand_does_not_know_the_model_computes_itself(monkeypatch):
    """Other layers, places where tokens stand, a gradient without dropout, no token at all."""
    model, ids = encoding_by_hand(made("absolute", 0.2)).eval(), torch.randint(5, 50, (6, 17))
    monkeypatch.setattr(ByHand, "ask", None)
    with torch.no_grad():
        model.encode(ids, LENGTHS, layer=1)
        model.encode(ids, LENGTHS, positions=torch.arange(17).expand(6, -1))
        assert model(ids, LENGTHS, at=PLACES["some"], hidden=1).hidden.shape == (5, 48)
        assert model.encode(ids, LENGTHS, at=torch.zeros(0, dtype=torch.int64)).shape == (0, 48)
    assert model.encode(ids, LENGTHS).requires_grad


def test_some_models_are_left_as_they_are():
    sizes = {"layers": 1, "hidden": 16, "heads": 2, "max_positions": 8}
    assert encoding_by_hand(MaskedLM(Encoder(attention_dropout=0.2, **sizes), 50)).by_hand is None
    assert encoding_by_hand(MaskedLM(Encoder(**sizes), 50).to("meta")).by_hand is None


def test_a_copy_of_the_model_encodes_by_itself():
    model = made("absolute", 0.0)
    model.by_hand = ByHand(model)
    assert copy.deepcopy(model).by_hand is None


@pytest.mark.parametrize("form", FORMS)
def test_rows_longer_than_the_positions_are_an_error(form):
    model = made(form, 0.0)
    model.by_hand = ByHand(model)
    with pytest.raises(IndexError, match="rows have 31 tokens, positions end at 30"):
        model.encode(torch.full((2, 31), 7), torch.tensor([31, 4]))
    with torch.no_grad(), pytest.raises(MaskLabError, match="sequence of 31 tokens: max_positions is 30"):
        model.eval().encode(torch.full((2, 31), 7), torch.tensor([31, 4]))


def test_no_place_at_all():
    model = made("disentangled", 0.2)
    model.by_hand = ByHand(model)
    states = model.encode(torch.full((2, 9), 7), torch.tensor([9, 4]), at=torch.zeros(0, dtype=torch.int64))
    assert states.shape == (0, 48)
