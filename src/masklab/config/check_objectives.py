"""What the terms of objectives ask of the rest of the config: teachers, dictionaries, tasks. One line per fault."""

from masklab.config.check_tasks import holds
from masklab.config.inherit import hint
from masklab.config.places import Misfit
from masklab.config.references import split_reference, symbols_of
from masklab.config.schema import Adversarial
from masklab.errors import MaskLabError


def check_objective(config, name, objective):
    """A term's task is declared, a labelled one, and as large as the term's draws where the config says how large."""
    for term, settings in objective.terms.items():
        if "task" not in settings.needs:
            continue
        where, task = f"config: objectives.{name}.{term}.task", settings.task
        if task not in config.tasks:
            raise MaskLabError(f"{where}: {task!r} is not declared{hint(task, config.tasks)}")
        held = holds(config.tasks[task])  # None: of a user's kind, which says it when it is made
        if held == "pairs":
            raise MaskLabError(f"{where}: {task!r} is a task of pairs; it must have labels")
        if held not in ("labels", None) and isinstance(settings, Adversarial):
            raise MaskLabError(f"{where}: {task!r} is a task of {held}; it must have labels")
        drawn, rows = settings.besides()[0], getattr(config.tasks[task], "train", None)
        if isinstance(rows, int) and drawn > rows:
            raise MaskLabError(f"{where}: {task!r} has {rows} training rows, and the term draws {drawn} at once")


def _check_teacher(config, model, objective, taught, where):
    """Something is learned from the teacher, which predicts the same tokens, and has the states that are coded."""
    if not taught:
        raise MaskLabError(f"config: {where}: no term of objective {model.objective!r} learns from a teacher")
    teacher = config.models[split_reference(model.teacher, where)[0]]
    if teacher.tokenizer != model.tokenizer:
        raise MaskLabError(
            f"config: {where}: {model.teacher} must have the same tokenizer; its own is {teacher.tokenizer!r}, not"
            f" {model.tokenizer!r}"
        )
    if objective.needs("teacher") and not config.encoders[teacher.encoder].network:
        raise MaskLabError(f"config: {where}: {model.teacher} has no network; a teacher is one that is trained")
    if objective.needs("codes") and model.dictionary in config.dictionaries:
        coded = config.dictionaries[model.dictionary].model
        if coded != model.teacher:
            raise MaskLabError(
                f"config: {where}: dictionary {model.dictionary!r} codes the states of {coded}, not of {model.teacher}"
            )


def check_model(config, model, objective, where):
    """The model has the teacher and the dictionary that terms read, and the symbols of its corpus are their tasks'."""
    taught = objective.needs("teacher") or objective.needs("codes")
    if taught and model.init is None and model.teacher is None:
        raise MaskLabError(
            f"config: {where}.init: objective {model.objective!r} needs a teacher, given as model@step; or give it as"
            " `teacher`, and start from new weights"
        )
    if model.teacher is not None:
        _check_teacher(config, model, objective, taught, f"{where}.teacher")
    if objective.needs("codes") and model.dictionary is None:
        raise MaskLabError(f"config: {where}.dictionary: objective {model.objective!r} needs a dictionary")
    if objective.needs("codes") and model.codes != "on-the-fly" and model.masking.specials:
        raise Misfit(
            f"config: {where}.masking.specials: [CLS] and [SEP] have no stored codes; use codes: on-the-fly",
            {
                f"{where}.codes": f"{model.codes!r}, but masking.specials hides [CLS] and [SEP], which have no stored"
                " codes; use on-the-fly"
            },
        )
    for task in objective.tasks:
        if symbols_of(config, config.tasks[task]) != symbols_of(config, config.corpora[model.corpus]):
            raise MaskLabError(
                f"config: {where}.objective: the task {task!r} of objective {model.objective!r} is of another law than"
                f" corpus {model.corpus!r}"
            )
