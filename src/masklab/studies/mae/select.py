"""Which recipe of a panel and which task of the study is what, by facts. Light: read when the workflow is parsed.

A panel holds plain MLM, the masked autoencoder MAE-LM (the first recipe of the panel whose [MASK]s all leave the
encoder for a decoder), what its reviewers asked for (MLM with 80 % [MASK], 10 % random and 10 % visible tokens), and
ablations: recipes that differ from MAE-LM in one thing. Other recipes of a panel are left out.
"""

from masklab.claims.effects import Sum, difference
from masklab.errors import MaskLabError
from masklab.scores.reading import RANKS as ALL_RANKS
from masklab.scores.reading import Reading, needs, task_names
from masklab.scores.view import View

MLM, MAE, CORRUPTED = COMPARED = ("MLM", "MAE-LM", "80/10/10")
PART, KEPT, RESET, RANDOM = "part stays", "kept", "reset", "random"
MISALIGNED, ABSOLUTE = "misaligned", "no relative positions"
CROSSES = ("self+cross", "causal+cross", "cross")
FEWER, MORE, NARROWER, WIDER = "fewer layers", "more layers", "narrower", "wider"
# Table 2 of Meng et al. (2024): group -> what it compares.
GROUPS = {
    "Handling [MASK]": (MAE, MLM, KEPT, RESET, RANDOM),
    "Position encoding": (MAE, MISALIGNED, ABSOLUTE),
    "Decoder attention": (MAE, *CROSSES),
    "Decoder size": (MAE, FEWER, MORE, NARROWER, WIDER),
}
DELTA = "objective.mae.delta"
LOG_RANK = "corpus.hmm.log_rank"
UNSEEN = {"checkpoints", "keep_decoder"}  # keys that change no training
SPANS = {"english-spans", "squad"}
# What tasks are about: answer spans, or sentences, among these entailment: MNLI, or what is generated in its place.
ABOUT = {
    "sentences": lambda task: task["kind"] not in SPANS,
    "entailment": lambda task: (
        task.get("recipe") == "entailment" or (task["kind"], task.get("task")) == ("glue", "mnli")
    ),
    "answers": lambda task: task["kind"] in SPANS,
}


# --- recipes -------------------------------------------------------------------------------


def role_of(facts: dict) -> str | None:
    """MLM, 80/10/10 or MAE-LM, or neither, of a recipe's own facts."""
    mask, terms = facts["masking.mask"], facts["objective.terms"]
    decoded = facts.get("encoder.decoder.layers") is not None
    if not facts["steps"]:
        return None
    if terms == ["mlm"] and not decoded:
        return MLM if mask == 1 else CORRUPTED if mask and facts["masking.random"] else None
    return MAE if terms == ["mae"] and decoded and mask == 1 and facts[DELTA] == 0 else None


def _staying(own, base):
    if own[DELTA] == 1:
        return RESET if own["objective.mae.reset"] else KEPT
    return None if own["objective.mae.reset"] else PART


def _size(own, base):
    width, other = (facts["encoder.decoder.hidden"] or facts["encoder.hidden"] for facts in (own, base))
    return None if width == other else NARROWER if width < other else WIDER


# Keys in which alone an ablation may differ from MAE-LM, and what it then is.
ABLATIONS = (
    ({DELTA, "objective.mae.reset"}, _staying),
    ({"masking.mask", "masking.random"}, lambda own, base: RANDOM if own["masking.random"] == 1 else None),
    ({"objective.mae.aligned"}, lambda own, base: MISALIGNED),
    (
        {f"encoder.{key}" for key in ("positions", "relative_buckets", "relative_distance")},
        lambda own, base: ABSOLUTE if own["encoder.positions"] == "absolute" else None,
    ),
    ({"encoder.decoder.attention"}, lambda own, base: own["encoder.decoder.attention"]),
    (
        {"encoder.decoder.layers"},
        lambda own, base: FEWER if own["encoder.decoder.layers"] < base["encoder.decoder.layers"] else MORE,
    ),
    ({f"encoder.decoder.{key}" for key in ("hidden", "heads", "intermediate")}, _size),
)


def ablation(view: View, name: str, base: str) -> str | None:
    """What a recipe is as an ablation of MAE-LM, `base`; None if it is none, or several at once."""
    keys = view.differing(name, base) - UNSEEN
    own, other = view.recipes[name], view.recipes[base]
    return next((what(own, other) for allowed, what in ABLATIONS if keys and keys <= allowed), None)


class Panel:
    """A panel of the study. roles: role -> recipe, the first of each; deltas: delta -> recipe, ascending."""

    def __init__(self, view: View, title: str):
        self.view, self.title = view, title
        members = list(dict.fromkeys(view.panels[title].values()))
        roles = {name: role_of(view.recipes[name]) for name in members}
        base = next((name for name in members if roles[name] == MAE), None)
        others = [name for name in members if name != base and roles[name] in (None, MAE)]
        roles |= {name: ablation(view, name, base) if base else None for name in others}
        self.roles: dict[str, str] = {}
        for name, role in roles.items():
            if role is not None:
                self.roles.setdefault(role, name)
        staying = {view.fact(name, DELTA): name for name, role in roles.items() if role == PART}
        staying |= {float(role == KEPT): self.roles[role] for role in (MAE, KEPT) if role in self.roles}
        self.deltas = dict(sorted(staying.items()))

    def __getitem__(self, role: str) -> str:
        """The recipe with a role; MaskLabError if the panel has none."""
        return next(iter(self.labelled((role,)).values()))

    def labelled(self, roles, fewest: int = 1) -> dict[str, str]:
        """Label -> recipe of those roles that the panel has; MaskLabError if they are fewer than `fewest`."""
        names = [self.roles[role] for role in roles if role in self.roles]
        if len(names) < fewest:
            raise MaskLabError(
                f"panel {self.title!r} has {len(names)} of the recipes {', '.join(roles)}; {fewest} needed"
            )
        return {self.view.label(name, self.title): name for name in names}

    def null(self, role: str, kind: str = "untrained") -> str:
        """The recipe that is a null of the one with a role; MaskLabError if the study has none."""
        null = self.view.nulls.get(self[role], {}).get(kind)
        if null is None:
            raise MaskLabError(f"panel {self.title!r} has no null {kind!r} of {role}")
        return null

    def tasks(self, recipes, about=("sentences", "answers"), ranked: bool = False) -> dict[str, tuple[str, ...]]:
        """What tasks are about -> those that all these recipes are fine-tuned on; MaskLabError if there is none.

        ranked: only tasks after which the rank is measured.
        """

        def measured(name, task):
            probes = self.view.measured_by(name, ["finetune"], [task])
            return any(self.view.probes[probe].get("rank") or not ranked for probe in probes)

        shared = {
            each: tuple(task for task in self.view.find_tasks(ABOUT[each]) if all(measured(r, task) for r in recipes))
            for each in about
        }
        if not any(shared.values()):
            raise MaskLabError(
                f"panel {self.title!r}: {', '.join(recipes)} share no fine-tuning on {' or '.join(about)}"
            )
        return {each: tasks for each, tasks in shared.items() if tasks}

    def heading(self, said: str) -> str:
        """What stands over a part of a table, or names a claim: with the panel where there are several."""
        return said if len(self.view.panels) == 1 else f"{self.title}: {said}"


def laws(view: View, role: str) -> dict[int, str]:
    """Rank of the law's log conditionals -> the recipe with a role that is trained on it; of laws of known rank."""
    found = {}
    for panel in (Panel(view, title) for title in view.panels):
        name = panel.roles.get(role)
        log_rank = None if name is None else view.fact(name, LOG_RANK)
        if log_rank is not None:
            found.setdefault(2 * int(log_rank) + 1, name)  # as `HiddenMarkov.conditional_rank`
    return dict(sorted(found.items()))


def every(view: View, choose) -> dict:
    """Title -> `choose` (panel), of the panels that have and measure all of it; MaskLabError if none does."""
    by_panel, lacking = {}, MaskLabError("the study has no panel")
    for title in view.panels:
        try:
            chosen = choose(Panel(view, title))
            needs(chosen, view, with_nulls=False)
            by_panel[title] = chosen
        except MaskLabError as error:
            lacking = error
    if not by_panel:
        raise lacking
    return by_panel


# --- readings ------------------------------------------------------------------------------

INPUTS = ("masked", "unmasked")
RANKS = ("rank", "rank_centred")  # whole numbers, as the paper has them
BETWEEN = {"": "rank_interpolated", "-centred": "rank_interpolated_centred"}
ENTROPY = {"-entropy": "rank_entropy", "-entropy-centred": "rank_entropy_centred"}
PLACES = ("mask-positions", "random-words", "hidden-words")
COSTS = ("seconds", "flops", "tokens")


def score(recipe: str, tasks, metric: str | None = None, **more) -> Reading:
    """Mean over tasks of the median over fine-tunings (section 4.1); of a rank, the last layer's after them."""
    layers = "last" if metric in ALL_RANKS else None
    return Reading(recipe, metric, tuple(tasks), probe="finetune", seeds="median", layers=layers, **more)


def rank(recipe: str, split: str, metric: str, **more) -> Reading:
    """Effective rank of the states of an input."""
    return Reading(recipe, metric, splits=(split,), **more)


def gap(recipe: str, metric: str, layers="all", **more) -> Sum:
    """Rank of all tokens of masked inputs less that of unmasked ones."""
    return difference(*(rank(recipe, split, metric, layers=layers, **more) for split in INPUTS))


def own_part(recipe: str, metric: str, layers="all", **more) -> Sum:
    """The part of the gap that the rows of [MASK]s make: masked inputs less their real positions."""
    return difference(*(rank(recipe, s, metric, layers=layers, **more) for s in ("masked", "real-positions")))


def other_part(recipe: str, metric: str, layers="all", **more) -> Sum:
    """The rest of the gap: real tokens beside [MASK]s less unmasked inputs."""
    return difference(*(rank(recipe, s, metric, layers=layers, **more) for s in ("real-positions", "unmasked")))


def left_out(recipe: str, than: str, metric="outside", layers="all", **more) -> Sum:
    """Share of [MASK]s outside the subspace of real tokens less that of what else stands in their places."""
    return difference(*(Reading(recipe, metric, splits=(s,), layers=layers, **more) for s in (PLACES[0], than)))


# --- what figures and tables show ----------------------------------------------------------


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
        return {m: {label: rank(name, "mask-positions", m, over="layer") for label, name in names} for m in RANKS}

    return every(view, choose)


def figure_outside(view: View) -> dict:
    """Panel -> label -> what stands in the place of a [MASK] -> share outside real tokens' subspace by layer."""

    def choose(panel):
        return {
            label: {place: Reading(name, "outside", splits=(place,), over="layer") for place in PLACES}
            for label, name in panel.labelled(COMPARED).items()
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
            rows["the gap at initial weights"] = {label: gap(null, metric) for label, null in nulls.items() if null}
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
        for metric, said in zip(RANKS, ("Effective rank", "Effective rank, centred"), strict=True):
            rows = {"Pre-trained": {label: rank(name, "unmasked", metric, layers="last") for label, name in names}}
            for task, called in task_names(task for tasks in about.values() for task in tasks).items():
                rows[f"After {called}"] = {label: score(name, (task,), metric) for label, name in names}
            parts[panel.heading(said)] = rows
        return parts

    return _parts(view, choose)


def losses(view: View) -> dict:
    """Panel -> row -> label -> reading: the pre-training loss, its exact floor, the gap between them."""

    def choose(panel):
        names = panel.labelled(COMPARED).items()
        return {metric: {label: Reading(name, metric) for label, name in names} for metric in ("loss", "floor", "gap")}

    return every(view, choose)
