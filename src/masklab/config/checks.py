"""What the types cannot say: that names are known and that what stands together fits. One line per fault."""

import re
import unicodedata

from masklab.config import check_objectives
from masklab.config.autoencoder import check_autoencoder, check_head
from masklab.config.exact import WEIGHTLESS, check_floor, check_measurable, check_weightless
from masklab.config.growth import check_growth
from masklab.config.inherit import hint
from masklab.config.references import LAWS, checkpoints, named_law, split_reference, study_models, symbols_of
from masklab.config.schema import SECTIONS
from masklab.errors import MaskLabError

SYMBOLIC = {"markov", "hmm", "pcfg", "causal"}  # kinds of corpora whose splits hold symbols instead of text


def _spelt(name: str) -> bool:
    """Letters (with their marks) and digits of any script, and `_ . + -`."""
    return all(char in "_.+-" or unicodedata.category(char)[0] in "LMN" for char in name)


def check_name(name: str) -> str | None:
    """What is wrong with the name of an entry, which is part of paths; None: nothing."""
    if not name:
        return "a name must not be empty"
    if not _spelt(name):
        hint = "; {...} is filled in where an entry has `for:`" if "{" in name else ""
        return f"a name has letters, digits and _ . + - only{hint}"
    if name[0] in ".-":
        return f"a name must not begin with {name[0]!r}"
    if re.fullmatch(r"r[0-9]+", name):
        return "a name must not be r and a number: folders of replicates are called so"
    return None


def check_names(config):
    """Check that names can be parts of paths, in a config that was not read, such as one with nulls."""
    for section in SECTIONS:
        for name in getattr(config, section):
            if message := check_name(name):
                raise MaskLabError(f"config: {section}.{name}: {message}")


def check_run(name: str) -> str | None:
    """What is wrong with the name of a run, a folder below results/; None: nothing."""
    if not _spelt(name) or name.startswith("."):
        return f"must be empty, or letters, digits and _ . + -, the first not a dot (got {name!r})"
    return None


def _known(names, name, where):
    if name not in names:
        raise MaskLabError(f"config: {where}: {name!r} is not declared{hint(name, names)}")


def _known_checkpoint(config, reference, where):
    name, step = split_reference(reference, where)
    _known(config.models, name, where)
    kept = checkpoints(config.models[name])
    if step not in kept:
        raise MaskLabError(f"config: {where}: {name} keeps no step {step}; it keeps {kept}")
    return config.models[name]


def check_references(config):
    """Every name stands for something, and what stands together fits."""
    for section in ("corpora", "tasks"):
        for name, entity in getattr(config, section).items():
            law = named_law(entity)
            if law and isinstance(law[1], str):
                _known(getattr(config, LAWS[law[0]]), law[1], f"{section}.{name}.{law[0]}")
    for name, tokenizer in config.tokenizers.items():
        _known(config.corpora, tokenizer.corpus, f"tokenizers.{name}.corpus")
        _check_symbols(config, tokenizer.corpus, name, f"tokenizers.{name}.corpus")
    _check_causal(config)
    for name, embeddings in config.embeddings.items():
        for key, section in (("corpus", "corpora"), ("tokenizer", "tokenizers")):
            _known(getattr(config, section), getattr(embeddings, key), f"embeddings.{name}.{key}")
        _check_symbols(config, embeddings.corpus, embeddings.tokenizer, f"embeddings.{name}.tokenizer")
    for name, encoder in config.encoders.items():
        if problem := encoder.problem():
            raise MaskLabError(f"config: encoders.{name}.{problem}")
    for name, objective in config.objectives.items():
        check_objectives.check_objective(config, name, objective)
    for name, model in config.models.items():
        _check_model(config, name, model)
    for name, dictionary in config.dictionaries.items():
        source = _known_checkpoint(config, dictionary.model, f"dictionaries.{name}.model")
        if not config.encoders[source.encoder].network:
            what = WEIGHTLESS[config.encoders[source.encoder].kind]
            raise MaskLabError(f"config: dictionaries.{name}.model: {what} has no hidden states")
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
    """A corpus of symbols needs their own tokenizer: of this corpus, or of one with the same law."""
    symbols, text = config.tokenizers[tokenizer].kind == "symbols", SYMBOLIC.isdisjoint([config.corpora[corpus].kind])
    if symbols == text:
        kinds = "text, the tokenizer of symbols" if text else "symbols, the tokenizer of text"
        raise MaskLabError(f"config: {where}: corpus {corpus!r} is {kinds} ({tokenizer!r})")
    named = config.corpora[config.tokenizers[tokenizer].corpus]
    if symbols and symbols_of(config, named) != symbols_of(config, config.corpora[corpus]):
        raise MaskLabError(f"config: {where}: {tokenizer!r} names the symbols of another law than {corpus!r} has")


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
    check_autoencoder(config, where, model, encoder, objective)
    check_objectives.check_model(config, model, objective, where)
    if not encoder.network:
        check_weightless(config, model, encoder, where)
    if model.masking.mask + model.masking.random > 1:
        raise MaskLabError(f"config: {where}.masking: mask + random must be at most 1")
    if model.processes > -(-model.batch_size // model.micro):
        raise MaskLabError(
            f"config: {where}.processes: {model.processes} processes share {-(-model.batch_size // model.micro)}"
            f" micro-batches; lower micro_batch or processes"
        )
    if model.processes % model.nodes:
        raise MaskLabError(
            f"config: {where}.nodes: {model.processes} processes cannot be shared out among {model.nodes} nodes;"
            " processes must be a multiple of nodes"
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
    if objective.needs("codes"):
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


def _check_causal(config):
    """Causal models read text; causal corpora name a model, restricted tasks a causal corpus and a task of texts."""
    for name, model in config.causal_models.items():
        for key, section in (("corpus", "corpora"), ("tokenizer", "tokenizers")):
            _known(getattr(config, section), getattr(model, key), f"causal_models.{name}.{key}")
        if config.corpora[model.corpus].kind in SYMBOLIC:
            raise MaskLabError(f"config: causal_models.{name}.corpus: {model.corpus!r} has no text")
        _check_symbols(config, model.corpus, model.tokenizer, f"causal_models.{name}.tokenizer")
    for name, corpus in config.corpora.items():
        if corpus.kind == "causal" and "/" not in corpus.causal:
            _known(config.causal_models, corpus.causal, f"corpora.{name}.causal")
    for name, task in config.tasks.items():
        if task.kind != "restricted-labels":
            continue
        _known(config.corpora, task.corpus, f"tasks.{name}.corpus")
        _known(config.tasks, task.task, f"tasks.{name}.task")
        if config.corpora[task.corpus].kind != "causal":
            raise MaskLabError(f"config: tasks.{name}.corpus: {task.corpus!r} is not of kind 'causal'")
        if config.tasks[task.task].kind not in ("english-labels", "label-files"):
            raise MaskLabError(f"config: tasks.{name}.task: {task.task!r} is not a labelled task of texts")


def _check_study(config, name, study):
    where = f"studies.{name}"
    members = study_models(study)
    for model in study.extra:
        _known(config.models, model, f"{where}.extra")
    for title, panel in study.panels.items():
        named = panel if isinstance(panel, dict) else {None: panel}
        for label, models in named.items():
            for model in [models] if isinstance(models, str) else models:
                _known(config.models, model, f"{where}.panels.{title}" + (f".{label}" if label else ""))
    for probe, models in study.probes.items():
        if probe not in config.probes:
            message = f"no probe of that name{hint(probe, config.probes)}"
            raise MaskLabError(f"config: {where}.probes.{probe}: {message}")
        for model in () if models == "all" else models:
            if model not in members:
                message = f"{model!r} is not a recipe of the study{hint(model, members)}"
                raise MaskLabError(f"config: {where}.probes.{probe}: {message}")
        for model in members if models == "all" else models:
            _check_law(config, probe, model, f"{where}.probes.{probe}")
            check_floor(config, probe, model, f"{where}.probes.{probe}")
            check_measurable(config, probe, model, f"{where}.probes.{probe}")
            check_growth(config, probe, model, f"{where}.probes.{probe}")
            check_head(config, probe, model, f"{where}.probes.{probe}")
    for key, tasks in study.sets.items():
        for task in tasks:
            _known(config.tasks, task, f"{where}.sets.{key}")


def _check_law(config, probe, model, where):
    """A task of symbols means something only to a model of the same symbols, one of text only to a model of text."""
    read = symbols_of(config, config.corpora[config.models[model].corpus])
    for task in config.probes[probe].tasks:
        symbols = symbols_of(config, config.tasks[task])
        if symbols is None and read is not None:
            raise MaskLabError(f"config: {where}: task {task!r} is text, and model {model!r} reads symbols")
        if symbols not in (None, read):
            raise MaskLabError(f"config: {where}: task {task!r} is of another law than model {model!r} reads")
