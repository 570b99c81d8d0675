"""Our encoder as a Hugging Face class: which one, and its config.json.

    positions     norm  embedding_norm   class
    disentangled  post  yes              DebertaForMaskedLM
    absolute      post  yes              BertForMaskedLM
    absolute      pre   yes              RobertaPreLayerNormForMaskedLM
    absolute      pre   no               EsmForMaskedLM
    anything else, every LSTM and `head: linear`   MaskLabForMaskedLM (modeling_masklab.py, copied into the folder)

weights.py maps the weights. What differs in training: ESM's class has no dropout on its embeddings.
"""

from pydantic import ValidationError

from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
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
SWITCHES = ("kind", "positions", "absolute", "relative_buckets", "relative_distance", "norm", "embedding_norm", "head")
ASSUMED = {"head": "transform"}  # of a switch that folders written before it do not name


def model_type(config: Encoder) -> str:
    """`model_type` of the class that computes what `config` does; a decoder is no part of it."""
    if config.head == "linear":
        return "masklab"
    if config.kind == "transformer" and config.norm == "post" and config.embedding_norm:
        return {"disentangled": "deberta", "absolute": "bert"}.get(config.positions, "masklab")
    if config.kind == "transformer" and config.norm == "pre" and config.positions == "absolute":
        return "roberta-prelayernorm" if config.embedding_norm else "esm"
    return "masklab"


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
        "max_position_embeddings": config.max_positions + first_position(kind, PAD),
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
    if not isinstance(values, dict):
        raise MaskLabError(f"{source}: must be a JSON object")
    kind = values.get("model_type")
    if kind not in [*CLASS]:  # a list: of a wrong file it may be anything
        raise MaskLabError(f"{source}: model_type is {kind!r}, allowed: {', '.join(CLASS)}")
    _check_function(values, kind, source)
    _check_sizes(values, kind, source)
    dropout, attention_dropout, eps = _numbers(values, kind, source)
    switches = _switches(values, kind, source)
    wide = values["intermediate_size"]
    switches |= {
        "tied_head": values.get("tie_word_embeddings", True),
        "layers": values["num_hidden_layers"],
        "hidden": values["hidden_size"],
        "heads": values["num_attention_heads"],
        "intermediate": None if wide == 4 * values["hidden_size"] else wide,
        "max_positions": values["max_position_embeddings"] - first_position(kind, pad_id(values)),
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


def _check_function(values, kind, source):
    """The model computes what our encoder can."""
    for key, allowed in REQUIRED[kind].items():
        value = values.get(key, DEFAULTS.get(key, allowed))
        if key == "pos_att_type":
            value = value.split("|") if isinstance(value, str) else value
            value = sorted(value, key=str) if isinstance(value, list) else value
        if value != allowed:
            raise MaskLabError(f"{source}: {key} is {value!r}, allowed: {allowed!r}")


def _check_sizes(values, kind, source):
    """Sizes are there, and those that DeBERTa names twice agree."""
    for key in (*SIZES, "max_position_embeddings"):
        if type(values.get(key)) is not int or values[key] < 1:
            raise MaskLabError(f"{source}: {key} is {values.get(key)!r}, allowed: a positive integer")
    if kind == "deberta":
        longest, width = values["max_position_embeddings"], values["hidden_size"]
        pairs = [("embedding_size", width, "hidden_size", width)]
        relative = values.get("max_relative_positions", -1)
        if type(relative) is not int or relative > 0:
            pairs.append(("max_relative_positions", -1, "max_position_embeddings", longest))
        for key, default, other, allowed in pairs:
            if values.get(key, default) != allowed:
                raise MaskLabError(f"{source}: {key} is {values.get(key, default)!r}, allowed: {other}'s {allowed!r}")


def _numbers(values, kind, source):
    """(dropout, that of attention, epsilon of layer norms)."""
    numbers = {}
    for key, default, allowed in (
        ("hidden_dropout_prob", 0.1, "0 to 1"),
        ("attention_probs_dropout_prob", 0.1, "0 to 1"),
        ("layer_norm_eps", EPS.get(kind, 1e-12), "above 0"),
    ):
        value = numbers[key] = values.get(key, default)
        if type(value) not in (int, float) or not 0 <= value <= 1 or (value == 0 and allowed != "0 to 1"):
            raise MaskLabError(f"{source}: {key} is {value!r}, allowed: {allowed}")
    return tuple(numbers.values())


def _switches(values, kind, source) -> dict:
    """What tells one architecture from another, by the key of our encoder."""
    if kind == "masklab":
        values = ASSUMED | values
        if missing := [key for key in SWITCHES if key not in values]:
            raise MaskLabError(f"{source}: {missing[0]} is missing")
        return {key: values[key] for key in SWITCHES}
    pre = kind in ("esm", "roberta-prelayernorm")
    before = kind != "esm" or bool(values.get("emb_layer_norm_before"))
    return {"positions": "disentangled" if kind == "deberta" else "absolute",
            "norm": "pre" if pre else "post", "embedding_norm": before}  # fmt: skip


def pad_id(values: dict) -> int:
    """Padding token of a config.json; RoBERTa's and ESM's positions count from the next number."""
    number = values.get("pad_token_id", 1)
    return number if type(number) is int else 1


def first_position(kind: str, pad: int) -> int:
    return pad + 1 if kind in ("esm", "roberta-prelayernorm") else 0
