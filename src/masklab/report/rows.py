"""A row of a table: its cells and those of its nulls, which of them is best, and which are no result.

Both are decided on differences within replicates: what replicates share (language, batches, test items) moves all
cells of a row together, so that intervals of single cells say less than those of differences.
"""

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from masklab.phrases import TOLD
from masklab.report.cells import APART, NULL, cell, filled, tidy
from masklab.scores.estimate import Estimate
from masklab.scores.per_replicate import Values, difference
from masklab.scores.reading import FEWEST, RANKS, Reading
from masklab.scores.results import Results

MAJORITY = "majority"
CHANCE = "chance"  # what the majority is called of minimal pairs
# Metrics of a task of which more is not better.
NO_SCORE = (*RANKS, "best_step", "capped", "tv_pretrained", "tv_finetuned", "tv_from_law")
NO_SCORE += ("pearson_low", "pearson_high", TOLD)
EQUAL = 1e-9  # difference up to which two scores are one


def table_of(results: Results, chosen: dict[str, dict[str, dict[str, Reading]]]) -> pd.DataFrame:
    """The table of panel -> row -> label -> reading."""
    return tidy(
        [
            each
            for panel, rows in chosen.items()
            for row, own in rows.items()
            for each in row_cells(results, own, panel, row)
        ]
    )


def row_cells(results: Results, readings: dict[str, Reading], panel: str, row: str) -> list[dict]:
    """Cells of one row: the readings by label, then the best null of each kind, and the majority in any case.

    All of them are over the replicates that all its readings have, where there are such: others may be of languages of
    their own, and a row is read across.
    """
    metric, shared = next(iter(readings.values())).unit(results.view), results.shared(readings.values())
    values = _over_shared(results, readings)
    nulls = best_of_kinds(results, readings.values(), shared)
    scored = is_scored(readings.values())
    marks = {label: mark(results, readings[label], own, nulls) for label, own in values.items()} if scored else {}
    beside = {f"{NULL}{kind}": own for kind, own in nulls.items()}
    compared = scored and results.are_alike(readings.values())
    best = best_of(values | beside, sign_of(results, readings.values())) if compared else None
    cells = []
    for label, reading in readings.items():
        majority = at_shared(results.majority(reading), shared) if scored else None
        level = math.nan if majority is None else mean_of(majority)
        shown = "best" if label == best else marks.get(label, "")
        made = cell(results, reading, panel, row, label, metric, shared, readings.values())
        cells.append(made | {"majority": level, "mark": shown})
    for kind, own in nulls.items():
        made = _null(results, own, next(iter(readings.values())))
        cells.append(filled(made, panel, row, "", f"{NULL}{kind}", metric))
    return cells


def _over_shared(results: Results, readings: dict[str, Reading]) -> dict[str, Values]:
    """Label -> values of a row's readings that were measured, over the replicates that all have, if there are such."""
    shared = results.shared(readings.values())
    values = {label: results.values(reading) for label, reading in readings.items()}
    return {label: own.at(shared or own.replicates) for label, own in values.items() if own.replicates}


def differences(results: Results, readings: dict[str, Reading], panel: str, row: str) -> list[dict]:
    """Cells of what each reading of a row is above the first: the mean of the differences within replicates.

    These are the replicates that the cells of the row are over. What was measured at unlike training sizes has none.
    """
    (first, base), *others = readings.items()
    values = _over_shared(results, readings)
    cells = []
    for label, reading in others:
        both = {label, first} <= values.keys() and results.are_alike([base, reading])
        apart = difference(values[label], values[first]) if both else None
        if apart is not None:
            (low, high), (least, most) = results.limits(reading), results.limits(base)
            metric, apart = reading.unit(results.view), apart.within(low - most, high - least)
            cells.append(filled(apart, panel, row, "", f"{label} − {first}", metric) | {"mark": APART})
    return cells


def is_scored(readings) -> bool:
    """Whether readings are scores of tasks, of which more is better, or less (`sign_of`)."""
    return all(reading.tasks and reading.metric not in NO_SCORE for reading in readings)


def _null(results, own: Values, reading) -> Estimate:
    """Mean of a null of a reading; the majority of one test set has no interval, since there is nothing to vary."""
    made = results.estimated(own.data.mean(1), reading)
    return Estimate(made.value, math.nan, math.nan, replicates=made.replicates) if made.half < EQUAL else made


def at_shared(own: Values | None, shared) -> Values | None:
    """Values over the shared replicates alone; as they are where nothing is shared, None where none of them is."""
    if own is None or shared is None:
        return own
    there = [replicate for replicate in shared if replicate in own.replicates]
    return own.at(there) if there else None


def best_of_kinds(results: Results, readings, shared=None) -> dict[str, Values]:
    """Kind of null -> the best of that kind among the nulls of some readings; the majority, or chance, last.

    shared: over these replicates alone.
    """
    kinds: dict[str, Values] = {}
    for reading in readings:
        nulls = {kind: own for kind, own in results.nulls(reading).items() if kind != MAJORITY}
        if (majority := results.majority(reading)) is not None:
            nulls[called(results, reading)] = majority
        sign = sign_of(results, [reading])
        for kind, own in nulls.items():
            if (own := at_shared(own, shared)) is None:
                continue
            if kind not in kinds or sign * mean_of(own) > sign * mean_of(kinds[kind]):
                kinds[kind] = own
    last = (MAJORITY, CHANCE)
    return dict(sorted(kinds.items(), key=lambda pair: pair[0] in last))


def sign_of(results: Results, readings) -> int:
    """1 where more of what some readings measure is better, -1 where less is."""
    lower = [reading.less_is_better(results.view) for reading in readings]
    return -1 if lower and all(lower) else 1


def called(results: Results, reading: Reading) -> str:
    """What always giving one answer is called: "majority", or of minimal pairs "chance"."""
    return CHANCE if results.of_pairs(reading) else MAJORITY


def mean_of(own: Values) -> float:
    """The mean over replicates and points."""
    return float(own.data[:, :, 0].mean())


def best_of(values: dict[str, Values], sign: int = 1) -> str | None:
    """The label whose values are better than every other's: the paired interval over 3 or more replicates is above 0.

    None if there is none, if it is a null, or if there is nothing to compare. sign: as `sign_of` gives it.
    """
    if len(values) < 2:
        return None
    values = {label: replace(own, data=sign * own.data) for label, own in values.items()}
    first = max(values, key=lambda label: values[label].scalar[:, 0].mean())
    others = (difference(values[first], own) for label, own in values.items() if label != first)
    shown = all(apart is not None and apart.replicates >= FEWEST and apart.low > 0 for apart in others)
    return first if shown and not first.startswith(NULL) else None


def mark(results: Results, reading: Reading, own: Values, nulls: dict[str, Values]) -> str:
    """How a cell is marked that is no result: at the majority, below it, or not shown to be above a null of its row.

    "= majority" or "< majority" ("chance" of pairs): equal in every replicate, or the interval of the difference lies
    below 0; "unlearned": the interval of the gain over some null, the majority among them, is not above 0; ""
    otherwise. With one replicate the values themselves are compared.
    """
    majority = results.majority(reading)
    if majority is not None:
        shared = [r for r in own.replicates if r in majority.replicates]
        apart = own.at(shared).scalar[:, 0] - majority.at(shared).scalar[:, 0]
        if len(apart) and np.abs(apart).max() < EQUAL:
            return f"= {called(results, reading)}"
        gain = results.gain(reading, own, majority)
        if gain is not None and (gain.value if gain.replicates < 2 else gain.high) < 0:
            return f"< {called(results, reading)}"
    gains = (results.gain(reading, own, null) for null in nulls.values())
    return "unlearned" if any(gain is not None and not above(gain) for gain in gains) else ""


def above(gain: Estimate) -> bool:
    """Whether an estimate is shown to be above 0; of a single replicate, whether it is."""
    return (gain.value if gain.replicates < 2 else gain.low) > EQUAL
