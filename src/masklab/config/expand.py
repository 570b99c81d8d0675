"""Families of entities: one entry with `for:` stands for many.

    models:
      "{size}-{objective}":
        for: {size: [strict, small], objective: [mlm, mlsm]}
        corpus: "{size}"
        objective: "{objective}"

expands to four models; a list of such mappings stands for all of their members.
`{name}` inside a string is replaced by the value; a string that is nothing but
`{name}` takes the value itself (so numbers stay numbers). A study names models by patterns too (`expand_models`).
"""

import itertools
import re

from masklab.config.hints import entries_of
from masklab.config.inherit import is_pattern, lay_entry, matching
from masklab.config.located import Mapping, Sequence, place_of, spelt, wrong
from masklab.config.schema import SECTIONS

VARIABLE = re.compile(r"\{(\w+)\}")


def expanded(config) -> Mapping:
    """A config with every `for:` entry of its sections in full, in the order of declaration."""
    whole = Mapping(config)
    for section in SECTIONS:
        if (entries := whole.get(section)) is not None:
            if not isinstance(entries, dict):
                raise wrong(place_of(whole, section), section, entries_of(section))
            whole[section] = expand_section(entries, section, whole.get("optimisers") or {})
    return whole


def expand_section(entries: dict, section: str, optimisers=()) -> Mapping:
    """One section in full. An entry with the name of a member of a family is laid over the member."""
    full, members = Mapping(), set()
    for name, entry in entries.items():
        families = entry.get("for") if isinstance(entry, dict) else None
        if families is None:
            name, value = str(name), entry
            if name in members and entry is not None:
                value = lay_entry(section, full[name], entry, entries, full, optimisers)
            full.put(name, value, place_of(entries, name))
            continue
        for member, value in _members(name, entries, families, section):
            if member in members:
                message = "declared twice (both are members of `for:` families)"
                raise wrong(place_of(entries, name), (section, member), message)
            if member in full:  # said before the family: laid over it
                given = full[member]
                if given is not None:
                    value = lay_entry(section, value, given, entries, entries, optimisers)
                full[member] = given if given is None else value
            else:
                full.put(member, value, place_of(entries, name))
            members.add(member)
    return full


def _members(name, entries, families, section):
    """(name, entry) of every member of a family, or of a list of families that share an entry."""
    path, entry = (section, name), entries[name]
    template = Mapping(entry)
    del template["for"]
    for family in families if isinstance(families, list) and families else [families]:
        if not isinstance(family, dict) or not all(isinstance(v, list) and v for v in family.values()):
            message = "must map each variable to a list of values, such as {n: [1, 2]}, or be a list of such mappings"
            raise wrong(place_of(entry, "for"), (*path, "for"), message)
        if problem := _brace_problem(name, family):
            raise wrong(place_of(entries, name), path, problem)
        values = [[(item, place_of(items, at)) for at, item in enumerate(items)] for items in family.values()]
        for chosen in itertools.product(*values):
            variables = dict(zip(family, chosen, strict=True))
            place = place_of(entry, "for")
            yield _text(name, variables, path, place), _fill(template, variables, path)


def _brace_problem(name, family) -> str | None:
    """What is wrong with the braces in the name of a family; None: nothing."""
    left = VARIABLE.sub("", str(name))
    opened, closed = left.count("{"), left.count("}")
    if not opened and not closed:
        return None
    problem = "between { and } stands the name of a variable and nothing else"
    if opened != closed:
        problem = "a { is never closed" if opened > closed else "a } is never opened"
    return f"{problem}; a variable of `for:` is written {{{next(iter(family), 'name')}}}"


def _fill(value, variables, path):
    """A mapping or list with the variables in place of their names."""
    if isinstance(value, dict):
        filled = Mapping()
        for key, item in value.items():
            place = place_of(value, key)
            name = _text(key, variables, path, place) if "{" in key else key
            filled.put(name, *_filled(item, variables, (*path, key), place))
        return filled
    items = [_filled(item, variables, path, place_of(value, at)) for at, item in enumerate(value)]
    return Sequence([item for item, _ in items], [place for _, place in items])


def _filled(value, variables, path, place):
    """The same of any value, with its place: that of the variable where the value is nothing else."""
    if isinstance(value, dict | list):
        return _fill(value, variables, path), place
    if not isinstance(value, str) or "{" not in value:
        return value, place
    whole = VARIABLE.fullmatch(value)
    if whole and whole[1] in variables:
        value, stated_at = variables[whole[1]]
        return value, stated_at or place
    return _text(value, variables, path, place), place


def _text(text, variables, path, place):
    def one(match):
        if match[1] not in variables:
            raise wrong(
                place, path, f"unknown variable {{{match[1]}}}; `for:` declares {', '.join(map(spelt, variables))}"
            )
        return str(variables[match[1]][0])

    return VARIABLE.sub(one, str(text))


def expand_models(study, models, tasks=()):
    """A `Study` whose panels, extra models, probes and sets name models and tasks by patterns ("mae-mlm-*") with their
    names instead.

    None where the panels were patterns and none is left.

    A pattern stands for the names that match it, in order of declaration; a panel of patterns that no model matches,
    and a probe or set of such, is left out: one study then serves configs that declare more runs or fewer. One of parts
    of a task (`blimp/island_*`) stays as it is, to be refused.
    """

    def names(listed, known=models):
        members = []
        for name in listed:
            members += matching(known, name) if is_pattern(name) and "/" not in name else [name]
        return list(dict.fromkeys(members))

    panels = {title: names(panel) if isinstance(panel, list) else panel for title, panel in study.panels.items()}
    probes = {probe: names(listed) if isinstance(listed, list) else listed for probe, listed in study.probes.items()}
    sets = {name: names(listed, tasks) for name, listed in study.sets.items()}
    kept = {title: panel for title, panel in panels.items() if panel or not study.panels[title]}
    measured = {probe: listed for probe, listed in probes.items() if listed or not study.probes[probe]}
    named = {name: listed for name, listed in sets.items() if listed or not study.sets[name]}
    if study.panels and not kept:
        return None
    return study.model_copy(update={"panels": kept, "probes": measured, "sets": named, "extra": names(study.extra)})
