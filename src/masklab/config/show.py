"""A config in print: what a file declares, and where each key of an entry comes from."""

from pathlib import Path

from masklab.config import DEFAULT, layers, study_models
from masklab.config.hints import counted
from masklab.config.inherit import hint, meant
from masklab.config.located import place_of, shown
from masklab.config.schema import SECTIONS
from masklab.errors import MaskLabError


def overview(config, files=()) -> str:
    """What a config declares, in a few lines; files: those that it was read from."""
    given = [Path(path).expanduser().resolve() for path in files or [DEFAULT]]
    named = [shown(path) for path in files or [DEFAULT]]
    below = [shown(path) for path in layers.stack(files) if path.resolve() not in given]
    lines = [f"config   {', '.join(named)}", *(f"    over {name}" for name in below)]
    lines += [f"results  results/{config.run}/" if config.run else "results  results/", ""]
    counts = {section: len(config.raw.get(section) or ()) for section in SECTIONS}  # without nulls, which we derive
    lines += ["entries  " + ", ".join(f"{section} {count}" for section, count in counts.items() if count), ""]
    width = max((len(name) for name in config.studies), default=0)
    for name, study in config.studies.items():
        recipes = study_models(study)
        counts = [config.models[m].replicates or study.replicates or config.replicates for m in recipes] or [1]
        some = f"{min(counts)} to " * (min(counts) < max(counts))
        parts = [f"{counted(len(recipes), 'recipe')} x {some}{counted(max(counts), 'replicate')}"]
        parts += [counted(len(study.nulls), "null")] if study.nulls else []
        parts += [counted(len(study.probes), "probe")]
        parts += [counted(len(study.figures), "figure"), counted(len(study.tables), "table")]
        parts += ["claims" if study.claims == "all" else counted(len(study.claims), "claim")] if study.claims else []
        lines.append(f"study    {name:{width}}  {', '.join(parts)}")
    return "\n".join(lines)


def names(config, section: str = "") -> str:
    """Names of the entries that a section of a config declares, or every section, a line each."""
    if section and section not in SECTIONS:
        raise MaskLabError(f"{section}: no section of a config{meant(section, SECTIONS)}")
    declared = {key: list(config.raw.get(key) or ()) for key in SECTIONS}  # without nulls, which we derive
    if section:
        return "\n".join(declared[section])
    return "\n".join("\n  ".join([f"{key}:", *listed]) for key, listed in declared.items() if listed)


def listing(config, path: str = "") -> str:
    """A part of a config (`section`, `section.name`; all of it) as YAML; a comment says where each key comes from.

    Keys that no file sets have the default of the schema.
    """
    section, _, name = path.partition(".")
    if section and section not in type(config).model_fields:
        raise MaskLabError(f"{section}: no such part of a config{meant(section, type(config).model_fields)}")
    entries = getattr(config, section) if section else {}
    if name and (section not in SECTIONS or name not in entries):
        known = entries if section in SECTIONS else ()
        raise MaskLabError(f"{path}: not declared{hint(name, known)}")
    lines = []
    for key in [section] if section else type(config).model_fields:
        value = getattr(config, key)
        if key not in SECTIONS:
            _lines(key, value, config.raw, 0, lines)
        elif value:
            lines.append((f"{key}:", ""))
            for entry in [name] if name else value:
                settings = value[entry].model_dump(mode="json")
                _lines(entry, settings, config.raw.get(key) or {}, 1, lines)
    width = min(max((len(text) for text, _ in lines), default=0), 70)
    return "\n".join(f"{text:{width}}  # {where}" if where else text for text, where in lines)


def _lines(key, value, stated_in, depth, lines):
    """Lines of one key: YAML and where it was set, nested mappings below it."""
    stated = isinstance(stated_in, dict) and key in stated_in
    place = (place_of(stated_in, key) or "given") if stated else "default"
    below = stated_in[key] if stated else None
    head = f"{'  ' * depth}{_flow(key)}:"
    if isinstance(value, dict) and value and isinstance(below, dict):
        lines.append((head, str(place)))
        for part, item in value.items():
            _lines(part, item, below, depth + 1, lines)
    else:
        lines.append((f"{head} {_flow(value)}", str(place)))


def _flow(value) -> str:
    import yaml

    return yaml.safe_dump([value], default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False)[1:-2]
