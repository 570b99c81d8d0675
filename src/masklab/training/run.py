"""One pre-training run as data: what is trained, on what, and where its files lie."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from masklab.config import kinds
from masklab.config.schema import Dictionary, Encoder, Model, Objective
from masklab.errors import MaskLabError
from masklab.files import read_json, write_json


@dataclass(frozen=True)
class Run:
    """One pre-training run: its resolved configuration and where its files lie.

    seed: of the replicate (`masklab.rng.replicate_seed`); phase: how many recipes lie behind this one, by `init` or
    `teacher`. Both are part of every random address, `name` is of none.
    """

    name: str
    seed: int  # of the replicate
    model: Model
    encoder: Encoder
    objective: Objective
    tokens: Path  # folder of token arrays
    tokenizer: Path  # folder of the tokenizer, copied into every checkpoint
    output: Path  # results/models/<recipe>/r<replicate>
    state: Path  # where the resumable state lies while it runs
    init: Path | None = None  # checkpoint to start from
    teacher: Path | None = None  # checkpoint to learn from; None: `init`
    dictionary: Path | None = None  # folder of the dictionary
    dictionary_config: Dictionary | None = None
    codes: Path | None = None  # folder of the stored codes
    embeddings: Path | None = None  # folder of initial word embeddings
    tasks: dict[str, Path] = dataclasses.field(default_factory=dict)  # folders of the tasks that terms read
    code: tuple[Path, ...] = ()  # files of one's own that register terms
    device: str = "cpu"
    replicate: int = 1
    phase: int = 0  # how many recipes lie behind it

    def __post_init__(self):
        if (self.phase > 0) != (self.init is not None or self.teacher is not None):
            raise MaskLabError(
                f"{self.name}: phase {self.phase}: a run has a phase above 0 if it has `init` or `teacher`, and only"
                " then"
            )

    @property
    def address(self) -> tuple:
        """(seed, phase), with which the address of every random stream of the run begins."""
        return self.seed, f"phase {self.phase}"

    @property
    def vocab_size(self) -> int:
        """Rows of its table of words: the pieces of its tokenizer."""
        return read_json(self.tokens / "meta.json")["vocab_size"]

    @property
    def atoms(self) -> int:
        """Latent properties that its head predicts; 0 without codes."""
        return self.dictionary_config.atoms if self.objective.needs("codes") else 0

    def resolved(self) -> dict:
        """What was trained, JSON-able: it stands in the manifest and in every checkpoint."""
        entities = {"model": self.model, "encoder": self.encoder, "objective": self.objective}
        facts = {"seed": self.seed, "replicate": self.replicate, "phase": self.phase}
        facts |= {name: entity.model_dump(mode="json") for name, entity in entities.items()}
        return facts | {"dictionary": self.dictionary_config and self.dictionary_config.model_dump(mode="json")}


ENTITIES = {"model": Model, "encoder": Encoder, "objective": Objective, "dictionary_config": Dictionary}
PATHS = ("tokens", "tokenizer", "output", "state", "init", "teacher", "dictionary", "codes", "embeddings")

KINDS = dict.fromkeys((*PATHS, "name", "device"), (str, "text"))
KINDS |= dict.fromkeys(("seed", "replicate", "phase"), (int, "a whole number"))
KINDS |= {"tasks": (dict, "a mapping of names to folders"), "code": (list, "a list of files")}


def write_run(run: Run, path) -> None:
    """Write a run as JSON, paths absolute: what `python -m masklab.training <path>` starts, from any folder."""
    values = {}
    for field in dataclasses.fields(run):
        value = getattr(run, field.name)
        if isinstance(value, BaseModel):
            value = value.model_dump(mode="json")
        elif isinstance(value, Path):
            value = os.path.abspath(value)
        elif field.name == "tasks":
            value = {name: os.path.abspath(folder) for name, folder in value.items()}
        elif field.name == "code":
            value = [os.path.abspath(file) for file in value]
        values[field.name] = value
    write_json(values, path)


def read_run(path) -> Run:
    """The run that a JSON file describes, its code imported. Paths that are not absolute start at the current folder.

    Raises:
        MaskLabError: an unknown, missing or wrong key.
    """
    values = read_json(path)
    if not isinstance(values, dict):
        raise MaskLabError(f"{path}: must be a JSON object")
    missing = dataclasses.MISSING
    fields = {f.name: f.default is missing and f.default_factory is missing for f in dataclasses.fields(Run)}
    for key in values:
        if key not in fields:
            raise MaskLabError(f"{path}: {key}: unknown key; allowed: {', '.join(fields)}")
    for key, required in fields.items():
        if required and values.get(key) is None:
            raise MaskLabError(f"{path}: {key}: missing")
    for key, (kind, wanted) in KINDS.items():
        if values.get(key) is not None and type(values[key]) is not kind:
            raise MaskLabError(f"{path}: {key}: must be {wanted} (got {values[key]!r})")
    values["code"] = tuple(map(Path, values.get("code") or ()))
    for file in values["code"]:
        if not file.is_file():
            raise MaskLabError(f"{path}: code: no such file: {file}")
    kinds.load(values["code"])
    for key, entity in ENTITIES.items():
        if values.get(key) is not None:
            try:
                values[key] = entity.model_validate(values[key])
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(part) for part in (key, *first["loc"]))
                raise MaskLabError(f"{path}: {where}: {first['msg'][0].lower()}{first['msg'][1:]}") from None
    values["tasks"] = {name: Path(folder) for name, folder in (values.get("tasks") or {}).items()}
    return Run(**{k: Path(v) if k in PATHS and v is not None else v for k, v in values.items()})
