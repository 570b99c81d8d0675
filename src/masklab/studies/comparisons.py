"""Claims of a study that has no wing and no file of its own: each recipe of a panel against the first, set by set."""

from masklab.claims.claim import Claim
from masklab.claims.effects import difference
from masklab.report.generic import groups, pairs
from masklab.scores.reading import Reading
from masklab.scores.view import View


def claims(view: View) -> list[Claim]:
    """ "MAE-LM does better than MLM on BLiMP" and its like: of a panel's recipes, on what both are measured on."""
    found: dict[str, Claim] = {}
    for title, other, first in pairs(view):
        for name, tasks in groups(view).items():
            readings = [Reading(recipe, tasks=tasks) for recipe in (other, first)]
            if all(_measured_once(reading, view) for reading in readings):
                words = f"{view.label(other, title)} does better than {view.label(first, title)} on {name}"
                key = f"{other}-over-{first}-on-{name}"
                effect = difference(*readings)
                found.setdefault(key, Claim(key, title, "", words, effect))
    return list(found.values())


def _measured_once(reading: Reading, view: View) -> bool:
    """Whether each task of a reading is measured by one probe: of two, nobody says which is meant."""
    return reading.measured(view) and all(_once(reading, task, view) for task in reading.tasks)


def _once(reading, task, view) -> bool:
    return len(view.measured_by(reading.recipe, reading.kinds(), (task,))) == 1
