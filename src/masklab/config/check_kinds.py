"""What a user's file registers is what it must be: said at the line that registers it, before any job needs it."""

import inspect
from typing import Annotated, get_args

from masklab.errors import MaskLabError

# What a function of a kind is called with.
TAKES = {
    "corpora": ("config", "name", "seed"), "tasks": ("config", "name", "seed"), "probes": ("context",),
    "figures": ("results", "chosen"), "tables": ("results", "chosen"), "claims": ("view",),
}  # fmt: skip


def check_name(section: str, name) -> None:
    """MaskLabError where the name of a kind is no text, as where a decorator is written without its brackets."""
    if not isinstance(name, str) or not name:
        raise MaskLabError(f"the first argument must be the name of a kind of {section}, a text (got {name!r})")


def check_function(section: str, name: str, make) -> None:
    """MaskLabError where what a kind is made by cannot be called as it will be."""
    if section in TAKES:  # figures and tables may take `corpora`, too
        check_takes(f"{name!r} of {section}", make, TAKES[section], whole=section not in ("figures", "tables"))


def check_takes(what: str, make, names: tuple[str, ...], whole: bool = True) -> None:
    """MaskLabError where something cannot be called with so many arguments. whole: and needs no others."""
    wanted = f"{what} must be a function of ({', '.join(names)})"
    if not callable(make):
        raise MaskLabError(f"{wanted} (got {make!r})")
    if inspect.isfunction(make):
        signature = inspect.signature(make)
        try:
            (signature.bind if whole else signature.bind_partial)(*names)
        except TypeError:
            raise MaskLabError(f"{wanted} (got {make.__name__}{signature})") from None


def check_settings(section: str, name: str, settings) -> None:
    """MaskLabError where a class of settings is none, or has a key of every entry of its section as something else,
    or a default that its own key could not have."""
    from pydantic import BaseModel, PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter, ValidationError

    from masklab.config import schema
    from masklab.config.annotations import allowed
    from masklab.config.schema.studies import Null

    base, called = (schema.Weight, "own.Weight") if section == "terms" else (BaseModel, "own.Entity")
    if settings is None and section != "terms":
        return
    if not (isinstance(settings, type) and issubclass(settings, base)):
        raise MaskLabError(
            f"{name!r} of {section}: its settings must be a class derived from {called} (got {settings!r})"
        )
    shared = {"probes": schema.CheckpointProbe, "terms": schema.Weight}.get(section, schema.Drawn)
    keys = {key: field.annotation for key, field in shared.model_fields.items()}
    keys |= {"tasks": list[str]} if section == "probes" else {}
    for key in keys.keys() & settings.model_fields.keys():
        default = settings.model_fields[key].get_default(call_default_factory=True)
        try:
            if not settings.model_fields[key].is_required():
                TypeAdapter(keys[key]).validate_python(default)
        except ValidationError:
            raise MaskLabError(
                f"{name!r} of {section}: {key} means the same in all {section}, and cannot be {default!r} by default;"
                " call another setting otherwise"
            ) from None
    for key, field in settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        form = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        try:
            if not field.is_required():
                TypeAdapter(form).validate_python(default)
        except (PydanticUserError, PydanticUndefinedAnnotation):  # refused where the settings are built
            continue
        except ValidationError:
            raise MaskLabError(
                f"{name!r} of {section}: {key} must be {allowed(form)}, and cannot be {default!r} by default"
            ) from None
    if section == "probes":
        _check_nulls(name, settings, get_args(Null))
        _check_ranges(name, settings)
        _check_lower(name, settings)


def _check_nulls(name: str, settings, known) -> None:
    """The nulls that are meaningful for a probe are said of the whole class, and by their names."""
    nulls = getattr(settings, "nulls", ())
    if "nulls" in settings.model_fields or not isinstance(nulls, tuple) or not {*nulls} <= {*known}:
        raise MaskLabError(
            f"{name!r} of probes: its settings must say `nulls: own.ClassVar = (...)`, with some of {', '.join(known)}"
        )


def _check_ranges(name: str, settings) -> None:
    """What the metrics of a probe can be is said of the whole class: metric -> (least, most)."""
    ranges = getattr(settings, "ranges", {})
    good = isinstance(ranges, dict) and "ranges" not in settings.model_fields
    for metric, ends in ranges.items() if good else ():
        numbers = isinstance(ends, tuple) and len(ends) == 2 and all(isinstance(end, int | float) for end in ends)
        good = good and isinstance(metric, str) and numbers and ends[0] < ends[1]
    if not good:
        raise MaskLabError(
            f"{name!r} of probes: its settings must say `ranges: own.ClassVar = {{'metric': (least, most), ...}}`"
        )


def _check_lower(name: str, settings) -> None:
    """Metrics of which less is better are said of the whole class, and are some of its `ranges`, if it has them."""
    lower, ranges = getattr(settings, "lower", ()), getattr(settings, "ranges", {})
    good = isinstance(lower, tuple) and "lower" not in settings.model_fields
    good = good and all(isinstance(metric, str) and (metric in ranges or not ranges) for metric in lower)
    if not good:
        some = f", with some of {', '.join(ranges)}" if ranges else ""
        raise MaskLabError(
            f"{name!r} of probes: its settings must say `lower: own.ClassVar = ('metric', ...)`{some}, metrics of which"
            " less is better"
        )
