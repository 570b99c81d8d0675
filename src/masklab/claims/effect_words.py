"""Effects in words, what their parts share said once; and their values, with as many digits as tell them from 0."""

import math

from masklab.scores.reading import Reading


def minus(threshold) -> str:
    """What stands behind an effect that is counted from a threshold."""
    return f" {'-' if threshold > 0 else '+'} {abs(threshold):g}" if threshold else ""


def apart(parts, view) -> tuple[list[str], str]:
    """What each of several parts has of its own, in words; and what all share, as the end of a sentence about them."""
    if not all(isinstance(part, Reading) for part in parts):
        return [f"({part.words(view)})" for part in parts], ""
    words = [part.parts(view) for part in parts]
    shared = [key for key in words[0] if len({own[key] for own in words}) == 1] if len(words) > 1 else []
    it = "it" if "step" in shared else "last checkpoint"
    details = [", ".join(text for key, text in own.items() if key not in shared and text) or it for own in words]
    common = ", ".join(words[0][key] for key in shared if words[0][key])
    return details, f": {common}" if common else ""


def several(parts, view) -> str:
    """Parts in words; of four or more only the first and the last."""
    words = [f"({part.words(view)})" for part in parts]
    return ", ".join(words) if len(words) < 4 else f"{len(words)}: {words[0]}, ..., {words[-1]}"


def signed(terms) -> str:
    """A sum of (weight, words)."""
    terms_in_words = []
    for weight, text in terms:
        sign = "- " if weight < 0 else "+ " if terms_in_words else ""
        scale = "" if abs(weight) == 1 else f"{abs(weight):g} × "
        terms_in_words.append(f"{sign}{scale}{text}")
    return " ".join(terms_in_words)


def common(parts, view) -> str:
    """What parts have in common, if they are readings: "accuracy on b, PCFG"."""
    if not all(isinstance(part, Reading) for part in parts):
        return ", ".join(part.words(view) for part in parts)
    words = [part.parts(view) for part in parts]
    shared = [words[0][key] for key in words[0] if words[0][key] and len({own[key] for own in words}) == 1]
    return ", ".join(shared)


def with_interval(value: float, low: float = math.nan, high: float = math.nan, items=False) -> str:
    """`+0.012 [-0.003, +0.027] (i)`: three digits, more where all are below .001; no interval where there is none.

    items: whether the interval is over test items too, which (i) says.
    """
    numbers = [number for number in (value, low, high) if not math.isnan(number)]
    largest = max(map(abs, numbers), default=0.0)
    digits = 3 if largest >= 0.001 or not largest else min(1 - math.floor(math.log10(largest)), 12)
    interval = "" if math.isnan(low) else f" [{low:+.{digits}f}, {high:+.{digits}f}]{' (i)' * bool(items)}"
    return f"{value:+.{digits}f}{interval}"
