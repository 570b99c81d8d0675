"""Which score files a figure or table needs; light enough for the workflow to ask while it parses."""

from masklab.config.schema import Config
from masklab.errors import MaskLabError
from masklab.figures import FIGURES
from masklab.figures.spec import Spec, arguments, labels, metrics, starts
from masklab.studies import kind_of
from masklab.tables import TABLES

__all__ = ["arguments", "drawn_corpora", "find", "given", "labels", "metrics", "needs", "starts"]


def find(study_name: str, item_name: str) -> Spec:
    """Spec of a figure or table, by the study's name or that name and a suffix ("mlsm" also serves "mlsm-tiny")."""
    kind = kind_of(study_name, FIGURES | TABLES, "figures or tables")
    items = FIGURES.get(kind, {}) | TABLES.get(kind, {})
    if item_name not in items:
        raise MaskLabError(
            f"config: studies.{study_name}: no figure or table {item_name!r}; allowed: {', '.join(items)}"
        )
    return items[item_name]


def needs(study_name: str, item_name: str, config: Config) -> list[tuple[str, str]]:
    """(probe, model) pairs whose scores the item reads, in order of declaration.

    MaskLabError if the study lacks a task set, a model of a needed objective or a probe that measures them.
    """
    study, spec = config.studies[study_name], find(study_name, item_name)
    where = f"config: studies.{study_name}: {item_name}"
    if spec.corpora is not None:
        drawn_corpora(study_name, item_name, config)
    if not spec.probe_kinds:
        return []
    probes = {name: config.probes[name] for name in study.probes if config.probes[name].kind in spec.kinds}
    for kinds in spec.probe_kinds:
        if not any(probe.kind in _options(kinds) for probe in probes.values()):
            raise MaskLabError(f"{where}: needs a {' or '.join(_options(kinds))} probe among the study's probes")
    tasks = set()
    for key in spec.sets:
        if not study.sets.get(key):
            raise MaskLabError(f"{where}: needs a set {key!r} with at least one task under sets")
        for task in study.sets[key]:
            if not any(task in probe.tasks for probe in probes.values()):
                kinds = " or ".join(spec.kinds)
                raise MaskLabError(f"{where}: task {task!r} of set {key!r} is in no {kinds} probe of the study")
            tasks.add(task)
    try:
        models = spec.models(study, config)
    except MaskLabError as error:
        raise MaskLabError(f"{where}: {error}") from None
    pairs = [
        (name, model)
        for name, probe in probes.items()
        if not spec.sets or not probe.tasks or tasks.intersection(probe.tasks)
        for model in models
        if study.probes[name] == "all" or model in study.probes[name]
    ]
    for kinds in spec.probe_kinds:
        measured = {model for name, model in pairs if probes[name].kind in _options(kinds)}
        missing = [model for model in models if model not in measured]
        if missing and (spec.every or not measured):
            raise MaskLabError(f"{where}: no {' or '.join(_options(kinds))} probe of the study measures {missing[0]}")
    return pairs


def _options(kinds):
    return (kinds,) if isinstance(kinds, str) else kinds


def drawn_corpora(study_name: str, item_name: str, config: Config) -> list[str]:
    """Corpora that the item reads besides scores; MaskLabError if the study lacks them."""
    spec = find(study_name, item_name)
    try:
        return spec.corpora(config.studies[study_name], config) if spec.corpora else []
    except MaskLabError as error:
        raise MaskLabError(f"config: studies.{study_name}: {item_name}: {error}") from None


def given(study_name: str, item_name: str, config: Config) -> dict:
    """Every keyword argument of the item's function beside scores and study."""
    study, spec = config.studies[study_name], find(study_name, item_name)
    return arguments(config, study) | (spec.given(study, config) if spec.given else {})
