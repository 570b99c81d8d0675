"""Types in words: what a key can be, and the type at a path within an entry."""

import types
from typing import Annotated, Literal, Union, get_args, get_origin

from masklab.config import kinds
from masklab.config.schema import Entity, Objective


def number(value) -> str:
    return str(value).removesuffix(".0")


def bare(annotation):
    """A type without what Annotated adds."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def parts(annotation):
    """Members of a union."""
    annotation = bare(annotation)
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else ()


def annotation_at(entity, at):
    """The type of what lies at a path within an entity, with its bounds."""
    annotation = entity
    for part in at:
        annotation = _step(annotation, part)
    return annotation


def field_type(field):
    """The type of a field of an entity, with its bounds."""
    return Annotated[field.annotation, *field.metadata, None]


def _step(annotation, part):
    """The type of one key or item of a type."""
    if annotation is Objective:
        return kinds.find("terms", part).entity()
    if isinstance(annotation, type) and issubclass(annotation, Entity):
        return field_type(annotation.model_fields[part]) if part in annotation.model_fields else None
    origin, parameters = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _step(parameters[0], part)
    if origin in (Union, types.UnionType):
        steps = [step for step in (_step(one, part) for one in parameters) if step is not None]
        return steps[0] if steps else None
    if origin is dict:
        return parameters[1]
    if origin is list:
        return parameters[0] if isinstance(part, int) else None
    return parameters[min(part, len(parameters) - 1)] if origin is tuple and isinstance(part, int) else None


def allowed(annotation, bounds=()) -> str:
    """What a value of a type can be, in words: `a whole number of at least 1, or null`."""
    origin, parameters = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return allowed(parameters[0], [*_bounds(parameters[1:]), *bounds])
    if origin is Literal:
        return _options(annotation)
    if origin in (Union, types.UnionType):
        literals = [p for p in parameters if get_origin(p) is Literal]
        rest = [p for p in parameters if p not in literals and p is not type(None)]
        options = [allowed(part, bounds) for part in rest] + [_options(part) for part in literals]
        options += ["null"] * (type(None) in parameters)
        return ", or ".join(options)
    if origin is list:
        return f"a list of {_plural(parameters[0])}"
    if origin is tuple:
        return f"a list of {len(parameters)} {_plural(parameters[0])}"
    if origin is dict:
        names = _every(get_args(parameters[0])) or "names"
        return f"a mapping of {names} to {_plural(parameters[1])}"
    if isinstance(annotation, type) and issubclass(annotation, Entity):
        return "a mapping of settings"
    return _NOUNS.get(annotation, ("text", "texts"))[0] + _range(annotation, bounds)


_NOUNS = {
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("true or false", "true or false"),
    str: ("text", "names"),
}


def _every(names) -> str:
    return ", ".join(map(str, names))


def _plural(annotation) -> str:
    bounds = ()
    if get_origin(annotation) is Annotated:
        annotation, bounds = get_args(annotation)[0], list(_bounds(get_args(annotation)[1:]))
    if annotation in _NOUNS:
        return _NOUNS[annotation][1] + _range(annotation, bounds)
    if get_origin(annotation) is Literal:
        return f"any of {_every(get_args(annotation))}"
    words = allowed(annotation, bounds)
    return words.replace("a list", "lists").replace("a mapping", "mappings")


def _options(annotation) -> str:
    """Values of a Literal: `one of a, b, c`."""
    options = get_args(annotation)
    return f"one of {_every(options)}" if len(options) > 1 else repr(options[0])


def _bounds(metadata):
    """(sign, value) of annotated-types' bounds, those within pydantic's FieldInfo too."""
    for item in metadata:
        if item is None:
            continue
        yield from _bounds(getattr(item, "metadata", ()))
        for sign in ("gt", "ge", "lt", "le"):
            if (limit := getattr(item, sign, None)) is not None:
                yield sign, limit


def _range(annotation, bounds) -> str:
    if annotation not in (int, float):
        return ""
    limits = dict(bounds)
    if {"ge", "le"} <= set(limits):
        return f" from {number(limits['ge'])} to {number(limits['le'])}"
    words = {"gt": "above", "ge": "of at least", "lt": "below", "le": "of at most"}
    return " and".join(f" {words[sign]} {number(limit)}" for sign, limit in limits.items())
