"""One pre-training run as data: what is trained, on what, and where its files lie."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from masklab.config.schema import Dictionary, Encoder, Entity, Model, Objective
from masklab.errors import MaskLabError
from masklab.files import read_json, write_json


@dataclass(frozen=True)
class Run:
    """One pre-training run: its resolved configuration and where its files lie."""

    name: str
    seed: int  # of the replicate
    model: Model
    encoder: Encoder
    objective: Objective
    tokens: Path  # folder of token arrays
    tokenizer: Path  # folder of the tokenizer, copied into every checkpoint
    output: Path  # results/models/<recipe>/r<replicate>
    state: Path  # where the resumable state lies while it runs
    init: Path | None = None  # checkpoint to start from, and the teacher
    dictionary: Path | None = None  # folder of the dictionary
    dictionary_config: Dictionary | None = None
    codes: Path | None = None  # folder of the stored codes
    embeddings: Path | None = None  # folder of initial word embeddings
    adversary: Path | None = None  # folder of the task of an adversarial objective
    device: str = "cpu"
    replicate: int = 1
    phase: int = 0  # how many `init` links lie behind it


ENTITIES = {"model": Model, "encoder": Encoder, "objective": Objective, "dictionary_config": Dictionary}
PATHS = ("tokens", "tokenizer", "output", "state", "init", "dictionary", "codes", "embeddings", "adversary")


def write_run(run: Run, path) -> None:
    """Write a run as JSON, paths absolute: what `python -m masklab.training <path>` starts, from any folder."""
    found = {}
    for field in dataclasses.fields(run):
        value = getattr(run, field.name)
        if isinstance(value, Entity):
            value = value.model_dump(mode="json")
        elif isinstance(value, Path):
            value = os.path.abspath(value)
        found[field.name] = value
    write_json(found, path)


def read_run(path) -> Run:
    """The run that a JSON file describes. Paths that are not absolute start at the current folder.

    Raises:
        MaskLabError: an unknown, missing or wrong key.
    """
    found = read_json(path)
    if not isinstance(found, dict):
        raise MaskLabError(f"{path}: must be a JSON object")
    fields = {field.name: field.default is dataclasses.MISSING for field in dataclasses.fields(Run)}
    for key in found:
        if key not in fields:
            raise MaskLabError(f"{path}: {key}: unknown key; allowed: {', '.join(fields)}")
    for key, required in fields.items():
        if required and found.get(key) is None:
            raise MaskLabError(f"{path}: {key}: missing")
    for key, entity in ENTITIES.items():
        if found.get(key) is not None:
            try:
                found[key] = entity.model_validate(found[key])
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(part) for part in (key, *first["loc"]))
                raise MaskLabError(f"{path}: {where}: {first['msg'][0].lower()}{first['msg'][1:]}") from None
    return Run(**{k: Path(v) if k in PATHS and v is not None else v for k, v in found.items()})
