"""What the terms of objectives ask of the rest of the config: teachers, dictionaries, tasks. One line per fault."""

from masklab.config.inherit import hint
from masklab.config.references import symbols_of
from masklab.errors import MaskLabError

PAIRS = ("english-pairs", "pair-files")


def check_objective(config, name, objective):
    """A term's task is declared, and a labelled one."""
    for term, settings in objective.terms.items():
        if "task" not in settings.needs:
            continue
        where, task = f"config: objectives.{name}.{term}.task", settings.task
        if task not in config.tasks:
            raise MaskLabError(f"{where}: {task!r} is not declared{hint(task, config.tasks)}")
        if config.tasks[task].kind in PAIRS:
            raise MaskLabError(f"{where}: {task!r} is a task of pairs; it must have labels")


def check_model(config, model, objective, where):
    """The model has the teacher and the dictionary that terms read, and the symbols of its corpus are their tasks'."""
    if (objective.needs("teacher") or objective.needs("codes")) and model.init is None:
        raise MaskLabError(f"config: {where}.init: objective {model.objective!r} needs a teacher, given as model@step")
    if objective.needs("codes") and model.dictionary is None:
        raise MaskLabError(f"config: {where}.dictionary: objective {model.objective!r} needs a dictionary")
    for task in objective.tasks:
        if symbols_of(config, config.tasks[task]) != symbols_of(config, config.corpora[model.corpus]):
            raise MaskLabError(
                f"config: {where}.objective: the task {task!r} of objective {model.objective!r} is of another law than"
                f" corpus {model.corpus!r}"
            )
