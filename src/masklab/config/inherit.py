"""Entries laid over each other: mapping by mapping; a kind that changes replaces, null removes, `like` inherits.

`like` inherits whatever the kinds are where one class has the keys of all of them, as of encoders and optimisers.
"""

import difflib
import fnmatch
from typing import get_args

from masklab.config.located import Mapping, Sequence, flat, overlay, place_of, spelt, wrong
from masklab.config.names import name_problem
from masklab.config.schema import OWN_KEYS, SECTIONS, Optimiser

MOST = 12  # names of a list
# What an entry is that says no kind; entries of other sections must say one, or have none.
DEFAULT_KINDS = {"tokenizers": "unigram", "embeddings": "cbow", "encoders": "transformer", "optimisers": "adamw"}


def is_pattern(name: str) -> bool:
    """Whether a name stands for every name that it matches."""
    return not set(name).isdisjoint("*?[")


def matching(names, pattern: str) -> list[str]:
    """Names that a pattern matches, in their order; those that begin with a dot only if the pattern does."""
    return [name for name in fnmatch.filter(names, pattern) if name.startswith(".") == pattern.startswith(".")]


def meant(name, names) -> str:
    """The name that a wrong one may have been, as the end of a message; else nothing."""
    close = difflib.get_close_matches(str(name), [str(other) for other in names], n=1, cutoff=0.65)
    bare = _without_digits(str(name))
    numbered = [other for other in names if _without_digits(str(other)) == bare]
    if not close or (bare != str(name) and numbered and (len(numbered) > 1 or numbered == [bare])):
        return ""  # figure9 is no slip for figure6, sentence2 none for sentence
    return f"; did you mean {close[0]!r}?"


def _without_digits(name: str) -> str:
    return "".join(char for char in name if not char.isdigit())


# --- one config over another ------------------------------------------------------------------------------------------


def lay(below: Mapping, top: Mapping) -> Mapping:
    """A config, its families expanded, over another; neither is changed."""
    merged = Mapping(below)
    for key in sorted(top, key=lambda key: key != "optimisers"):  # others look at them
        value = top[key]
        if key in SECTIONS:
            if value is None:
                continue  # a heading with nothing below it says nothing
            value = lay_entries(key, merged.get(key) or Mapping(), value, merged.get("optimisers") or {})
        elif key == "code":
            value = lay_code(merged.get(key) or Sequence(), value)
        merged.put(key, value, place_of(top, key))
    return merged


def lay_code(below: Sequence, top: Sequence) -> Sequence:
    """Files of both, each once."""
    new = [at for at, file in enumerate(top) if file not in below]
    return Sequence([*below, *(top[at] for at in new)], [*below.places, *(place_of(top, at) for at in new)])


def lay_entries(section: str, below: Mapping, top: Mapping, optimisers) -> Mapping:
    """Entries of a section over those of another config; null in place of an entry removes what has its name."""
    merged = Mapping(below)
    for name, entry in top.items():
        if section == "studies":
            _check_nulls(name, entry, merged.get(name))
        if entry is not None:
            continue
        place = place_of(top, name)
        if place is not None and place.empty:
            null = "; or write null to remove it" if name in merged else ""
            raise wrong(place, (section, name), f"is empty; indent its keys under it{null}")
        gone = matching(merged, name) if is_pattern(name) else [name] if name in merged else []
        if not gone and not is_pattern(name):
            message = "null removes an entry of the files below, which have none of that name" + meant(name, merged)
            raise wrong(place_of(top, name), (section, name), message)
        for old in gone:
            del merged[old]
            merged.places[old] = place_of(top, name)  # where it was removed
    for name, entry in top.items():
        if entry is not None:
            _check_like(section, name, entry, _Both(top, below))
            laid = lay_entry(section, merged.get(name), entry, _Both(top, below), below, optimisers)
            merged.put(name, laid, place_of(top, name))
    return merged


# Keys of a study in which null removes what lies below: what one of them is, and what it names.
PARTS = {
    "panels": ("panel", "recipe; write a list of recipes"),
    "probes": ("probe", "recipe; write all or a list of recipes"),
    "sets": ("set", "task; write a list of tasks"),
}


def _check_nulls(name, study, under) -> None:
    """A null in a study removes something, and is written."""
    for key, (noun, names) in PARTS.items():
        stated = study.get(key) if isinstance(study, dict) else None
        for part, value in stated.items() if isinstance(stated, dict) else ():
            if value is not None:
                continue
            place, path = place_of(stated, part), ("studies", name, key, part)
            if place is not None and place.empty:
                raise wrong(place, path, f"names no {names}")
            if under is None and "like" not in study:
                raise wrong(place, path, f"null removes a {noun} of the files below, which have no such study")


def _check_like(section, name, entry, entries) -> None:
    """An entry that says a kind, and what it is like, takes something from that."""
    like, kind = (entry.get("like"), entry.get("kind")) if isinstance(entry, dict) else (None, None)
    base = entries.get(like) if isinstance(like, str) else None
    if section not in OWN_KEYS or kind is None or not isinstance(base, dict):
        return
    if (other := kind_of(section, base, entries)) not in (kind, None):
        message = (
            f"{like!r} is of kind {other}, of whose keys an entry of kind {kind} takes none; leave out like or kind"
        )
        raise wrong(place_of(entry, "like"), (section, name, "like"), message)


class _Both:
    """Entries of two configs as far as their kinds are concerned."""

    def __init__(self, top, below):
        self.top, self.below = top, below

    def get(self, name):
        entry = self.top.get(name)
        says = isinstance(entry, dict) and ("kind" in entry or "like" in entry)
        return entry if says or name not in self.below else self.below[name]


def lay_entry(section, under, entry, above, below, optimisers):
    """An entry over the one `under` it, if there is one. above, below: where the entries that they are like stand."""
    if not isinstance(under, dict) or not isinstance(entry, dict):
        return entry
    if section == "models" and entry.get("folder") and not under.get("folder"):
        return entry  # as another kind does: of a model made elsewhere nothing is trained
    kind = stated_kind(entry, above)
    if kind is not None and kind_of(section, under, below) not in (kind, None):
        return entry
    return over(under, entry, optimisers)


def over(base, entry, optimisers):
    """Keys of `entry` over those of `base`, mapping by mapping.

    A panel of a study replaces the one below it as a whole, and where `entry` names every panel of `base`, the order
    is its own. An optimiser that is like one or of another kind replaces the one below it too.
    """
    merged = overlay(base, entry)
    changed, under = entry.get("optimiser"), base.get("optimiser")
    if isinstance(changed, dict) and under is not None:
        under = Mapping({"like": under}, {"like": place_of(base, "optimiser")}) if isinstance(under, str) else under
        kind = changed.get("kind")
        other = kind is not None and kind_of("optimisers", under, optimisers) != kind
        merged["optimiser"] = changed if other or "like" in changed else overlay(under, changed)
    if isinstance(entry.get("panels"), dict) and isinstance(base.get("panels"), dict):
        under, above = base["panels"], entry["panels"]
        left = [name for name, panel in under.items() if panel is not None and name not in above]
        merged["panels"] = flat(under if left else Mapping(), above)
    return merged


def stated_kind(entry, entries, seen=()):
    """The kind that an entry says, or has from what it is like; None: neither says one."""
    like = entry.get("like")
    if entry.get("kind") is not None or not isinstance(like, str) or like in seen:
        return entry.get("kind")
    base = entries.get(like)
    return stated_kind(base, entries, (*seen, like)) if isinstance(base, dict) else None


def kind_of(section: str, entry, entries):
    """The kind of an entry; None: it says none, and its section has no default."""
    return stated_kind(entry, entries) or DEFAULT_KINDS.get(section)


# --- like -------------------------------------------------------------------------------------------------------------


def filled(config: Mapping) -> Mapping:
    """A config whose `like`s are filled in; names that begin with a dot have served and are gone."""
    done = Mapping(config)
    named = config.get("optimisers") or {}
    optimisers = _Section("optimisers", named, {})
    for section in SECTIONS:
        entries = config.get(section)
        if isinstance(entries, dict):
            for name in entries:
                if name.startswith(".") and (problem := name_problem(name[1:])):
                    raise wrong(place_of(entries, name), (section, repr(name)), problem)
                if name.startswith(".") and not isinstance(entries[name], dict) and entries[name] is not None:
                    message = f"must be a mapping of keys to values (got {entries[name]!r})"
                    raise wrong(place_of(entries, name), (section, name), message)
            likes = optimisers if section == "optimisers" else _Section(section, entries, optimisers)
            kept = Mapping(places=getattr(entries, "places", {}))
            kept.update({name: likes.resolve(name) for name in entries if not name.startswith(".")})
            if section == "studies":
                kept.update({name: _removed(study) for name, study in kept.items()})
            done[section] = kept
    return done


def _removed(study):
    """A study without the panels, probes and sets that are null."""
    if not isinstance(study, dict):
        return study
    study = Mapping(study)
    for key in ("panels", "probes", "sets"):
        if isinstance(study.get(key), dict):
            left = {name: listed for name, listed in study[key].items() if listed is not None}
            study[key] = Mapping(left, getattr(study[key], "places", {}))
    return study


KEEP = "change or remove that too, or keep it"


class _Section:
    """Entries of a section with what they inherit."""

    def __init__(self, section, entries, optimisers):
        self.section, self.entries, self.optimisers = section, entries, optimisers
        self.done = {}

    def resolve(self, name, chain=()):
        if name in self.done:
            return self.done[name]
        entry, path = self.entries[name], (self.section, name)
        if isinstance(entry, dict) and "like" in entry:
            base = self.base(entry, (*path, "like"), (*chain, name))
            entry = self.over(base, without(entry, "like"))
        if self.section != "optimisers" and isinstance(entry, dict):
            entry = self.with_optimiser(entry, path)
        self.done[name] = entry
        return entry

    def base(self, entry, path, chain):
        """The entry that `entry` says it is like. path: of the key that says so."""
        like, place = entry["like"], place_of(entry, "like")
        if not isinstance(like, str) or like not in self.entries:
            if not isinstance(like, str):
                raise wrong(place, path, f"must be the name of an entry of {self.section}")
            if (removed := getattr(self.entries, "places", {}).get(like)) is not None:
                below = f" ({place})" if place else ""
                raise wrong(
                    removed,
                    (self.section, like),
                    f"null removes it, but {'.'.join(map(spelt, path))}{below} names it; {KEEP}",
                )
            known = [name for name in self.entries if name not in chain]
            raise wrong(place, path, f"no entry {like!r} among {self.section}{hint(like, known)}")
        if like in chain:
            circle = " -> ".join([*chain[chain.index(like) :], like])
            raise wrong(place, path, f"goes round in a circle: {circle}")
        return self.resolve(like, chain)

    def over(self, base, entry):
        """Own keys over those of the base, but for one of a kind whose keys are others since a file replaced it."""
        if not isinstance(base, dict):
            return entry
        kind = entry.get("kind")
        if self.section in OWN_KEYS and kind is not None and kind_of(self.section, base, {}) not in (kind, None):
            return entry
        return over(base, entry, self.optimisers and self.optimisers.entries)

    def with_optimiser(self, entry, path):
        """The entry with the settings of the optimiser that it names or is like."""
        value, path = entry.get("optimiser"), (*path, "optimiser")
        if isinstance(value, str):
            self._is_no_kind(value, place_of(entry, "optimiser"), path)
            value = Mapping({"like": value}, {"like": place_of(entry, "optimiser")})
        elif isinstance(value, dict) and "like" in value:
            path = (*path, "like")
        else:
            return entry
        base = self.optimisers.base(value, path, ())
        entry = Mapping(entry)
        entry["optimiser"] = self.optimisers.over(base, without(value, "like"))
        return entry

    def _is_no_kind(self, name, place, path):
        """A kind of optimisers in the place of an entry's name is refused."""
        if name in get_args(Optimiser.model_fields["kind"].annotation) and name not in self.optimisers.entries:
            raise wrong(
                place, path, f"no entry {name!r} among optimisers; for one of that kind, write {{kind: {name}}}"
            )


def without(entry, key) -> Mapping:
    """A mapping without one of its keys."""
    kept = Mapping(entry)
    del kept[key]
    return kept


def cut(names, most: int = MOST) -> str:
    """Names in a row, those after the first few counted."""
    names = [str(name) for name in names]
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")


def listed(names, most: int = MOST, what: str = "declared") -> str:
    """Names as the end of a message. what: they are."""
    return f"; {what}{' ' if what == 'there are' else ': '}{cut(names, most) or 'none'}"


def choices(name, names, what: str, most: int = MOST) -> str:
    """What a name may have been, and which there are, as the end of a message."""
    close = meant(name, names).removeprefix("; ")
    return (f" ({close})" if close else "") + listed(names, most, what)


def hint(name, names) -> str:
    """What a name may have been, or which there are, as the end of a message."""
    return meant(name, names) or listed(names)
