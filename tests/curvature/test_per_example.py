"""Squared norms of every sentence's gradient against gradients that are laid out, sentence by sentence."""

import pytest
import torch

from masklab.config.schema import Encoder
from masklab.curvature.per_example import SquaredNorms, counted, covers, linear_norm
from masklab.curvature.trace import hide
from masklab.curvature.width import EXPONENTS, embedded, exponent
from masklab.models.encoder import MaskedLM

V, LENGTHS = 23, [9, 4, 7, 3, 9]
SMALL = {"positions": "absolute", "layers": 2, "hidden": 16, "heads": 2, "max_positions": 12, "dropout": 0.3}
FORMS = {
    "bert": {},
    "linear head": {"head": "linear"},
    "pre": {"norm": "pre"},
    "pre without embedding norm": {"norm": "pre", "embedding_norm": False},
    "untied": {"norm": "pre", "tied_head": False},
    "no positions": {"positions": "none"},
    "lstm": {"kind": "lstm", "norm": "pre"},
    "plain lstm": {"kind": "lstm", "norm": "pre", "embedding_norm": False, "tied_head": False, "positions": "none"},
}


def build(latent=0, **switches):
    """A model in float64 and eval mode whose every tensor is random."""
    model = MaskedLM(Encoder(**(SMALL | switches)), V, latent).double().eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64), alpha=0.3)
    return model


def sentences(seed=0):
    """(ids, lengths, at): padded sentences with tokens twice and one [MASK] each."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor(LENGTHS)
    ids = torch.randint(5, V, (len(lengths), 9), generator=generator)
    ids[:, 2] = ids[:, 1]
    ids[torch.arange(9) >= lengths[:, None]] = 0
    columns = torch.tensor([3, 1, 5, 1, 7])
    ids, at = hide(ids, columns)
    return ids, lengths, at


def laid_out(model, ids, lengths, at, v):
    """The same [B, 3] from one backward pass per sentence."""
    logits, parameters = model(ids, lengths, at=at).logits, counted(model)
    found = torch.zeros(len(ids), 3, dtype=torch.float64)
    for row in range(len(ids)):
        gradients = torch.autograd.grad(
            logits[row], parameters.values(), v[row], retain_graph=True, allow_unused=True, materialize_grads=True
        )
        for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True):
            place = EXPONENTS.index(exponent(name, parameter.dim(), model.config.tied_head))
            found[row, place] += gradient.square().sum()
    return found


@pytest.mark.parametrize("switches", FORMS.values(), ids=FORMS)
def test_norms_equal_gradients_laid_out(switches):
    model, (ids, lengths, at) = build(latent=5, **switches), sentences()
    vs = torch.randn(2, len(ids), V, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    assert covers(model)
    with SquaredNorms(model) as norms:
        found = norms(ids, lengths, at, lambda logits: list(vs))
    for number in range(2):
        wanted = laid_out(model, ids, lengths, at, vs[number])
        assert (wanted.sum(0) > 1).all()  # each kind of parameter counts
        torch.testing.assert_close(found[number], wanted, rtol=1e-10, atol=1e-12)


def test_a_model_is_left_as_it_was():
    model, batch = build(kind="lstm", norm="pre"), sentences()
    before = model(*batch).logits
    with SquaredNorms(model) as norms, pytest.raises(ZeroDivisionError):
        norms(*batch, lambda logits: 1 / 0)
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert torch.equal(model(*batch).logits, before)


def test_a_layer_that_is_not_seen_is_an_error(monkeypatch):
    """Products that pass by the modules would leave their weights out of the trace."""
    model, batch = build(), sentences()
    layer = model.blocks[0].ffn_in
    monkeypatch.setattr(model.blocks[0], "ffn", lambda x: model.blocks[0].ffn_out(layer.forward(x)))
    with SquaredNorms(model) as norms, pytest.raises(RuntimeError, match=r"blocks.0.ffn_in: ran unseen"):
        norms(*batch, lambda logits: [logits])


@pytest.mark.parametrize(
    "shape", [(1, 6, 8), (2, 6, 8), (3, 40, 40), (9, 4, 5)], ids=["one", "two", "gram", "laid out"]
)
def test_linear_norm_by_either_way(shape):
    length, i, o = shape
    x, d = torch.randn(2, length, i).double(), torch.randn(2, length, o).double()
    wanted = torch.einsum("bti,bto->bio", x, d).square().sum((1, 2))
    torch.testing.assert_close(linear_norm(x, d), wanted, rtol=1e-12, atol=0)


def test_embedding_weighs_the_parts():
    assert embedded(torch.tensor([8.0, 5.0, 3.0]), 2.0) == 8 / 2 + 5 + 3 * 2
