"""Checkpoints as Hugging Face folders, written and read without the transformers package.

`positions: disentangled` is `DebertaForMaskedLM`, `absolute` is `BertForMaskedLM`;
the weights map one to one onto the names those classes use. Only safetensors
files are read: nothing is ever unpickled.
"""

import shutil
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.files import atomic_folder, read_json, write_json
from masklab.models.encoder import EPS, MaskedLM
from masklab.tokenizers import CLS, PAD, SEP

MODEL_TYPE = {"disentangled": "deberta", "absolute": "bert"}
CLASS = {"disentangled": "DebertaForMaskedLM", "absolute": "BertForMaskedLM"}
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")

# What a Hugging Face config must say for our encoder to be the same function.
REQUIRED = {
    "disentangled": {
        "hidden_act": "gelu",
        "layer_norm_eps": EPS["disentangled"],
        "relative_attention": True,
        "pos_att_type": ["c2p", "p2c"],
        "position_biased_input": False,
        "type_vocab_size": 0,
        "legacy": True,
        "tie_word_embeddings": True,
        "talking_head": False,
    },
    "absolute": {
        "hidden_act": "gelu",
        "layer_norm_eps": EPS["absolute"],
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "tie_word_embeddings": True,
    },
}
# What transformers assumes for a key that the file leaves out, where that is not the required value.
DEFAULTS = {"relative_attention": False, "pos_att_type": None, "position_biased_input": True}
SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
# Parts of other heads, and of the tied decoder, that a file may hold and we have no use for.
UNUSED = ("cls.predictions.decoder.", "cls.seq_relationship.", "bert.pooler.", "pooler.", "embeddings.position_ids")


# --- writing ---------------------------------------------------------------


def save_checkpoint(
    model: MaskedLM, folder, *, tokenizer_folder=None, metadata: dict, keep_latent_logits: bool = False
) -> None:
    """Write `model` as a Hugging Face folder, atomically, replacing `folder`.

    Files: config.json, model.safetensors (fp32), the files of `tokenizer_folder`, masklab.json
    (`metadata`), and latent.safetensors {"weight" [K, H], "bias" [K]} when the model has a latent head.

    Args:
        keep_latent_logits: append the latent head to the token embeddings and the decoder instead
            (vocabulary V + K), the layout of the checkpoints published with Berend (2023).
    """
    with atomic_folder(folder) as temporary:
        weights = export_weights(model)
        vocab_size = model.vocab_size
        if model.latent is not None:
            latent = {"weight": model.latent.weight, "bias": model.latent.bias}
            latent = {name: _plain(tensor) for name, tensor in latent.items()}
            if keep_latent_logits:
                vocab_size += model.latent_size
                word = f"{MODEL_TYPE[model.config.positions]}.embeddings.word_embeddings.weight"
                for name, extra in ((word, "weight"), ("cls.predictions.bias", "bias")):
                    weights[name] = torch.cat([weights[name], latent[extra]])
            else:
                save_file(latent, temporary / "latent.safetensors")
        save_file(weights, temporary / "model.safetensors", metadata={"format": "pt"})
        write_json(export_config(model.config, vocab_size), temporary / "config.json")
        write_json(metadata, temporary / "masklab.json")
        if tokenizer_folder is not None:
            for name in TOKENIZER_FILES:
                shutil.copyfile(Path(tokenizer_folder) / name, temporary / name)


def export_config(config: Encoder, vocab_size: int) -> dict:
    """The config.json of the Hugging Face class of the same architecture."""
    shared = {
        "architectures": [CLASS[config.positions]],
        "model_type": MODEL_TYPE[config.positions],
        "vocab_size": vocab_size,
        "hidden_size": config.hidden,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "intermediate_size": config.ffn,
        "max_position_embeddings": config.max_positions,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout,
        "initializer_range": config.init_range,
        "pad_token_id": PAD,
        "bos_token_id": CLS,
        "eos_token_id": SEP,
    }
    if config.positions == "disentangled":
        special = {
            "max_relative_positions": config.max_positions,
            "pooler_dropout": 0.0,
            "pooler_hidden_act": "gelu",
            "pooler_hidden_size": config.hidden,
        }
    else:
        special = {"type_vocab_size": 2}
    return shared | special | REQUIRED[config.positions]


def export_weights(model: MaskedLM) -> dict[str, torch.Tensor]:
    """fp32 copies of the weights under Hugging Face names; the tied decoder and the latent head are left out."""
    state = model.state_dict()
    weights = {theirs: state[ours] for ours, theirs in _names(model.config).items()}
    if model.config.positions == "absolute":
        # both segments are the same, so that segment ids change nothing
        segment = "bert.embeddings.token_type_embeddings.weight"
        weights[segment] = weights[segment].expand(2, -1)
        for layer in range(model.config.layers):
            for kind in ("weight", "bias"):
                fused = state[f"blocks.{layer}.attention.in_proj.{kind}"]
                parts = fused.view(model.config.heads, 3, -1, *fused.shape[1:]).unbind(1)
                for part, tensor in zip(("query", "key", "value"), parts, strict=True):
                    weights[_bert_projection(layer, part, kind)] = tensor.flatten(0, 1)
    return {name: _plain(tensor) for name, tensor in weights.items()}


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", torch.float32).contiguous()


# --- reading ---------------------------------------------------------------


def load_checkpoint(folder, device="cpu") -> MaskedLM:
    """Read a folder written by `save_checkpoint` or by transformers' `save_pretrained` of the same classes.

    The model is in training mode, as any new module. Its latent head comes from latent.safetensors
    where the folder has one.

    Raises:
        MaskLabError: a file is missing or broken, or config.json describes an encoder we do not have.
    """
    folder = Path(folder)
    config, vocab_size = import_config(read_json(folder / "config.json"), folder / "config.json")
    weights = _read(folder / "model.safetensors")
    latent_file = folder / "latent.safetensors"
    latent = _read(latent_file) if latent_file.exists() else {}
    if latent and set(latent) != {"weight", "bias"}:
        raise MaskLabError(f"{latent_file}: tensors are {sorted(latent)}, allowed: bias and weight")
    with torch.device("meta"):
        model = MaskedLM(config, vocab_size, len(latent["bias"]) if latent else 0)
    state = import_weights(config, weights, folder / "model.safetensors")
    state |= {f"latent.{name}": tensor for name, tensor in latent.items()}
    for name, parameter in model.state_dict().items():
        if name in state and state[name].shape != parameter.shape:
            found, wanted = tuple(state[name].shape), tuple(parameter.shape)
            raise MaskLabError(f"{folder}: {name} has shape {found}, config.json asks for {wanted}")
    # copies: a parameter must not be a window on a file that somebody may rewrite
    state = {name: tensor.to(torch.float32, copy=True) for name, tensor in state.items()}
    model.load_state_dict(state, assign=True)
    return model.to(device)


def _read(path: Path) -> dict[str, torch.Tensor]:
    if not path.exists():
        raise MaskLabError(f"{path}: no such file (weights are read from safetensors files only)")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise MaskLabError(f"{path}: not a safetensors file ({error})") from None


def import_config(values: dict, source) -> tuple[Encoder, int]:
    """Encoder and vocabulary size of a Hugging Face config; `source` names the file in errors."""
    positions = {model_type: ours for ours, model_type in MODEL_TYPE.items()}.get(values.get("model_type"))
    if positions is None:
        allowed = " or ".join(sorted(MODEL_TYPE.values()))
        raise MaskLabError(f"{source}: model_type is {values.get('model_type')!r}, allowed: {allowed}")
    for key, allowed in REQUIRED[positions].items():
        found = values.get(key, DEFAULTS.get(key, allowed))
        if key == "pos_att_type" and found is not None:
            found = sorted(found.split("|") if isinstance(found, str) else found)
        if found != allowed:
            raise MaskLabError(f"{source}: {key} is {found!r}, allowed: {allowed!r}")
    for key in (*SIZES, "max_position_embeddings"):
        if not isinstance(values.get(key), int) or values[key] < 1:
            raise MaskLabError(f"{source}: {key} is {values.get(key)!r}, allowed: a positive integer")
    dropout = values.get("hidden_dropout_prob", 0.1)
    pairs = [("attention_probs_dropout_prob", 0.1, "hidden_dropout_prob", dropout)]
    if positions == "disentangled":
        longest = values["max_position_embeddings"]
        if values.get("max_relative_positions", -1) > 0:
            pairs.append(("max_relative_positions", -1, "max_position_embeddings", longest))
        pairs.append(("embedding_size", values["hidden_size"], "hidden_size", values["hidden_size"]))
    if not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
        raise MaskLabError(f"{source}: hidden_dropout_prob is {dropout!r}, allowed: 0 to 1")
    for key, default, other, allowed in pairs:
        if values.get(key, default) != allowed:
            raise MaskLabError(f"{source}: {key} is {values.get(key, default)!r}, allowed: {other}'s {allowed!r}")
    config = Encoder(
        positions=positions,
        layers=values["num_hidden_layers"],
        hidden=values["hidden_size"],
        heads=values["num_attention_heads"],
        intermediate=values["intermediate_size"] if values["intermediate_size"] != 4 * values["hidden_size"] else None,
        max_positions=values["max_position_embeddings"],
        dropout=dropout,
        init_range=values.get("initializer_range", 0.02),
    )
    return config, values["vocab_size"]


def import_weights(config: Encoder, weights: dict[str, torch.Tensor], source) -> dict[str, torch.Tensor]:
    """State of `MaskedLM` (without the latent head) from weights under Hugging Face names."""
    weights = dict(weights)

    def take(name):
        if name not in weights:
            raise MaskLabError(f"{source}: tensor {name} is missing")
        return weights.pop(name)

    state = {ours: take(theirs) for ours, theirs in _names(config).items()}
    if config.positions == "absolute":
        state["embeddings.segment"] = state["embeddings.segment"][:1].clone()
        for layer in range(config.layers):
            for kind in ("weight", "bias"):
                parts = [take(_bert_projection(layer, part, kind)) for part in ("query", "key", "value")]
                parts = [part.unflatten(0, (config.heads, -1)) for part in parts]
                state[f"blocks.{layer}.attention.in_proj.{kind}"] = torch.stack(parts, 1).flatten(0, 2)
    unknown = [name for name in weights if not any(part in name for part in UNUSED)]
    if unknown:
        raise MaskLabError(f"{source}: tensor {unknown[0]} has no place in {CLASS[config.positions]}")
    return state


# --- names -----------------------------------------------------------------


def _names(config: Encoder) -> dict[str, str]:
    """Our names -> Hugging Face names of all tensors that correspond one to one."""
    model = MODEL_TYPE[config.positions]
    names = {"embeddings.word": f"{model}.embeddings.word_embeddings.weight"}
    names |= _pair("embeddings.norm", f"{model}.embeddings.LayerNorm")
    if config.positions == "absolute":
        names["embeddings.position"] = f"{model}.embeddings.position_embeddings.weight"
        names["embeddings.segment"] = f"{model}.embeddings.token_type_embeddings.weight"
    else:
        names["relative"] = f"{model}.encoder.rel_embeddings.weight"
    for layer in range(config.layers):
        ours, theirs = f"blocks.{layer}", f"{model}.encoder.layer.{layer}"
        names |= _pair(f"{ours}.out", f"{theirs}.attention.output.dense")
        names |= _pair(f"{ours}.attention_norm", f"{theirs}.attention.output.LayerNorm")
        names |= _pair(f"{ours}.ffn_in", f"{theirs}.intermediate.dense")
        names |= _pair(f"{ours}.ffn_out", f"{theirs}.output.dense")
        names |= _pair(f"{ours}.ffn_norm", f"{theirs}.output.LayerNorm")
        if config.positions == "disentangled":
            for name in ("in_proj.weight", "q_bias", "v_bias", "pos_proj.weight"):
                names[f"{ours}.attention.{name}"] = f"{theirs}.attention.self.{name}"
            names |= _pair(f"{ours}.attention.pos_q_proj", f"{theirs}.attention.self.pos_q_proj")
    names |= _pair("head.dense", "cls.predictions.transform.dense")
    names |= _pair("head.norm", "cls.predictions.transform.LayerNorm")
    names["head.bias"] = "cls.predictions.bias"
    return names


def _pair(ours: str, theirs: str) -> dict[str, str]:
    return {f"{ours}.{kind}": f"{theirs}.{kind}" for kind in ("weight", "bias")}


def _bert_projection(layer: int, part: str, kind: str) -> str:
    return f"bert.encoder.layer.{layer}.attention.self.{part}.{kind}"
