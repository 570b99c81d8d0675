"""The config's JSON schema and docs/config.md: how a config is read, and every key, written from the typed model."""

import json
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import get_args

from masklab.config import babylm, kinds
from masklab.config.annotations import allowed, field_type
from masklab.config.schema import KINDED, SECTIONS, BabylmLabels, BabylmPairs, Config, Entity, Objective
from masklab.files import atomic, write_json

RELEASED = {BabylmPairs: babylm.pairs, BabylmLabels: babylm.labels}  # keys of their entries that follow from others

READING = """# Config keys

Made by `masklab schema` from `src/masklab/config/`. `masklab check my.yaml` reads a config and says what it declares;
`masklab config my.yaml models.strict-mlm` shows an entry in full, with the file and line that each key comes from.

## How a config is read

A config of your own says what differs from the default run:

```yaml
# my.yaml
run: mine                              # its artifacts lie under results/mine/
models:
  strict-mlm: {batch_size: 16}         # one key of one recipe; the rest stays as it is
studies:
  implicit-bias: null                  # null in place of an entry removes it
  mlsm: {panels: {strict-small: null}} # and so it does with a panel, probe or set of a study
```

Your config is laid over config.yaml, mapping by mapping. A list replaces the list below it, and a panel of a study
replaces the panel below it; only the lists of `code` are added together. `extends:` names other files to lie below
yours, the lowest first: `default` (config.yaml) or paths, relative to the file that says them. With `extends: []` your
file stands alone. `snakemake --configfile a.yaml b.yaml` lays b over a, and `--config seed=2` comes on top. Any other
key within an entry, set to null, keeps null as its value.

An entry with `for:` stands for many, one for each combination of values. `like:` takes the keys of another entry of its
section, as that entry is once all files are laid over each other. An entry whose name begins with a dot is made for
`like:` alone:

```yaml
# sizes.yaml
extends: [default, my.yaml]
encoders:
  wide: {like: tiny, hidden: 128}
optimisers:
  slow: {like: mlsm, lr: 5.0e-4}       # models say `optimiser: slow`, or `optimiser: {like: slow, warmup: 0.1}`
models:
  .small: {like: strict-mlm, init: null, steps: 400, checkpoints: [400], optimiser: slow}
  "small-{encoder}-{batch}":
    for: {encoder: [tiny, wide], batch: [16, 32]}   # or a list of such mappings
    like: .small
    encoder: "{encoder}"               # `{...}` alone keeps the value's type
    batch_size: "{batch}"
studies:
  sizes: {panels: {all: ["small-*"]}, probes: {minimal-pairs: all}, sets: {blimp: [blimp]}}   # patterns name many
```

Families (entries with `for:`) are written out before a file is laid over others, so that `small-wide-16: {steps: 500}`
changes one member. An entry whose `kind` differs from that of the entry below it replaces that entry. An encoder or
optimiser whose `kind` differs from that of the entry it is `like` keeps that entry's keys; in other sections, where
kinds have keys of their own, such an entry is refused. `"dh-*": null` removes all entries that match. `code:` names
Python files, relative to the config, that add kinds ([a study of your own](your-own-study.md)):

```yaml
# words.yaml
code: words.py
corpora:
  strict: {kind: repeated, word: masks}   # replaces the entry of kind english
```

```python
# words.py
from masklab import own


class Repeated(own.Entity):
    \"\"\"One word again and again.\"\"\"

    word: str


@own.corpus("repeated", Repeated)
def generate(config, name, seed): ...  # -> {split: pyarrow.Table}
```
"""


def write(root: Path, names: str) -> None:
    """Write workflow/schemas/config.schema.json and docs/config.md under `root`.

    names: the page's part on figures, tables and claims, which rooms above this one know.
    """
    write_json(Config.model_json_schema(), root / "workflow/schemas/config.schema.json")
    with atomic(root / "docs/config.md") as temporary:
        temporary.write_text(keys() + names, encoding="utf-8")


def keys() -> str:
    """docs/config.md: how a config is read; tables of every key: what it can be, its default, what it means."""
    parts = [READING, "## Every key", "", "The schema's keys, section by section.", *_table("the top level", Config)]
    sections = {entity for section in SECTIONS for entity in _section(section)}
    for section in SECTIONS:
        parts.append(f"\n## {section}")
        if section == "objectives":
            parts += _terms(section)
        for entity in _section(section):
            parts += _table(f"`{section}.<name>`{_kind(entity)}", entity)
            for name, field in entity.model_fields.items():
                for nested in _entities(field.annotation):
                    if nested in sections:
                        continue  # has a table of its own
                    parts += _table(f"`{section}.<name>.{name}`", nested)
    return "\n".join(parts) + "\n"


def _section(section) -> list[type[Entity]]:
    """The classes of a section's entries."""
    if section in KINDED:
        return [kind.entity() for kind in kinds.OURS[section].values()]
    return _entities(Config.model_fields[section].annotation)


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


def _table(where, entity):
    lines = ["", f"### {where}: {entity.__doc__.splitlines()[0]}", ""]
    lines += ["| key | can be | default | meaning |", "| --- | --- | --- | --- |"]
    released = _released(entity)
    for name, field in entity.model_fields.items():
        if name not in SECTIONS or entity is not Config:
            allowed_values = allowed(field_type(field)).replace("|", "\\|")
            default = "the release's" if name in released else _default(field)
            meaning = (field.description or "").replace("None", "null")
            lines.append(f"| `{name}` | {allowed_values} | {default} | {meaning} |")
    return lines


def _released(entity) -> set[str]:
    """Keys of a BabyLM task that follow from its `task`, `folder` and `release` where an entry does not say them."""
    found = set()
    if entity in RELEASED:
        for task, release in product(get_args(entity.model_fields["task"].annotation), babylm.RELEASES):
            with suppress(ValueError):  # no such task in that release
                found |= set(RELEASED[entity](task, "", release))
    return found


def _kind(entity):
    """` of kind x` where the class is of one kind only."""
    field = entity.model_fields.get("kind")
    options = get_args(field.annotation) if field else ()
    return f" of kind `{options[0]}`" if len(options) == 1 else ""


def _default(field):
    if field.is_required():
        return "required"
    if isinstance(field.default, Entity):
        return "below"
    return f"`{json.dumps(field.default, ensure_ascii=False)}`"
