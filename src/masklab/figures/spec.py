"""What a figure or table needs, said without importing pandas or matplotlib.

The workflow reads this at parse time; the functions that draw are named as
"module:function" and imported only when they run.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from masklab.config import split_reference, study_models
from masklab.config.schema import Config, Study
from masklab.errors import MaskLabError


@dataclass(frozen=True)
class Spec:
    """One figure or table of one study.

    make: "module:function" that draws the figure or makes the table.
    probe_kinds: kinds of probes whose scores it reads, all of them; of a tuple of kinds at least one.
    models: (study, config) -> models it shows; raises MaskLabError if the study lacks an objective it needs.
    sets: the study's named task sets it shows; () for probes without tasks.
    corpora: (study, config) -> corpora it reads besides scores (Figure 1 of `dh` draws a real sentence).
    given: (study, config) -> further keyword arguments of `make`, plain data fit for a rule's params.
    every: True if it cannot be made unless every one of `models` is measured (False: it shows those that are).
    """

    make: str
    probe_kinds: tuple[str | tuple[str, ...], ...]
    models: Callable[[Study, Config], list[str]] = lambda study, config: []
    sets: tuple[str, ...] = ()
    every: bool = False
    corpora: Callable[[Study, Config], list[str]] | None = None
    given: Callable[[Study, Config], dict] | None = None

    @property
    def kinds(self) -> list[str]:
        """Every kind of probe whose scores it reads."""
        return [kind for kinds in self.probe_kinds for kind in ((kinds,) if isinstance(kinds, str) else kinds)]

    def function(self):
        """Import and return the function that `make` names."""
        module, name = self.make.split(":")
        return getattr(importlib.import_module(module), name)


# --- plain values that drawing needs from the config ---------------------------


def labels(config: Config, study: Study) -> dict[str, str]:
    """Model -> display label: the one its panel declares, else its objective in capitals, "MLSM+MLM".

    Models that share an objective within a panel add their name, "MLM (strict-mlm-2)"; models outside the
    panels show their name alone.
    """
    shown = {name: name for name in study_models(study)}
    doubled, declared = set(), {}
    for title, members in study.members.items():
        if isinstance(study.panels[title], dict):
            declared |= {name: label for label, name in study.panels[title].items()}
            continue
        objectives = [config.models[name].objective for name in members]
        for name, objective in zip(members, objectives, strict=True):
            shown[name] = objective.upper()
            if objectives.count(objective) > 1:
                doubled.add(name)
    return shown | {name: f"{shown[name]} ({name})" for name in doubled} | declared


def objective_of(label: str) -> str:
    """The objective in a panel model's label: "MLM (strict-mlm-2)" -> "MLM"."""
    return label.split(" (")[0]


def metrics(config: Config, study: Study) -> dict[str, str]:
    """Task -> the metric that tables and figures show, for every task of the study's sets."""
    tasks = dict.fromkeys(task for members in study.sets.values() for task in members)
    return {task: getattr(config.tasks[task], "metric", "accuracy") for task in tasks}


def starts(config: Config, study: Study) -> dict[str, str]:
    """Panel -> the `model@step` its models start from, where they agree on one of the study's `extra`."""
    found = {}
    for title, members in study.members.items():
        inits = {config.models[name].init for name in members}
        if len(inits) == 1 and None not in inits:
            init = inits.pop()
            if split_reference(init, f"panel {title}")[0] in study.extra:
                found[title] = init
    return found


def arguments(config: Config, study: Study) -> dict[str, dict[str, str]]:
    """Keyword arguments of every `draw` and `make` beside scores and study; plain strings, fit for a rule's params."""
    return {"labels": labels(config, study), "metrics": metrics(config, study), "starts": starts(config, study)}


# --- which models --------------------------------------------------------------


def panel_of(study: Study, name: str) -> str:
    """The panel whose models a set of tasks "<panel>-<anything>" is for; it must give its models labels."""
    title = name.rpartition("-")[0]
    if not isinstance(study.panels.get(title), dict):
        raise MaskLabError(f"needs a panel {title!r} that maps labels to models, for set {name!r}")
    return title


def models_of_sets(*names: str) -> Callable[[Study, Config], list[str]]:
    """`Spec.models` of an item that shows the panels of these sets."""

    def models(study, config):
        return list(dict.fromkeys(model for name in names for model in study.members[panel_of(study, name)]))

    return models


def panel_models(study: Study, config: Config) -> list[str]:
    """Every model of every panel, once."""
    return list(dict.fromkeys(name for members in study.members.values() for name in members))


def panel_models_and_starts(study: Study, config: Config) -> list[str]:
    """`panel_models` and the phase-1 models they start from."""
    first = [split_reference(init, "init")[0] for init in starts(config, study).values()]
    return list(dict.fromkeys([*first, *panel_models(study, config)]))


def panel_with(study: Study, labels: dict[str, str], *wanted: tuple[str, ...]) -> tuple[str, list[str]]:
    """First panel that has every wanted objective -> (title, its first model of each).

    Each of `wanted` is a tuple of objectives in order of preference. MaskLabError names what no panel has.
    """
    for title, members in study.members.items():
        first = {objective_of(labels[name]): name for name in reversed(members)}
        found = [next((first[objective] for objective in options if objective in first), None) for options in wanted]
        if None not in found:
            return title, found
    present = {objective_of(labels[name]) for members in study.members.values() for name in members}
    said = [" or ".join(options) for options in wanted]
    missing = [text for text, options in zip(said, wanted, strict=True) if not present.intersection(options)]
    if missing:
        raise MaskLabError(f"no panel has a model of objective {missing[0]}; the panels have {_list(present)}")
    raise MaskLabError(f"no single panel has models of the objectives {' and '.join(said)}")


def versus(study: Study, labels: dict[str, str]) -> list[tuple[str, str, str]]:
    """(panel, other model, MLSM+MLM model) of Figure 6: others are MLM and KD+MLM where present, else all."""
    pairs = []
    for title, members in study.members.items():
        joint = [name for name in members if objective_of(labels[name]) == "MLSM+MLM"]
        others = [name for name in members if name not in joint[:1]]
        chosen = [name for name in others if objective_of(labels[name]) in ("MLM", "KD+MLM")] or others
        pairs += [(title, name, joint[0]) for name in chosen if joint]
    if not pairs:
        present = {objective_of(labels[name]) for members in study.members.values() for name in members}
        raise MaskLabError(
            f"no panel has a model of objective MLSM+MLM beside another; the panels have {_list(present)}"
        )
    return pairs


def _list(names):
    return ", ".join(sorted(names)) or "none"
