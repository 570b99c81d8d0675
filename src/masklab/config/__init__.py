"""Reading and checking the configuration: raw mapping -> typed, expanded, cross-checked `Config`."""

import difflib
import re

from pydantic import ValidationError

from masklab.config.expand import expand_section
from masklab.config.schema import Config
from masklab.errors import MaskLabError

SECTIONS = (
    "chains",
    "corpora",
    "tokenizers",
    "embeddings",
    "encoders",
    "objectives",
    "models",
    "dictionaries",
    "tasks",
    "probes",
    "studies",
)
SYMBOLIC = {"markov"}  # kinds of corpora whose splits hold symbols instead of text
NAME = re.compile(r"[A-Za-z0-9_.+-]+")

__all__ = [
    "Config",
    "checkpoints",
    "load",
    "overlay",
    "probe_steps",
    "read",
    "resolved",
    "split_reference",
    "study_models",
]


def overlay(base: dict, top: dict) -> dict:
    """`top` laid over `base`, mapping by mapping; neither is changed."""
    merged = dict(base)
    for key, value in top.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = overlay(merged[key], value) if both else value
    return merged


def read(path) -> Config:
    """The checked configuration of a YAML file that stands alone."""
    import yaml

    try:
        with open(path, encoding="utf-8") as file:
            raw = yaml.safe_load(file)
    except OSError as error:
        raise MaskLabError(f"{path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise MaskLabError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(raw, dict):
        raise MaskLabError(f"{path}: must be a mapping of keys to values")
    return load(raw)


def load(raw: dict) -> Config:
    """Expand families, validate types and references. One wrong value is one MaskLabError line."""
    raw = {key: value for key, value in raw.items() if value is not None}
    for section in SECTIONS:
        if section in raw:
            if not isinstance(raw[section], dict):
                raise MaskLabError(f"config: {section}: must be a mapping of names to entries")
            raw[section] = expand_section(raw[section], section)
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        raise MaskLabError("config: " + _first(error)) from None
    _check_names(config)
    _check_references(config)
    return config


def _first(error: ValidationError) -> str:
    problems = error.errors()
    first = problems[0]
    where = ".".join(str(part) for part in first["loc"])
    said = first["msg"][0].lower() + first["msg"][1:]
    if first["type"] == "extra_forbidden":
        said = "unknown key" + _nearest(first["loc"])
    elif not isinstance(first["input"], dict | list):
        said += f" (got {first['input']!r})"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{where}: {said}{more}"


def _nearest(location) -> str:
    from masklab.config import schema

    keys = {k for value in vars(schema).values() if hasattr(value, "model_fields") for k in value.model_fields}
    close = difflib.get_close_matches(str(location[-1]), keys, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def split_reference(reference: str, where: str) -> tuple[str, int]:
    """`"model@step"` -> (model, step)."""
    match = re.fullmatch(r"(.+)@(\d+)", reference)
    if not match:
        raise MaskLabError(f"config: {where}: {reference!r} must be written model@step, e.g. strict-phase1@600")
    return match[1], int(match[2])


def resolved(config, entity) -> dict:
    """JSON-able settings of a corpus or task, with the entry of `chains` it names in place of the name."""
    settings = entity.model_dump(mode="json")
    if isinstance(getattr(entity, "chains", None), str):
        settings["chains"] = config.chains[entity.chains].model_dump(mode="json")
    return settings


def checkpoints(model) -> list[int]:
    """Steps that a model keeps, ascending; the last one always among them."""
    steps = model.checkpoints or [round(model.steps * share / 5) for share in range(1, 6)]
    return sorted({step for step in steps if 0 < step <= model.steps} | {model.steps})


def probe_steps(probe, model) -> list[int]:
    """Checkpoints of `model` that `probe` measures: those it lists and the model has, else the last."""
    kept = checkpoints(model)
    if probe.steps == "all":
        return kept
    if probe.steps == "last":
        return kept[-1:]
    return [step for step in kept if step in probe.steps] or kept[-1:]


def _check_names(config):
    for section in SECTIONS:
        for name in getattr(config, section):
            if not NAME.fullmatch(name):
                raise MaskLabError(f"config: {section}.{name}: names use letters, digits and _ . + - only")


def _known(names, name, where):
    if name not in names:
        close = difflib.get_close_matches(str(name), list(names), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; declared: {', '.join(names) or 'none'}"
        raise MaskLabError(f"config: {where}: {name!r} is not declared{hint}")


def _known_checkpoint(config, reference, where):
    name, step = split_reference(reference, where)
    _known(config.models, name, where)
    kept = checkpoints(config.models[name])
    if step not in kept:
        raise MaskLabError(f"config: {where}: {name} keeps no step {step}; it keeps {kept}")
    return config.models[name]


def _check_references(config):
    for section in ("corpora", "tasks"):
        for name, entity in getattr(config, section).items():
            if isinstance(getattr(entity, "chains", None), str):
                _known(config.chains, entity.chains, f"{section}.{name}.chains")
    for name, tokenizer in config.tokenizers.items():
        _known(config.corpora, tokenizer.corpus, f"tokenizers.{name}.corpus")
        _check_symbols(config, tokenizer.corpus, name, f"tokenizers.{name}.corpus")
    for name, embeddings in config.embeddings.items():
        for key, section in (("corpus", "corpora"), ("tokenizer", "tokenizers")):
            _known(getattr(config, section), getattr(embeddings, key), f"embeddings.{name}.{key}")
        _check_symbols(config, embeddings.corpus, embeddings.tokenizer, f"embeddings.{name}.tokenizer")
    for name, encoder in config.encoders.items():
        if problem := encoder.problem():
            raise MaskLabError(f"config: encoders.{name}.{problem}")
    for name, objective in config.objectives.items():
        if not objective.mlm + objective.kd + objective.mlsm:
            raise MaskLabError(f"config: objectives.{name}: at least one of mlm, kd, mlsm must be above 0")
    for name, model in config.models.items():
        _check_model(config, name, model)
    for name, dictionary in config.dictionaries.items():
        source = _known_checkpoint(config, dictionary.model, f"dictionaries.{name}.model")
        layers = config.encoders[source.encoder].layers
        if dictionary.layer > layers:
            raise MaskLabError(
                f"config: dictionaries.{name}.layer: {dictionary.layer} is above the encoder's {layers} layers"
            )
    for name, probe in config.probes.items():
        for task in probe.tasks:
            _known(config.tasks, task, f"probes.{name}.tasks")
    for name, study in config.studies.items():
        _check_study(config, name, study)


def _check_symbols(config, corpus, tokenizer, where):
    """A corpus of symbols needs their own tokenizer: of this corpus, or of one with the same `chains`."""
    symbols, text = config.tokenizers[tokenizer].kind == "symbols", SYMBOLIC.isdisjoint([config.corpora[corpus].kind])
    if symbols == text:
        kinds = "text, the tokenizer of symbols" if text else "symbols, the tokenizer of text"
        raise MaskLabError(f"config: {where}: corpus {corpus!r} is {kinds} ({tokenizer!r})")
    named = config.corpora[config.tokenizers[tokenizer].corpus]
    if symbols and getattr(named, "chains", None) != getattr(config.corpora[corpus], "chains", None):
        raise MaskLabError(f"config: {where}: {tokenizer!r} names the symbols of other chains than {corpus!r} has")


def _check_model(config, name, model):
    where = f"models.{name}"
    for key, section in (("corpus", "corpora"), ("tokenizer", "tokenizers")):
        _known(getattr(config, section), getattr(model, key), f"{where}.{key}")
    _check_symbols(config, model.corpus, model.tokenizer, f"{where}.tokenizer")
    _known(config.encoders, model.encoder, f"{where}.encoder")
    _known(config.objectives, model.objective, f"{where}.objective")
    encoder, objective = config.encoders[model.encoder], config.objectives[model.objective]
    if config.tokenizers[model.tokenizer].max_length > encoder.max_positions:
        raise MaskLabError(
            f"config: tokenizers.{model.tokenizer}.max_length: must be at most encoders.{model.encoder}.max_positions"
            f" ({encoder.max_positions})"
        )
    if model.masking.mask + model.masking.random > 1:
        raise MaskLabError(f"config: {where}.masking: mask + random must be at most 1")
    if model.processes > -(-model.batch_size // model.micro):
        raise MaskLabError(
            f"config: {where}.processes: {model.processes} processes share {-(-model.batch_size // model.micro)}"
            f" micro-batches; lower micro_batch ({model.micro_batch}) or processes"
        )
    late = [step for step in model.checkpoints if step > model.steps]
    if late:
        raise MaskLabError(f"config: {where}.checkpoints: {late[0]} is after the last step ({model.steps})")
    if model.shuffle and model.init is None:
        raise MaskLabError(f"config: {where}.shuffle: needs weights to shuffle, given as init: model@step")
    if model.embeddings is not None:
        _known(config.embeddings, model.embeddings, f"{where}.embeddings")
        vectors = config.embeddings[model.embeddings]
        if vectors.size != encoder.hidden or vectors.tokenizer != model.tokenizer:
            raise MaskLabError(
                f"config: {where}.embeddings: {model.embeddings!r} must have the model's tokenizer and the encoder's"
                f" width ({encoder.hidden})"
            )
    if model.init is not None:
        teacher = _known_checkpoint(config, model.init, f"{where}.init")
        if (teacher.encoder, teacher.tokenizer) != (model.encoder, model.tokenizer):
            raise MaskLabError(f"config: {where}.init: {model.init} must have the same encoder and tokenizer")
    if (objective.kd or objective.mlsm) and model.init is None:
        raise MaskLabError(f"config: {where}.init: objective {model.objective!r} needs a teacher, given as model@step")
    if objective.mlsm:
        if model.dictionary is None:
            raise MaskLabError(f"config: {where}.dictionary: objective {model.objective!r} needs a dictionary")
        _known(config.dictionaries, model.dictionary, f"{where}.dictionary")
        reference = f"dictionaries.{model.dictionary}.model"
        source, _ = split_reference(config.dictionaries[model.dictionary].model, reference)
        _known(config.models, source, reference)
        coded = config.models[source]
        if model.codes == "stored" and (coded.corpus, coded.tokenizer) != (model.corpus, model.tokenizer):
            raise MaskLabError(
                f"config: {where}.codes: 'stored' needs the dictionary's own corpus and tokenizer"
                f" ({coded.corpus}, {coded.tokenizer}); use 'on-the-fly'"
            )


def _check_study(config, name, study):
    where = f"studies.{name}"
    members = study_models(study)
    for model in members:
        _known(config.models, model, f"{where}.panels")
    for probe, models in study.probes.items():
        _known(config.probes, probe, f"{where}.probes")
        for model in () if models == "all" else models:
            _known(members, model, f"{where}.probes.{probe}")
        for model in members if models == "all" else models:
            _check_chains(config, probe, model, f"{where}.probes.{probe}")
            _check_floor(config, probe, model, f"{where}.probes.{probe}")
    for key, tasks in study.sets.items():
        for task in tasks:
            _known(config.tasks, task, f"{where}.sets.{key}")


def _check_chains(config, probe, model, where):
    """A task of symbols means something only to a model of the same symbols."""
    read = getattr(config.corpora[config.models[model].corpus], "chains", None)
    for task in config.probes[probe].tasks:
        if getattr(config.tasks[task], "chains", read) != read:
            raise MaskLabError(f"config: {where}: task {task!r} is of other chains than model {model!r} reads")


def _check_floor(config, probe, model, where):
    """Said before a model is trained and not after: which masks have no exact floor."""
    masking, corpus = config.models[model].masking, config.corpora[config.models[model].corpus]
    floor = config.probes[probe].kind == "loss" and config.probes[probe].floor and corpus.kind == "markov"
    if floor and masking.mask < 1 and masking.count != "bernoulli":
        raise MaskLabError(
            f"config: {where}: no exact floor for {model!r}: with masking.mask below 1 masking.count must be"
            " 'bernoulli'; or set the probe's floor: false"
        )


def study_models(study) -> list[str]:
    """Every model of a study, once, in order of declaration."""
    return list(dict.fromkeys([*study.extra, *(model for panel in study.members.values() for model in panel)]))
