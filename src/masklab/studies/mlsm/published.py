"""What the paper's own tables say of its sentences: differences of its printed averages. Light: no pandas.

`published.csv` holds the cells of Tables 1 to 3 as printed. So a sentence that the paper's own numbers contradict is
seen to be one; of checkpoints before the last the paper prints no numbers.
"""

import csv
import functools
from pathlib import Path
from statistics import mean, median

from masklab.studies.mlsm.select import AMBIGUOUS, BLIMP, CONTROL, GLUE

FILE = Path(__file__).with_name("published.csv")
PANELS = {"large": "strict", "small": "strict-small", "main": "strict"}
TABLES = {BLIMP: "1", GLUE: "2", CONTROL: "3", AMBIGUOUS: "3"}


@functools.cache
def _cells() -> list[dict[str, str]]:
    with open(FILE, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _column(size: str, objective: str, sets) -> list[float]:
    """The printed scores of a recipe on the tasks of some sets. KeyError: the paper has no such recipe."""
    control = "(control)"
    return [
        float(row[f"{PANELS[size]}: {objective}"])
        for name in sets
        for row in _cells()
        if row["table"] == TABLES[name] and (TABLES[name] != "3" or (control in row["row"]) == (name == CONTROL))
    ]


def gap(size, left, right, *sets) -> float:
    """As `gaps.Scores.gap` at the last checkpoint; the others likewise."""
    return mean(_column(size, left, sets)) - mean(_column(size, right, sets))


def by_task(size, left, right, *sets) -> float:
    pairs = zip(_column(size, left, sets), _column(size, right, sets), strict=True)
    return median(one - other for one, other in pairs)


def synergy(size, *sets) -> float:
    return min(gap(size, "MLSM+MLM", alone, *sets) for alone in ("MLM", "MLSM"))


def with_mlm(size, *sets) -> float:
    return min(gap(size, f"{alone}+MLM", alone, *sets) for alone in ("KD", "MLSM"))


def smaller(left, right, *sets) -> float:
    return gap("small", left, right, *sets) - gap("large", left, right, *sets)


def suites(size, left, right, one, other) -> float:
    return gap(size, left, right, one) - gap(size, left, right, other)


FORMS = {form.__name__: form for form in (gap, by_task, synergy, with_mlm, smaller, suites)}


def of(make) -> float | None:
    """What the paper's tables say of an effect, a partial of a method of `gaps.Scores`; None where they do not say."""
    form = FORMS.get(make.func.__name__)
    if form is None or make.keywords.keys() - {"metric"}:  # the tables have one number a task, at the last checkpoint
        return None
    try:
        return form(*make.args)
    except KeyError:
        return None
