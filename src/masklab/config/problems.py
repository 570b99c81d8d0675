"""What pydantic finds wrong with a value, in plain words: one problem for each key, the key as the user wrote it."""

import contextlib
import math
from datetime import date
from typing import Annotated, Literal, NamedTuple, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from masklab.config import hints, kinds
from masklab.config.annotations import allowed, annotation_at, bare, number, parts
from masklab.config.hints import counted, unknown
from masklab.config.inherit import cut, meant
from masklab.config.located import has, place_of, spelt
from masklab.config.schema import SECTIONS, Entity
from masklab.errors import MaskLabError, in_one_line


class Problem(NamedTuple):
    """path: keys (and indices of lists) from the top of the config; message: what is wrong and what is allowed."""

    path: tuple
    message: str


def problems(error: ValidationError, entity: type[Entity], value: dict, path: tuple) -> list[Problem]:
    """What is wrong with the entry `value` at `path`, which is to be an `entity`."""
    by_point = {}
    for fault in error.errors(include_url=False):
        at, tagged = _where(fault["loc"], value, fault["type"])
        point = at[:tagged] if tagged is not None else at
        by_point.setdefault(point, []).append((at, fault))
    listed = []
    for point, faults in by_point.items():
        # in the branch that the value's shape chose
        within = [(at, fault) for at, fault in faults if at != point or fault["type"] in _LENGTHS]
        if within or len(faults) == 1:
            listed += [_problem(at, fault, entity, value, path) for at, fault in within or faults]
        else:
            message = f"must be {allowed(annotation_at(entity, point))}"
            listed.append(Problem((*path, *point), message + got(faults[0][1]["input"])))
    misspelt = [problem for problem in listed if problem.message.startswith("unknown key")]
    missed = {problem.message.partition("did you mean ")[2].strip("'?") for problem in misspelt}
    others = [problem for problem in listed if problem not in misspelt]
    return misspelt + _joined([one for one in others if one.message != MISSING or one.path[-1] not in missed])


MISSING = "required, but missing"


def _joined(listed: list[Problem]) -> list[Problem]:
    """Problems with the missing keys of one mapping in one of them."""
    lacks = {}
    for problem in listed:
        if problem.message == MISSING:
            lacks.setdefault(problem.path[:-1], []).append(str(problem.path[-1]))
    several = {path: keys for path, keys in lacks.items() if len(keys) > 1}
    kept = [problem for problem in listed if problem.message != MISSING or problem.path[:-1] not in several]
    joined = [Problem(path, f"{', '.join(keys)}: {MISSING}") for path, keys in several.items()]
    return kept + joined


def _where(location, value, kind) -> tuple[tuple, int | None]:
    """The path of a fault in the value, without pydantic's names of branches; and where the first of these stood."""
    at, tagged = [], None
    for left, part in enumerate(location, 1 - len(location)):
        if has(value, part):
            at.append(part)
            value = value[part]
        elif kind == "missing" and left == 0:
            at.append(part)
        elif tagged is None and part != "[key]":
            tagged = len(at)
    return tuple(at), tagged


def _problem(at, fault, entity, value, path) -> Problem:
    kind, context, place = fault["type"], fault.get("ctx", {}), (*path, *at)
    if kind == "unknown_term":
        return Problem(place, unknown(at[-1], kinds.known("terms")))
    if kind == "extra_forbidden":
        names, within = _fields(entity, at[:-1], value)
        entry_kind = within["kind"] if isinstance(within.get("kind"), str) else None
        top = len(at) == 1 and bool(path) and path[0] in SECTIONS
        section = path[0] if path else ""
        stated = place_of(within, "kind") is not None
        message = hints.unknown_in(at[-1], entity, names, section, top, entry_kind, stated)
        return Problem(place, message)
    if kind == "value_error":  # of a check of our own, which may name a key of the mapping that it looked at
        message = in_one_line(context["error"])
        key, colon, rest = message.partition(": ")
        return (
            Problem((*place, key), rest) if colon and key in _fields(entity, at, value)[0] else Problem(place, message)
        )
    if fault["loc"][-1] == "[key]":
        names = get_args(get_args(bare(annotation_at(entity, at[:-1])))[0])
        return Problem(place, unknown(at[-1], names))
    if kind == "missing" and isinstance(at[-1], int):  # of a list of so many
        return Problem(place[:-1], f"must be {allowed(annotation_at(entity, at[:-1]))}")
    if kind == "missing":
        return Problem(place, MISSING)
    if kind == "too_short":
        return Problem(place, f"needs at least {counted(context['min_length'], 'item')}")
    if kind == "too_long":
        most = context["max_length"]
        return Problem(place, f"takes at most {counted(most, 'item')}" if most else "must stay empty")
    if kind == "literal_error":
        annotation = annotation_at(entity, at)
        told = isinstance(fault["input"], str) and len(fault["input"]) > 4  # gpu is no slip for cpu
        hint = meant(fault["input"], get_args(bare(annotation))) if told else ""
        options = get_args(bare(annotation)) if get_origin(bare(annotation)) is Literal else ()
        words = f"one of {cut(options)}" if len(options) > 1 else allowed(annotation)
        return Problem(place, f"must be {words}" + got(fault["input"]) + hint)
    if kind == "list_type" and isinstance(fault["input"], str | int):
        return Problem(place, _no_list(entity, at, value, fault["input"]))
    if kind == "string_type" and at and isinstance(at[-1], int) and (named := _named_by(at)):
        return Problem(place, f"must be the name of {named}" + got(fault["input"]))
    if kind == "string_type" and isinstance(fault["input"], dict) and at and (told := hints.name_of(at[-1])):
        return Problem(place, told)
    if kind in ("float_type", "int_type") and isinstance(fault["input"], list) and at and isinstance(at[-1], str):
        beside = _fields(entity, at[:-1], value)[0]
        return Problem(place, f"must be {_WORDS[kind]}{hints.several(at[-1], fault['input'], beside)}")
    if kind == "dict_type":
        return Problem(place, hints.values_of(at[-1] if at else None) + got(fault["input"]))
    if kind in ("model_type", "model_attributes_type"):
        return Problem(place, hints.keys_of((*path[:1], *at)[-1] if path or at else "") + got(fault["input"]))
    if kind in _BOUNDS:
        sign, words = _BOUNDS[kind]
        bound = f"must be {words} {number(context[sign])}{got(fault['input'])}"
        return Problem(place, bound + hints.share(at[-1] if at else "", fault["input"]))
    if kind == "string_type" and not isinstance(fault["input"], dict | list | None):
        message = "must be text; put it in quotes"
    elif kind in _WORDS:
        message = f"must be {_WORDS[kind]}"
        if kind in ("int_parsing", "float_parsing"):
            return Problem(place, message + got(fault["input"]) + hints.number(fault["input"]))
    else:
        message = fault["msg"][0].lower() + fault["msg"][1:]
    return Problem(place, message + got(fault["input"]))


_LENGTHS = ("too_short", "too_long")
_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
_WORDS = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
}


def mistaken(entity, value, path) -> list[Problem]:
    """What pydantic takes for numbers: true and false, for 1 and 0, and numbers in quotes.

    Not 1e-3, which YAML takes for text where it has no dot.
    """
    found = []

    def walk(value, at):
        for part, item in value.items() if isinstance(value, dict) else enumerate(value):
            here = (*at, part)
            if isinstance(item, dict | list):
                walk(item, here)
            elif isinstance(item, bool) or _is_quoted_number(value, part):
                try:
                    annotation = annotation_at(entity, here)
                except MaskLabError:  # a term that is not known
                    continue
                types_ = _leaves(annotation)
                if types_ & {int, float} and type(item) not in types_:
                    hint = "" if isinstance(item, bool) else f"; write {item.strip()}, without quotes"
                    found.append(Problem((*path, *here), f"must be {allowed(annotation)}{got(item)}{hint}"))

    walk(value, ())
    return found


def _is_quoted_number(value, part) -> bool:
    """Whether a key of a mapping, or an item of a list, is a number that stands in quotes in its file."""
    if not getattr(place_of(value, part), "quoted", False):
        return False
    with contextlib.suppress(ValueError):
        return isinstance(value[part], str) and math.isfinite(float(value[part]))
    return False


def _leaves(annotation) -> set:
    """Types within unions and lists."""
    parts = [part for part in get_args(annotation) if isinstance(part, type) or get_origin(part)]
    if get_origin(annotation) is Literal or not parts:
        return {annotation} if isinstance(annotation, type) else set()
    return {leaf for part in (parts[:1] if get_origin(annotation) is Annotated else parts) for leaf in _leaves(part)}


def got(value) -> str:
    """The wrong value as the end of a message, as YAML writes it; nothing for mappings and lists."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value.values())) is None:
        name = next(iter(value))
        return f' (got a mapping); text with braces needs quotes: "{{{name}}}"'
    if isinstance(value, dict | list | tuple):
        return ""
    if isinstance(value, date):
        return f" (got {value})"
    words = {None: "null", True: "true", False: "false"} if value is None or isinstance(value, bool) else {}
    return f" (got {words.get(value) or repr(value)})"


def _no_list(entity, at, value, given) -> str:
    """What is said of a single value in place of a list; where a list of it would do, this is what to write."""
    annotation = annotation_at(entity, at)
    if at[-1] == "checkpoints":
        steps = value.get("steps")
        most = f", none above {steps}" if isinstance(steps, int) else ""
        return f"must be a list of steps{most}" + got(given)
    try:
        TypeAdapter(annotation).validate_python([given], strict=isinstance(given, bool))
    except ValidationError:
        return f"must be {allowed(annotation)}" + got(given)
    if given == "all":
        return f"must be {allowed(annotation)}" + got(given)
    return f"must be a list; write [{spelt(given) if given else given}]"


def _named_by(at) -> str:
    """What the items of a list name, as far as its key tells: `a model`."""
    nouns = {"panels": "a model", "extra": "a model", "probes": "a model", "sets": "a task", "tasks": "a task"}
    return next((nouns[part] for part in at if part in nouns), "")


def _fields(entity, at, value) -> tuple[list[str], dict]:
    """Keys allowed in the mapping at a path, and the mapping."""
    annotation = annotation_at(entity, at)
    for part in at:
        value = value[part]
    return [name for one in _entities(annotation) for name in one.model_fields], value


def _entities(annotation):
    annotation = bare(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Entity):
        return [annotation]
    return [entity for part in parts(annotation) for entity in _entities(part)]
