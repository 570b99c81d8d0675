"""A line of a file of minimal pairs, in any format of the evaluations. Light: read with the config.

BLiMP and its supplement: `sentence_good` and `sentence_bad`. EWoK: `Context1`, `Target1` and `Target2`; the context is
read and not scored. Entity tracking: `input_prefix` and `options`, the first of which is right: it must score higher
than each of the others, and the prefix is not scored (babylm/evaluation-pipeline-2025, `read_files.py`).
"""

from typing import NamedTuple

from masklab.errors import MaskLabError, listed

BLIMP, EWOK, TRACKING = "sentence_good", "Context1", "input_prefix"
NEEDED = {BLIMP: ("sentence_good", "sentence_bad"), EWOK: ("Context1", "Target1", "Target2")}
# BLiMP's paper and the BabyLM pipelines count 12 phenomena; two terms of the files are called otherwise there.
PHENOMENA = {"s-selection": "argument_structure", "filler_gap_dependency": "filler_gap"}


class Item(NamedTuple):
    """One item: the good sentence must score higher than each bad one; all begin with `given`, which is not scored."""

    phenomenon: str
    paradigm: str
    good: str
    bad: tuple[str, ...]
    given: str = ""


def item_of(file, number: int, row: dict, stem: str, group_by: str) -> Item:
    """The item of a line. stem: the file's name without suffixes; group_by: as a task of `pair-files` has it.

    Raises:
        MaskLabError: naming file and line: a field that is missing, empty or no text.
    """
    where = f"{file}: line {number}"
    if TRACKING in row:
        item = _tracked(where, row, stem)
    elif EWOK in row:
        context, good, bad = _texts(where, row, NEEDED[EWOK])
        domain = _name(where, row, "Domain", stem)
        item = Item(domain, domain, f"{context} {good}", (f"{context} {bad}",), context)
    else:
        good, bad = _texts(where, row, NEEDED[BLIMP])
        term = _name(where, row, "linguistics_term", stem)
        item = Item(PHENOMENA.get(term, term), _name(where, row, "UID", stem), good, (bad,))
    if group_by == "phenomenon":
        return item
    return item._replace(phenomenon=stem if group_by == "file" else item.paradigm)


def _texts(where, row, names) -> list[str]:
    for name in names:
        if name not in row:
            kind = "; the file looks like a labelled task (kind: label-files)" if "label" in row else ""
            raise MaskLabError(f"{where}: no field {name!r}; fields: {listed(row)}{kind}")
        if not isinstance(row[name], str):
            raise MaskLabError(f"{where}: {name!r} must be text (got {row[name]!r})")
        if not row[name].strip():
            raise MaskLabError(f"{where}: {name!r} is empty; a pair needs both sentences")
    return [row[name] for name in names]


def _name(where, row, field, stem) -> str:
    """What a line says that its pair belongs to; the file's name where it says nothing."""
    name = row.get(field) or stem
    if not isinstance(name, str):
        raise MaskLabError(f"{where}: {field!r} must be text (got {name!r})")
    return name


def _tracked(where, row, stem) -> Item:
    [prefix] = _texts(where, row, (TRACKING,))
    options = row.get("options")
    texts = isinstance(options, list) and all(isinstance(option, str) and option.strip() for option in options)
    if not texts or len(options) < 2:
        raise MaskLabError(f"{where}: 'options' must be a list of two texts or more, the first of them the right one")
    if type(operations := row.get("numops")) is not int:
        raise MaskLabError(f"{where}: 'numops' must be a whole number (got {operations!r})")
    name = f"{stem}_{operations}_ops"
    return Item(name, name, prefix + options[0], tuple(prefix + option for option in options[1:]), prefix)
