"""Refuses a word that a field of a reading or an effect does not know, which would else pass for another one."""

import types
from dataclasses import fields
from typing import Literal, Union, get_args, get_origin


def check_words(part, called: str) -> None:
    """Check the fields of a dataclass whose types are `Literal`, or a union with one.

    Raises:
        ValueError: in one line, beginning with `called`: the field, what is allowed, and what it is.
    """
    for field in fields(part):
        words, others = _allowed(field.type)
        value = getattr(part, field.name)
        known = isinstance(value, tuple(others)) and not isinstance(value, bool)
        if words and not known and value not in words:
            also = {int: "a whole number", float: "a number", types.NoneType: "None"}
            listed = [*words, *(also.get(kind, kind.__name__) for kind in others)]
            raise ValueError(f"{called}: {field.name} must be one of {', '.join(listed)} (got {value!r})")


def _allowed(annotation) -> tuple[list[str], list[type]]:
    """(words, types) that an annotation allows."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation)), []
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [_allowed(part) for part in get_args(annotation)]
        return [word for words, _ in parts for word in words], [kind for _, kinds in parts for kind in kinds]
    return [], [annotation] if isinstance(annotation, type) else []
