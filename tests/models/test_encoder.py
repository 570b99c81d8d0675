"""The encoder against transformers' classes, and its shortcuts against the long way round."""

from functools import partial

import pytest
import torch
from torch.nn import functional as F
from transformers import AutoModelForMaskedLM

import padded
from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.models import encoder
from masklab.models.attention import Attention, Queries
from masklab.models.checkpoint import save_checkpoint
from masklab.models.encoder import MaskedLM

V = 57
SMALL = {"layers": 3, "hidden": 24, "heads": 3, "intermediate": 40, "max_positions": 16}
batch = partial(padded.batch, V)


def build(positions, latent=0, scale=0.3, **overrides):
    """A small model whose every tensor is random, biases and layer norms included."""
    config = Encoder(positions=positions, **(SMALL | overrides))
    model = MaskedLM(config, V, latent)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=scale)
    return model


LENGTHS = {"even": [9, 9, 9], "uneven": [9, 2, 5, 7], "longest": [16, 3], "one": [1, 1]}


@pytest.fixture(scope="module", params=["disentangled", "absolute"])
def pair(request, tmp_path_factory):
    """Our model and transformers' reading of its folder."""
    folder = tmp_path_factory.mktemp("model") / request.param
    model = build(request.param, latent=6).eval()
    save_checkpoint(model, folder, metadata={})
    return model, AutoModelForMaskedLM.from_pretrained(folder).eval()


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@torch.no_grad()
def test_logits_and_hidden_states_are_transformers(pair, lengths):
    model, reference = pair
    ids, lengths, real = batch(lengths)
    truth = reference(ids, attention_mask=real.long(), output_hidden_states=True)
    logits = model(ids, lengths).logits.view(*ids.shape, V)
    assert truth.logits[real].std() > 0.5
    torch.testing.assert_close(logits[real], truth.logits[real], atol=1e-5, rtol=1e-5)
    for layer, hidden in enumerate(truth.hidden_states):
        torch.testing.assert_close(model.encode(ids, lengths, layer)[real], hidden[real], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(model.encode(ids, lengths), model.encode(ids, lengths, 3), atol=0, rtol=0)


@torch.no_grad()
def test_latent_logits_share_the_transform(pair):
    model, _ = pair
    ids, lengths, _ = batch([5, 5])
    output = model(ids, lengths)
    transformed = model.head(model.encode(ids, lengths).flatten(0, 1))
    expected = transformed @ model.latent.weight.T + model.latent.bias
    torch.testing.assert_close(output.latent, expected, atol=1e-5, rtol=1e-5)
    assert output.logits.shape == (10, V) and output.latent.shape == (10, 6)


# which positions: the same number per row, uneven, unsorted, none in some rows, nearly all
AT = {
    "even": [1, 5, 10, 12],
    "uneven": [1, 2, 9, 20, 21, 22],
    "unsorted": [21, 2, 10, 1],
    "single": [19],
    "most": [*range(9), *range(20, 25)],
}


@pytest.mark.parametrize("positions", ["disentangled", "absolute"])
@pytest.mark.parametrize("lengths", [[9, 9, 9], [9, 4, 7]], ids=["even", "uneven"])
@pytest.mark.parametrize("at", AT.values(), ids=AT)
def test_asking_for_positions_changes_nothing(positions, lengths, at):
    model = build(positions, latent=6, dropout=0.0)
    ids, lengths, _ = batch(lengths)
    at = torch.tensor(at)
    weight = torch.randn(len(at), V, generator=torch.Generator().manual_seed(2))

    def run(select):
        model.zero_grad()
        output = model(ids, lengths, at, hidden=2) if select else model(ids, lengths, hidden=2)
        parts = (output.logits, output.latent, output.hidden)
        parts = parts if select else tuple(part[at] for part in parts)
        loss = (parts[0] * weight).mean() + parts[1].square().mean() + parts[2].sin().mean()
        loss.backward()
        return [part.detach() for part in parts], {n: p.grad.clone() for n, p in model.named_parameters()}

    (some, some_gradients), (full, full_gradients) = run(True), run(False)
    for a, b in zip(some, full, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
    for name, gradient in full_gradients.items():
        torch.testing.assert_close(some_gradients[name], gradient, atol=1e-5, rtol=1e-4, msg=name)
    with torch.no_grad():
        for layer in (0, 1, 3):
            expected = model.encode(ids, lengths, layer).flatten(0, 1)[at]
            torch.testing.assert_close(model.encode(ids, lengths, layer, at), expected, atol=1e-5, rtol=1e-5)
            hidden = model(ids, lengths, at, hidden=layer).hidden
            torch.testing.assert_close(hidden, expected, atol=1e-5, rtol=1e-5)


def test_no_position_asked_for():
    ids, lengths, _ = batch([4, 4])
    output = build("disentangled")(ids, lengths, torch.empty(0, dtype=torch.long))
    assert output.logits.shape == (0, V)


@pytest.mark.parametrize("lengths", [[9, 9, 9], [9, 2, 5, 7]], ids=["even", "uneven"])
def test_gradients_are_transformers(pair, lengths):
    """Train-mode gradients with dropout 0 of a masked-token loss, through all shared tensors."""
    model, reference = pair
    ids, lengths, real = batch(lengths)
    at = real.flatten().nonzero()[::3, 0]
    target = ids.flatten()[at]
    model.zero_grad(), reference.zero_grad()
    F.cross_entropy(model(ids, lengths, at).logits, target).backward()
    truth = reference(ids, attention_mask=real.long()).logits.flatten(0, 1)[at]
    F.cross_entropy(truth, target).backward()
    base = getattr(reference, reference.base_model_prefix)
    word = base.embeddings.word_embeddings.weight.grad.clone()
    # transformers' padding_idx drops the gradient of the decoder's <pad> row only in the lookup
    torch.testing.assert_close(model.embeddings.word.grad, word, atol=1e-5, rtol=1e-4)
    for ours, theirs in zip(model.blocks, base.encoder.layer, strict=True):
        torch.testing.assert_close(ours.ffn_in.weight.grad, theirs.intermediate.dense.weight.grad, atol=1e-5, rtol=1e-4)
        if model.relative is not None:
            for name in ("in_proj.weight", "q_bias", "v_bias", "pos_proj.weight", "pos_q_proj.bias"):
                a, b = (part.get_parameter(name).grad for part in (ours.attention, theirs.attention.self))
                torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4, msg=name)
    if model.relative is not None:
        relative = base.encoder.rel_embeddings.weight.grad
        torch.testing.assert_close(model.relative.grad, relative, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("positions", ["disentangled", "absolute"])
@pytest.mark.parametrize("lengths", [[20, 20], [20, 6]], ids=["even", "uneven"])
def test_fused_and_explicit_attention_agree(positions, lengths, monkeypatch):
    """The path of GPUs (one fused kernel, all queries, gather afterwards) against the path of CPUs."""
    model = build(positions, dropout=0.0, max_positions=32)
    ids, lengths, real = batch(lengths)
    at = real.flatten().nonzero()[::5, 0]
    results = []
    for path in (Attention.attend_explicitly, Attention.attend_fused):
        monkeypatch.setattr(Attention, "attend", lambda self, *parts, path=path: path(self, *parts, 0.0))
        model.zero_grad()
        logits = model(ids, lengths, at).logits
        logits.square().mean().backward()
        results.append((logits, {name: parameter.grad for name, parameter in model.named_parameters()}))
        monkeypatch.setattr(encoder, "plan_queries", lambda at, *_: Queries(at))
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-4)


def test_initial_weights_follow_the_generator():
    config = Encoder(positions="disentangled", layers=2, hidden=64, heads=2, init_range=0.05)

    def draw(seed, latent=0):
        return MaskedLM(config, 500, latent, torch.Generator().manual_seed(seed)).state_dict()

    state = torch.random.get_rng_state()
    first, again, other, wider = draw(1), draw(1), draw(2), draw(1, latent=7)
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert all(torch.equal(first[name], wider[name]) for name in first)
    for name, tensor in first.items():
        if tensor.dim() == 2:
            assert not torch.equal(tensor, other[name])
            # standard error of a standard deviation: sigma / sqrt(2 n) <= .0006
            assert abs(tensor.std() - 0.05) < 0.002 and abs(tensor.mean()) < 0.004, name
        else:
            assert torch.all(tensor == float(name.endswith("norm.weight"))), name
    assert torch.all(first["embeddings.word"][3] == 0)


def test_an_encoder_of_one_feature_has_initial_weights():
    """What `masklab check` lets pass; half a feature for each direction is asked of LSTMs alone."""
    model = MaskedLM(Encoder(layers=1, hidden=1, heads=1), 10)
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_parameters_of_deberta_base():
    with torch.device("meta"):
        model = MaskedLM(Encoder(), 25_000)
    assert sum(parameter.numel() for parameter in model.parameters()) == 119_815_336


@pytest.mark.parametrize("positions", ["disentangled", "absolute"])
def test_exports_as_one_graph(positions):
    """No branch depends on data when compiling: the whole model is one graph, for `at` and padding."""
    model = build(positions, dropout=0.0)
    ids, lengths, real = batch([9, 5])
    at = real.flatten().nonzero()[::4, 0]
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(ids, lengths, at).logits, model(ids, lengths, at).logits, atol=1e-5, rtol=1e-5)


def test_bad_input_is_named():
    model = build("absolute")
    ids, lengths, _ = batch([17])
    with pytest.raises(MaskLabError, match="17 tokens: max_positions is 16"):
        model(ids, lengths)
    with pytest.raises(MaskLabError, match="layer 4: the encoder has layers 0 to 3"):
        model.encode(ids[:, :5], torch.tensor([5]), 4)
    with pytest.raises(MaskLabError, match=r"encoder: hidden: 24 must be a multiple of heads \(5\)"):
        build("absolute", heads=5)
