"""Names in the config and what they stand for: `model@step`, the laws of corpora and tasks, checkpoints."""

import re

from masklab.errors import MaskLabError

# Key of a corpus or task -> section of the law it names: chains, a grammar, a hidden Markov model.
LAWS = {"chains": "chains", "grammar": "grammars", "hmm": "hmms"}
OF_CORPUS = ("next-word", "restricted-labels")  # kinds of tasks whose symbols are a causal corpus's, which they name


def named_law(entity) -> tuple | None:
    """(key, name or inline settings) of the law that a corpus or task names; None for text and causal models.

    A user's kind may call anything else so, a number of chains or whether there is a grammar.
    """
    laws = ((key, getattr(entity, key, None)) for key in LAWS)
    return next(((key, law) for key, law in laws if isinstance(law, str) or hasattr(law, "redraw")), None)


def law_entry(config, entity):
    """The settings of the law that a corpus or task names, an entity; None for text."""
    key, law = named_law(entity) or (None, None)
    return getattr(config, LAWS[key])[law] if isinstance(law, str) else law


def words_of(law) -> int:
    """Words of a law's language; 0 of a grammar in a file, whose entry does not say."""
    if hasattr(law, "synsets"):
        if law.features == "single":
            return 2 * law.synsets
        return (law.alphabet or law.synsets) * (1 if law.vocabularies == "shared" else 2)
    return law.symbols if hasattr(law, "symbols") else law.words if law.file is None else 0


def symbols_of(config, entity) -> tuple | None:
    """What the symbols of a corpus or task stand for: equal where they are the same; None for text."""
    if entity.kind in OF_CORPUS:
        entity = config.corpora[entity.corpus]
    return entity.language if entity.kind == "causal" else named_law(entity)


def stated_sequences(config, corpus) -> int | None:
    """Training sequences of a generated corpus; None of text and of a user's kind, whose entry does not say."""
    if corpus.kind == "markov":
        return corpus.sequences * law_entry(config, corpus).chains
    stated = getattr(corpus, "sentences", None) or getattr(corpus, "sequences", None)
    return stated if isinstance(stated, int) else None


def stated_rows(task) -> int | None:
    """Training rows of a task, as far as its entry says: those of a generated one, at most `limit` of files."""
    train = getattr(task, "train", None)
    return train if isinstance(train, int) else getattr(task, "limit", None)


def split_reference(reference: str, where: str) -> tuple[str, int]:
    """`"model@step"` -> (model, step)."""
    match = re.fullmatch(r"(.+)@(\d+)", reference)
    if not match:
        raise MaskLabError(f"config: {where}: {reference!r} must be written model@step, e.g. strict-phase1@1500")
    return match[1], int(match[2])


def recipe_of_dictionary(config, dictionary: str) -> str:
    """The recipe whose hidden states a dictionary is learned from."""
    return split_reference(config.dictionaries[dictionary].model, f"dictionaries.{dictionary}.model")[0]


def resolved(config, entity) -> dict:
    """JSON-able settings of a corpus or task, with the law it names in place of the name."""
    settings, law = entity.model_dump(mode="json"), named_law(entity)
    if law:
        settings[law[0]] = law_entry(config, entity).model_dump(mode="json")
    return settings


def phase(config, name) -> int:
    """How many links lie behind a model: 0 from scratch, 1 for what starts or learns from such a one, and so on.

    A link is `init`, or `teacher`; where a model has both, the longer way counts.

    Raises:
        MaskLabError: the links lead back to a model they have passed.
    """
    return _phase(config, (name,))


def _phase(config, passed) -> int:
    model, later = config.models[passed[-1]], []
    for key in ("init", "teacher"):
        if (reference := getattr(model, key)) is not None:
            source = split_reference(reference, f"models.{passed[-1]}.{key}")[0]
            if source in passed:
                way = " -> ".join([*passed, source])
                raise MaskLabError(f"config: models.{passed[0]}.{key}: goes round in a circle: {way}")
            later.append(1 + _phase(config, (*passed, source)))
    return max(later, default=0)


def checkpoints(model) -> list[int]:
    """Steps that a model keeps, ascending; the last one always among them."""
    steps = model.checkpoints or [round(model.steps * share / 5) for share in range(1, 6)]
    return sorted({step for step in steps if 0 < step <= model.steps} | {model.steps})


def probe_steps(probe, model) -> list[int]:
    """Checkpoints of `model` that `probe` measures."""
    return steps_measured(probe.steps, checkpoints(model))


def steps_measured(asked, kept: list[int]) -> list[int]:
    """Of the checkpoints that a model keeps those that a probe's `steps` ask for: all, the last, or those it lists.

    Of none listed the last.
    """
    if asked == "all":
        return kept
    return [step for step in kept if asked != "last" and step in asked] or kept[-1:]


def study_models(study) -> list[str]:
    """Every model of a study, once, in order of declaration."""
    return list(dict.fromkeys([*study.extra, *(model for panel in study.members.values() for model in panel)]))
