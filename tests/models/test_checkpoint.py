"""Folders go both ways between us and transformers."""

import json
import logging

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    BertForMaskedLM,
    DebertaForMaskedLM,
    EsmForMaskedLM,
    RobertaPreLayerNormForMaskedLM,
)

from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM

V = 41
PRE = {"positions": "absolute", "norm": "pre"}
UNTIED = {"tied_head": False}
CASES = {
    "deberta": {"positions": "disentangled"},
    "bert": {"positions": "absolute"},
    "roberta-prelayernorm": PRE,
    "esm": PRE | {"embedding_norm": False},
    "masklab": {"positions": "relative", "norm": "pre"},
}
CASES |= {f"{name}-untied": case | UNTIED for name, case in CASES.items()}
CLASSES = {
    "deberta": "DebertaForMaskedLM",
    "bert": "BertForMaskedLM",
    "roberta-prelayernorm": "RobertaPreLayerNormForMaskedLM",
    "esm": "EsmForMaskedLM",
    "masklab": "MaskLabForMaskedLM",
}


@pytest.fixture(params=CASES)
def case(request):
    return request.param


def build(case, latent=0, **overrides):
    sizes = {"layers": 2, "hidden": 16, "heads": 2, "max_positions": 12, "dropout": 0.2, "init_range": 0.03}
    model = MaskedLM(Encoder(**sizes | CASES[case] | overrides), V, latent, torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
    return model.eval()


IDS = torch.randint(5, V, (3, 8), generator=torch.Generator().manual_seed(0))
LENGTHS = torch.tensor([8, 4, 6])
REAL = torch.arange(8) < LENGTHS[:, None]
IDS[~REAL] = 3


def our_logits(model):
    return model(IDS, LENGTHS).logits.view(3, 8, -1)[REAL]


def their_logits(model):
    return model.eval()(IDS, attention_mask=REAL.long()).logits[REAL]


@torch.no_grad()
def test_ours_to_transformers(case, tmp_path, caplog):
    model = build(case, latent=5)
    save_checkpoint(model, tmp_path / "m", metadata={"step": 3})
    for name in ("transformers", "transformers.modeling_utils"):
        logging.getLogger(name).propagate = True
    with caplog.at_level(logging.WARNING):
        theirs, info = AutoModelForMaskedLM.from_pretrained(
            tmp_path / "m", output_loading_info=True, trust_remote_code=True
        )
    assert not any(info.values()), info
    assert not caplog.records, caplog.text
    assert type(theirs).__name__ == CLASSES[case.removesuffix("-untied")]
    assert theirs.dtype == torch.float32
    torch.testing.assert_close(our_logits(model), their_logits(theirs), atol=1e-5, rtol=1e-5)
    config = theirs.config
    special = (config.vocab_size, config.pad_token_id, config.bos_token_id, config.eos_token_id)
    assert special == (V, 3, 0, 1)
    assert json.loads((tmp_path / "m" / "masklab.json").read_text()) == {"step": 3}


FOREIGN = {
    "deberta": (DebertaForMaskedLM, {"relative_attention": True, "position_biased_input": False,
                                     "pos_att_type": "c2p|p2c"}),
    "bert": (BertForMaskedLM, {"layer_norm_eps": 1e-3}),
    "roberta-prelayernorm": (RobertaPreLayerNormForMaskedLM, {"attention_probs_dropout_prob": 0.0}),
    "esm": (EsmForMaskedLM, {"emb_layer_norm_before": False}),
    "esm-normed": (EsmForMaskedLM, {"emb_layer_norm_before": True}),
}  # fmt: skip


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("name", FOREIGN)
@torch.no_grad()
def test_transformers_to_ours(name, tied, tmp_path):
    """transformers' own files, with another <pad>, other epsilons and dropouts; and back again as our export."""
    cls, special = FOREIGN[name]
    shared = {"vocab_size": V, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    shared |= {"intermediate_size": 20, "max_position_embeddings": 12, "pad_token_id": 1, "tie_word_embeddings": tied}
    theirs = cls(cls.config_class(**shared, **special))
    torch.manual_seed(4)
    for parameter in theirs.parameters():
        parameter.add_(torch.randn_like(parameter), alpha=0.2)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = load_checkpoint(tmp_path / "theirs").eval()
    assert ours.config.ffn == 20 and ours.latent_size == 0 and ours.config.tied_head == tied
    truth = theirs.eval()(IDS.masked_fill(~REAL, 1), attention_mask=REAL.long()).logits[REAL]
    torch.testing.assert_close(our_logits(ours), truth, atol=1e-5, rtol=1e-5)
    save_checkpoint(ours, tmp_path / "ours", metadata={})
    again = AutoModelForMaskedLM.from_pretrained(tmp_path / "ours")
    torch.testing.assert_close(their_logits(again), truth, atol=1e-5, rtol=1e-5)
    assert again.config.layer_norm_eps == theirs.config.layer_norm_eps
    assert again.config.attention_probs_dropout_prob == theirs.config.attention_probs_dropout_prob


def test_round_trip_is_exact(case, tmp_path):
    model = build(case, latent=5)
    save_checkpoint(model, tmp_path / "a", metadata={})
    again = load_checkpoint(tmp_path / "a")
    assert again.config == model.config and again.vocab_size == V and again.latent_size == 5
    state, loaded = model.state_dict(), again.state_dict()
    assert state.keys() == loaded.keys()
    assert all(torch.equal(state[name], loaded[name]) for name in state)
    assert all(parameter.requires_grad for parameter in again.parameters())
    save_checkpoint(again, tmp_path / "b", metadata={})
    for name in ("config.json", "model.safetensors", "latent.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    latent = load_file(tmp_path / "a" / "latent.safetensors")
    assert {name: tensor.shape for name, tensor in latent.items()} == {"weight": (5, 16), "bias": (5,)}


@torch.no_grad()
def test_keep_latent_logits(case, tmp_path):
    model = build(case, latent=5)
    save_checkpoint(model, tmp_path / "m", metadata={}, keep_latent_logits=True)
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path / "m", trust_remote_code=True)
    output = model(IDS, LENGTHS)
    both = torch.cat([output.logits, output.latent], -1).view(3, 8, V + 5)[REAL]
    torch.testing.assert_close(their_logits(theirs), both, atol=1e-5, rtol=1e-5)
    ours = load_checkpoint(tmp_path / "m").eval()
    assert (ours.vocab_size, ours.latent_size) == (V + 5, 0)
    torch.testing.assert_close(our_logits(ours), both, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("case", ["deberta", "bert"])
@torch.no_grad()
def test_sequence_classification(case, tmp_path):
    model = build(case)
    save_checkpoint(model, tmp_path / "m", metadata={})
    theirs, info = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "m", num_labels=2, output_loading_info=True
    )
    assert {name.split(".")[-3 if "bert.pooler" in name else -2] for name in info["missing_keys"]} <= {
        "dense",
        "pooler",
        "classifier",
    }
    assert all("pooler" in name or "classifier" in name for name in info["missing_keys"])
    segments = torch.arange(8).expand(3, 8).ge(4).long()
    hidden = getattr(theirs.eval(), theirs.base_model_prefix)(
        IDS, attention_mask=REAL.long(), token_type_ids=segments
    ).last_hidden_state
    torch.testing.assert_close(hidden[REAL], model.encode(IDS, LENGTHS)[REAL], atol=1e-5, rtol=1e-5)
    assert theirs(IDS).logits.shape == (3, 2)


def test_tokenizer_files_are_copied_and_folder_replaced(tmp_path):
    source = tmp_path / "tokenizer"
    source.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (source / name).write_text(name)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "stale").write_text("")
    save_checkpoint(build("bert"), tmp_path / "m", tokenizer_folder=source, metadata={})
    assert {path.name for path in (tmp_path / "m").iterdir()} == {
        "config.json",
        "masklab.json",
        "model.safetensors",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert (tmp_path / "m" / "tokenizer.json").read_text() == "tokenizer.json"


@pytest.mark.parametrize(
    ("case", "change", "message"),
    [
        ("deberta", {"model_type": "roberta"}, "model_type is 'roberta', allowed: bert, deberta, esm, masklab, rob"),
        ("deberta", {"pos_att_type": ["c2p"]}, r"pos_att_type is \['c2p'\], allowed: \['c2p', 'p2c'\]"),
        ("deberta", {"model_type": ["bert"]}, r"model_type is \['bert'\], allowed: bert, deberta"),
        ("deberta", {"pos_att_type": 5}, r"pos_att_type is 5, allowed: \['c2p', 'p2c'\]"),
        ("deberta", {"pos_att_type": ["c2p", 2]}, r"pos_att_type is \[2, 'c2p'\], allowed: \['c2p', 'p2c'\]"),
        ("deberta", {"max_relative_positions": "x"}, "max_relative_positions is 'x', allowed: .* 12"),
        ("deberta", {"relative_attention": None}, "relative_attention is None, allowed: True"),
        ("deberta", {"position_biased_input": True}, "position_biased_input is True, allowed: False"),
        ("deberta", {"legacy": False}, "legacy is False, allowed: True"),
        ("deberta", {"max_relative_positions": 6}, "max_relative_positions is 6, allowed: .* 12"),
        ("bert", {"attention_probs_dropout_prob": 2}, "attention_probs_dropout_prob is 2, allowed: 0 to 1"),
        ("bert", {"hidden_act": "relu"}, "hidden_act is 'relu', allowed: 'gelu'"),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ("bert", {"vocab_size": "x"}, "vocab_size is 'x', allowed: a positive integer"),
        ("bert", {"num_hidden_layers": 0}, "num_hidden_layers is 0, allowed: a positive integer"),
        ("bert", {"hidden_dropout_prob": "x"}, "hidden_dropout_prob is 'x', allowed: 0 to 1"),
        ("bert", {"layer_norm_eps": 0}, "layer_norm_eps is 0, allowed: above 0"),
        ("bert", {"vocab_size": 40}, r"embeddings.word has shape \(41, 16\), config.json asks for \(40, 16\)"),
        ("bert", {"num_hidden_layers": 3}, "tensor bert.encoder.layer.2.attention.output.dense.weight is missing"),
        ("bert", {"num_hidden_layers": 1}, "tensor bert.encoder.layer.1.* has no place in BertForMaskedLM"),
        ("bert", {"num_attention_heads": 3}, r"hidden: 16 must be a multiple of heads \(3\)"),
        ("esm", {"token_dropout": True}, "token_dropout is True, allowed: False"),
        ("esm", {"position_embedding_type": "rotary"}, "position_embedding_type is 'rotary', allowed: 'absolute'"),
        ("esm", {"max_position_embeddings": 4}, "max_positions is 0: "),
        ("masklab", {"positions": "rotary"}, "positions is 'rotary': "),
        ("masklab", {"relative_buckets": 7}, "relative_buckets: 7 must be even"),
        ("masklab", {"kind": "lstm"}, "positions: 'relative' needs attention"),
    ],
)
def test_unsupported_folders_are_named_in_one_line(case, change, message, tmp_path):
    save_checkpoint(build(case), tmp_path / "m", metadata={})
    path = tmp_path / "m" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(MaskLabError, match=message) as error:
        load_checkpoint(tmp_path / "m")
    assert "\n" not in str(error.value)


def test_broken_files(tmp_path):
    with pytest.raises(MaskLabError, match=r"config.json: no such file"):
        load_checkpoint(tmp_path)
    save_checkpoint(build("bert"), tmp_path / "m", metadata={})
    weights = tmp_path / "m" / "model.safetensors"
    tensors = {name: tensor.half() for name, tensor in load_file(weights).items()}
    weights.write_bytes(b"no tensors")
    with pytest.raises(MaskLabError, match="not a safetensors file"):
        load_checkpoint(tmp_path / "m")
    weights.unlink()
    (tmp_path / "m" / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(MaskLabError, match=r"safetensors files only\)$"):
        load_checkpoint(tmp_path / "m")
    (tmp_path / "manifest.json").write_text("{}")  # of a run: Snakemake will not miss the weights
    with pytest.raises(MaskLabError, match=rf"only\); remove {tmp_path} and run again, which makes it anew$"):
        load_checkpoint(tmp_path / "m")
    save_file(tensors, weights)
    save_file({"weight": torch.zeros(2, 16)}, tmp_path / "m" / "latent.safetensors")
    with pytest.raises(MaskLabError, match=r"tensors are \['weight'\], allowed: bias and weight"):
        load_checkpoint(tmp_path / "m")
    (tmp_path / "m" / "latent.safetensors").unlink()
    assert load_checkpoint(tmp_path / "m").embeddings.word.dtype == torch.float32
