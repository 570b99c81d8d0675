"""Growth leaves the function as it is, to 1e-10 in float64, and squared gradients change as is said."""

import pytest
import torch
import transformers
from test_adopt import SIZES, trained

from masklab.cli import main
from masklab.config.schema import Decoder, Encoder
from masklab.curvature.per_example import SquaredNorms, covers
from masklab.curvature.trace import sign_scores, summed_norms
from masklab.curvature.width import embedded
from masklab.errors import MaskLabError
from masklab.models.adopt import adopt
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.models.grow import grow
from masklab.tokenizers import load_tokenizer

V, T = 31, 10
SMALL = {"positions": "absolute", "layers": 2, "hidden": 12, "heads": 3, "intermediate": 20, "max_positions": 12}
DEEP = {
    "pre": {"norm": "pre"},
    "pre untied": {"norm": "pre", "tied_head": False, "embedding_norm": False},
    "no positions": {"norm": "pre", "positions": "none", "intermediate": None},
    "relative": {"norm": "pre", "positions": "relative", "relative_buckets": 8, "norm_eps": 1e-12},
    "disentangled": {"norm": "pre", "positions": "disentangled", "norm_eps": 1e-12},
}
FLAT = {
    "bert": {},
    "linear head": {"head": "linear"},
    "linear untied": {"head": "linear", "tied_head": False},
    "deberta": {"positions": "disentangled", "norm_eps": 1e-12},
    "lstm": {"kind": "lstm", "norm": "pre"},
    "lstm untied": {"kind": "lstm", "norm": "pre", "tied_head": False, "embedding_norm": False},
}


def build(latent=0, **switches):
    """A float64 model in eval mode whose every tensor is random."""
    torch.manual_seed(1)  # draws the initial weights
    model = MaskedLM(Encoder(**(SMALL | switches)), V, latent).double().eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64), alpha=0.5)
    return model


def batch():
    lengths = torch.tensor([T, 6, 8])
    ids = torch.randint(5, V, (3, T), generator=torch.Generator().manual_seed(2))
    return ids.masked_fill(torch.arange(T) >= lengths[:, None], 0), lengths


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("switches", (DEEP | FLAT).values(), ids=DEEP | FLAT)
@torch.no_grad()
def test_width_leaves_the_logits(switches, width):
    model, inputs = build(latent=7, **switches), batch()
    grown = grow(model, width)
    assert (grown.config.hidden, grown.config.heads, grown.config.ffn) == (
        12 * width, 3 * width, width * model.config.ffn
    )  # fmt: skip
    before, after = model(*inputs), grown(*inputs)
    assert before.logits.std() > 1 and before.latent.std() > 0.5
    torch.testing.assert_close(after.logits, before.logits, rtol=0, atol=1e-10)
    torch.testing.assert_close(after.latent, before.latent, rtol=0, atol=1e-10)
    hidden = grown.encode(*inputs, at=torch.arange(5)).view(5, 12, width)
    torch.testing.assert_close(hidden, model.encode(*inputs, at=torch.arange(5))[:, :, None].expand(-1, -1, width))


@pytest.mark.parametrize("switches", DEEP.values(), ids=DEEP)
@torch.no_grad()
def test_depth_leaves_the_logits(switches):
    model, inputs = build(**switches), batch()
    for width, layers in ((1, 5), (2, 3)):
        grown = grow(model, width, layers)
        assert len(grown.blocks) == layers and not grown.training
        torch.testing.assert_close(grown(*inputs).logits, model(*inputs).logits, rtol=0, atol=1e-10)


def test_a_larger_epsilon_costs_no_more_than_is_said():
    model, inputs = build(positions="disentangled"), batch()  # 1e-7
    difference = (grow(model, 2)(*inputs).logits - model(*inputs).logits).abs().max()
    assert 1e-9 < difference < 1e-5


@pytest.mark.parametrize(
    ("switches", "width", "layers", "said"),
    [
        ({}, 1, 3, "norm: post normalises after each sum"),
        ({"kind": "lstm", "norm": "pre"}, 1, 3, "an LSTM normalises after each sum"),
        ({"norm": "pre", "embedding_norm": False}, 2, None, "needs embedding_norm"),
        ({"norm_eps": 1e-5}, 2, None, "norm_eps is 1e-05"),
        ({"norm": "pre"}, 1.5, None, "must be an integer"),
        ({"norm": "pre"}, 1, 1, "at least the model's 2"),
        ({"decoder": Decoder(layers=1)}, 2, None, "decoder does not grow"),
    ],
)
def test_growth_that_changes_the_function_is_refused(switches, width, layers, said):
    with pytest.raises(MaskLabError, match=said):
        grow(build(**switches), width, layers)


def test_a_layer_of_zeros_under_post_norm_would_change_the_function():
    """What the refusal keeps from happening."""
    model, inputs = build(), batch()
    deeper = MaskedLM(model.config.model_copy(update={"layers": 3}), V).double().eval()
    for name, value in deeper.named_parameters():
        with torch.no_grad():
            value.copy_(model.state_dict().get(name, torch.full_like(value, float(name.endswith("norm.weight")))))
    assert (deeper(*inputs).logits - model(*inputs).logits).abs().max() > 0.1


@pytest.mark.parametrize("switches", (DEEP | FLAT).values(), ids=DEEP | FLAT)
def test_squared_gradients_grow_as_the_embedded_trace_says(switches):
    """Measured on the grown model, to 1e-8 of what `embedded` makes of the small one's."""
    model, (ids, lengths) = build(**switches), batch()
    at = torch.arange(3) * T + 2
    signs = torch.randn(3, V, generator=torch.Generator().manual_seed(3)).sign().double()

    def measured(model):
        if not covers(model):
            return summed_norms(model, ids, lengths, at, signs)
        with SquaredNorms(model) as norms:
            return norms(ids, lengths, at, lambda logits: [sign_scores(logits, signs)])[0]

    for width in (2, 3):
        wanted = embedded(measured(model), width)
        torch.testing.assert_close(measured(grow(model, width)).sum(-1), wanted, rtol=1e-8, atol=0)


def test_folders_grow_from_the_command_line(tmp_path, capsys):
    model, (ids, lengths) = build(norm="pre").float(), batch()
    save_checkpoint(model, tmp_path / "small", metadata={"model": "m", "config": {"encoder": {}}})
    arguments = ["grow", str(tmp_path / "small"), "--width", "2", "--layers", "4", "--output"]
    assert main([*arguments, str(tmp_path / "large")]) == 0
    grown = load_checkpoint(tmp_path / "large").eval()
    assert (grown.config.hidden, grown.config.layers) == (24, 4)
    torch.testing.assert_close(grown(ids, lengths).logits, model(ids, lengths).logits, rtol=1e-4, atol=1e-4)
    assert main([*arguments, str(tmp_path / "small")]) == 1 and "small: exists" in capsys.readouterr().err
    arguments[3] = "0"
    assert main([*arguments, str(tmp_path / "larger")]) == 1
    assert "masklab: grow: width: 0 must be an integer of at least 1" in capsys.readouterr().err


@torch.no_grad()
def test_one_made_elsewhere_keeps_its_tokenizer(tmp_path):
    """Under our numbers, whether it was adopted before or is as transformers wrote it."""
    tokenizer = trained("word pieces", ["the old cat sees a dog today"] * 9)
    config = transformers.BertConfig(vocab_size=len(tokenizer), initializer_range=0.3, **SIZES)
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "bert")
    tokenizer.save_pretrained(tmp_path / "bert")
    adopt(tmp_path / "bert", tmp_path / "adopted")
    before = load_checkpoint(tmp_path / "adopted").eval()
    ids = torch.tensor([load_tokenizer(tmp_path / "adopted").encode("the cat [MASK] a dog").ids])
    for name in ("bert", "adopted"):
        grown = tmp_path / f"{name}-grown"
        assert main(["grow", str(tmp_path / name), "--width", "2", "--output", str(grown)]) == 0
        assert load_tokenizer(grown).encode("the cat [MASK] a dog").ids == ids[0].tolist()
        lengths, after = torch.tensor([ids.shape[1]]), load_checkpoint(grown).eval()
        torch.testing.assert_close(after(ids, lengths).logits, before(ids, lengths).logits, atol=1e-4, rtol=1e-4)
        assert after.config.hidden == 32
