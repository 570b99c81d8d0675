"""The masked autoencoder: what leaves the encoder, what the decoder is shown, what a checkpoint keeps."""

import pytest
import torch
from torch.nn import functional as F

from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.decoder import drop
from masklab.models.encoder import MaskedLM
from masklab.models.flops import count_parameters

V, MASK = 43, 4
SMALL = {"layers": 2, "hidden": 16, "heads": 2, "max_positions": 20, "dropout": 0.0, "init_range": 0.3}
FORMS = {
    "relative": {"positions": "relative", "relative_buckets": 8, "relative_distance": 10},
    "biased": {
        "positions": "relative",
        "relative_buckets": 8,
        "relative_distance": 10,
        "decoder": {"layers": 2, "intermediate": 20, "relative": True},
    },
    "disentangled": {"positions": "disentangled"},
    "pre": {"positions": "absolute", "norm": "pre"},
    "narrow": {"positions": "absolute", "decoder": {"layers": 1, "hidden": 8, "heads": 1}},
}


def build(form="relative", **overrides):
    config = Encoder(**SMALL | {"decoder": {"layers": 2, "intermediate": 20}} | FORMS[form] | overrides)
    model = MaskedLM(config, V, generator=torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
    return model.double()


def batch():
    """Rows of 12, 3, 9 and 2 tokens; masked: several, one, neighbours and the first and last, none."""
    lengths = torch.tensor([12, 3, 9, 2])
    real = torch.arange(12) < lengths[:, None]
    ids = torch.randint(5, V, real.shape, generator=torch.Generator().manual_seed(0)).masked_fill(~real, 3)
    at = torch.tensor([1, 4, 5, 10, 13, 24, 25, 32])
    ids.view(-1)[at] = MASK
    return ids, lengths, at


def by_hand(model, ids, row_length, row, dropped, reset=(), aligned=True):
    """One row: the encoder on the kept tokens alone, the decoder's input position by position, all its blocks."""
    tokens = ids[row, :row_length]
    kept = [t for t in range(row_length) if t not in dropped]
    positions = torch.tensor([kept]) if aligned else None
    states = model.encode(tokens[kept][None], torch.tensor([len(kept)]), positions=positions)[0]
    mask = model.embeddings.word[MASK]
    fill = {t: states[kept.index(t)] if t in kept and t not in reset else mask for t in range(row_length)}
    decoder, x = model.decoder, torch.stack([fill[t] for t in range(row_length)])
    if decoder.resize is not None:
        x = F.linear(x, decoder.resize.weight, decoder.resize.bias)
    width = x.shape[1]
    x = F.layer_norm(
        x + decoder.position[:row_length], (width,), decoder.norm.weight, decoder.norm.bias, decoder.norm.eps
    )
    # the decoder's layers in an encoder of their own, which is tested against the plain model
    stack = model.config.decoder_stack
    plain = MaskedLM(stack.model_copy(update={"norm": model.config.norm}), 5).double()
    plain.blocks, plain.relative = decoder.blocks, decoder.relative
    batch = plain._batch(tokens[None], torch.tensor([row_length]))
    for block in decoder.blocks:
        x = block(x, batch, None, plain._relative(batch))
    if decoder.final_norm is not None:
        x = decoder.final_norm(x)
    head = model.head
    x = F.layer_norm(F.gelu(head.dense(x)), (width,), head.norm.weight, head.norm.bias, head.norm.eps)
    if head.project is not None:
        x = x @ head.project.weight.T
    return x @ model.embeddings.word.T + head.bias


@pytest.mark.parametrize("form", FORMS)
def test_reconstruction_row_by_row(form):
    """Alone or in a batch of uneven rows, to 1e-10; gradients too."""
    model = build(form)
    ids, lengths, at = batch()
    logits = model(ids, lengths, at).logits
    weight = torch.randn(logits.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    (logits * weight).sum().backward()
    gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    rows = []
    for row, length in enumerate(lengths.tolist()):
        masked = [int(a) % 12 for a in at if int(a) // 12 == row]
        if masked:
            rows.append(by_hand(model, ids, length, row, masked)[masked])
    truth = torch.cat(rows)
    assert truth.std() > 0.5
    torch.testing.assert_close(logits, truth, atol=1e-10, rtol=1e-10)
    (truth * weight).sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, atol=1e-9, rtol=1e-9, msg=name)


@torch.no_grad()
def test_ablations():
    """Some [MASK]s stay in the encoder; all stay and are reset; positions counted from 0."""
    model = build()
    ids, lengths, at = batch()
    row = [1, 4, 5, 10]
    part = model.reconstruct(ids, lengths, at, dropped=at[[0, 2, 4]]).logits
    torch.testing.assert_close(part[:4], by_hand(model, ids, 12, 0, [1, 5])[row], atol=1e-10, rtol=1e-10)
    none = torch.empty(0, dtype=torch.long)
    kept = model.reconstruct(ids, lengths, at, dropped=none).logits
    torch.testing.assert_close(kept[:4], by_hand(model, ids, 12, 0, [])[row], atol=1e-10, rtol=1e-10)
    reset = model.reconstruct(ids, lengths, at, dropped=none, reset=at).logits
    torch.testing.assert_close(reset[:4], by_hand(model, ids, 12, 0, [], reset=row)[row], atol=1e-10, rtol=1e-10)
    shifted = model.reconstruct(ids, lengths, at, aligned=False).logits
    torch.testing.assert_close(shifted[:4], by_hand(model, ids, 12, 0, row, aligned=False)[row], atol=1e-10, rtol=1e-10)
    for other in (part, kept, reset, shifted):
        assert not torch.allclose(other, model(ids, lengths, at).logits)


def test_dropping_shrinks_the_batch():
    ids, lengths, at = batch()
    kept = drop(ids, lengths, at)
    assert kept.lengths.tolist() == [8, 2, 6, 2] and kept.ids.shape == (4, 8)
    for row, length in enumerate(lengths.tolist()):
        stay = [t for t in range(length) if ids[row, t] != MASK]
        assert kept.positions[row, : len(stay)].tolist() == stay
        assert kept.ids[row, : len(stay)].tolist() == ids[row, stay].tolist()
        for t in range(12):
            expected = row * 8 + stay.index(t) if t in stay else 32
            assert kept.source[row * 12 + t] == expected


@torch.no_grad()
def test_as_many_dropped_in_every_row_is_one_graph():
    """Shapes are then known beforehand; the numbers are the same."""
    model = build()
    ids, lengths, _ = batch()
    at = torch.tensor([[1, 5], [13, 14], [24, 30], [36, 37]])
    ids.view(-1)[at.flatten()] = MASK
    truth = model.reconstruct(ids, lengths, at.flatten(), dropped=at.flatten()).logits
    compiled = torch.compile(model.reconstruct, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(ids, lengths, at.flatten(), at).logits, truth, atol=1e-10, rtol=1e-10)


def test_decoder_has_no_dropout():
    model = build(dropout=0.5)
    assert {block.p for block in model.blocks} == {0.5} and {block.p for block in model.decoder.blocks} == {0.0}
    assert {block.attention.p for block in model.decoder.blocks} == {0.0}


def test_published_sizes():
    """Encoder 110.6M and decoder with head 29.4M of MAE-LM base, within .1M."""
    base = Encoder(positions="relative", decoder={"layers": 4})
    alone = base.model_copy(update={"decoder": None})
    with torch.device("meta"):
        head = sum(parameter.numel() for parameter in MaskedLM(alone, 32_768).head.parameters())
    encoder = count_parameters(alone, 32_768) - head
    assert abs(encoder / 1e6 - 110.6) < 0.1
    assert abs((count_parameters(base, 32_768) - encoder) / 1e6 - 29.4) < 0.1


@pytest.mark.parametrize("form", FORMS)
@torch.no_grad()
def test_checkpoints_drop_the_decoder_or_keep_it(form, tmp_path):
    model = build(form).float().eval()
    ids, lengths, at = batch()
    save_checkpoint(model, tmp_path / "dropped", metadata={})
    alone = load_checkpoint(tmp_path / "dropped").eval()
    assert alone.config == model.config.model_copy(update={"decoder": None}) and alone.decoder is None
    torch.testing.assert_close(alone.encode(ids, lengths), model.encode(ids, lengths), atol=0, rtol=0)
    save_checkpoint(model, tmp_path / "kept", metadata={}, keep_decoder=True)
    again = load_checkpoint(tmp_path / "kept").eval()
    assert again.config == model.config
    assert torch.equal(again(ids, lengths, at).logits, model(ids, lengths, at).logits)
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in model.state_dict().items())
    assert (tmp_path / "kept" / "model.safetensors").read_bytes() == (
        tmp_path / "dropped" / "model.safetensors"
    ).read_bytes()


@pytest.mark.parametrize(
    ("encoder", "attention", "said"),
    [("absolute", "self", "needs an encoder with positions 'relative'"), ("relative", "cross", "needs attention")],
)
def test_a_bias_by_distance_has_its_place(encoder, attention, said):
    decoder = {"layers": 1, "attention": attention, "relative": True}
    assert f"decoder.relative: {said}" in Encoder(**SMALL | {"positions": encoder, "decoder": decoder}).problem()


def test_what_a_model_with_a_decoder_is_not_asked():
    ids, lengths, at = batch()
    with pytest.raises(MaskLabError, match="takes no `hidden`"):
        build()(ids, lengths, at, hidden=1)
