"""The config's JSON schema and table of keys, written from the typed model."""

from pathlib import Path
from typing import get_args

from masklab.config import kinds
from masklab.config.schema import SECTIONS, Config, Entity, Objective
from masklab.files import atomic, write_json


def write(root: Path) -> None:
    """Write workflow/schemas/config.schema.json and docs/config.md under `root`."""
    write_json(Config.model_json_schema(), root / "workflow/schemas/config.schema.json")
    with atomic(root / "docs/config.md") as temporary:
        temporary.write_text(keys(), encoding="utf-8")


def keys() -> str:
    """Markdown tables of every key: what it is, its default, where it stands."""
    parts = ["# Config keys", "", "Made by `masklab schema` from `src/masklab/config/schema/`. An entry may have",
             "`for: {name: [values]}` (or a list of such mappings) and then stands for one entity per combination.",
             *_table("the top level", Config, skip=SECTIONS)]  # fmt: skip
    sections = {entity for section in SECTIONS for entity in _entities(Config.model_fields[section].annotation)}
    for section in SECTIONS:
        annotation = Config.model_fields[section].annotation
        parts.append(f"\n## {section}")
        if annotation == dict[str, Objective]:
            parts += _terms(section)
        for entity in _entities(annotation):
            parts += _table(f"`{section}.<name>`", entity)
            for name, field in entity.model_fields.items():
                for nested in _entities(field.annotation):
                    if nested in sections:
                        continue  # has a table of its own
                    parts += _table(f"`{section}.<name>.{name}`", nested)
    return "\n".join(parts) + "\n"


def _terms(section):
    """The terms that an objective can have, and their settings."""
    lines = ["", f"### `{section}.<name>`: {' '.join(Objective.__doc__.split(chr(10) * 2)[0].split())}"]
    for name, kind in kinds.OURS["terms"].items():
        lines += _table(f"`{section}.<name>.{name}`", kind.entity())
    return lines


def _entities(annotation):
    if isinstance(annotation, type) and issubclass(annotation, Entity):
        return [annotation]
    return [entity for part in get_args(annotation) for entity in _entities(part)]


def _table(where, entity, skip=()):
    heading = f"### {where}: {entity.__doc__.splitlines()[0]}"
    lines = ["", heading, "", "| key | default | meaning |", "| --- | --- | --- |"]
    for name, field in entity.model_fields.items():
        if name not in skip:
            lines.append(f"| `{name}` | {_default(field)} | {field.description or _kind(field)} |")
    return lines


def _default(field):
    if field.is_required():
        return "required"
    if isinstance(field.default, Entity):
        return "below"
    return f"`{field.default!r}`"


def _kind(field):
    return str(getattr(field.annotation, "__name__", field.annotation)).replace("typing.", "").replace("|", "or")
