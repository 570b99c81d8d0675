"""Reading and checking the configuration: raw mapping -> typed, expanded, cross-checked `Config`."""

import difflib

from pydantic import ValidationError

from masklab.config.checks import check_names, check_references
from masklab.config.exact import is_exact
from masklab.config.expand import expand_models, expand_section
from masklab.config.references import checkpoints, law_entry, probe_steps, resolved, split_reference, study_models
from masklab.config.schema import SECTIONS, Config
from masklab.errors import MaskLabError

__all__ = [
    "Config",
    "checkpoints",
    "is_exact",
    "law_entry",
    "load",
    "overlay",
    "probe_steps",
    "read",
    "read_laid",
    "resolved",
    "split_reference",
    "study_models",
]


def overlay(base: dict, top: dict) -> dict:
    """`top` laid over `base`, mapping by mapping; neither is changed."""
    merged = dict(base)
    for key, value in top.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = overlay(merged[key], value) if both else value
    return merged


def read(path) -> Config:
    """The checked configuration of a YAML file that stands alone."""
    return load(_parsed(path))


def read_laid(path, base="config.yaml") -> Config:
    """The checked configuration of a YAML file as the workflow reads it: one without `studies` is laid over `base`."""
    raw = _parsed(path)
    return load(raw if "studies" in raw else overlay(_parsed(base), raw))


def _parsed(path) -> dict:
    import yaml

    try:
        with open(path, encoding="utf-8") as file:
            raw = yaml.safe_load(file)
    except OSError as error:
        raise MaskLabError(f"{path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise MaskLabError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(raw, dict):
        raise MaskLabError(f"{path}: must be a mapping of keys to values")
    return raw


def load(raw: dict) -> Config:
    """Expand families, validate types and references. One wrong value is one MaskLabError line."""
    raw = {key: value for key, value in raw.items() if value is not None}
    for section in SECTIONS:
        if section in raw:
            if not isinstance(raw[section], dict):
                raise MaskLabError(f"config: {section}: must be a mapping of names to entries")
            raw[section] = expand_section(raw[section], section)
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        raise MaskLabError("config: " + _first(error)) from None
    studies = {name: expand_models(study, list(config.models)) for name, study in config.studies.items()}
    config = config.model_copy(update={"studies": {name: study for name, study in studies.items() if study}})
    check_names(config)
    check_references(config)
    return config


def _first(error: ValidationError) -> str:
    problems = error.errors()
    first = problems[0]
    where = ".".join(str(part) for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")  # of a check of our own
    said = said[0].lower() + said[1:]
    if first["type"] == "extra_forbidden":
        said = "unknown key" + _nearest(first["loc"])
    elif not isinstance(first["input"], dict | list):
        said += f" (got {first['input']!r})"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{where}: {said}{more}"


def _nearest(location) -> str:
    from masklab.config import schema

    classes = [value for value in vars(schema).values() if isinstance(value, type)]
    keys = {key for each in classes if issubclass(each, schema.Entity) for key in each.model_fields}
    close = difflib.get_close_matches(str(location[-1]), keys, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
