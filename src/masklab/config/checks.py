"""What the types cannot say: that names are known and that what stands together fits. One line per fault."""

import itertools
from typing import get_args

from masklab.config import check_objectives
from masklab.config.autoencoder import check_head
from masklab.config.check_models import check_coded, check_model
from masklab.config.check_tasks import MEASURES, check_length, check_lengths, check_probe, check_task, holds
from masklab.config.declared import SYMBOLIC, check_symbols, known, known_checkpoint
from masklab.config.exact import WEIGHTLESS, check_floor, check_measurable, check_whole
from masklab.config.faults import Faults, Several
from masklab.config.growth import check_growth
from masklab.config.inherit import hint, is_pattern, listed
from masklab.config.located import spelt
from masklab.config.names import name_problem
from masklab.config.nulls import LABEL
from masklab.config.places import Misfit
from masklab.config.references import (
    LAWS,
    law_entry,
    named_law,
    split_reference,
    study_models,
    symbols_of,
    words_of,
)
from masklab.config.replicates import dictionary_of, sources_of
from masklab.config.schema import SECTIONS
from masklab.config.schema.tasks import Phenomenon
from masklab.errors import MaskLabError

MOST_WORDS, MOST_CHAINS = 65530, 256  # of corpora of symbols, whose numbers are of 16 and 8 bits
MOST_HIDDEN = 1 << 16  # what stands behind words, in 16 bits, too
MOST_ENGLISH = 43_000_000  # sentences of 49 bytes on average, which Arrow counts in 32 bits
PHENOMENA = get_args(Phenomenon)  # of generated minimal pairs


def check_names(config):
    """Check that names can be parts of paths, in a config that was not read, such as one with nulls."""
    for section in SECTIONS:
        for name in getattr(config, section):
            if message := name_problem(name):
                raise MaskLabError(f"config: {section}.{name}: {message}")


def check_references(config, faults: Faults | None = None, also=()):
    """Every name stands for something, and what stands together fits.

    Stage by stage, since each takes for granted what those before it looked at; a stage says all that it finds.
    faults: where they are kept, with the files that the config was read from. also: further checks of a study, called
    as those here are. Raises MaskLabError.
    """
    faults = faults or Faults(config.raw)
    for stage in (*_STAGES, (("studies", _check_study), *(("studies", check) for check in also))):
        for section, check in stage:
            for name, entry in getattr(config, section).items():
                with faults.collect():
                    check(config, name, entry)
        faults.stop()


def _check_law(config, section, name, entity):
    law = named_law(entity)
    if law and isinstance(law[1], str):
        known(getattr(config, LAWS[law[0]]), law[1], f"{section}.{name}.{law[0]}")


def _check_corpus(config, name, corpus):
    _check_law(config, "corpora", name, corpus)
    if corpus.kind in SYMBOLIC:
        _check_numbered(config, f"corpora.{name}", corpus)
    if corpus.kind == "english" and (drawn := corpus.sentences + corpus.valid + corpus.test) > MOST_ENGLISH:
        raise MaskLabError(
            f"config: corpora.{name}.sentences: {drawn:,} with valid and test; at most {MOST_ENGLISH:,} can be drawn of"
            " kind english, whose text is held in one piece of 2 GiB; other kinds have no such bound"
        )
    if corpus.kind == "pcfg":
        check_lengths(f"corpora.{name}", corpus, law_entry(config, corpus))
    if corpus.kind == "causal" and "/" not in corpus.causal:
        known(config.causal_models, corpus.causal, f"corpora.{name}.causal")
        tokenizer = config.causal_models[corpus.causal].tokenizer
        known(config.tokenizers, tokenizer, f"causal_models.{corpus.causal}.tokenizer")
        if corpus.length > (most := config.tokenizers[tokenizer].max_length):
            raise MaskLabError(
                f"config: corpora.{name}.length: {corpus.length} words; {corpus.causal!r} reads at most {most}, the"
                f" max_length of its tokenizer {tokenizer!r}"
            )


def _check_numbered(config, where, corpus):
    """No more words than can be numbered; else this is said when all sentences have been drawn, or never."""
    key, law = named_law(corpus) or ("vocabulary", None)
    law, named = law_entry(config, corpus), f"{law!r} has " if isinstance(law, str) else ""
    numbered = [(corpus.vocabulary if law is None else words_of(law), "words", MOST_WORDS)]
    if key == "chains":
        numbered += [(law.chains, "chains", MOST_CHAINS), (2 * law.synsets, "features", MOST_HIDDEN)]
    if key == "hmm":
        numbered += [(law.states, "states", MOST_HIDDEN)]
    for count, what, most in numbered:
        if count > most:
            raise MaskLabError(f"config: {where}.{key}: {named}{count} {what}; at most {most} can be numbered")


def _check_tokenizer(config, name, tokenizer):
    if tokenizer.kind == "folder":
        return
    known(config.corpora, tokenizer.corpus, f"tokenizers.{name}.corpus")
    check_symbols(config, tokenizer.corpus, name, f"tokenizers.{name}.corpus")


def _check_causal_model(config, name, model):
    """A causal model reads text, and its heads are equally wide."""
    if model.hidden % model.heads:
        raise Misfit(
            f"config: causal_models.{name}.hidden: {model.hidden} is not a multiple of heads ({model.heads})",
            {f"causal_models.{name}.heads": f"{model.heads} does not divide hidden ({model.hidden})"},
        )
    for key, section in (("corpus", "corpora"), ("tokenizer", "tokenizers")):
        known(getattr(config, section), getattr(model, key), f"causal_models.{name}.{key}")
    if config.corpora[model.corpus].kind in SYMBOLIC:
        texts = [other for other, corpus in config.corpora.items() if corpus.kind not in SYMBOLIC]
        raise MaskLabError(f"config: causal_models.{name}.corpus: {model.corpus!r} has no text{listed(texts)}")
    check_symbols(config, model.corpus, model.tokenizer, f"causal_models.{name}.tokenizer")


def _check_embeddings(config, name, embeddings):
    for key, section in (("corpus", "corpora"), ("tokenizer", "tokenizers")):
        known(getattr(config, section), getattr(embeddings, key), f"embeddings.{name}.{key}")
    check_symbols(config, embeddings.corpus, embeddings.tokenizer, f"embeddings.{name}.tokenizer")


def _check_encoder(config, name, encoder):
    if problem := encoder.problem():
        undivided = {f"encoders.{name}.heads": f"{encoder.heads} does not divide hidden ({encoder.hidden})"}
        raise Misfit(f"config: encoders.{name}.{problem}", undivided if "of heads" in problem else {})


def _check_dictionary(config, name, dictionary):
    source = known_checkpoint(config, dictionary.model, f"dictionaries.{name}.model")
    encoder = config.encoders[source.encoder]
    if not encoder.network:
        raise MaskLabError(f"config: dictionaries.{name}.model: {WEIGHTLESS[encoder.kind]} has no hidden states")
    if dictionary.layer > encoder.layers:
        raise Misfit(
            f"config: dictionaries.{name}.layer: {dictionary.layer} is above the encoder's {encoder.layers} layers",
            {
                f"encoders.{source.encoder}.layers": f"{encoder.layers} is below layer ({dictionary.layer}) of"
                f" dictionaries.{name}"
            },
        )
    if dictionary.penalty >= 1:  # no correlation of two unit vectors is above it
        raise MaskLabError(
            f"config: dictionaries.{name}.penalty: {dictionary.penalty:g} leaves every code empty, since hidden states"
            " and atoms have length 1; it must be below 1"
        )
    if dictionary.sample < dictionary.atoms:
        raise Misfit(
            f"config: dictionaries.{name}.sample: {dictionary.sample} tokens are too few for {dictionary.atoms} atoms;"
            " it takes at least as many",
            {f"dictionaries.{name}.atoms": f"{dictionary.atoms} is more than sample ({dictionary.sample})"},
        )


def _check_circle(config, name, model):
    """No model is made from itself, by way of `init`, teachers and dictionaries."""
    waiting = [[name]]
    while waiting:
        path = waiting.pop()
        for source in sources_of(config, path[-1]):
            if source == name:
                if min([*path], key=list(config.models).index) != name:
                    return  # said of the first of them
                key = _link(model, (*path[1:2], source)) or "dictionary"
                raise MaskLabError(
                    f"config: models.{name}.{key}: goes round in a circle: {_links(config, [*path, name])}"
                )
            if source not in path:
                waiting.append([*path, source])


def _link(model, sources) -> str | None:
    """The key by which a recipe starts or learns from one of `sources`; None: neither."""
    links = {key: getattr(model, key) for key in ("init", "teacher")}
    return next((key for key, link in links.items() if link and split_reference(link, "")[0] in sources), None)


def _links(config, path) -> str:
    """Recipes in a circle, with the dictionaries between them."""
    between = []
    for recipe, source in itertools.pairwise(path):
        model, dictionary = config.models[recipe], dictionary_of(config, recipe)
        between.append([f"dictionaries.{dictionary}"] if dictionary and not _link(model, (source,)) else [])
    if not any(between):
        return " -> ".join(path)
    links = [link for recipe, more in zip(path[:-1], between, strict=True) for link in (f"models.{recipe}", *more)]
    return " -> ".join([*links, f"models.{path[-1]}"])


def _check_study(config, name, study):
    """Names first, all of them, since what is measured takes them for granted."""
    where, members, several = f"studies.{name}", study_models(study), Several()
    for model in study.extra:
        with several.collect():
            known(config.models, model, f"{where}.extra")
    for title, panel in study.panels.items():
        named, place = panel if isinstance(panel, dict) else {None: panel}, f"{where}.panels.{spelt(title)}"
        for label, models in named.items():
            for model in [models] if isinstance(models, str) else models:
                with several.collect():
                    known(config.models, model, f"{place}.{spelt(label)}" if label else place)
        with several.collect():
            _check_labels(panel, place)
    if not members and study.probes:
        with several.collect():
            raise MaskLabError(f"config: {where}.panels: no panel names a recipe{listed(config.models)}")
    for probe, models in study.probes.items():
        with several.collect():
            _check_measured(config, probe, models, members, f"{where}.probes.{probe}")
    for key, tasks in study.sets.items():
        for task in tasks:
            with several.collect():
                _check_member(config, task, f"{where}.sets.{spelt(key)}")
    several.stop()
    for probe, models in study.probes.items():
        check_length(config, probe, members if models == "all" else models)
        for model in members if models == "all" else models:
            _check_symbols_of(config, probe, model, f"{where}.probes.{probe}")
            check_floor(config, probe, model, f"{where}.probes.{probe}")
            check_whole(config, probe, model, f"{where}.probes.{probe}")
            check_measurable(config, probe, model, f"{where}.probes.{probe}")
            check_growth(config, probe, model, f"{where}.probes.{probe}")
            check_head(config, probe, model, f"{where}.probes.{probe}")


def _check_member(config, name, where):
    """A member of a set is a task, or of minimal pairs a part of one by its name: `blimp/ellipsis`."""
    task, slash, part = name.partition("/")
    if slash and is_pattern(name):
        raise MaskLabError(f"config: {where}: {name!r}: a pattern stands for whole tasks; name each part by itself")
    known(config.tasks, task, where)
    if slash and not _may_hold_pairs(config, task):
        raise MaskLabError(f"config: {where}: {name!r}: {task!r} holds no minimal pairs, of which a part can be named")
    phenomena = config.tasks[task].phenomena or PHENOMENA if config.tasks[task].kind == "english-pairs" else ()
    if slash and phenomena and part not in phenomena:
        raise MaskLabError(f"config: {where}: {name!r}: {task!r} has no {part!r}{hint(part, phenomena)}")


def _may_hold_pairs(config, name) -> bool:
    """Whether a task holds minimal pairs; of a user's kind, unless none but probes of something else measures it."""
    held, kinds = holds(config.tasks[name]), {probe.kind for probe in config.probes.values() if name in probe.tasks}
    if held is not None:
        return held == "pairs"
    return not kinds or any("pairs" in MEASURES.get(kind, ("pairs",)) for kind in kinds)


def _check_labels(panel, where):
    """A recipe has one label in a panel, and none that tables and figures write themselves."""
    if not isinstance(panel, dict):
        return
    for label in panel:
        if not label.strip():
            raise MaskLabError(f"config: {where}: {panel[label]!r} has an empty label; name it as it is to be shown")
        if label.startswith(LABEL):
            raise MaskLabError(
                f"config: {where}: the label {label!r} begins with {LABEL!r}, as columns of the study's own nulls"
                " do in tables; choose another"
            )
    first = next(iter(panel), "")
    if (both := next((label for label in panel if f"{label} − {first}" in panel), None)) is not None:
        raise MaskLabError(
            f"config: {where}: the label {f'{both} − {first}'!r} is that of the difference of {both!r} and {first!r} in"
            " tables; choose another"
        )
    if len(set(panel.values())) == len(panel):
        return
    labels = {}
    for label, model in panel.items():
        labels.setdefault(model, []).append(label)
    model, twice = next(item for item in labels.items() if len(item[1]) > 1)
    raise MaskLabError(f"config: {where}: {model!r} has two labels, {' and '.join(map(repr, twice[:2]))}")


def _check_measured(config, probe, models, members, where):
    """A probe of a study, and the recipes that it measures, are declared."""
    if probe not in config.probes:
        message = f"{probe!r} is not declared{hint(probe, config.probes)}"
        if probe in config.tasks:
            able = [name for name, entry in config.probes.items() if probe in entry.tasks]
            such = f", such as {able[0]}" if able else ""
            message = f"{probe!r} is a task; name the probe that measures it{such}"
        raise MaskLabError(f"config: {where}: {message}")
    for model in () if models == "all" else models:
        if model not in members:
            message = f"{model!r} is not a recipe of the study"
            message += "; add it to a panel or to extra" if model in config.models else hint(model, members)
            raise MaskLabError(f"config: {where}: {message}")


def _check_symbols_of(config, probe, model, where):
    """A task of symbols means something only to a model of the same symbols, one of text only to a model of text."""
    read = symbols_of(config, config.corpora[config.models[model].corpus])
    for task in config.probes[probe].tasks:
        symbols = symbols_of(config, config.tasks[task])
        if symbols is None and read is not None:
            raise MaskLabError(f"config: {where}: task {task!r} is text, and model {model!r} reads symbols")
        if symbols not in (None, read):
            raise MaskLabError(f"config: {where}: task {task!r} is of another law than model {model!r} reads")


_STAGES = (
    (("corpora", _check_corpus),),
    (("tokenizers", _check_tokenizer), ("tasks", check_task)),
    (
        ("causal_models", _check_causal_model),
        ("embeddings", _check_embeddings),
        ("encoders", _check_encoder),
        ("objectives", check_objectives.check_objective),
    ),
    (("models", check_model),),
    (("dictionaries", _check_dictionary), ("models", check_coded), ("probes", check_probe)),
    (("models", _check_circle),),
)
