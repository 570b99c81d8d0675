"""What each figure and table of the wing shows, by panel. Light: read when the workflow is parsed."""

from masklab.errors import MaskLabError
from masklab.scores.reading import WHOLE, Reading, task_names
from masklab.scores.view import View
from masklab.studies.mae.select import (
    BETWEEN,
    COMPARED,
    COSTS,
    ENTROPY,
    GROUPS,
    INPUTS,
    MAE,
    MLM,
    PLACES,
    every,
    gap,
    laws,
    left_out,
    needs_subspace,
    other_part,
    own_part,
    rank,
    score,
    words_part,
)


def figure1a(metric: str):
    """`Item.choose`: panel -> label -> input -> rank by layer."""

    def choose(panel):
        return {
            label: {split: rank(name, split, metric, over="layer") for split in INPUTS}
            for label, name in panel.labelled(COMPARED).items()
        }

    return lambda view: every(view, choose)


def figure1b(view: View) -> dict:
    """Panel -> metric -> label -> rank of [MASK]s alone by layer."""

    def choose(panel):
        names = panel.labelled(COMPARED).items()
        return {m: {label: rank(name, "mask-positions", m, over="layer") for label, name in names} for m in WHOLE}

    return every(view, choose)


def figure_outside(view: View) -> dict:
    """Panel -> label -> what stands in the place of a [MASK] -> share outside real tokens' subspace by layer."""

    def choose(panel):
        names = panel.labelled(COMPARED)
        needs_subspace(panel.view, names.values())
        return {
            label: {place: Reading(name, "outside", splits=(place,), over="layer") for place in PLACES}
            for label, name in names.items()
        }

    return every(view, choose)


def figure_loss(view: View) -> dict:
    """Panel -> what is measured -> label -> effect by checkpoint: of all recipes whose ranks are measured."""
    measures = {
        "gap": lambda name, **more: gap(name, BETWEEN["-centred"], **more),
        "own": lambda name, **more: own_part(name, BETWEEN["-centred"], **more),
        "outside": lambda name, **more: left_out(name, "hidden-words", **more),
    }

    def choose(panel):
        names = dict.fromkeys([*panel.labelled(COMPARED).values(), *panel.deltas.values(), *panel.roles.values()])
        names = [name for name in names if rank(name, "masked", "rank").measured(panel.view)]
        needs_subspace(panel.view, names)
        curve = {"step": "all", "over": "step"}
        return {
            what: {panel.view.label(name, panel.title): made(name, **curve) for name in names}
            for what, made in measures.items()
        }

    return every(view, choose)


def figure_law(view: View) -> dict:
    """Label -> what is drawn -> rank of T -> effect or reading: of each way of pre-training on laws of known ranks."""
    roles = {role: laws(view, role) for role in COMPARED}
    shown = {role: _of_laws(view, names) for role, names in roles.items() if len(names) > 1}
    if not shown:
        raise MaskLabError("the study has no two panels of laws whose rank is known")
    return shown


def _of_laws(view, names) -> dict:
    needs_subspace(view, names.values())
    metric = BETWEEN["-centred"]
    nulls = {k: view.nulls.get(name, {}).get("untrained") for k, name in names.items()}
    made = {
        "masks": lambda name: rank(name, "mask-positions", metric, layers="last"),
        "real": lambda name: rank(name, "unmasked", metric, layers="last"),
        "law": lambda name: Reading(name, "rank_interpolated", splits=("law",)),
        "gap": lambda name: gap(name, metric),
        "own": lambda name: own_part(name, metric),
    }
    drawn = {what: {k: each(name) for k, name in names.items()} for what, each in made.items()}
    drawn["initial"] = {k: made["masks"](name) for k, name in nulls.items() if name}
    for place in PLACES:
        drawn[place] = {k: Reading(name, "outside", splits=(place,), layers="all") for k, name in names.items()}
    return drawn


def ranks(view: View) -> dict:
    """Heading -> row -> label -> effect: the gap in parts, in every form, and shares outside real tokens' subspace."""

    def choose(panel):
        names = panel.labelled(COMPARED)
        nulls = {label: panel.view.nulls.get(name, {}).get("untrained") for label, name in names.items()}
        made = {"the gap": gap, "of it [MASK]s themselves": own_part, "of it the tokens beside them": other_part}
        forms = {"": BETWEEN[""], ", centred": BETWEEN["-centred"]}
        forms |= {", entropy": ENTROPY["-entropy"], ", entropy, centred": ENTROPY["-entropy-centred"]}
        parts = {}
        for said, metric in forms.items():
            rows = {row: {label: effect(name, metric) for label, name in names.items()} for row, effect in made.items()}
            rows["random words in the places of [MASK]s"] = {
                label: words_part(name, metric) for label, name in names.items()
            }
            for row in ("the gap", "of it [MASK]s themselves"):
                own = {label: made[row](null, metric) for label, null in nulls.items() if null}
                rows[f"{row} at initial weights"] = own
            parts[panel.heading(f"Effective rank{said}")] = rows
        rows = {
            f"{place.replace('-', ' ')}{at}": {
                label: Reading(name, "outside", splits=(place,), layers="all") for label, name in which.items() if name
            }
            for at, which in (("", names), (" at initial weights", nulls))
            for place in PLACES
        }
        return parts | {panel.heading("Share outside the subspace of real tokens"): rows}

    return _parts(view, choose)


def figure3(view: View) -> dict:
    """Panel -> label -> `score` and each cost -> curve over updates."""

    def choose(panel):
        pair, curve = panel.labelled((MLM, MAE), 2), {"step": "all", "over": "step"}
        (tasks,) = panel.tasks(pair.values(), ["entailment"]).values()
        return {
            label: {"score": score(name, tasks, **curve)} | {cost: Reading(name, cost, **curve) for cost in COSTS}
            for label, name in pair.items()
        }

    return every(view, choose)


def figure4(view: View) -> dict:
    """Panel -> what tasks are about -> readings of the recipes that differ in delta alone, ascending, then of MLM."""

    def choose(panel):
        if len(panel.deltas) < 2:
            raise MaskLabError(f"panel {panel.title!r} has no two recipes that differ in how many [MASK]s stay")
        names = [*panel.deltas.values(), *panel.labelled((MLM,), 0).values()]
        return {about: [score(name, tasks) for name in names] for about, tasks in panel.tasks(names).items()}

    return every(view, choose)


def _parts(view, choose):
    """`every` with the parts of a table of all panels together."""
    return {heading: rows for parts in every(view, choose).values() for heading, rows in parts.items()}


def table1(view: View) -> dict:
    """Panel -> row -> label -> reading: every task, the mean over those of sentences, exact match and F1 of answers."""

    def choose(panel):
        names, rows = panel.labelled(COMPARED), {}
        about = panel.tasks(names.values())
        called = task_names(task for tasks in about.values() for task in tasks)
        for task in about.get("sentences", ()):
            rows[called[task]] = {"tasks": (task,)}
        if rows:
            rows["Average"] = {"tasks": about["sentences"]}
        for task in about.get("answers", ()):
            measures = (("exact match", "exact"), ("F1", "f1"))
            rows |= {f"{called[task]} ({said})": {"tasks": (task,), "metric": m} for said, m in measures}
        return {row: {label: score(name, **which) for label, name in names.items()} for row, which in rows.items()}

    return every(view, choose)


def table2(view: View) -> dict:
    """Group of ablations -> row -> label -> reading: the mean over tasks of sentences, and over answers."""
    rows = {"sentences": "Average", "answers": "Answer extraction"}

    def choose(panel):
        groups = {group: panel.labelled(roles, 0) for group, roles in GROUPS.items()}
        compared = {
            panel.heading(group): {
                rows[about]: {label: score(name, tasks) for label, name in names.items()}
                for about, tasks in panel.tasks(names.values()).items()
            }
            for group, names in groups.items()
            if len(names) > 1
        }
        if not compared:
            raise MaskLabError(f"panel {panel.title!r} has no two recipes to compare in Table 2")
        return compared

    return _parts(view, choose)


def table3(view: View) -> dict:
    """Form of the rank -> row -> label -> reading: of real tokens, after pre-training and after fine-tuning."""

    def choose(panel):
        names, parts = panel.labelled(COMPARED).items(), {}
        try:
            about = panel.tasks(dict(names).values(), ("entailment", "answers"), ranked=True)
        except MaskLabError:
            about = {}
        for metric, said in zip(WHOLE, ("Effective rank", "Effective rank, centred"), strict=True):
            rows = {"Pre-trained": {label: rank(name, "unmasked", metric, layers="last") for label, name in names}}
            for task, called in task_names(task for tasks in about.values() for task in tasks).items():
                rows[f"After {called}"] = {label: score(name, (task,), metric) for label, name in names}
            parts[panel.heading(said)] = rows
        return parts

    return _parts(view, choose)
