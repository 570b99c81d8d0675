"""Our encoder under the names of Hugging Face classes: which class, its config.json, its weights.

    positions     norm  embedding_norm   class
    disentangled  post  yes              DebertaForMaskedLM
    absolute      post  yes              BertForMaskedLM
    absolute      pre   yes              RobertaPreLayerNormForMaskedLM
    absolute      pre   no               EsmForMaskedLM
    anything else, and every LSTM        MaskLabForMaskedLM (modeling_masklab.py, copied into the folder)

The weights map one to one, but for query, key and value, which we hold as one
matrix; for embeddings of a segment, which only our BERT form has: other classes
are given zeros, and an imported one is added to the positions; and for the rows
that RoBERTa and ESM keep free before the first position.
"""

import torch
from pydantic import ValidationError

from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.models.encoder import MaskedLM
from masklab.tokenizers import CLS, MASK, PAD, SEP

CLASS = {
    "bert": "BertForMaskedLM",
    "deberta": "DebertaForMaskedLM",
    "esm": "EsmForMaskedLM",
    "masklab": "MaskLabForMaskedLM",
    "roberta-prelayernorm": "RobertaPreLayerNormForMaskedLM",
}
# What a Hugging Face config must say for our encoder to be the same function.
REQUIRED = {
    "bert": {"hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False},
    "deberta": {
        "hidden_act": "gelu",
        "relative_attention": True,
        "pos_att_type": ["c2p", "p2c"],
        "position_biased_input": False,
        "type_vocab_size": 0,
        "legacy": True,
        "talking_head": False,
    },
    "esm": {
        "position_embedding_type": "absolute",
        "token_dropout": False,
        "is_folding_model": False,
        "is_decoder": False,
    },
    "masklab": {},
    "roberta-prelayernorm": {"hidden_act": "gelu", "is_decoder": False, "add_cross_attention": False},
}
# What transformers assumes for a key that the file leaves out, where that is not the required value.
DEFAULTS = {"relative_attention": False, "pos_att_type": None, "position_biased_input": True}
EPS = {"deberta": 1e-7}  # of a file that does not say; else 1e-12
SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
# Parts of other heads, and of a tied decoder, that a file may hold and we have no use for.
UNUSED = (
    "predictions.decoder.",
    "lm_head.decoder.",
    "cls.seq_relationship.",
    "pooler.",
    "embeddings.position_ids",
    "esm.contact_head.",
    "rotary_embeddings.",
)
SWITCHES = ("kind", "positions", "absolute", "relative_buckets", "relative_distance", "norm", "embedding_norm")
# The output matrix's own bias, which equals the head's.
TWIN = {
    "bert": "cls.predictions.decoder.bias",
    "deberta": "cls.predictions.decoder.bias",
    "roberta-prelayernorm": "lm_head.decoder.bias",
}
# Layer norms of a layer, after its prefix: of attention, of the feed-forward.
NORMS = {
    "bert": ("attention.output.LayerNorm", "output.LayerNorm"),
    "deberta": ("attention.output.LayerNorm", "output.LayerNorm"),
    "esm": ("attention.LayerNorm", "LayerNorm"),
    "roberta-prelayernorm": ("attention.LayerNorm", "intermediate.LayerNorm"),
}


def model_type(config: Encoder) -> str:
    """`model_type` of the class that computes what `config` does; a decoder is no part of it."""
    if config.kind == "transformer" and config.norm == "post" and config.embedding_norm:
        return {"disentangled": "deberta", "absolute": "bert"}.get(config.positions, "masklab")
    if config.kind == "transformer" and config.norm == "pre" and config.positions == "absolute":
        return "roberta-prelayernorm" if config.embedding_norm else "esm"
    return "masklab"


# --- config.json -------------------------------------------------------------


def export_config(config: Encoder, vocab_size: int) -> dict:
    """The config.json of the Hugging Face class of the same architecture."""
    kind = model_type(config)
    dropout = config.dropout if config.attention_dropout is None else config.attention_dropout
    values = {
        "architectures": [CLASS[kind]],
        "model_type": kind,
        "vocab_size": vocab_size,
        "hidden_size": config.hidden,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "intermediate_size": config.ffn,
        "max_position_embeddings": config.max_positions + _first_position(kind, PAD),
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": dropout,
        "initializer_range": config.init_range,
        "layer_norm_eps": config.eps,
        "tie_word_embeddings": config.tied_head,
        "pad_token_id": PAD,
        "bos_token_id": CLS,
        "eos_token_id": SEP,
    } | REQUIRED[kind]
    if kind == "deberta":
        values |= {"max_relative_positions": config.max_positions, "pooler_dropout": 0.0, "pooler_hidden_act": "gelu",
                   "pooler_hidden_size": config.hidden}  # fmt: skip
    elif kind == "masklab":
        names = {"AutoConfig": "Config", "AutoModel": "Model", "AutoModelForMaskedLM": "ForMaskedLM"}
        values["auto_map"] = {auto: f"modeling_masklab.MaskLab{name}" for auto, name in names.items()}
        values |= {key: getattr(config, key) for key in SWITCHES}
    elif kind == "esm":
        values |= {"emb_layer_norm_before": False, "mask_token_id": MASK}
    else:
        values["type_vocab_size"] = 2
    return values


def import_config(values: dict, source) -> tuple[Encoder, int]:
    """Encoder and vocabulary size of a Hugging Face config; `source` names the file in errors."""
    kind = values.get("model_type")
    if kind not in CLASS:
        raise MaskLabError(f"{source}: model_type is {kind!r}, allowed: {', '.join(CLASS)}")
    for key, allowed in REQUIRED[kind].items():
        found = values.get(key, DEFAULTS.get(key, allowed))
        if key == "pos_att_type" and found is not None:
            found = sorted(found.split("|") if isinstance(found, str) else found)
        if found != allowed:
            raise MaskLabError(f"{source}: {key} is {found!r}, allowed: {allowed!r}")
    for key in (*SIZES, "max_position_embeddings"):
        if type(values.get(key)) is not int or values[key] < 1:
            raise MaskLabError(f"{source}: {key} is {values.get(key)!r}, allowed: a positive integer")
    if kind == "deberta":
        longest, width = values["max_position_embeddings"], values["hidden_size"]
        pairs = [("embedding_size", width, "hidden_size", width)]
        if values.get("max_relative_positions", -1) > 0:
            pairs.append(("max_relative_positions", -1, "max_position_embeddings", longest))
        for key, default, other, allowed in pairs:
            if values.get(key, default) != allowed:
                raise MaskLabError(f"{source}: {key} is {values.get(key, default)!r}, allowed: {other}'s {allowed!r}")
    numbers = {}
    for key, default, allowed in (
        ("hidden_dropout_prob", 0.1, "0 to 1"),
        ("attention_probs_dropout_prob", 0.1, "0 to 1"),
        ("layer_norm_eps", EPS.get(kind, 1e-12), "above 0"),
    ):
        found = numbers[key] = values.get(key, default)
        if type(found) not in (int, float) or not 0 <= found <= 1 or (found == 0 and allowed != "0 to 1"):
            raise MaskLabError(f"{source}: {key} is {found!r}, allowed: {allowed}")
    dropout, attention_dropout, eps = numbers.values()
    if kind == "masklab":
        if missing := [key for key in SWITCHES if key not in values]:
            raise MaskLabError(f"{source}: {missing[0]} is missing")
        switches = {key: values[key] for key in SWITCHES}
    else:
        pre = kind in ("esm", "roberta-prelayernorm")
        before = kind != "esm" or bool(values.get("emb_layer_norm_before"))
        switches = {"positions": "disentangled" if kind == "deberta" else "absolute",
                    "norm": "pre" if pre else "post", "embedding_norm": before}  # fmt: skip
    wide = values["intermediate_size"]
    switches |= {
        "tied_head": values.get("tie_word_embeddings", True),
        "layers": values["num_hidden_layers"],
        "hidden": values["hidden_size"],
        "heads": values["num_attention_heads"],
        "intermediate": None if wide == 4 * values["hidden_size"] else wide,
        "max_positions": values["max_position_embeddings"] - _first_position(kind, pad_id(values)),
        "dropout": dropout,
        "attention_dropout": None if attention_dropout == dropout else attention_dropout,
        "init_range": values.get("initializer_range", 0.02),
    }
    try:
        config = Encoder(**switches)
    except ValidationError as error:
        first = error.errors()[0]
        raise MaskLabError(f"{source}: {first['loc'][0]} is {first['input']!r}: {first['msg']}") from None
    if problem := config.problem():
        raise MaskLabError(f"{source}: {problem}")
    return config if eps == config.eps else config.model_copy(update={"norm_eps": eps}), values["vocab_size"]


def pad_id(values: dict) -> int:
    """Padding token of a config.json; RoBERTa's and ESM's positions count from the next number."""
    found = values.get("pad_token_id", 1)
    return found if type(found) is int else 1


def _first_position(kind: str, pad: int) -> int:
    return pad + 1 if kind in ("esm", "roberta-prelayernorm") else 0


# --- weights -----------------------------------------------------------------


def export_weights(model: MaskedLM) -> dict[str, torch.Tensor]:
    """fp32 copies of the weights under Hugging Face names; a tied output matrix and the latent head are left out.

    A decoder is left out too. Where its width is not the encoder's, its head fits the encoder's states no more:
    the head written is then the identity, gelu, and layer norm.
    """
    config, state, kind = model.config, model.state_dict(), model_type(model.config)
    if model.head.project is not None:
        plain = state["embeddings.word"].new_zeros(config.hidden)
        state |= {"head.dense.weight": torch.eye(config.hidden), "head.dense.bias": plain}
        state |= {"head.norm.weight": plain + 1, "head.norm.bias": plain.clone()}
    weights = {theirs: state[ours] for ours, theirs in _names(config).items()}
    if kind in ("bert", "roberta-prelayernorm"):
        # both segments are the same, so that segment ids change nothing
        base = kind.replace("-", "_")
        segment = state.get("embeddings.segment", state["embeddings.word"].new_zeros(1, config.hidden))
        weights[f"{base}.embeddings.token_type_embeddings.weight"] = segment.expand(2, -1)
    if first := _first_position(kind, PAD):
        name = _names(config)["embeddings.position"]
        weights[name] = torch.cat([weights[name].new_zeros(first, config.hidden), weights[name]])
    if kind == "esm":
        weights["esm.contact_head.regression.weight"] = torch.zeros(1, config.layers * config.heads)
        weights["esm.contact_head.regression.bias"] = torch.zeros(1)
    for ours, theirs in _split(config):
        parts = state[ours].unflatten(0, (config.heads, 3, -1)).unbind(1)
        weights |= {name: part.flatten(0, 1) for name, part in zip(theirs, parts, strict=True)}
    if kind in TWIN and not config.tied_head:
        weights[TWIN[kind]] = state["head.bias"].clone()
    return {name: plain_copy(tensor) for name, tensor in weights.items()}


def plain_copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", torch.float32).contiguous()


def import_weights(config: Encoder, weights: dict[str, torch.Tensor], source, values: dict) -> dict[str, torch.Tensor]:
    """State of `MaskedLM` (without the latent head) from weights under the names of the class of `values`."""
    kind = values["model_type"]
    # as in old BERT files, and as transformers 5 writes ESM's
    old = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
    ends = [(name, next((end for end in old if name.endswith(end)), None)) for name in weights]
    weights = {name.removesuffix(end) + old[end] if end else name: weights[name] for name, end in ends}

    def take(name):
        if name not in weights:
            raise MaskLabError(f"{source}: tensor {name} is missing")
        return weights.pop(name)

    if kind in TWIN and not config.tied_head:
        # an untied decoder has a bias of its own, and nobody reads the other one
        weights[TWIN[kind].replace("decoder.", "")] = take(TWIN[kind])
    state = {ours: take(theirs) for ours, theirs in _names(config, kind).items()}
    if first := _first_position(kind, pad_id(values)):
        state["embeddings.position"] = state["embeddings.position"][first:]
    if kind in ("bert", "roberta-prelayernorm"):
        segment = take(f"{kind.replace('-', '_')}.embeddings.token_type_embeddings.weight")[:1]
        if kind == "bert":
            state["embeddings.segment"] = segment
        else:
            state["embeddings.position"] = state["embeddings.position"] + segment
    for ours, theirs in _split(config, kind):
        parts = [take(name).unflatten(0, (config.heads, -1)) for name in theirs]
        state[ours] = torch.stack(parts, 1).flatten(0, 2)
    unknown = [name for name in weights if not any(part in name for part in UNUSED)]
    if unknown:
        raise MaskLabError(f"{source}: tensor {unknown[0]} has no place in {CLASS[kind]}")
    return state


def word_names(config: Encoder) -> list[str]:
    """Names of the token embedding, of the output bias, and, untied, of the output matrix and its bias."""
    names = _names(config)
    found = [names["embeddings.word"], names["head.bias"]]
    twin = TWIN.get(model_type(config))
    return found if config.tied_head else [*found, names["head.weight"], *([twin] if twin else [])]


def _names(config: Encoder, kind: str | None = None) -> dict[str, str]:
    """Our names -> Hugging Face names of all tensors that correspond one to one."""
    kind = kind or model_type(config)
    if kind == "masklab":
        with torch.device("meta"):
            state = MaskedLM(config.model_copy(update={"decoder": None}), PAD + 1).state_dict()
        return {name: name if name.startswith("head.") else f"model.{name}" for name in state}
    base = kind.replace("-", "_")
    names = {"embeddings.word": f"{base}.embeddings.word_embeddings.weight"}
    if config.embedding_norm:
        names |= _pair("embeddings.norm", f"{base}.embeddings.{'layer_norm' if kind == 'esm' else 'LayerNorm'}")
    if kind == "deberta":
        names["relative"] = "deberta.encoder.rel_embeddings.weight"
    else:
        names["embeddings.position"] = f"{base}.embeddings.position_embeddings.weight"
    for layer in range(config.layers):
        ours, theirs = f"blocks.{layer}", f"{base}.encoder.layer.{layer}"
        names |= _pair(f"{ours}.out", f"{theirs}.attention.output.dense")
        names |= _pair(f"{ours}.attention_norm", f"{theirs}.{NORMS[kind][0]}")
        names |= _pair(f"{ours}.ffn_in", f"{theirs}.intermediate.dense")
        names |= _pair(f"{ours}.ffn_out", f"{theirs}.output.dense")
        names |= _pair(f"{ours}.ffn_norm", f"{theirs}.{NORMS[kind][1]}")
        if kind == "deberta":
            for name in ("in_proj.weight", "q_bias", "v_bias", "pos_proj.weight"):
                names[f"{ours}.attention.{name}"] = f"{theirs}.attention.self.{name}"
            names |= _pair(f"{ours}.attention.pos_q_proj", f"{theirs}.attention.self.pos_q_proj")
    if config.norm == "pre":
        names |= _pair("final_norm", f"{base}.encoder.emb_layer_norm_after" if kind == "esm" else f"{base}.LayerNorm")
    old = kind in ("bert", "deberta")
    head = "cls.predictions" if old else "lm_head"
    names |= _pair("head.dense", f"{head}.transform.dense" if old else f"{head}.dense")
    names |= _pair("head.norm", f"{head}.transform.LayerNorm" if old else f"{head}.layer_norm")
    names["head.bias"] = f"{head}.bias"
    if not config.tied_head:
        names["head.weight"] = f"{head}.decoder.weight"
    return names


def _pair(ours: str, theirs: str) -> dict[str, str]:
    return {f"{ours}.{kind}": f"{theirs}.{kind}" for kind in ("weight", "bias")}


def _split(config: Encoder, kind: str | None = None):
    """Our fused projections and the names of their query, key and value parts, where the class has them apart."""
    kind = kind or model_type(config)
    if kind in ("masklab", "deberta"):
        return
    base = kind.replace("-", "_")
    for layer in range(config.layers):
        for tensor in ("weight", "bias"):
            names = [f"{base}.encoder.layer.{layer}.attention.self.{part}" for part in ("query", "key", "value")]
            yield f"blocks.{layer}.attention.in_proj.{tensor}", [f"{name}.{tensor}" for name in names]
