"""Claims of a study that has no wing and no file of its own: each recipe of a panel against the first, set by set."""

from masklab.claims.claim import Claim
from masklab.claims.effects import difference
from masklab.config import kinds
from masklab.report.generic import groups, pairs
from masklab.report.notes import training_sizes
from masklab.scores.reading import TASK_PROBES, Reading
from masklab.scores.view import View


def claims(view: View) -> list[Claim]:
    """ "MAE-LM does better than MLM on BLiMP" and its like: of a panel's recipes, on what both are measured on.

    What a probe of a user's kind measures is judged for itself, by the metric of each task.
    """
    found: dict[str, Claim] = {}
    for title, other, first in pairs(view):
        for name, tasks in groups(view).items():
            for probe in (None, *_own(view)):
                readings = [Reading(recipe, tasks=tasks, named=probe) for recipe in (other, first)]
                if all(_measured_once(reading, view) for reading in readings):
                    on, of = (f"{name}, by {probe}", f"-by-{probe}") if probe else (name, "")
                    words = f"{view.label(other, title)} does better than {view.label(first, title)} on {on}"
                    words += _over_sizes(readings[0], view)
                    key = f"{other}-over-{first}-on-{name}{of}"
                    ordered = readings[::-1] if readings[0].less_is_better(view) else readings
                    found.setdefault(key, Claim(key, title, "", words, difference(*ordered)))
    return list(found.values())


def _over_sizes(reading: Reading, view: View) -> str:
    """Over which training sizes a reading is the mean, as a sentence ends; "" where none of our probes has several."""
    ours = [facts for name in reading.probes(view) if (facts := view.probes[name])["kind"] in TASK_PROBES]
    several = [sizes for facts in ours if len(sizes := facts.get("sizes") or ()) > 1]
    return f", the mean over {training_sizes({size for sizes in several for size in sizes})}" if several else ""


def _own(view) -> list[str]:
    """Probes of a user's kinds."""
    theirs = {name for name, kind in kinds.known("probes").items() if kind.file}
    return [name for name, facts in view.probes.items() if facts["kind"] in theirs]


def _measured_once(reading: Reading, view: View) -> bool:
    """Whether each task of a reading is measured by one probe: of two, nobody says which is meant.

    A probe of a user's own that says what it gives, and not the metrics of these tasks, measures something else.
    """
    of_tasks = [reading.of(reading.recipe, tasks=(task,)) for task in reading.tasks]
    once = reading.measured(view) and all(len(each.probes(view)) == 1 for each in of_tasks)
    return once and not reading.not_given(view)
