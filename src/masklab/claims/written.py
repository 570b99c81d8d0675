"""A value and its interval as they are written, with as many digits as it takes to tell them from 0."""

import math


def with_interval(value: float, low: float = math.nan, high: float = math.nan, items=False) -> str:
    """`+0.012 [-0.003, +0.027] (i)`: three digits, more where all are below .001; no interval where there is none.

    items: whether the interval is over test items too, which (i) says.
    """
    numbers = [number for number in (value, low, high) if not math.isnan(number)]
    largest = max(map(abs, numbers), default=0.0)
    digits = 3 if largest >= 0.001 or not largest else min(1 - math.floor(math.log10(largest)), 12)
    interval = "" if math.isnan(low) else f" [{low:+.{digits}f}, {high:+.{digits}f}]{' (i)' * bool(items)}"
    return f"{value:+.{digits}f}{interval}"
