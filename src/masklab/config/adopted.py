"""Models made elsewhere: what a recipe with `folder` stands for. Light: its config.json is read with the config.

    models:
      bert: {folder: bert-base-uncased, corpus: strict}

is a recipe of no update whose encoder and tokenizer are entries of their own (`adopted.bert`), read from that folder; a
name is looked up in Hugging Face's cache. Nothing is downloaded.
"""

import os
from pathlib import Path

from masklab.config.located import overlay, place_of, wrong
from masklab.errors import MaskLabError
from masklab.lines import parsed

PREFIX = "adopted."
OBJECTIVE = f"{PREFIX}mlm"
LONGEST = 512  # tokens of a sequence that the derived tokenizer keeps at most
# Keys of config.json in the words of different architectures.
SIZES = {
    "hidden": ("hidden_size", "dim", "d_model", "emb_dim"),
    "layers": ("num_hidden_layers", "n_layers"),
    "heads": ("num_attention_heads", "n_heads"),
    "intermediate": ("intermediate_size", "hidden_dim"),
    "max_positions": ("max_position_embeddings",),
}
# Architectures whose first position is the one after that of padding.
AFTER_PADDING = (
    "roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "data2vec-text", "esm", "ibert", "longformer", "luke",
    "mpnet", "roberta-prelayernorm", "xmod",
)  # fmt: skip
DISENTANGLED = ("deberta", "deberta-v2")
# Those whose own classifiers have a gelu where BERT's has a tanh.
GELU = (*DISENTANGLED, "electra", "modernbert")


def with_adopted(raw: dict) -> dict:
    """The config with the entries that its recipes with `folder` stand for."""
    added = {}
    for name, entry in (raw.get("models") or {}).items():
        if not isinstance(entry, dict) or not isinstance(entry.get("folder"), str):
            continue
        try:
            folder = found(entry["folder"], raw.get("data"))
            sizes = shape(folder)
        except MaskLabError as error:
            raise wrong(place_of(entry, "folder"), ("models", name, "folder"), str(error)) from None
        own = f"{PREFIX}{name}"
        stated = {"tokenizer": own, "encoder": own, "objective": OBJECTIVE, "steps": 0}
        added.setdefault("models", {})[name] = {key: value for key, value in stated.items() if entry.get(key) is None}
        longest = min(LONGEST, sizes["max_positions"])
        made = {"kind": "folder", "folder": str(folder)}
        for section, keys in (("encoders", sizes), ("tokenizers", {"max_length": longest})):
            added.setdefault(section, {})[own] = _without_stated(raw, section, own, made | keys, name)
        added["objectives"] = {OBJECTIVE: {"mlm": 1}}
    return overlay(raw, added) if added else raw


def _without_stated(raw, section, own, made, name) -> dict:
    """The keys of a derived entry but for those that a config says itself: how long its tokenizer's sequences are.

    MaskLabError: it says others of them otherwise, which follow from the folder.
    """
    entry = (raw.get(section) or {}).get(own)
    stated = entry if isinstance(entry, dict) else {}
    for key in stated.keys() & (made.keys() - {"max_length"}):
        if stated[key] != made[key]:
            message = f"follows from models.{name}.folder; leave it out"
            raise wrong(place_of(stated, key), (section, own, key), message)
    return {key: value for key, value in made.items() if stated.get(key) is None}


def found(name: str, data=None) -> Path:
    """The folder of a model: a path, or the name of one in Hugging Face's cache. MaskLabError: there is neither."""
    path = Path(name).expanduser()
    if data and isinstance(data, str) and not path.is_absolute():  # of another kind it is refused with the rest
        path = Path(data).expanduser() / path
    if os.path.isfile(path / "config.json"):
        return path.resolve()
    if os.path.exists(path):
        raise MaskLabError(f"{name!r} holds no config.json; name the folder of a model")
    if cached := _cached(name):
        return cached
    raise MaskLabError(
        f"{name!r} is no folder and not in Hugging Face's cache; `hf download {name}` puts a model there"
    )


def _cached(name: str) -> Path | None:
    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        return None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        file = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        return None
    return Path(file).parent if isinstance(file, str) else None


def shape(folder) -> dict:
    """Keys of an `Encoder` that config.json says, in whatever words.

    Raises:
        MaskLabError: it does not say how large the encoder is, or a number in it cannot be.
    """
    file = Path(folder) / "config.json"
    try:
        values = parsed(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MaskLabError(f"{file}: cannot be read ({error})") from None
    if not isinstance(values, dict):
        raise MaskLabError(f"{file}: must be a JSON object")
    sizes = {}
    for key, names in SIZES.items():
        name = next((name for name in names if type(values.get(name)) is int), None)
        if name is None and key in ("hidden", "layers", "heads"):
            raise MaskLabError(f"{file}: has no {names[0]}; it must be an encoder's")
        if name is not None and values[name] < 1:
            raise MaskLabError(f"{file}: {name} is {values[name]}, allowed: a positive integer")
        if name is not None:
            sizes[key] = values[name]
    kind = values.get("model_type")
    sizes.setdefault("max_positions", LONGEST)
    if kind in AFTER_PADDING and type(pad := values.get("pad_token_id", 1)) is int:
        sizes["max_positions"] -= pad + 1
        if sizes["max_positions"] < 1:
            raise MaskLabError(f"{file}: pad_token_id is {pad}, behind which no position is left")
    return sizes | {
        "positions": "disentangled" if kind in DISENTANGLED else "absolute",
        "dropout": _number(file, values, ("hidden_dropout_prob", "dropout", "mlp_dropout"), 0.0, 1),
        "init_range": _number(file, values, ("initializer_range",), 0.02, 100),
    }


def _number(file, values, names, default: float, most: int) -> float:
    """The first of some keys that is there; `default` of none, null or 0. MaskLabError: it is not from 0 to `most`."""
    name = next((name for name in names if name in values), None)
    number = values.get(name) or default
    if type(number) not in (int, float) or not 0 <= number <= most:
        raise MaskLabError(f"{file}: {name} is {number!r}, allowed: 0 to {most}")
    return float(number)
