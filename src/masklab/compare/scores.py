"""Scores of two runs, paired by all that says what was measured, as differences with intervals over replicates."""

import math

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from masklab.errors import MaskLabError
from masklab.phrases import REPLACED, split
from masklab.scores.estimate import LEVEL, Estimate, estimate

KEY = ["recipe", "probe", "task", "split", "metric", "step", "train_size", "at", "layer"]
NO_WIDTH = 1e-9  # of an interval up to here the ends are one, but for rounding
WORDS, NUMBERS = KEY[:5], [*KEY[5:], "replicate", "seed", "value"]
MAY_LACK = ("at", "value", "low", "high", "replicates", "number")  # columns that may have empty cells


def check_columns(frame, words, numbers, name: str) -> None:
    """MaskLabError where a run's table lacks these columns or cells of them, or holds text for numbers, or the reverse.

    words, numbers: columns of text, and of numbers. name: the file, as a message calls it.
    """
    again = "make it again with this version"
    if missing := {*words, *numbers} - {*frame.columns}:
        raise MaskLabError(f"{name}: no column {sorted(missing)[0]!r}; {again}")
    for column in (*words, *numbers) if len(frame) else ():
        if pd.api.types.is_numeric_dtype(frame[column]) != (column in numbers):
            wanted = "numbers" if column in numbers else "text"
            raise MaskLabError(f"{name}: column {column!r}: must hold {wanted} (got {frame[column].dtype}); {again}")
        if column not in MAY_LACK and (empty := np.flatnonzero(frame[column].isna())).size:
            raise MaskLabError(f"{name}: row {empty[0]}: {column} is empty; {again}")


def score_changes(before, after, shared_seeds: bool = True):
    """Rows of what both runs measured: KEY, before, after, difference, low, high, replicates, equal, clear.

    before, after: means over replicates, each the mean over its probe's seeds; low, high: the 95 % interval of the
    difference over replicates. Where the runs share their seeds, replicate k of one is paired with replicate k of the
    other; else the interval is Welch's. clear: the interval has a width and leaves out 0. Second: what is counted ->
    (what only the first run has, what only the second has): recipes, and measurements of recipes that both measured.
    """
    one, two = (_per_replicate(frame) for frame in (before, after))
    rows = []
    both = one.keys() & two.keys()
    for key in sorted(both, key=lambda key: tuple(map(str, key))):
        rows.append((*key, *_difference(one[key], two[key], shared_seeds)))
    columns = [*KEY, "before", "after", "difference", "low", "high", "replicates", "equal"]
    frame = pd.DataFrame(rows, columns=columns)
    frame["clear"] = has_width(frame["low"], frame["high"]) & ((frame["low"] > 0) | (frame["high"] < 0))
    recipes = [{key[0] for key in values} for values in (one, two)]
    shared = recipes[0] & recipes[1]
    measured = [{_named(key) for key in values if key[0] in shared} for values in (one, two)]
    named = {"recipes measured": recipes, "measurements": measured}
    return frame, {what: tuple(sorted(a - b) for a, b in (names, names[::-1])) for what, names in named.items()}


def has_width(low, high):
    """Whether an interval says how far replicates lie apart; not where all have one value, as of what they share."""
    return high - low > NO_WIDTH


def _named(key) -> str:
    recipe, probe, task, split, metric, step, *others = key
    where = [f"{name} {value}" for name, value in zip(KEY[6:], others, strict=True) if value not in (None, 0, -1)]
    return " ".join([f"{recipe}@{step}", probe, task, split, metric, *where])


def _per_replicate(frame) -> dict[tuple, dict[int, float]]:
    """What was measured -> replicate -> the mean over seeds; texts that were replaced are examples, no measurements."""
    frame = frame.drop(columns=[name for name in ("study", "n") if name in frame]).drop_duplicates()
    frame = frame[~frame["split"].str.endswith(split("", REPLACED))]
    means = frame.groupby([*KEY, "replicate"], dropna=False, sort=False)["value"].mean()
    found: dict[tuple, dict[int, float]] = {}
    for (*key, replicate), value in means.items():
        key[KEY.index("at")] = None if math.isnan(key[KEY.index("at")]) else key[KEY.index("at")]
        found.setdefault(tuple(key), {})[int(replicate)] = float(value)
    return found


def _difference(one, two, paired):
    if paired:
        shared = sorted(one.keys() & two.keys())
        if shared:
            one, two = ({k: values[k] for k in shared} for values in (one, two))
            estimated = estimate([two[k] - one[k] for k in shared])
            count = len(shared)
        else:
            paired = False
    if not paired:
        estimated, count = _welch(estimate(list(one.values())), estimate(list(two.values()))), min(len(one), len(two))
    means = [float(np.mean(list(values.values()))) for values in (one, two)]
    equal = one.keys() == two.keys() and all(_same(one[k], two[k]) for k in one)
    return *means, estimated.value, estimated.low, estimated.high, count, equal


def _same(one: float, two: float) -> bool:
    """Whether two values are one; so are two that are no numbers, of losses that diverged."""
    return one == two or (math.isnan(one) and math.isnan(two))


def _welch(one: Estimate, two: Estimate) -> Estimate:
    """The difference of two independent means."""
    value, parts = two.value - one.value, [(part.error**2, part.dof) for part in (one, two)]
    variance = sum(part for part, _ in parts)
    if not variance > 0:  # a single replicate, or no spread at all
        bound = value if variance == 0 else math.nan
        return Estimate(value, bound, bound)
    dof = variance**2 / sum(part**2 / dof for part, dof in parts if part)
    half = math.sqrt(variance) * float(stdtrit(dof, (1 + LEVEL) / 2))
    return Estimate(value, value - half, value + half, math.sqrt(variance), dof)
