"""Readings: rules that pick scores and give one value, or one curve, per replicate.

Light: figures, tables and claims say with readings what they need, when the workflow is parsed. The numbers:
`masklab.scores.results`.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from masklab.config.inherit import choices
from masklab.config.probe_metrics import METRICS, RANKS, RATINGS, lower_of, metrics_of
from masklab.errors import MaskLabError
from masklab.scores.allowed_words import check_words
from masklab.scores.facts import base
from masklab.scores.view import View

# Metric of no task -> kind of the probe that measures it.
PROBES = {metric: kind for kind in ("loss", "curvature", "rank", "cost") for metric in METRICS[kind]}
CORRELATIONS = {*RATINGS}  # metrics of a test set of ratings
WHOLE = ("rank", "rank_centred")  # those that are whole numbers
# Metric -> the setting without which a probe does not measure it.
ONLY_WITH = {"floor": "floor", "gap": "floor", "trace_embedded": "width"}
ONLY_WITH |= {"outside": "subspace", "outside_beside": "subspace"}
TASK_PROBES = ("finetune", "linear_probe", "minimal_pairs")
FEWEST = 3  # replicates below which nothing is decided
# Kinds of probes whose settings decide no column of their rows but the step, the task, the size and the seed.
ALIKE = ("loss", "curvature", "rank", "cost", *TASK_PROBES)

Axis = Literal["step", "train_size", "layer", "at"]
Sizes = Literal["all", "small", "large", "largest"]
Layers = Literal["first", "last", "all", "deep", "shallow"]
CONVERGED = {"converged": "as it converged", "since converged": "since it converged"}  # steps that a loss decides


@dataclass(frozen=True)
class Reading:
    """A number, or a curve over `over`, per replicate of a recipe.

    recipe: its name. metric: None stands for each task's own. tasks: averaged, phenomenon by phenomenon where all are
    pairs (`picking.Rows.weights`); () for metrics of the corpus. probe: kind of the probe that measures it; None: the
    one that measures the metric, or any that measures the tasks. named: the probe's name, where several of a kind
    measure it.
    splits: averaged (domains of a test set, inputs of a rank probe); (): the test split. step: a checkpoint, or which:
    `converged` is the first whose gap to the floor, the mean over replicates, lies within the study's saturation of the
    recipe's lowest; `since converged`, for curves over steps, that one and all later ones.
    sizes: training sizes, averaged; `small` is the smaller half of those measured (the middle one of an odd number with
    it), `large` the rest. layers: averaged; `first` the embeddings, `all` every block, `deep` and `shallow` its halves
    (the middle one of an odd number is in neither); None: what belongs to no layer. A number is one size, one layer.
    seeds: how the seeds of a probe are summed up within a replicate, before anything else.
    form: the value, its logarithm, or what share of the corpus's exact floor it is.
    over: the column that a curve is over, from all its steps, sizes or layers. reduce: a number of that curve: its
    `slope` (per update, per doubling of the size, per layer), or its `roughness`, the mean distance of inner points
    from the line between their neighbours (sizes as logarithms).
    """

    recipe: str
    metric: str | None = None
    tasks: tuple[str, ...] = ()
    probe: str | None = None
    named: str | None = None
    splits: tuple[str, ...] = ()
    step: int | Literal["first", "last", "all", "converged", "since converged"] = "last"
    sizes: int | Sizes = "all"
    layers: int | Layers | None = None
    seeds: Literal["mean", "median"] = "mean"
    form: Literal["value", "log", "share of the floor"] = "value"
    over: Axis | None = None
    reduce: Literal["slope", "roughness"] | None = None

    def __post_init__(self):
        for key in ("tasks", "splits"):
            if not isinstance(names := getattr(self, key), tuple):  # of a word each letter would be a name
                raise ValueError(f"reading of {self.recipe!r}: {key} must be a tuple of names (got {names!r})")
        check_words(self, f"reading of {self.recipe!r}")
        if self.reduce is not None and self.over is None:
            raise ValueError(f"reading of {self.recipe!r}: a {self.reduce} is one of a curve; say what it is over")

    def of(self, recipe: str, **changes) -> "Reading":
        """The same reading of another recipe."""
        return replace(self, recipe=recipe, **changes)

    def kinds(self) -> tuple[str, ...]:
        """Kinds of probes that can measure it; () of one that is named: any."""
        if self.probe is not None:
            return (self.probe,)
        if self.named is not None:
            return ()
        if self.tasks:
            return TASK_PROBES
        if self.metric not in PROBES:
            raise MaskLabError(f"a reading of {self.metric!r} must say which kind of probe measures it")
        return (PROBES[self.metric],)

    def probes(self, view: View) -> list[str]:
        """Probes of the study that measure it, or some of its tasks."""
        names = view.measured_by(self.recipe, self.kinds(), self.tasks)
        return names if self.named is None else [name for name in names if name == self.named]

    def measured(self, view: View) -> bool:
        """Whether the study measures it: all of its tasks."""
        try:
            return bool(self._pairs(view))
        except MaskLabError:
            return False

    def needs(self, view: View) -> list[tuple[str, str]]:
        """(probe, recipe) pairs whose scores it reads; MaskLabError if the study does not measure it, or does twice, or
        its probes give no such metric."""
        pairs = self._pairs(view)
        self._check_metrics(view)
        if (twice := self._twice(view)) is not None:
            one, other, task = twice
            raise MaskLabError(
                f"two probes, {one} and {other}, measure the {self._measure(view)} of {self.recipe}"
                f"{f' on {task}' if task else ''} at one checkpoint, and nobody says which is meant; leave one of them"
                " to a study of its own"
            )
        return pairs

    def not_given(self, view: View) -> dict[str, list[str]]:
        """Its metrics that no probe that measures it gives -> those given; a probe that does not say may give any."""
        given = [metrics_of(view.probes[name]) for name in self.probes(view)]
        known = list(dict.fromkeys(metric for metrics in given for metric in metrics or ()))
        return {} if None in given else {metric: known for metric in self.metrics(view) if metric not in known}

    def _check_metrics(self, view) -> None:
        for metric, known in self.not_given(view).items():
            kinds = " or ".join(dict.fromkeys(view.probes[name]["kind"] for name in self.probes(view)))
            what = f"no {kinds} probe, by which {self.recipe} is read, gives a metric {metric!r}"
            raise MaskLabError(f"{what}{choices(metric, known, 'there are', 16)}")

    def _twice(self, view) -> tuple[str, str, str | None] | None:
        """Two probes of one kind that measure the same part of it with the same seed, and of which task; None: no two.

        Only of kinds of ours: what the settings of a user's decide is not known.
        """
        names = self.probes(view)
        if len(names) < 2:
            return None
        steps = view.steps(self)
        read = _chosen(set().union(*steps), self.step)
        sizes = [set(view.probes[name].get("sizes") or ("all",)) for name in names]
        numbers = {size for each in sizes for size in each if size != "all"}
        wanted = _chosen(numbers, "last" if self.sizes == "largest" else self.sizes) | {"all"}
        found = list(zip(names, steps, sizes, strict=True))
        for (one, at, few), (other, then, many) in itertools.combinations(found, 2):
            a, b = view.probes[one], view.probes[other]
            shared = [base(task) for task in self.tasks if base(task) in a["tasks"] and base(task) in b["tasks"]]
            seeds = a.get("seeds") is None or set(a["seeds"]) & set(b["seeds"])
            same = a["kind"] == b["kind"] and a["kind"] in ALIKE and (shared or not self.tasks) and seeds
            needed = ONLY_WITH.get(self.metric, "rank" if a["kind"] == "finetune" and self.metric in RANKS else None)
            both = needed is None or (a.get(needed) and b.get(needed))
            if same and both and at & then & read and few & many & wanted:
                return one, other, shared[0] if shared else None
        return None

    def _pairs(self, view) -> list[tuple[str, str]]:
        probes = self.probes(view)
        on = f" on {', '.join(self.tasks)}" if self.tasks else ""
        which = f"{' or '.join(self.kinds())} probe".lstrip() + (f" {self.named!r}" if self.named else "")
        lacking = [task for task in self.tasks if not any(base(task) in view.probes[name]["tasks"] for name in probes)]
        if not probes or lacking:
            on = f" on {lacking[0]}" if lacking else on
            kinds = {name: view.probes[name]["kind"] for name in self.kinds() if name in view.probes}
            hints = [f" (`probe` is a kind: {kind!r} of {name!r})" for name, kind in kinds.items() if kind != name]
            raise MaskLabError(f"no {which} of the study measures {self.recipe}{on}{''.join(hints)}")
        pairs = [(name, self.recipe) for name in probes]
        if self.form == "share of the floor" or self.step in CONVERGED:
            pairs += Reading(self.recipe, "floor")._pairs(view)
        return pairs

    def parts(self, view: View) -> dict[str, str]:
        """What it reads in words, part by part; parts that several readings share need be said only once."""
        form = {"value": "", "log": "log ", "share of the floor": "relative "}[self.form]
        what = f"{self.reduce} of {self._measure(view)}" if self.reduce else self._measure(view)
        on = f" on {_tasks(self, view)}" if self.tasks else ""
        return {
            "recipe": view.label(self.recipe),
            "what": f"{form}{what}{on}",
            "panel": _panel(self, view),
            "probe": f"by {self.named}" if self.named else "",
            "splits": " + ".join(self.splits),
            "sizes": {"all": ""}.get(
                self.sizes, f"{self.sizes} sizes" if isinstance(self.sizes, str) else f"{self.sizes} examples"
            ),
            "layers": "" if self.layers is None else _layers(self.layers),
            "step": ({"last": "", "all": "" if self.over == "step" else "all checkpoints"} | CONVERGED).get(
                self.step, f"{self.step} checkpoint" if isinstance(self.step, str) else f"step {self.step}"
            ),
        }

    def words(self, view: View) -> str:
        """The whole of it in words: "MLM: rank, masked, last layer"."""
        recipe, *rest = (part for part in self.parts(view).values() if part)
        return f"{recipe}: {', '.join(rest)}"

    def unit(self, view: View) -> str:
        """What it is measured in."""
        plain = self._measure(view)
        unit = {"log": f"log {plain}", "share of the floor": "share of the floor"}.get(self.form, plain)
        if self.reduce == "slope":
            return f"{unit} per {({'train_size': 'doubling', 'step': 'update'}).get(self.over, self.over)}"
        return f"{unit} off a straight course" if self.reduce == "roughness" else unit

    def metrics(self, view: View) -> set[str]:
        """Its metric, or those of its tasks."""
        return {self.metric or view.tasks[base(task)]["metric"] for task in self.tasks} or {self.metric}

    def less_is_better(self, view: View) -> bool:
        """Whether less of it is better, by its metric and the probes that measure it."""
        lower = lower_of({}).union(*(lower_of(view.probes[name]) for name in self.probes(view)))
        return self.metrics(view) <= lower

    def _measure(self, view) -> str:
        """Its metric, or "score" of tasks that have several."""
        metrics = self.metrics(view)
        return (metrics.pop() if len(metrics) == 1 else "score").replace("_", " ")


def _chosen(values: set, which) -> set:
    """Those of some numbers that are read: one, the first or the last; of any other word all of them."""
    if isinstance(which, int):
        return {which}
    return {min(values) if which == "first" else max(values)} if values and which in ("first", "last") else values


def task_names(tasks: Iterable[str]) -> dict[str, str]:
    """Task -> how a row calls it: without what all of them begin with ("mae-"), with spaces for underscores."""
    tasks = list(dict.fromkeys(tasks))
    first, dash, _ = tasks[0].partition("-") if tasks else ("", "", "")
    shared = first + dash if dash and len(tasks) > 1 and all(task.startswith(first + dash) for task in tasks) else ""
    return {task: task.removeprefix(shared).replace("_", " ") for task in tasks}


def _tasks(reading, view):
    """Tasks in words: names of the sets that they make up in turn, and of other tasks; or how many they are."""
    rest, names = reading.tasks, []
    while rest:
        sets = {name: tasks for name, tasks in view.sets.items() if len(tasks) > 1}
        begun = {name: len(tasks) for name, tasks in sets.items() if rest[: len(tasks)] == tuple(tasks)}
        names.append(max(begun, key=begun.get, default=rest[0]))
        rest = rest[begun.get(names[-1], 1) :]
    return " + ".join(names) if len(names) <= 3 else f"{len(reading.tasks)} tasks"


def _panel(reading, view):
    """The panel of a recipe where there are several."""
    titles = [title for title, members in view.panels.items() if reading.recipe in members.values()]
    return f"in {titles[0]}" if titles and len(view.panels) > 1 else ""


def _layers(layers):
    if isinstance(layers, int):
        return f"layer {layers}"
    return {"first": "embeddings", "last": "last layer"}.get(layers, f"{layers} layers")


def leaves(structure) -> list[Reading]:
    """Every reading inside mappings, sequences and whatever has `readings()`, each once, in order."""
    readings: dict[Reading, None] = {}

    def visit(part):
        if isinstance(part, Reading):
            readings[part] = None
        elif hasattr(part, "readings"):
            visit(part.readings())
        elif isinstance(part, dict):
            for value in part.values():
                visit(value)
        elif isinstance(part, Iterable) and not isinstance(part, str):
            for value in part:
                visit(value)

    visit(structure)
    return list(readings)


def nulls_of(reading: Reading, view: View) -> dict[str, Reading]:
    """Kind of null -> the reading that says what it gives; only nulls that the study measures by the same probes."""
    nulls = {}
    for kind, null in view.nulls.get(reading.recipe, {}).items():
        if kind == "majority":
            if reading.tasks and reading.metric not in RANKS:
                nulls[kind] = reading
        elif reading.of(null).probes(view):
            nulls[kind] = reading.of(null, step="last")
    return nulls


def needs(structure, view: View, with_nulls: bool = True) -> list[tuple[str, str]]:
    """(probe, recipe) pairs that readings need, those of their nulls among them."""
    pairs = []
    for reading in leaves(structure):
        pairs += reading.needs(view)
        for kind, null in nulls_of(reading, view).items() if with_nulls else ():
            if kind != "majority":
                pairs += null.needs(view)
    return list(dict.fromkeys(pairs))
