"""What a study is about, as plain data: its recipes, tasks and probes with their facts.

Everything above the scores gets a `View` and no config: it is what a job's params hold, so that a figure is made again
when something that it shows changes, and only then. Light, since it is built while the workflow is parsed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

from masklab.config.measured import study_pairs
from masklab.config.nulls import null_recipes
from masklab.config.references import split_reference, steps_measured, study_models
from masklab.config.replicates import measured_replicates
from masklab.errors import MaskLabError
from masklab.scores.facts import NAMES, base, probe_facts, recipe_facts, task_facts

GIVEN = ("lookup", "words", "folder")  # kinds of encoders in which nothing is drawn


@dataclass(frozen=True)
class View:
    """One study.

    panels: title -> label -> recipe, in the order of the config.
    recipes, tasks, probes: name -> facts; of a probe also `recipes`, those that it measures.
    nulls: recipe -> kind of null -> the null's recipe (None: the majority, which is no recipe).
    replicates: recipe -> how many. sets: name -> tasks. margin, margins, below_margin, gain, saturation: as
    `Study` has them; without margins where nothing is tested.
    """

    study: str
    title: str = ""
    panels: dict[str, dict[str, str]] = field(default_factory=dict)
    recipes: dict[str, dict] = field(default_factory=dict)
    nulls: dict[str, dict[str, str | None]] = field(default_factory=dict)
    replicates: dict[str, int] = field(default_factory=dict)
    tasks: dict[str, dict] = field(default_factory=dict)
    sets: dict[str, list[str]] = field(default_factory=dict)
    probes: dict[str, dict] = field(default_factory=dict)
    margin: float | None = 0.02
    margins: dict[str, float] = field(default_factory=dict)
    below_margin: str = "sign"
    gain: float = 0.0
    saturation: float = 0.01

    @classmethod
    def of(cls, config, name: str) -> "View":
        """The view of a study of a checked config whose nulls are among its recipes."""

        study = config.studies[name]
        nulls = null_recipes(config, name)
        pairs = study_pairs(config, name)
        recipes = list(dict.fromkeys([*study_models(study), *(recipe for _, recipe in pairs)]))
        tasks = [task for probe in study.probes for task in config.probes[probe].tasks]
        tasks += [base(task) for members in study.sets.values() for task in members]
        return cls(
            study=name,
            title=study.title,
            panels={title: _labelled(members) for title, members in study.panels.items()},
            recipes={recipe: recipe_facts(config, recipe) for recipe in recipes},
            nulls=nulls,
            replicates={recipe: measured_replicates(config, name, recipe) for recipe in recipes},
            tasks={task: task_facts(config, task) for task in dict.fromkeys(tasks)},
            sets=dict(study.sets),
            probes={
                probe: probe_facts(config, probe)
                | _declared(config.probes[probe])
                | {"recipes": [recipe for name, recipe in pairs if name == probe]}
                for probe in study.probes
            },
            margin=study.margin,
            margins=dict(study.margins),
            below_margin=study.below_margin,
            gain=study.gain,
            saturation=study.saturation,
        )

    def plain(self) -> dict:
        """As plain data, for a rule's params; `View(**plain)` is the same view."""
        return asdict(self)

    def only(self, recipes: Iterable[str], tasks: Iterable[str] = (), probes: Iterable[str] = ()) -> "View":
        """What is left if these recipes, tasks and probes are all that is read."""
        kept, tasks, probes = set(recipes), set(tasks), set(probes)
        panels = {
            title: {label: name for label, name in members.items() if name in kept}
            for title, members in self.panels.items()
        }
        # of pairs a set may name paradigms: they are there where their task is
        sets = {name: [task for task in members if base(task) in tasks] for name, members in self.sets.items()}
        return replace(
            self,
            panels={title: members for title, members in panels.items() if members},
            recipes={name: facts for name, facts in self.recipes.items() if name in kept},
            nulls={
                name: {kind: null for kind, null in own.items() if null is None or null in kept}
                for name, own in self.nulls.items()
                if name in kept
            },
            replicates={name: count for name, count in self.replicates.items() if name in kept},
            tasks={name: facts for name, facts in self.tasks.items() if name in tasks},
            sets={name: members for name, members in sets.items() if members},
            probes={
                name: facts | {"recipes": [recipe for recipe in facts["recipes"] if recipe in kept]}
                for name, facts in self.probes.items()
                if name in probes
            },
        )

    # --- which recipes and tasks -------------------------------------------------------

    @property
    def members(self) -> list[str]:
        """Recipes of the panels, each once, in order."""
        return list(dict.fromkeys(name for panel in self.panels.values() for name in panel.values()))

    def find(self, where: Mapping | Callable, panel: str | None = None) -> list[str]:
        """Recipes of the panels (or of one) whose facts are as `where` says, in order.

        where: key -> the value, a set of values or a predicate; a key that a recipe lacks has the value None. Or a
        predicate on all facts.
        """
        recipes = self.members if panel is None else list(dict.fromkeys(self.panels[panel].values()))
        return [name for name in recipes if _fits(self.recipes[name], where)]

    def find_tasks(self, where: Mapping | Callable) -> list[str]:
        """Tasks of the study whose facts are as `where` says, in order."""
        return [name for name, facts in self.tasks.items() if _fits(facts, where)]

    def tasks_of(self, name: str) -> tuple[str, ...]:
        """Tasks of a set; MaskLabError if the study has no such set, or nothing in it."""
        if name not in self.sets:
            raise MaskLabError(f"the study has no set {name!r} of tasks; it has {', '.join(self.sets) or 'none'}")
        if not self.sets[name]:
            raise MaskLabError(f"the study's set {name!r} of tasks is empty")
        return tuple(self.sets[name])

    def label(self, recipe: str, panel: str | None = None) -> str:
        """How a recipe is called where it is shown: its label in a panel (the first that has it), else its name."""
        for title, members in self.panels.items():
            if panel in (None, title):
                for label, name in members.items():
                    if name == recipe:
                        return label
        return recipe

    def labelled(self) -> dict[str, str]:
        """Label -> recipe of the panels, each once; recipes of one label have the titles of their panels behind it.

        Where that is another's label, the recipe's name stands behind it too.
        """
        first: dict[str, tuple[str, str]] = {}
        for title, members in self.panels.items():
            for label, recipe in members.items():
                first.setdefault(recipe, (label, title))
        labels = [label for label, _ in first.values()]
        found: dict[str, str] = {}
        for recipe, (label, title) in first.items():
            called = label if labels.count(label) == 1 else f"{label} ({title})"
            while called in found:
                called += f" ({recipe})"
            found[called] = recipe
        return found

    def instances(self) -> list[tuple[str, int]]:
        """(recipe, replicate) of each model of the study, nulls among them, in order."""
        return [(recipe, k) for recipe, count in self.replicates.items() for k in range(1, count + 1)]

    def fact(self, recipe: str, key: str):
        """A fact of a recipe; None if it has none of that key."""
        return self.recipes[recipe].get(key)

    def is_given(self, recipe: str) -> bool:
        """Whether nothing is drawn in a recipe: it is made elsewhere, or no network."""
        return self.fact(recipe, "encoder.kind") in GIVEN

    def first_phase(self, recipe: str) -> str | None:
        """The recipe of the study whose weights a recipe goes on from, on the same corpus; None if there is none."""
        init = self.fact(recipe, "init")
        first = split_reference(init, "init")[0] if init and not self.fact(recipe, "shuffle") else None
        same = first in self.recipes and self.fact(first, "corpus") == self.fact(recipe, "corpus")
        return first if same else None

    def differing(self, left: str, right: str) -> set[str]:
        """Keys in which two recipes differ, names of entries left out."""
        a, b = self.recipes[left], self.recipes[right]
        return {key for key in a.keys() | b.keys() if key not in NAMES and a.get(key) != b.get(key)}

    def counts(self, pairs: Iterable[tuple[str, str]]) -> dict[str, int]:
        """Recipe -> how many replicates (probe, recipe) pairs are about: fewer where a probe asks only the first."""
        counts: dict[str, int] = {}
        for probe, recipe in pairs:
            most = self.probes[probe].get("replicates", self.replicates[recipe])
            counts[recipe] = max(counts.get(recipe, 0), min(most, self.replicates[recipe]))
        return counts

    def measured_by(self, recipe: str, kinds: Iterable[str] = (), tasks: Iterable[str] = ()) -> list[str]:
        """Probes of the study that measure a recipe: of these kinds (any), on some of these tasks or their parts."""
        kinds, tasks = set(kinds), {base(task) for task in tasks}
        return [
            name
            for name, facts in self.probes.items()
            if recipe in facts["recipes"]
            and (not kinds or facts["kind"] in kinds)
            and (not tasks or tasks & set(facts["tasks"]))
        ]

    def steps(self, reading) -> list[set[int]]:
        """Checkpoints at which a reading is measured, by each probe that measures it."""
        kept = self.fact(reading.recipe, "checkpoints")
        return [set(steps_measured(self.probes[name]["steps"], kept)) for name in reading.probes(self)]


def _declared(probe) -> dict:
    """What the class of a user's kind says of its metrics: `ranges`, metric -> [least, most]; those of `lower`."""
    ranges, lower = getattr(probe, "ranges", {}), getattr(probe, "lower", ())
    said = {"ranges": {metric: list(ends) for metric, ends in ranges.items()}} if ranges else {}
    return said | ({"lower": list(lower)} if lower else {})


def _labelled(members) -> dict[str, str]:
    return dict(members) if isinstance(members, dict) else {name: name for name in members}


def _fits(facts, where) -> bool:
    if not isinstance(where, Mapping):
        return bool(where(facts))
    return all(_is(facts.get(key), wanted) for key, wanted in where.items())


def _is(value, wanted) -> bool:
    if callable(wanted):
        return bool(wanted(value))
    if isinstance(wanted, set | frozenset):
        return value in wanted
    return value == wanted
