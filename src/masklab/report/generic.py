"""The tables and figures that suit any study: its recipes beside each other, on its tasks, with their nulls.

`comparison` has a row per task and per set of tasks, and the difference of each recipe to the first of its panel;
`bars` shows the same, `curves` the means over a set of tasks (or over each task, where the study has no sets) against
the updates of pre-training, `size_curves` against the training examples; `losses` has the pre-training losses, beside
their floors where these are known, `loss_curves` against the updates. Light: the drawing is `masklab.report.compare`.
"""

import itertools

from masklab.errors import MaskLabError
from masklab.report.item import Item
from masklab.scores.facts import base
from masklab.scores.reading import TASK_PROBES, Reading
from masklab.scores.view import View

NO_LOSS = "no loss probe of the study measures a recipe of its panels"


def rows(view: View) -> dict[str, tuple[str, ...]]:
    """Row -> its tasks: those of every set and their mean, a set of one task by its name; else every task measured.

    A task that has a row as a set has no other one. A set that is called like a task with a row is `set <name>`, and so
    is one that is called like the mean of another set.
    """
    tasks_of: dict[str, tuple[str, ...]] = {}
    alone = {tasks[0] for tasks in view.sets.values() if len(tasks) == 1}
    rowed = {task for tasks in view.sets.values() if len(tasks) > 1 for task in tasks} - alone
    rowed |= {f"mean of {name}" for name, tasks in view.sets.items() if len(tasks) > 1}
    for name, tasks in view.sets.items():
        several = {task: (task,) for task in tasks if task not in alone}
        tasks_of |= {f"set {name}" if name in rowed else name: tuple(tasks)} if len(tasks) == 1 else several
        if len(tasks) > 1:
            tasks_of[f"mean of {name}"] = tuple(tasks)
    return tasks_of or {task: (task,) for facts in view.probes.values() for task in facts["tasks"]}


def groups(view: View) -> dict[str, tuple[str, ...]]:
    """Name -> tasks: the sets of the study; of one without sets, every task."""
    return {name: tuple(tasks) for name, tasks in view.sets.items() if tasks} or rows(view)


def pairs(view: View) -> list[tuple[str, str, str]]:
    """(panel, recipe, the first recipe of that panel), each two recipes once."""
    found: dict[frozenset, tuple[str, str, str]] = {}
    for title, members in view.panels.items():
        recipes = list(dict.fromkeys(members.values()))
        for other in recipes[1:]:
            found.setdefault(frozenset((recipes[0], other)), (title, other, recipes[0]))
    return list(found.values())


def comparison(view: View) -> dict[str, dict[str, dict[str, Reading]]]:
    """Panel -> row -> label -> reading, of what is measured."""
    if readings := _of_tasks(view, rows(view)):
        return readings
    raise MaskLabError(_lacking(view))


def curves(view: View) -> dict[str, dict[str, dict[str, Reading]]]:
    """Panel -> set of tasks -> label -> curve over updates."""
    if readings := _of_tasks(view, groups(view), step="all", over="step"):
        return readings
    raise MaskLabError(_lacking(view))


def size_curves(view: View) -> dict[str, dict[str, dict[str, Reading]]]:
    """Panel -> set of tasks, without those that are not measured at several training sizes -> label -> curve."""
    sized = _sized(view)
    kept = {name: tuple(task for task in tasks if base(task) in sized) for name, tasks in groups(view).items()}
    if readings := _of_tasks(view, {name: tasks for name, tasks in kept.items() if tasks}, over="train_size"):
        return readings
    raise MaskLabError(
        "no probe of the study measures a recipe of its panels at several training sizes; give a probe of kind"
        " finetune or linear_probe `sizes` with two or more"
    )


def _of_tasks(view, tasks_of, **how):
    """Panel -> name in `tasks_of` -> label -> reading of these tasks, of what is measured."""
    readings = {}
    for title, members in view.panels.items():
        for name, tasks in tasks_of.items():
            for label, recipe in members.items():
                reading = Reading(recipe, tasks=tasks, **how)
                if _measured(reading, view):
                    readings.setdefault(title, {}).setdefault(name, {})[label] = reading
    return readings


def _sized(view) -> set[str]:
    """Tasks that probes of the study measure at several training sizes."""
    sizes: dict[str, set] = {}
    for facts in view.probes.values():
        for task in facts["tasks"] if facts["kind"] in TASK_PROBES else ():
            sizes.setdefault(task, set()).update(facts.get("sizes") or ())
    return {task for task, several in sizes.items() if len(several) > 1}


def loss_curves(view: View) -> dict[str, dict[str, dict[str, Reading]]]:
    """Panel -> loss, and floor where a probe measures it -> label -> its curve over updates, or the number."""
    readings = {}
    for title, members in view.panels.items():
        for label, recipe in members.items():
            loss = Reading(recipe, "loss", step="all", over="step")
            if loss.measured(view):
                readings.setdefault(title, {}).setdefault("loss", {})[label] = loss
                readings[title].setdefault("floor", {})[label] = Reading(recipe, "floor")
    if not readings:
        raise MaskLabError(NO_LOSS)
    return readings


def _measured(reading: Reading, view: View) -> bool:
    """Whether a reading is measured; MaskLabError where two probes measure it: their mean would be the score of none.

    Two of one kind may differ in training sizes, which a score is the mean over, or in the checkpoints that they read.
    """
    if not reading.measured(view):
        return False
    for task in reading.tasks:
        of_task = reading.of(reading.recipe, tasks=(task,))
        names, steps = of_task.probes(view), view.steps(of_task)
        for (one, at), (other, then) in itertools.combinations(zip(names, steps, strict=True), 2):
            facts = view.probes[one], view.probes[other]
            sizes = [{*(own.get("sizes") or ("all",))} for own in facts]
            alike = facts[0]["kind"] != facts[1]["kind"] or not sizes[0].isdisjoint(sizes[1])
            if alike and not at.isdisjoint(then):
                raise MaskLabError(
                    f"{reading.recipe} is measured on {task} by two probes, {one} and {other}, and nobody says which is"
                    " meant; leave one of them to a study of its own"
                )
    return True


def losses(view: View) -> dict[str, dict[str, dict[str, Reading]]]:
    """Panel -> loss, floor, gap, the gap's share of the floor -> label -> reading of the recipes of the panels."""
    readings = {}
    for title, members in view.panels.items():
        for label, recipe in members.items():
            if view.measured_by(recipe, ["loss"]):
                own = {metric: Reading(recipe, metric) for metric in ("loss", "floor", "gap")}
                own["gap, share of the floor"] = Reading(recipe, "gap", form="share of the floor")
                for name, reading in own.items():
                    readings.setdefault(title, {}).setdefault(name, {})[label] = reading
    if not readings:
        raise MaskLabError(NO_LOSS)
    return readings


def _lacking(view) -> str:
    """Why a study has nothing to compare, and what to write instead."""
    there = {name: facts for name, facts in view.probes.items() if facts["kind"] in TASK_PROBES}
    kinds, said = " or ".join(TASK_PROBES), "no probe of the study measures a recipe of its panels on a task"
    if not there:
        has = ", ".join(f"{name!r} ({facts['kind']})" for name, facts in view.probes.items()) or "none"
        return (
            f"{said}; it compares what a probe of kind {kinds} says, and the study's probes are: {has}; add one of"
            " these kinds; what other probes measure is in scores.csv, and a figure or table of your own can show it,"
            " as docs/your-own-study.md says"
        )
    if not any(recipe in view.members for facts in there.values() for recipe in facts["recipes"]):
        name, facts = next(iter(there.items()))
        listed = ", ".join(facts["recipes"])
        return f"{said}; {name!r} measures {listed}: name recipes of the panels there (`{name}: all` measures them all)"
    measured = dict.fromkeys(task for facts in there.values() for task in facts["tasks"])
    shown = dict.fromkeys(task for tasks in rows(view).values() for task in tasks)
    return (
        f"{said}; its sets name {', '.join(shown)}, and its probes measure {', '.join(measured)}: name the same tasks"
        " in `sets`, or leave `sets` out"
    )


FIGURES = {
    "bars": Item(
        "masklab.report.compare:bars",
        comparison,
        caption="Each recipe's score on each task, beside what always giving one answer and the best null score there.",
    ),
    "curves": Item(
        "masklab.report.compare:curves",
        curves,
        caption="Each recipe's score at each checkpoint of its pre-training, beside the majority or chance and the best"
        " null.",
    ),
    "size_curves": Item(
        "masklab.report.compare:size_curves",
        size_curves,
        caption="Each recipe's score against the number of training examples of the task, beside the majority or chance"
        " and, at each number, the best null.",
    ),
    "loss_curves": Item(
        "masklab.report.compare:loss_curves",
        loss_curves,
        caption="Each recipe's loss on test tokens at each checkpoint of its pre-training, in nats per token, beside"
        " the best null and, where it is known, the least possible loss. Losses under different tokenizers, or on"
        " different corpora, do not compare.",
    ),
}
TABLES = {
    "comparison": Item(
        "masklab.report.compare:comparison",
        comparison,
        caption="Each recipe's score on each task, its difference from the first recipe of the panel within replicates,"
        " and what the nulls score.",
    ),
    "losses": Item(
        "masklab.report.compare:losses",
        losses,
        nulls=False,
        caption="Loss of each pre-trained model in nats per token, the least possible loss where it is known, and the"
        " gap between them, in nats and as a share of the least. Losses under different tokenizers, or on different"
        " corpora, do not compare.",
    ),
}
