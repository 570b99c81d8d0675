"""Every combination of the encoder's switches against the plain model that its checkpoint folder brings along."""

import itertools
import json
import math
from functools import partial

import pytest
import torch
from torch.nn import functional as F

import padded
from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.models import attention, encoder, modeling_masklab, relative
from masklab.models.attention import Attention, Queries
from masklab.models.blocks import Lstm
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.models.modeling_masklab import MaskLabConfig, MaskLabForMaskedLM
from masklab.models.positions import bucket

V = 43
SMALL = {"layers": 2, "hidden": 16, "heads": 2, "intermediate": 24, "max_positions": 24, "dropout": 0.0}
SMALL |= {"init_range": 0.3}
BIAS = {"positions": "relative", "relative_buckets": 8, "relative_distance": 10}
POSITIONS = [{"positions": "disentangled"}, {"positions": "absolute"}, {"positions": "none"}]
POSITIONS += [BIAS, BIAS | {"absolute": False}]
KINDS = [{"norm": norm} | positions for norm in ("post", "pre") for positions in POSITIONS]
KINDS += [{"kind": "lstm", "norm": "pre", "positions": positions} for positions in ("absolute", "none")]
FORMS = [kind | {"embedding_norm": normed} for kind, normed in itertools.product(KINDS, (True, False))]
LINEAR = [kind | {"embedding_norm": True, "head": "linear"} for kind in (KINDS[0], KINDS[3], KINDS[6], KINDS[-1])]
FORMS += [*LINEAR, KINDS[1] | {"embedding_norm": False, "head": "linear"}]
batch = partial(padded.batch, V)


def name(form):
    return "-".join(str(value) for value in form.values())


def build(form, **overrides):
    """A model whose every tensor is random, biases and layer norms included."""
    model = MaskedLM(Encoder(**SMALL | form | overrides), V, generator=torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
    return model


def reference(model):
    """The plain model with the same weights, by the names and not by way of `huggingface.py`."""
    config = model.config
    plain = MaskLabForMaskedLM(
        MaskLabConfig(
            vocab_size=model.vocab_size, hidden_size=config.hidden, num_hidden_layers=config.layers,
            num_attention_heads=config.heads, intermediate_size=config.ffn, hidden_dropout_prob=config.dropout,
            max_position_embeddings=config.max_positions, attention_probs_dropout_prob=config.dropout,
            layer_norm_eps=config.eps, tie_word_embeddings=config.tied_head, initializer_range=config.init_range,
            **config.model_dump(include={"kind", "positions", "absolute", "norm", "embedding_norm", "head"}),
            **config.model_dump(include={"relative_buckets", "relative_distance"}),
        )
    )  # fmt: skip
    state = {n if n.startswith("head.") else f"model.{n}": tensor for n, tensor in model.state_dict().items()}
    plain.load_state_dict(state)
    return plain


@pytest.mark.parametrize("form", FORMS, ids=name)
def test_states_logits_and_gradients_are_the_plain_model_s(form):
    """In double precision, to 1e-10: padding, uneven rows, few positions asked for, given positions."""
    model = build(form, tied_head=form["embedding_norm"]).double()
    plain = reference(model).double()
    ids, lengths, real = batch()
    given = torch.stack([torch.randperm(24, generator=torch.Generator().manual_seed(row))[:17] for row in range(4)])
    at = real.flatten().nonzero()[::4, 0]
    close = {"atol": 1e-10, "rtol": 1e-10}
    for positions in (None, given):
        truth = plain(ids, real.long(), positions, output_hidden_states=True)
        assert truth.logits[real].std() > 0.5
        output = model(ids, lengths, positions=positions)
        torch.testing.assert_close(output.logits.view(*ids.shape, V)[real], truth.logits[real], **close)
        for layer, states in enumerate(truth.hidden_states):
            ours = model.encode(ids, lengths, layer, positions=positions)
            torch.testing.assert_close(ours[real], states[real], **close)
        some = model(ids, lengths, at, hidden=1, positions=positions)
        torch.testing.assert_close(some.logits, truth.logits.flatten(0, 1)[at], **close)
        torch.testing.assert_close(some.hidden, truth.hidden_states[1].flatten(0, 1)[at], **close)
        model.zero_grad()
        plain.zero_grad()
        F.cross_entropy(some.logits, ids.flatten()[at]).backward()
        F.cross_entropy(truth.logits.flatten(0, 1)[at], ids.flatten()[at]).backward()
        gradients = {n.removeprefix("model."): parameter.grad for n, parameter in plain.named_parameters()}
        for parameter_name, parameter in model.named_parameters():
            torch.testing.assert_close(parameter.grad, gradients[parameter_name], msg=parameter_name, **close)


@pytest.mark.parametrize("form", [*KINDS, *LINEAR, KINDS[3] | {"embedding_norm": False, "tied_head": False}], ids=name)
@torch.no_grad()
def test_folders_round_trip(form, tmp_path):
    model = build(form).eval()
    save_checkpoint(model, tmp_path, metadata={})
    again = load_checkpoint(tmp_path).eval()
    assert again.config == model.config
    ids, lengths, _ = batch()
    assert torch.equal(again(ids, lengths).logits, model(ids, lengths).logits)


@torch.no_grad()
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("decoder", [None, {"layers": 1}, {"layers": 1, "hidden": 8}])
def test_a_linear_head_is_the_product_of_states_and_output_matrix(decoder, tied):
    """Logits without the bias have the rank of the states, which the transform of the other head would raise."""
    model = build({"head": "linear", "decoder": decoder}, tied_head=tied).double().eval()
    ids, lengths, real = batch()
    at = real.flatten().nonzero()[:, 0]
    read = []
    model.head.register_forward_hook(lambda _, args, output: read.append(args[0]))
    logits = model(ids, lengths, at).logits
    (states,) = read
    if decoder is None:
        torch.testing.assert_close(states, model.encode(ids, lengths).flatten(0, 1)[at], atol=1e-12, rtol=0)
    matrix = model.embeddings.word if tied else model.head.weight
    narrow = decoder is not None and "hidden" in decoder
    wanted = (states @ model.head.project.weight.T if narrow else states) @ matrix.T + model.head.bias
    torch.testing.assert_close(logits, wanted, atol=1e-12, rtol=0)
    assert torch.linalg.matrix_rank(logits - model.head.bias) <= (8 if narrow else 16) < min(logits.shape)
    assert not [name for name, _ in model.named_parameters() if name.startswith(("head.dense", "head.norm"))]


@torch.no_grad()
def test_a_folder_written_before_the_head_was_a_switch_has_the_transform(tmp_path):
    model = build(KINDS[3]).eval()
    save_checkpoint(model, tmp_path, metadata={})
    config = json.loads((tmp_path / "config.json").read_text())
    assert config.pop("head") == "transform"
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert load_checkpoint(tmp_path).config == model.config


@torch.no_grad()
def test_what_transformers_saves_is_read_back(tmp_path):
    model = build(KINDS[8]).eval()
    reference(model).save_pretrained(tmp_path)
    again = load_checkpoint(tmp_path).eval()
    assert again.config == model.config
    ids, lengths, _ = batch()
    assert torch.equal(again(ids, lengths).logits, model(ids, lengths).logits)


@torch.no_grad()
def test_folders_stand_alone(tmp_path):
    """An LSTM's folder, read where masklab is not installed, with the tokens of a longer batch than ours."""
    import subprocess
    import sys

    model = build(KINDS[-2]).eval()
    save_checkpoint(model, tmp_path / "m", metadata={})
    ids, lengths, real = batch()
    code = (
        "import sys, json, torch; sys.modules['masklab'] = None\n"
        "from transformers import AutoModelForMaskedLM\n"
        "ids, mask = (torch.tensor(part) for part in json.loads(sys.stdin.read()))\n"
        f"model = AutoModelForMaskedLM.from_pretrained({str(tmp_path / 'm')!r}, trust_remote_code=True)\n"
        "torch.save(model.eval()(ids, mask).logits, sys.argv[1])"
    )
    given = json.dumps([ids.tolist(), real.long().tolist()])
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "logits")], input=given, text=True, check=True)
    theirs = torch.load(tmp_path / "logits")
    torch.testing.assert_close(model(ids, lengths).logits.view(*ids.shape, V)[real], theirs[real], atol=1e-5, rtol=1e-5)


# distance -> bucket of the released code, for (32, 128): exact 0-7, then these first distances
FIRST = {8: 8, 9: 9, 10: 12, 11: 18, 12: 27, 13: 39, 14: 58, 15: 86}


def test_buckets_are_the_released_code_s():
    distance = torch.arange(-511, 512)
    found = bucket(distance, 32, 128)
    for d, row in zip(distance.tolist(), found.tolist(), strict=True):
        size = abs(d)
        expected = size if size < 8 else max(n for n, first in FIRST.items() if first <= size)
        assert row - 15 == int(math.copysign(expected, d))
    assert found.min() == 0 and found.max() == 30  # 31 of the 32 rows
    for buckets, furthest, saturates in ((64, 128, 111), (128, 256, 239)):
        rows = bucket(distance, buckets, furthest)
        assert rows[distance == saturates] == rows.max() and rows[distance == saturates - 1] == rows.max() - 1


@pytest.mark.parametrize(("buckets", "furthest"), [(8, 10), (14, 82), (16, 32), (16, 109), (32, 128), (50, 973)])
def test_an_exported_model_has_the_buckets_that_it_was_trained_with(buckets, furthest):
    """Also where a logarithm is a whole number, which two ways of computing it may round up and down."""
    config = MaskLabConfig(
        positions="relative", relative_buckets=buckets, relative_distance=furthest, max_position_embeddings=512
    )
    distance = torch.arange(-511, 512)
    assert torch.equal(modeling_masklab.Attention(config).bucket(distance), bucket(distance, buckets, furthest))


@pytest.mark.parametrize("form", [form for form in KINDS[:5]], ids=name)
@pytest.mark.parametrize("lengths", [(20, 20), (20, 6)], ids=["even", "uneven"])
@pytest.mark.parametrize("given", [False, True], ids=["", "given-positions"])
def test_ways_of_attention_agree(form, lengths, given, monkeypatch):
    """CPU path, the fused path of GPUs with its gradients, and FlexAttention's, which torch runs on CPUs uncompiled."""
    model = build(form, heads=1)
    ids, lengths, real = batch(lengths)
    at = real.flatten().nonzero()[::5, 0]
    positions = torch.stack([torch.arange(20) + 2, torch.arange(20) + 4 - (torch.arange(20) < 4).long()])
    positions = positions if given else None
    results = []
    for path in (Attention.attend_explicitly, Attention.attend_fused):
        monkeypatch.setattr(Attention, "attend", lambda self, *parts, path=path: path(self, *parts, 0.0))
        model.zero_grad()
        logits = model(ids, lengths, at, positions=positions).logits
        logits.square().mean().backward()
        results.append((logits, {n: parameter.grad for n, parameter in model.named_parameters()}))
        monkeypatch.setattr(encoder, "plan_queries", lambda at, *_: Queries(at))
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-4)
    if form["positions"] != "relative":
        return
    called = []
    flex = attention.attend_flex
    monkeypatch.setattr(attention, "attend_flex", lambda *parts: called.append(1) or flex(*parts))
    monkeypatch.setattr(relative.BiasedAttention, "flexes", lambda self, q: True)
    with torch.no_grad():
        logits = model(ids, lengths, at, positions=positions).logits
    assert len(called) == 2
    torch.testing.assert_close(logits, results[0][0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("lengths", [(17, 2, 9, 17), (9, 9)], ids=["padded", "even"])
@pytest.mark.parametrize("form", KINDS, ids=name)
def test_dropout_is_on_in_training_only(form, lengths):
    model = build(form, dropout=0.3)
    ids, lengths, _ = batch(lengths)
    torch.manual_seed(1)
    first, second = model(ids, lengths).logits, model(ids, lengths).logits
    torch.manual_seed(1)
    assert torch.equal(first, model(ids, lengths).logits) and not torch.allclose(first, second)
    model.eval()
    assert torch.equal(model(ids, lengths).logits, model(ids, lengths).logits)


def test_attention_has_a_dropout_of_its_own():
    """Dropout 0 everywhere else: with values that do not depend on the token, weights scaled up are all there is."""
    model = build({"positions": "none"}, attention_dropout=0.5)
    ids, lengths, _ = batch((9, 9))
    still = build({"positions": "none"}, attention_dropout=0.0)
    assert torch.equal(still(ids, lengths).logits, still(ids, lengths).logits)
    assert not torch.equal(model(ids, lengths).logits, model(ids, lengths).logits)
    assert torch.equal(model.eval()(ids, lengths).logits, still(ids, lengths).logits)


@pytest.mark.parametrize("form", [*KINDS, {"positions": "absolute", "decoder": {"layers": 1}}], ids=name)
def test_bf16_autocast(form):
    """Within 5 % of fp32 on average; gradients are finite."""
    model = build(form, dropout=0.1).eval()
    ids, lengths, real = batch()
    at = real.flatten().nonzero()[::4, 0]
    ids.view(-1)[at[::2]] = 4
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(ids, lengths, at).logits
    truth = model(ids, lengths, at).logits
    assert (output - truth).abs().mean() < 0.05 * truth.abs().mean()
    model.train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(ids, lengths, at).logits
    output.float().square().mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_float32_of_an_lstm_is_float32_on_a_gpu_too(monkeypatch):
    """torch lets cuDNN round what goes into its products, where the recipe says fp32."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    lstm = Lstm(6, 4, batch_first=True)
    assert torch.backends.cudnn.rnn.fp32_precision != "tf32" and not torch.backends.cuda.matmul.allow_tf32
    with torch.backends.cudnn.flags(enabled=False):  # as it does in eval mode with gradients
        lstm(torch.randn(3, 5, 6))
    assert torch.backends.cudnn.rnn.fp32_precision != "tf32"


def test_an_lstm_under_bf16_where_a_cpu_has_none(monkeypatch):
    """oneDNN has no such kernel there: it computes in float32, what it would without autocast."""
    monkeypatch.setattr("masklab.models.blocks.has_bf16", lambda: False)
    lstm, x = Lstm(6, 4, batch_first=True), torch.randn(3, 5, 6)
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = lstm(x.bfloat16())[0]
    assert output.dtype == torch.float32 and torch.equal(output, lstm(x.bfloat16().float())[0])


@pytest.mark.parametrize("form", KINDS[5:9], ids=name)
def test_one_graph(form):
    """In training too, dropout included."""
    model = build(form)
    ids, lengths, real = batch()
    at = real.flatten().nonzero()[::4, 0]
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(ids, lengths, at).logits, model(ids, lengths, at).logits, atol=1e-5, rtol=1e-5)
    if form == KINDS[5]:
        dropping = build(form, dropout=0.5)
        output = torch.compile(dropping, backend="eager", fullgraph=True)(ids, lengths, at).logits
        assert not torch.allclose(output, model(ids, lengths, at).logits, atol=1e-3)


def test_initial_weights():
    """LSTM weights are uniform in +-1/sqrt(width), everything else as in transformers; the default stream is left."""
    config = Encoder(kind="lstm", norm="pre", positions="absolute", hidden=64, layers=2, max_positions=40)
    before = torch.random.get_rng_state()
    state = MaskedLM(config, 100, generator=torch.Generator().manual_seed(1)).state_dict()
    assert torch.equal(before, torch.random.get_rng_state())
    for key, tensor in state.items():
        if "_l0" in key:
            bound = 32**-0.5
            assert tensor.abs().max() <= bound and abs(tensor.std() - bound / 3**0.5) < 0.02, key
        elif tensor.dim() == 2:
            assert abs(tensor.std() - 0.02) < 0.002, key
        else:
            assert torch.all(tensor == float(key.endswith("norm.weight"))), key


def test_parameters_of_the_papers_lstms():
    """4M, 10M, 67M and 135M of Liu et al. (2023), whose code adds a second segment and a pooler (facts of its code)."""
    for hidden, layers, millions in ((128, 4, 4.44), (256, 6, 10.49), (768, 12, 67.63), (1024, 16, 134.78)):
        config = Encoder(kind="lstm", norm="pre", positions="absolute", hidden=hidden, layers=layers)
        with torch.device("meta"):
            ours = sum(parameter.numel() for parameter in MaskedLM(config, 30528).parameters())
        theirs = ours + 2 * hidden + hidden * hidden + hidden
        assert abs(theirs / 1e6 - millions) < 0.005


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"kind": "lstm"}, "positions: 'disentangled' needs attention; an LSTM takes 'absolute' or 'none'"),
        ({"kind": "lstm", "positions": "none"}, "norm: an LSTM takes 'pre' only"),
        ({"kind": "lstm", "positions": "none", "norm": "pre", "hidden": 15}, "hidden: 15 must be even"),
        ({"positions": "relative", "relative_buckets": 9}, "relative_buckets: 9 must be even"),
        ({"positions": "relative", "relative_distance": 9}, "relative_distance: 9 must be at least 10"),
        ({"decoder": {"hidden": 10, "heads": 3}}, "decoder.hidden: 10 must be a multiple of heads"),
    ],
)
def test_values_that_do_not_fit_are_named(form, said):
    with pytest.raises(MaskLabError) as caught:
        build(form)
    assert said in str(caught.value) and "\n" not in str(caught.value)
