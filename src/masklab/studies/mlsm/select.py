"""Which recipe and task of the study play which part. Light: read when the workflow is parsed.

Recipes are told by facts: an objective by its loss terms, phase 1 as what the recipes of a panel start from. Tasks are
told by the study's sets.
"""

from masklab.errors import MaskLabError
from masklab.scores.reading import Reading
from masklab.scores.view import View

KD, KD_MLM, MLM, MLSM, JOINT = "KD", "KD+MLM", "MLM", "MLSM", "MLSM+MLM"
BLIMP, GLUE, CONTROL, AMBIGUOUS = "blimp", "glue", "msgs-control", "msgs-ambiguous"
KNOWN, UNKNOWN = "blimp-known", "blimp-below-chance"  # paradigms by what phase 1 had learned of them in an earlier run


def objective_of(facts: dict) -> str | None:
    """What a trained recipe learns, by its loss terms whatever their weights: "MLSM+MLM"; None: it is not trained.

    One that has a teacher and does not start from it says so: "KD from new weights".
    """
    terms = sorted(facts["objective.terms"], key=lambda term: (term == "mlm", term))
    new = " from new weights" if facts["teacher"] and not facts["init"] else ""
    return "+".join(terms).upper() + new if facts["steps"] else None


def objectives(view: View, panel: str) -> dict[str, str]:
    """Objective -> the recipe of a panel that has it; objectives that several have (a sweep) are left out."""
    return {objective: names[0] for objective, names in told(view, panel).items() if objective and len(names) == 1}


def told(view: View, panel: str) -> dict[str | None, list[str]]:
    """Objective -> the recipes of a panel that have it."""
    found: dict[str | None, list[str]] = {}
    for name in dict.fromkeys(view.panels[panel].values()):
        found.setdefault(objective_of(view.recipes[name]), []).append(name)
    return found


def tracks(view: View) -> list[str]:
    """Panels with MLM and MLSM+MLM, from the largest corpus to the smallest.

    Of files the size is known if `max_words` says it; where it is not known of each, panels are as the config has them.
    MaskLabError where two recipes of a panel are one of these, and no other panel has its corpus.
    """
    titles = [title for title in view.panels if {MLM, JOINT} <= objectives(view, title).keys()]
    _check_rivals(view, titles)
    for key in ("corpus.sentences", "corpus.max_words"):
        sizes = {title: view.fact(objectives(view, title)[MLM], key) for title in titles}
        if None not in sizes.values():
            return sorted(titles, key=lambda title: -sizes[title])
    return titles


def _check_rivals(view, titles) -> None:
    """Without such a panel the claims on its corpus would be about that of another panel, or missing."""
    known = {view.fact(objectives(view, title)[MLM], "corpus") for title in titles}
    for title in view.panels:
        own = told(view, title)
        if {MLM, JOINT} <= own.keys() and not {view.fact(name, "corpus") for name in own[MLM]} <= known:
            objective = next(each for each in (MLM, JOINT) if len(own[each]) > 1)
            raise MaskLabError(
                f"panel {title!r}: {' and '.join(own[objective])} have the same objective ({objective}), and claims"
                " compare one of each; leave one of them to a panel of its own"
            )


def tasks_of(view: View, sets) -> tuple[str, ...]:
    """The tasks of several sets."""
    return tuple(task for name in sets for task in view.tasks_of(name))


def start_of(view: View, recipes) -> tuple[str, int] | None:
    """(recipe of phase 1, step) that some recipes start from; None if there is none, or several.

    Those that start from new weights do not count.
    """
    starts = {view.fact(name, "init") for name in recipes} - {None}
    name, _, step = (starts.pop() or "").rpartition("@") if len(starts) == 1 else ("", "", "")
    return (name, int(step)) if name in view.recipes else None


def pair(view: View, left: str, right: str, *kinds: str) -> tuple[str, str, str]:
    """The first panel in which one recipe each has these objectives, both measured by such a probe, and the recipes."""
    for title in view.panels:
        by_objective = objectives(view, title)
        names = [by_objective[wanted] for wanted in (left, right) if wanted in by_objective]
        if len(names) == 2 and all(view.measured_by(name, kinds) for name in names):
            return title, *names
    rivals = [
        names for title in view.panels for wanted in (left, right) for names in [told(view, title).get(wanted, [])]
    ]
    several = next(
        (f" ({' and '.join(names)} of a panel have one objective)" for names in rivals if len(names) > 1), ""
    )
    raise MaskLabError(
        f"needs a panel in which one recipe has the objective {left} and one {right}, both measured{several}"
    )


def predictions(view: View) -> dict[str, Reading]:
    """Figure 1: MLM's prediction over the vocabulary, and over the atoms that of MLSM, or of MLSM+MLM."""
    try:
        _, *names = pair(view, MLM, MLSM, "prediction")
    except MaskLabError as error:
        try:
            _, *names = pair(view, MLM, JOINT, "prediction")
        except MaskLabError:
            raise error from None
    shown = zip(("vocabulary", "atoms"), names, strict=True)
    return {split: Reading(name, "probability", probe="prediction", splits=(split,)) for split, name in shown}


def joint_and_latent(metric: str | None = None):
    """`Item.choose` of Figure 2: panel -> (MLSM, MLSM+MLM)."""

    def choose(view: View) -> dict[str, list[tuple[Reading, Reading]]]:
        title, *names = pair(view, MLSM, JOINT, "minimal_pairs")
        return {title: [tuple(Reading(name, metric, tasks_of(view, [BLIMP])) for name in names)]}

    return choose


def joint_and_others(view: View) -> dict[str, list[tuple[Reading, Reading]]]:
    """Figure 6: panel -> (another, MLSM+MLM): MLM and KD+MLM, where a panel has them, else all others."""
    tasks, pairs = tasks_of(view, [CONTROL, AMBIGUOUS]), {}
    for title in view.panels:
        by_objective = objectives(view, title)
        others = [objective for objective in (KD_MLM, MLM) if objective in by_objective]
        others = others or [objective for objective in by_objective if objective != JOINT]
        if JOINT in by_objective and others:
            joint = Reading(by_objective[JOINT], tasks=tasks)
            pairs[title] = [(joint.of(by_objective[other]), joint) for other in others]
    if not pairs:
        raise MaskLabError(f"needs a panel in which one recipe has the objective {JOINT}, beside another")
    return pairs


def curves(*sets: str, metric: str | None = None):
    """`Item.choose` of Figures 3 to 5: panel -> label -> curve over updates, and None -> where phase 2 starts."""

    def choose(view: View):
        tasks, by_panel = tasks_of(view, sets), {}
        for title, members in view.panels.items():
            read = {"metric": metric, "tasks": tasks}
            told = {label: Reading(name, **read, step="all", over="step") for label, name in members.items()}
            lines = {label: reading for label, reading in told.items() if reading.measured(view)}
            start = start_of(view, [reading.recipe for reading in lines.values()])
            if lines and start and (first := Reading(start[0], **read, step=start[1])).measured(view):
                lines[None] = first
            by_panel |= {title: lines} if lines else {}
        return by_panel or _unmeasured(sets)

    return choose


def table(averages: dict[str, tuple[str, ...]], metric: str | None = None):
    """`Item.choose` of a table: panel -> name of an average -> label -> the mean over the tasks of some sets."""

    def choose(view: View):
        by_panel = {}
        for title, members in view.panels.items():
            for row, sets in averages.items():
                tasks = tasks_of(view, sets)
                told = {label: Reading(name, metric, tasks) for label, name in members.items()}
                if readings := {label: reading for label, reading in told.items() if reading.measured(view)}:
                    by_panel.setdefault(title, {})[row] = readings
        return by_panel or _unmeasured(dict.fromkeys(name for sets in averages.values() for name in sets))

    return choose


def _unmeasured(sets):
    raise MaskLabError(f"no probe of the study measures a recipe of its panels on the tasks of {' and '.join(sets)}")
