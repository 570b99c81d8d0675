"""Where two JSON-able values differ: configs, and what states and artifacts were made of, then and now."""

LONGEST = 60  # characters of a value that a line shows


def changes(then, now, where: str = ""):
    """(key, old, new) of every difference between two JSON-able values, as deep as mappings go; key "": all of it."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in [*then, *(key for key in now if key not in then)]:
            yield from changes(then.get(key), now.get(key), f"{where}.{key}".lstrip("."))
    elif then != now:
        yield where, then, now


def shown(value) -> str:
    """A value as a line of text shows it, cut."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
