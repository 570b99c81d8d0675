"""Refuses a word that a field of a reading or an effect does not know, which would else pass for another one."""

import functools
import numbers
from dataclasses import fields
from typing import Literal, get_args, get_origin

from masklab.config.annotations import allowed, parts


def check_words(part, called: str) -> None:
    """Check the fields of a dataclass whose types are `Literal`, or a union with one.

    Raises:
        ValueError: in one line, beginning with `called`: the field, what is allowed, and what it is.
    """
    for name in _fields(type(part)):
        value = getattr(part, name)
        if not _is_known(type(part), name, value):
            wanted = allowed(type(part).__dataclass_fields__[name].type).replace("null", "None")
            raise ValueError(f"{called}: {name} must be {wanted} (got {value!r})")


@functools.cache
def _fields(kind) -> dict[str, tuple]:
    """Field -> the types that it can be, of those that have words among them."""
    options = {field.name: parts(field.type) or (field.type,) for field in fields(kind)}
    return {name: own for name, own in options.items() if any(get_origin(option) is Literal for option in own)}


def _is_known(kind, name, value) -> bool:
    try:
        return _is_one_of(kind, name, value)
    except TypeError:  # it has no hash
        return _is_one_of.__wrapped__(kind, name, value)


@functools.lru_cache(typed=True)  # readings are made by the thousand and say a dozen words; 1 is not True
def _is_one_of(kind, name, value) -> bool:
    return any(_fits(value, option) for option in _fields(kind)[name])


def _fits(value, option) -> bool:
    if get_origin(option) is Literal:
        return value in get_args(option)
    return isinstance(value, numbers.Integral if option is int else option) and not isinstance(value, bool)
