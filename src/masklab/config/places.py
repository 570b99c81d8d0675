"""Which line of the user's files a fault in the finished config goes back to."""

import contextlib
import re

from masklab.config.layers import DEFAULT
from masklab.config.located import Place, place_of
from masklab.errors import MaskLabError

# Key of an entry -> the section whose entries it names.
NAMES = {
    "corpus": "corpora", "tokenizer": "tokenizers", "encoder": "encoders", "objective": "objectives",
    "embeddings": "embeddings", "dictionary": "dictionaries", "init": "models", "model": "models", "task": "tasks",
    "tasks": "tasks", "chains": "chains", "grammar": "grammars", "hmm": "hmms", "causal": "causal_models",
    "panels": "models", "extra": "models", "sets": "tasks",
}  # fmt: skip


@contextlib.contextmanager
def located(config):
    """Errors within that begin with `config: <key>` begin with the file and line of that key instead.

    Where that key lies in a file below one that changes what it stands together with (the models of a study, the
    corpus of a model), the line of that change and its key come first. config: a `Config`, or what was read for one.
    """
    try:
        yield
    except MaskLabError as error:
        message = str(error).removeprefix("config: ")
        if message == str(error):
            raise
        raw = getattr(config, "raw", config)
        path, place = _named(raw, message)
        if name := re.search(r": '([^']+)' is not declared", message):
            changed = _removed(raw, name[1])
        else:
            changed = _changed(raw, path, place, alone="is not a recipe of the study" in message)
        if changed is not None:
            place, key = changed
            message = f"{'.'.join(key)}: {message}"
        raise (MaskLabError(f"{place}: {message}") if place else error) from None


def _named(raw, message: str) -> tuple[list[str], Place | None]:
    """The key that a message begins with, and where it stands; parts of the key may have dots in them."""
    path, place, value, rest = [], None, raw, message
    while isinstance(value, dict):
        keys = [key for key in value if rest.startswith((f"{key}.", f"{key}: "))]
        if not keys:
            break
        key = max(keys, key=len)
        path, place, value, rest = [*path, key], place_of(value, key) or place, value[key], rest[len(key) + 1 :]
    if isinstance(value, list):  # `'name' is not declared` is said of one item
        for at, item in enumerate(value):
            if rest.startswith(f" {item!r}"):
                place = place_of(value, at) or place
    return path, place


def _removed(raw, name) -> tuple[Place, list[str]] | None:
    """Where null removed an entry of that name, if one did."""
    for section, entries in raw.items():
        if name in getattr(entries, "places", ()) and name not in entries and not name.startswith("."):
            return entries.places[name], [section, name]
    return None


def _changed(raw, path, place, alone=False) -> tuple[Place, list[str]] | None:
    """What the highest file says of the entry at `path` or those that it names, if `place` is in a lower one.

    alone: look at that entry only.
    """
    order = getattr(raw, "files", ())
    if place is None or len(path) < 2 or not order:
        return None

    shipped = order.index(str(DEFAULT)) if str(DEFAULT) in order else 0  # what config.yaml is made of is one file

    def height(where):
        return max(order.index(where.file), shipped) if where.file in order else len(order)

    seen, waiting, best = set(), [tuple(path[:2])], None
    if path[0] == "studies" and path[2:3] == ["probes"] and len(path) > 3:
        waiting.insert(0, ("probes", path[3]))
    highest = height(place)
    while waiting:
        section, name = here = waiting.pop(0)
        entry = (raw.get(section) or {}).get(name)
        if here in seen or not isinstance(entry, dict):
            continue
        seen.add(here)
        for where, key in _leaves(entry, [section, name]):
            if where is not None and height(where) > highest:
                highest, best = height(where), (where, key)
        waiting += [] if alone else _named_by(entry)
    return best


def _leaves(value, path):
    """(place, key) of every value in a mapping."""
    for key, item in value.items():
        if isinstance(item, dict) and item:
            yield from _leaves(item, [*path, key])
        else:
            yield place_of(value, key), [*path, key]


def _named_by(value, section=None):
    """(section, name) of every entry that an entry names."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "probes" and isinstance(item, dict):
                yield from (("probes", probe) for probe in item)
            yield from _named_by(item, NAMES.get(key, section))
    elif isinstance(value, list):
        for item in value:
            yield from _named_by(item, section)
    elif isinstance(value, str) and section:
        yield section, re.sub(r"@\d+$", "", value)
