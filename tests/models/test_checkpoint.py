"""Folders go both ways between us and transformers."""

import json
import logging

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForMaskedLM,
    DebertaConfig,
    DebertaForMaskedLM,
)

from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM

V = 41
POSITIONS = ["disentangled", "absolute"]


def build(positions, latent=0):
    config = Encoder(positions=positions, layers=2, hidden=16, heads=2, max_positions=12, dropout=0.2, init_range=0.03)
    model = MaskedLM(config, V, latent, torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
    return model.eval()


IDS = torch.randint(5, V, (3, 8), generator=torch.Generator().manual_seed(0))
LENGTHS = torch.tensor([8, 4, 6])
REAL = torch.arange(8) < LENGTHS[:, None]


def our_logits(model):
    return model(IDS, LENGTHS).logits.view(3, 8, -1)[REAL]


def their_logits(model):
    return model.eval()(IDS, attention_mask=REAL.long()).logits[REAL]


@pytest.mark.parametrize("positions", POSITIONS)
@torch.no_grad()
def test_ours_to_transformers(positions, tmp_path, caplog):
    model = build(positions, latent=5)
    save_checkpoint(model, tmp_path / "m", metadata={"step": 3})
    for name in ("transformers", "transformers.modeling_utils"):
        logging.getLogger(name).propagate = True
    with caplog.at_level(logging.WARNING):
        theirs, info = AutoModelForMaskedLM.from_pretrained(tmp_path / "m", output_loading_info=True)
    assert not any(info.values()), info
    assert not caplog.records, caplog.text
    assert type(theirs).__name__ == {"disentangled": "DebertaForMaskedLM", "absolute": "BertForMaskedLM"}[positions]
    assert theirs.dtype == torch.float32
    torch.testing.assert_close(our_logits(model), their_logits(theirs), atol=1e-5, rtol=1e-5)
    config = theirs.config
    special = (config.vocab_size, config.pad_token_id, config.bos_token_id, config.eos_token_id)
    assert special == (V, 3, 0, 1)
    assert json.loads((tmp_path / "m" / "masklab.json").read_text()) == {"step": 3}


def hf_config(positions):
    shared = {"vocab_size": V, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    shared |= {"intermediate_size": 20, "max_position_embeddings": 12, "pad_token_id": 3}
    if positions == "absolute":
        return BertConfig(**shared)
    switches = {"relative_attention": True, "position_biased_input": False, "pos_att_type": "c2p|p2c"}
    return DebertaConfig(**shared, **switches)


@pytest.mark.parametrize("positions", POSITIONS)
@torch.no_grad()
def test_transformers_to_ours(positions, tmp_path):
    theirs = {"disentangled": DebertaForMaskedLM, "absolute": BertForMaskedLM}[positions](hf_config(positions))
    torch.manual_seed(4)
    for parameter in theirs.parameters():
        parameter.add_(torch.randn_like(parameter), alpha=0.2)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = load_checkpoint(tmp_path / "theirs").eval()
    assert ours.config.positions == positions and ours.config.ffn == 20 and ours.latent_size == 0
    torch.testing.assert_close(our_logits(ours), their_logits(theirs), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("positions", POSITIONS)
def test_round_trip_is_exact(positions, tmp_path):
    model = build(positions, latent=5)
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


@pytest.mark.parametrize("positions", POSITIONS)
@torch.no_grad()
def test_keep_latent_logits(positions, tmp_path):
    model = build(positions, latent=5)
    save_checkpoint(model, tmp_path / "m", metadata={}, keep_latent_logits=True)
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path / "m")
    output = model(IDS, LENGTHS)
    both = torch.cat([output.logits, output.latent], -1).view(3, 8, V + 5)[REAL]
    torch.testing.assert_close(their_logits(theirs), both, atol=1e-5, rtol=1e-5)
    ours = load_checkpoint(tmp_path / "m").eval()
    assert (ours.vocab_size, ours.latent_size) == (V + 5, 0)
    torch.testing.assert_close(our_logits(ours), both, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("positions", POSITIONS)
@torch.no_grad()
def test_sequence_classification(positions, tmp_path):
    model = build(positions)
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
    save_checkpoint(build("absolute"), tmp_path / "m", tokenizer_folder=source, metadata={})
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
    ("positions", "change", "message"),
    [
        ("disentangled", {"model_type": "roberta"}, "model_type is 'roberta', allowed: bert or deberta"),
        ("disentangled", {"pos_att_type": ["c2p"]}, r"pos_att_type is \['c2p'\], allowed: \['c2p', 'p2c'\]"),
        ("disentangled", {"relative_attention": None}, "relative_attention is None, allowed: True"),
        ("disentangled", {"position_biased_input": True}, "position_biased_input is True, allowed: False"),
        ("disentangled", {"legacy": False}, "legacy is False, allowed: True"),
        ("disentangled", {"max_relative_positions": 6}, "max_relative_positions is 6, allowed: .* 12"),
        ("disentangled", {"attention_probs_dropout_prob": 0}, "attention_probs_dropout_prob is 0, allowed: .* 0.2"),
        ("absolute", {"hidden_act": "relu"}, "hidden_act is 'relu', allowed: 'gelu'"),
        ("absolute", {"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ("absolute", {"vocab_size": "x"}, "vocab_size is 'x', allowed: a positive integer"),
        ("absolute", {"num_hidden_layers": 0}, "num_hidden_layers is 0, allowed: a positive integer"),
        ("absolute", {"hidden_dropout_prob": "x"}, "hidden_dropout_prob is 'x', allowed: 0 to 1"),
        ("absolute", {"vocab_size": 40}, r"embeddings.word has shape \(41, 16\), config.json asks for \(40, 16\)"),
        ("absolute", {"num_hidden_layers": 3}, "tensor bert.encoder.layer.2.attention.output.dense.weight is missing"),
        ("absolute", {"num_hidden_layers": 1}, "tensor bert.encoder.layer.1.* has no place in BertForMaskedLM"),
        ("absolute", {"num_attention_heads": 3}, "hidden 16 is not a multiple of heads 3"),
    ],
)
def test_unsupported_folders_are_named_in_one_line(positions, change, message, tmp_path):
    save_checkpoint(build(positions), tmp_path / "m", metadata={})
    path = tmp_path / "m" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(MaskLabError, match=message) as error:
        load_checkpoint(tmp_path / "m")
    assert "\n" not in str(error.value)


def test_broken_files(tmp_path):
    with pytest.raises(MaskLabError, match=r"config.json: no such file"):
        load_checkpoint(tmp_path)
    save_checkpoint(build("absolute"), tmp_path / "m", metadata={})
    weights = tmp_path / "m" / "model.safetensors"
    tensors = {name: tensor.half() for name, tensor in load_file(weights).items()}
    weights.write_bytes(b"no tensors")
    with pytest.raises(MaskLabError, match="not a safetensors file"):
        load_checkpoint(tmp_path / "m")
    weights.unlink()
    (tmp_path / "m" / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(MaskLabError, match="safetensors files only"):
        load_checkpoint(tmp_path / "m")
    save_file(tensors, weights)
    save_file({"weight": torch.zeros(2, 16)}, tmp_path / "m" / "latent.safetensors")
    with pytest.raises(MaskLabError, match=r"tensors are \['weight'\], allowed: bias and weight"):
        load_checkpoint(tmp_path / "m")
    (tmp_path / "m" / "latent.safetensors").unlink()
    assert load_checkpoint(tmp_path / "m").embeddings.word.dtype == torch.float32
