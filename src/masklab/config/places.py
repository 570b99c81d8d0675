"""Which line of the user's files a fault in the finished config goes back to."""

import contextlib
import re
from typing import NamedTuple

from masklab.config.inherit import KEEP
from masklab.config.layers import DEFAULT
from masklab.config.located import Place, as_written, place_of, spelt
from masklab.errors import MaskLabError

# Key of an entry -> the section whose entries it names.
NAMES = {
    "corpus": "corpora", "tokenizer": "tokenizers", "encoder": "encoders", "objective": "objectives",
    "embeddings": "embeddings", "dictionary": "dictionaries", "init": "models", "teacher": "models", "model": "models",
    "task": "tasks", "tasks": "tasks", "chains": "chains", "grammar": "grammars", "hmm": "hmms",
    "causal": "causal_models", "panels": "models", "extra": "models", "sets": "tasks",
}  # fmt: skip


class Misfit(MaskLabError):
    """Two entries that do not fit each other.

    otherwise: what is said, by key, where that key and not the one of the message was the last to change.
    """

    def __init__(self, message: str, otherwise: dict[str, str]):
        super().__init__(message)
        self.otherwise = otherwise


class Fault(NamedTuple):
    """place: of the user's line that it goes back to; key: what the message begins with; why: the rest of it.

    several: the rest where `{more}` others go back to the same key; empty: each of them is said.
    """

    place: Place | None
    key: str
    why: str
    several: str = ""

    def __str__(self):
        place = self.place or ("config" if self.key else None)
        return ": ".join(str(part) for part in (place, self.key, self.why) if part)


@contextlib.contextmanager
def located(config):
    """Errors within that begin with `config: <key>` begin with the file and line of that key instead (`placed`).

    config: a `Config`, or what was read for one.
    """
    try:
        yield
    except MaskLabError as error:
        raw = getattr(config, "raw", config)
        otherwise = getattr(error, "otherwise", {})
        raise MaskLabError("\n".join(str(placed(line, raw, otherwise)) for line in str(error).split("\n"))) from None


def placed(message: str, raw, otherwise=()) -> Fault:
    """A message that begins with `config: <key>` with the file and line of that key; any other one as it is.

    Where that key lies in a file below one that changes what it stands together with (the models of a study, the
    corpus of a model), the line of that change and its key come first. otherwise: see `Misfit`.
    """
    inside = message.removeprefix("config: ")
    if inside == message:
        return Fault(None, "", message)
    path, place, why = _named(raw, inside)
    name = re.match(r"(?:item \d+: )?'([^']+)' is not declared", why)
    if name and (removed := _removed(raw, name[1])) is not None:
        below = f" ({place})" if place else ""
        by = f"null removes it, but {_key(as_written(place, path))}{below}"
        several = f"{by} and {{more}} more name it; change or remove those too, or keep it"
        return Fault(removed[0], _key(removed[1]), f"{by} names it; {KEEP}", several)
    changed = _changed(raw, path, place, why, otherwise)
    if changed is not None and not name:
        where, key = changed
        told = dict(otherwise).get(".".join(key))
        why, several = (
            (told, "(and {more} more)") if told else (f"does not fit {inside}", "(and {more} more do not fit)")
        )
        return Fault(where, _key(as_written(where, key)), why, f"{why} {several}")
    if not place:
        return Fault(None, "", message)
    deeper = re.match(r"\.(\w+): ", inside[len(".".join(path)) :])  # a key that no file says
    if deeper:
        path, why = [*path, deeper[1]], why.removeprefix(f"{deeper[1]}: ")
    return Fault(place, _key(as_written(place, path)), why)


def noted(line: str, raw) -> str:
    """A note that begins with a key, with the file and line of that key before it."""
    _, place, _ = _named(raw, line)
    return f"{place}: {line}" if place else line


def _key(path) -> str:
    return ".".join(map(spelt, path))


def _named(raw, message: str) -> tuple[list[str], Place | None, str]:
    """The key that a message begins with, where it stands, and the rest; parts of the key may have dots in them."""
    path, place, value, rest = [], None, raw, message
    while isinstance(value, dict):
        keys = [
            (said, key) for key in value for said in (key, spelt(key)) if rest.startswith((f"{said}.", f"{said}: "))
        ]
        if not keys:
            break
        said, key = max(keys, key=lambda one: len(one[0]))
        path, place, value, rest = [*path, key], place_of(value, key) or place, value[key], rest[len(said) + 1 :]
    if isinstance(value, list):  # `'name' is not declared` is said of one item
        for at, item in enumerate(value):
            if rest.startswith(f" {item!r}"):
                place = place_of(value, at) or place
    return path, place, rest.strip()


def _removed(raw, name) -> tuple[Place, list[str]] | None:
    """Where null removed an entry of that name, if one did."""
    for section, entries in raw.items():
        if name in getattr(entries, "places", ()) and name not in entries and not name.startswith("."):
            return entries.places[name], [section, name]
    return None


def _changed(raw, path, place, why, otherwise) -> tuple[Place, list[str]] | None:
    """What the highest file says of the entry at `path` or those that it names, if `place` is in a lower one.

    Of several keys that it says, one of `otherwise`, else one that `why` speaks of, else one that names another entry.
    """
    order = getattr(raw, "files", ())
    if place is None or len(path) < 2 or not order:
        return None
    alone = "is not a recipe of the study" in why  # whatever its recipes are
    shipped = order.index(str(DEFAULT)) if str(DEFAULT) in order else 0  # what config.yaml is made of is one file

    def height(where):
        return max(order.index(where.file), shipped) if where.file in order else len(order)

    seen, waiting, found = set(), [tuple(path[:2])], []
    if path[0] == "studies" and path[2:3] == ["probes"] and len(path) > 3:
        waiting.insert(0, ("probes", path[3]))
    while waiting:
        section, name = here = waiting.pop(0)
        entry = (raw.get(section) or {}).get(name)
        if here in seen or not isinstance(entry, dict):
            continue
        seen.add(here)
        found += [(where, key) for where, key in _leaves(entry, [section, name]) if where is not None]
        waiting += [] if alone else _named_by(entry)
    highest = max((height(where) for where, _ in found), default=0)
    if highest <= height(place):
        return None
    best = [(where, key) for where, key in found if height(where) == highest]

    def speaks(key):
        return bool(re.search(rf"\b{re.escape(key[-1])}\b", why))

    def names(key):
        return any(part in NAMES or part == "probes" for part in key[2:])

    return max(best, key=lambda one: (".".join(one[1]) in otherwise, speaks(one[1]), names(one[1])))


def _leaves(value, path):
    """(place, key) of every value in a mapping, and of what null removed from it."""
    for key, place in getattr(value, "places", {}).items():
        if key not in value:
            yield place, [*path, key]
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
