"""Student's t for intervals over a few seeds: closed forms, so that nothing heavier than numpy is imported."""

import math

import numpy as np

LEVEL = 0.95  # of every interval in figures and claims


def t_probability(t: float, df: int) -> float:
    """P(|T| <= t) of Student's t with `df` degrees of freedom (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(df))
    cosine, sine = math.cos(angle), math.sin(angle)
    term, total = 1.0, 0.0
    if df % 2 == 0:
        for k in range(df // 2):
            total += term
            term *= (2 * k + 1) / (2 * k + 2) * cosine**2
        return sine * total
    term = cosine
    for k in range((df - 1) // 2):
        total += term
        term *= (2 * k + 2) / (2 * k + 3) * cosine**2
    return 2 / math.pi * (angle + sine * total)


def t_critical(df: int, level: float = LEVEL) -> float:
    """The t with P(|T| <= t) = level, by bisection to the last bit; `df` >= 1, 0 < level < 1."""
    low, high = 0.0, 1.0
    while t_probability(high, df) < level:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_probability(middle, df) < level else (low, middle)
    return high


def mean_interval(values, level: float = LEVEL) -> tuple[float, float, float]:
    """(mean, low, high) of independent values: the t interval; low and high are NaN below two values."""
    values = np.asarray(values, float)
    if len(values) == 0:
        return math.nan, math.nan, math.nan
    mean = float(values.mean())
    if len(values) < 2:
        return mean, math.nan, math.nan
    half = t_critical(len(values) - 1, level) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean, mean - half, mean + half
