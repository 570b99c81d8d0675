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

import fnmatch
import itertools
import re

from masklab.errors import MaskLabError


def expand_section(section: dict, where: str) -> dict:
    """Expand every `for:` entry of one config section, keeping the order of declaration."""
    expanded = {}
    for name, entry in section.items():
        family = entry.get("for") if isinstance(entry, dict) else None
        for member, value in _members(name, entry, family, where) if family else [(str(name), entry)]:
            if member in expanded:
                raise MaskLabError(f"{where}.{member}: declared twice (one is a member of a `for:` family)")
            expanded[member] = value
    return expanded


def _members(name, entry, families, where):
    for family in families if isinstance(families, list) else [families]:
        if not isinstance(family, dict) or not all(isinstance(v, list) and v for v in family.values()):
            raise MaskLabError(f"{where}.{name}.for: must map each variable to a non-empty list of values")
        template = {key: value for key, value in entry.items() if key != "for"}
        for values in itertools.product(*family.values()):
            variables = dict(zip(family, values, strict=True))
            yield _fill(name, variables, f"{where}.{name}"), _fill(template, variables, f"{where}.{name}")


def _fill(value, variables, where):
    if isinstance(value, dict):
        return {_fill(k, variables, where): _fill(v, variables, where) for k, v in value.items()}
    if isinstance(value, list):
        return [_fill(item, variables, where) for item in value]
    if not isinstance(value, str):
        return value
    whole = re.fullmatch(r"\{(\w+)\}", value)
    if whole and whole[1] in variables:
        return variables[whole[1]]

    def one(match):
        if match[1] not in variables:
            raise MaskLabError(f"{where}: unknown variable {{{match[1]}}}; `for:` declares {sorted(variables)}")
        return str(variables[match[1]])

    return re.sub(r"\{(\w+)\}", one, value)


def expand_models(study, models):
    """A `Study` whose panels, extra models and probes name models by patterns ("mae-mlm-*") with their names instead.

    None where the panels were patterns and none is left.

    A pattern stands for the models that match it, in order of declaration; a panel of patterns that no model matches,
    and a probe of such, is left out: one study then serves configs that declare more runs or fewer.
    """

    def names(listed):
        found = []
        for name in listed:
            found += fnmatch.filter(models, name) if set(name) & set("*?[") else [name]
        return list(dict.fromkeys(found))

    panels = {title: names(panel) if isinstance(panel, list) else panel for title, panel in study.panels.items()}
    probes = {probe: names(listed) if isinstance(listed, list) else listed for probe, listed in study.probes.items()}
    kept = {title: panel for title, panel in panels.items() if panel or not study.panels[title]}
    measured = {probe: listed for probe, listed in probes.items() if listed or not study.probes[probe]}
    if study.panels and not kept:
        return None
    return study.model_copy(update={"panels": kept, "probes": measured, "extra": names(study.extra)})
