"""What may have been meant by a key or a value that is wrong, as the end of a message."""

import re
from typing import get_args, get_origin

from masklab.config import kinds
from masklab.config.inherit import cut, meant
from masklab.config.schema import KINDED, OWN_KEYS, SECTIONS, TOKENIZERS, Config, Entity, Model, Settings, Study

KEYS = 40  # keys of a list

# Options of Snakemake that people write into a config.
SNAKEMAKE = {
    "jobs": "--jobs 100",
    "cores": "--cores 4",
    "executor": "--executor slurm",
    "configfile": "--configfile my.yaml",
}
# Other common names of keys.
ALIASES = {
    "learning_rate": "lr", "dev": "valid", "validation": "valid", "batch": "batch_size", "epoch": "epochs",
    "n_layers": "layers", "num_layers": "layers", "num_hidden_layers": "layers", "n_heads": "heads",
    "num_heads": "heads", "num_attention_heads": "heads", "hidden_size": "hidden", "intermediate_size": "intermediate",
    "max_steps": "steps", "init_from": "init", "optimizer": "optimiser", "mask_rate": "rate", "masking_rate": "rate",
    "vocab": "vocab_size", "max_len": "max_length", "max_seq_length": "max_length", "gradient_clip": "clip",
    "warmup_ratio": "warmup", "name": "run", "lines": "sentences", "lambda": "penalty",
}  # fmt: skip
# What a section counts otherwise.
UNITS = {
    ("models", "epochs"): "training is counted in updates: write steps",
    ("causal_models", "epochs"): "training is counted in updates: write steps",
    ("studies", "seeds"): "write replicates: each draws under a seed of its own",
}
# Sections whose key one that a section lacks may be, the likeliest first.
ELSEWHERE = ("models", "studies", "probes", "encoders", "tokenizers", "corpora", "tasks")
# Key of an entry -> the section whose entry it names, where a mapping may stand in its place.
NAMING = {"corpus": "corpora", "tokenizer": "tokenizers", "encoder": "encoders", "objective": "objectives",
          "embeddings": "embeddings", "dictionary": "dictionaries"}  # fmt: skip
# What a mapping may look like: of a section, of a key.
EXAMPLES = {
    "panels": "the title of each panel to its recipes, such as {all: [strict-mlm]}",
    "probes": "each probe to the recipes that it measures, such as {minimal-pairs: all}",
    "sets": "the name of each set to its tasks, such as {glue: [sentiment, entailment]}",
}
ENTRIES = {
    "corpora": "{kind: english, sentences: 1000}", "tokenizers": "{vocab_size: 1000}", "encoders": "{layers: 2}",
    "objectives": "{mlm: 1}", "optimisers": "{lr: 0.001}", "models": "{steps: 400}", "optimiser": "{lr: 0.001}",
    "masking": "{rate: 0.15}", "studies": "{panels: {all: [strict-mlm]}}",
    "decoder": "{layers: 2}", "tasks": "{pairs: 50}", "probes": "{epochs: 3}", "grid": "{lr: [0.001, 0.0001]}",
}  # fmt: skip
# Names of entries in examples, where they change one that there is.
NAMED = {"tokenizers": "strict", "encoders": "tiny", "models": "strict-mlm", "tasks": "blimp", "probes": "finetune"}


def counted(number: int, noun: str) -> str:
    """ "1 item", "2 items"."""
    return f"{number} {noun}{'s' * (number != 1)}"


def unknown(key, names, where: str = "") -> str:
    """What is said of a key that is none of `names`."""
    return f"unknown key{where}" + (slip(key, names) or f"; allowed: {cut(names, KEYS)}")


def slip(key, names) -> str:
    """The one of `names` that a key may have been; else nothing."""
    key = str(key)
    if glued := re.match(r"(\w+):[^\s]", key):
        return f"; a space is missing after {glued[1]}:"
    if re.fullmatch(r"\d{3}", key):
        return "; a number is written without commas"
    alias = ALIASES.get(key) or ALIASES.get(meant(key, ALIASES).partition("'")[2].rstrip("'?"))
    if key not in ALIASES and (close := meant(key, names)):
        return close
    return f"; did you mean {alias!r}?" if alias in names else meant(key, names)


def unknown_at_top(key, value) -> str:
    """What is said of a key at the top level that has no place there."""
    if key in SNAKEMAKE:
        return f"is an option of Snakemake; write it on the command line: snakemake {SNAKEMAKE[key]}"
    if close := slip(key, Config.model_fields):
        return "unknown key" + close
    for section, entity in (("studies", Study), ("models", Model)):
        if key in entity.model_fields:
            return f"unknown key at the top level; indent it under an entry of {section}"
        if isinstance(value, dict) and value and set(value) <= {*entity.model_fields, "like", "for"}:
            return f"unknown key; indent it under {section}"
    return unknown(key, [*Settings.model_fields, "extends", *SECTIONS])


def unknown_in(key, entity, names, section: str, top: bool, kind: str | None, stated: bool) -> str:
    """What is said of a key that a mapping of an entry does not have.

    top: the mapping is the entry itself. kind: of the entry; stated: whether it says so itself.
    """
    where = f" for kind {kind!r}" if kind else ""
    if top and (unit := UNITS.get((section, ALIASES.get(key, key)))):
        return f"unknown key{where}; {unit}"
    others = [other for other in ELSEWHERE if other != section and _has(other, key)] if top else []
    close = slip(key, names)
    if close and (not others or meant(f"{key}s", names).endswith(f"'{key}s'?")):
        return f"unknown key{where}{close}"
    if top and entity is not None:
        if (kind or section == "tokenizers") and (others := _kinds_with(section, key)):
            change = f"write kind: {others[0]}" if stated else f"add kind: {others[0]}"
            has = f"kind {others[0]!r} has it" if len(others) == 1 else f"kinds that have it: {cut(others)}"
            return f"unknown key{where}; {has}; {change}"
        for name, field in entity.model_fields.items():
            for nested in _entities(field.annotation):
                inner = ALIASES.get(key, key)
                if inner in nested.model_fields:
                    return f"unknown key{where}; write {name}: {{{inner}: ...}}"
        if key in Settings.model_fields:
            return f"unknown key{where}; it is a key of the whole config: write it at the top level"
        if others:
            return f"unknown key{where}; an entry of {' or '.join(others[:2])} has it"
        names = [*names, "like", "for"]
    return unknown(key, names, where)


def _has(section: str, key: str) -> bool:
    """Whether entries of a section have a key, those of one of its kinds at least."""
    if section in OWN_KEYS:
        return bool(_kinds_with(section, key))
    return key in get_args(Config.model_fields[section].annotation)[1].model_fields


def _kinds_with(section: str, key: str) -> list[str]:
    """Kinds of a section whose entries have a key."""
    if section in KINDED:
        return [name for name, kind in kinds.known(section).items() if key in kind.entity().model_fields]
    return [name for name, made in TOKENIZERS.items() if key in made.model_fields] if section == "tokenizers" else []


def kind_of_keys(section: str, entry) -> str:
    """What to write as the kind of an entry that says none, where its keys leave one only; else nothing."""
    own = [set(_kinds_with(section, key)) for key in entry if key != "kind"]
    common = set.intersection(*own) if own else set()
    return f"add kind: {next(iter(common))}" if len(common) == 1 else ""


def _entities(annotation) -> list[type[Entity]]:
    if isinstance(annotation, type) and issubclass(annotation, Entity):
        return [annotation]
    return [one for part in get_args(annotation) if get_origin(annotation) is not dict for one in _entities(part)]


def entries_of(section: str) -> str:
    """What a section must be, with an example."""
    example = f", such as {{{NAMED.get(section, 'mine')}: {ENTRIES[section]}}}" if section in ENTRIES else ""
    return f"must be a mapping of names to entries{example}"


def keys_of(part) -> str:
    """What an entry, or a key of one, must be, with an example. part: its section, or the key."""
    example = ENTRIES.get(str(part))
    if part in kinds.known("terms"):
        return "must be a weight, such as 1, or a mapping with it, such as {weight: 1}"
    return "must be a mapping of keys to values" + (f", such as {example}" if example else "")


def values_of(key) -> str:
    """What a key that maps names must be, with an example."""
    return f"must map {EXAMPLES[key]}" if key in EXAMPLES else "must be a mapping of names to values"


def name_of(key) -> str:
    """What is said of a mapping in place of the name of an entry; nothing: the key names none."""
    section = NAMING.get(str(key))
    named = f"must be the name of an entry; declare the entry under {section} and write its name here"
    return named if section else ""


def several(key, values, fields) -> str:
    """What to write in place of several values of a key that takes one. fields: keys beside it."""
    written = f"{{{key}: [{', '.join(map(str, values))}]}}"
    if "grid" in fields:
        return f", not a list; to search several, write grid: {written}"
    return f", not a list; for an entry of each, write for: {written} in the entry and '{{{key}}}' in its name and here"


def number(text) -> str:
    """How a text that was meant as a number is written; else nothing."""
    if not isinstance(text, str):
        return ""
    if re.fullmatch(r"\d{1,3}(,\d{3})+", text):
        return f"; write {text.replace(',', '')}"
    if re.fullmatch(r"\d+(\.\d+)?\s*%", text):
        return f"; write {float(text.rstrip('% ')) / 100:g}"
    if re.fullmatch(r"\d(\.\d+)?[eE]\+?\d{1,2}", text) and float(text).is_integer():
        return f"; write {int(float(text))}"
    return ""


def share(key, value) -> str:
    """How a share that was written in percent, or as a count of updates, is written; else nothing."""
    if key == "warmup" and isinstance(value, int) and value > 1:
        return f"; for updates, write warmup_steps: {value}"
    in_percent = key in ("rate", "mask", "random", "dropout") and isinstance(value, int | float) and 1 < value < 100
    return f"; {value:g} % is written {value / 100:g}" if in_percent else ""
