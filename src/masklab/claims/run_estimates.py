"""Effects over runs of pre-training as numbers: one value per run, the mean with its t interval."""

import numpy as np
import pandas as pd

from masklab.claims.estimate import MISSING, Estimate, of_seeds
from masklab.claims.runs import Cost, DeltaSlope, Rank, Reached, Runs, Score
from masklab.claims.spec import Claim
from masklab.claims.verdict import MARGINAL
from masklab.config.schema import Study
from masklab.figures.recipes import deltas
from masklab.replicates import Replicates, reached


def estimates(claims: list[Claim], scores: pd.DataFrame, study: Study, metrics: dict[str, str]) -> list[Estimate]:
    """One estimate per claim; NaN where a run lacks a value.

    A claim that scores do not differ presupposes that some recipe learned the tasks: that its mean score is more than
    the margin above always giving one answer.
    """
    read, found = Replicates(scores, study, metrics), []
    for claim in claims:
        values = _values(claim.effect, read, study)
        premise = claim.region not in MARGINAL or _learned(claim.effect, read, study)
        known = len(values) and np.isfinite(values).all()
        found.append(of_seeds(values, premise, _rounding(claim.effect)) if known else MISSING)
    return found


def _rounding(effect) -> float:
    """Standard deviation of an effect on ranks from their being whole numbers: 1/12 is the variance of rounding.

    Runs whose ranks happen to agree would else have an interval of no width. A mean over layers is rounded less: this
    is the most.
    """
    terms = effect.terms if isinstance(effect, Runs) else ()
    return float(np.sqrt(sum(weight**2 for weight, reading in terms if isinstance(reading, Rank)) / 12))


def _learned(effect, read, study) -> bool:
    parts = [reading for reading in effect.readings(study) if isinstance(reading, Score)]
    best = [read.last(reading.panel, study.sets[reading.set]).mean() for reading in parts]
    return not parts or bool(max(best) > read.guess(study.sets[parts[0].set]) + study.margin)


def _values(effect, read, study) -> np.ndarray:
    if isinstance(effect, DeltaSlope):
        shares = deltas(study)
        rows = _paired([read.last(title, study.sets[effect.set]) for title in shares])
        x = np.array(list(shares.values())) - np.mean(list(shares.values()))
        return x @ rows / (x @ x)
    if isinstance(effect, Reached):
        return _reached(effect, read, study)
    readings = _paired([_reading(reading, read, study) for _, reading in effect.terms])
    if effect.relative:
        return readings[0] / readings[1] - 1 - effect.threshold
    return np.array([weight for weight, _ in effect.terms]) @ readings - effect.threshold


def _paired(columns) -> np.ndarray:
    """[terms, runs]: the runs that all have, in order."""
    runs = min(len(column) for column in columns)
    return np.array([column[:runs] for column in columns])


def _reading(reading, read, study) -> np.ndarray:
    if isinstance(reading, Score):
        return read.last(reading.panel, study.sets[reading.set])
    if isinstance(reading, Cost):
        return read.final_cost(reading.panel, reading.metric)
    assert isinstance(reading, Rank)
    if reading.set:
        return read.ranks_after(reading.panel, study.sets[reading.set], reading.metric)
    frame = read.ranks(reading.panel, reading.split, reading.metric)
    top = int(frame.index.max())
    chosen = {
        "first": [0],
        "last": [top],
        "all": range(1, top + 1),
        "shallow": range(1, top // 2 + 1),
        "deep": range(top - top // 2 + 1, top + 1),
    }[reading.layers]
    return frame.reindex(list(chosen)).mean(axis=0, skipna=False).to_numpy()


def _reached(effect, read, study) -> np.ndarray:
    tasks = study.sets[effect.set]
    goals, whole = read.last(effect.reference, tasks), read.final_cost(effect.reference, effect.cost)
    curves, costs = read.scores(effect.panel, tasks), read.costs(effect.panel, effect.cost)
    found = []
    for run in range(min(len(goals), curves.shape[1])):
        points = pd.concat([costs[run], curves[run]], axis=1, keys=["cost", "value"]).dropna().sort_index()
        if points.empty:
            return np.array([np.nan])
        at = reached(points["cost"], points["value"], goals[run])
        at = points["cost"].iloc[-1] if np.isnan(at) else at
        found.append(at / whole[run] - effect.threshold)
    return np.array(found)
