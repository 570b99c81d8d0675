"""Refuses a word that a field of a reading or an effect does not know, which would else pass for another one."""

import functools
import numbers
import types
from dataclasses import fields
from typing import Literal, Union, get_args, get_origin

SAID = {numbers.Integral: "a whole number", types.NoneType: "None"}


def check_words(part, called: str) -> None:
    """Check the fields of a dataclass whose types are `Literal`, or a union with one.

    Raises:
        ValueError: in one line, beginning with `called`: the field, what is allowed, and what it is.
    """
    for name, words, others in _fields(type(part)):
        value = getattr(part, name)
        if value not in words and (isinstance(value, bool) or not isinstance(value, others)):
            listed = ", ".join([*words, *(SAID[kind] for kind in others)])
            raise ValueError(f"{called}: {name} must be one of {listed} (got {value!r})")


@functools.cache
def _fields(kind) -> list[tuple[str, list[str], tuple[type, ...]]]:
    """(field, words, other types) of what a class allows where it allows words."""
    found = ((field.name, *_allowed(field.type)) for field in fields(kind))
    return [(name, words, tuple(others)) for name, words, others in found if words]


def _allowed(annotation) -> tuple[list[str], list[type]]:
    """(words, other types) that an annotation allows."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation)), []
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [_allowed(part) for part in get_args(annotation)]
        return [word for words, _ in parts for word in words], [kind for _, kinds in parts for kind in kinds]
    return [], [numbers.Integral if annotation is int else annotation]
