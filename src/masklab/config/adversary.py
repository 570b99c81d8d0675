"""What an adversarial objective needs. One line per fault."""

from masklab.config.inherit import hint
from masklab.config.references import symbols_of
from masklab.errors import MaskLabError

PAIRS = ("english-pairs", "pair-files")


def check_objective(config, name, objective):
    """The weight and its settings come together, and the task is a labelled one."""
    where = f"config: objectives.{name}"
    if bool(objective.adversarial) != (objective.adversary is not None):
        raise MaskLabError(f"{where}: adversarial (above 0) and adversary (its task and settings) need each other")
    if objective.adversary is None:
        return
    task = objective.adversary.task
    if task not in config.tasks:
        raise MaskLabError(f"{where}.adversary.task: {task!r} is not declared{hint(task, config.tasks)}")
    if config.tasks[task].kind in PAIRS:
        raise MaskLabError(f"{where}.adversary.task: {task!r} is a task of pairs; it must have labels")


def check_model(config, model, objective, where):
    """The task's symbols are those of the model's corpus."""
    if objective.adversary is None:
        return
    task = objective.adversary.task
    if symbols_of(config, config.tasks[task]) != symbols_of(config, config.corpora[model.corpus]):
        raise MaskLabError(
            f"config: {where}.objective: the task {task!r} of objective {model.objective!r} is of another law than"
            f" corpus {model.corpus!r}"
        )
