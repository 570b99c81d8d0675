"""What is known exactly about a model's corpus, and what a probe can measure because of it. One line per fault."""

from masklab.config.places import Misfit
from masklab.config.references import resolved
from masklab.config.schema.probes import WORDS
from masklab.errors import MaskLabError

WEIGHTLESS = {"lookup": "a lookup table", "words": "an encoder of words"}
SPANS = ("english-spans", "squad")  # kinds of tasks that ask for answer spans
SPELL = ("patterns",)  # kinds that say what their symbols spell


def has_conditionals(config, model) -> bool:
    """Whether the exact conditionals of the corpus of `model` are known: all of symbols, but markov's `multi`."""
    corpus = config.corpora[model.corpus]
    if corpus.kind == "markov":
        return resolved(config, corpus)["chains"]["features"] == "single"
    return config.tokenizers[model.tokenizer].kind == "symbols"


def is_exact(config, probe: str, model: str) -> bool:
    """Whether `probe` measures the loss of `model` against exact conditionals."""
    settings = config.probes[probe]
    asked = settings.kind == "loss" and settings.floor and settings.masks == "one"
    return asked and has_conditionals(config, config.models[model])


def check_floor(config, probe, model, where):
    """Refuse masks without an exact floor before a model is trained, and not after."""
    settings, trained = config.probes[probe], config.models[model]
    if settings.kind != "loss" or not settings.floor or settings.masks == "one":
        return
    masking, corpus = trained.masking, config.corpora[trained.corpus]
    if corpus.kind != "markov" and has_conditionals(config, trained):
        raise MaskLabError(
            f"config: {where}: a {corpus.kind} corpus ({model!r}) has an exact floor for one mask per sequence only;"
            " set the probe's masks: one, or floor: false"
        )
    if corpus.kind == "markov" and masking.specials:
        raise MaskLabError(
            f"config: {where}: no floor for {model!r}: masking.specials hides tokens that are no symbols; or set the"
            " probe's floor: false"
        )
    if corpus.kind == "markov" and masking.mask < 1 and masking.count != "bernoulli":
        raise MaskLabError(
            f"config: {where}: no exact floor for {model!r}: with masking.mask below 1 masking.count must be"
            " 'bernoulli'; or set the probe's floor: false"
        )


def check_whole(config, probe, model, where):
    """Exact conditionals are those of whole sentences: refuse a tokenizer that cuts all of them, which tells at last.

    Of a grammar, and of a causal model whose sentences end, the shortest sentence counts.
    """
    if not is_exact(config, probe, model):
        return
    trained = config.models[model]
    corpus, most = config.corpora[trained.corpus], config.tokenizers[trained.tokenizer].max_length
    key = {"pcfg": "min_length", "causal": "length" if getattr(corpus, "stop", "") == "none" else "shortest"}
    key = key.get(corpus.kind, "length")
    least = getattr(corpus, key) + 2
    if least <= most:
        return
    why = f"of cut ones no exact conditionals are known, which probes.{probe} measures against"
    cut = f"its sentences have {least} tokens at least, of which tokenizer {trained.tokenizer!r} keeps {most}"
    short = f"{most}, and sentences of {trained.corpus!r} have {least} tokens at least: {why}"
    raise Misfit(
        f"config: {where}: {model!r} reads {trained.corpus!r}: {cut} (max_length): {why}",
        {
            f"corpora.{trained.corpus}.{key}": f"{cut} (max_length): {why}",
            f"tokenizers.{trained.tokenizer}.max_length": short,
        },
    )


def check_weightless(config, model, encoder, where):
    """A lookup table is its corpus's law and nothing else; an encoder of words is its counts."""
    what = WEIGHTLESS[encoder.kind]
    if model.steps or model.processes > 1:
        raise MaskLabError(f"config: {where}.steps: {what} is not trained; set steps: 0 and processes: 1")
    if encoder.kind == "lookup" and not has_conditionals(config, model):
        raise MaskLabError(
            f"config: {where}.corpus: a lookup table needs a corpus with exact conditionals; {model.corpus!r} has none"
        )
    if model.init or model.teacher or model.embeddings or model.dictionary:
        raise MaskLabError(f"config: {where}: {what} takes no init, teacher, embeddings or dictionary")


def measures_words(config, probe, units: bool = False) -> bool:
    """Whether `probe` can measure an encoder of words; of its tasks those of answer spans are left out.

    units: one that counts what words spell, which all of its tasks must say.
    """
    settings = config.probes[probe]
    if units:
        return settings.kind == "finetune" and all(config.tasks[task].kind in SPELL for task in settings.tasks)
    spans = [task for task in settings.tasks if config.tasks[task].kind in SPANS]
    return WORDS[0] in settings.nulls and not (spans and len(spans) == len(settings.tasks))


def check_measurable(config, probe, model, where):
    """Without weights there is little to measure: few probes mean something to a lookup table or to words."""
    settings, kind = config.probes[probe], config.encoders[config.models[model].encoder].kind
    if kind == "words" and not measures_words(config, probe):
        if WORDS[0] in settings.nulls:
            raise MaskLabError(
                f"config: {where}: {model!r} is an encoder of words, which finds no answer spans, and {probe!r} has"
                " no other tasks"
            )
        raise MaskLabError(
            f"config: {where}: {model!r} is an encoder of words, which {settings.kind} probes cannot measure; loss,"
            " minimal_pairs, linear_probe and finetune can"
        )
    units = kind == "words" and config.encoders[config.models[model].encoder].units
    if units and not measures_words(config, probe, units=True):
        raise MaskLabError(
            f"config: {where}: {model!r} counts what words spell: finetune can measure it, on tasks of kind"
            f" {' or '.join(SPELL)} alone"
        )
    if kind != "lookup":
        return
    if settings.kind not in ("loss", "linear_probe"):
        raise MaskLabError(
            f"config: {where}: {model!r} is a lookup table, which {settings.kind} probes cannot measure; loss and"
            " linear_probe can"
        )
    if settings.kind == "loss" and not is_exact(config, probe, model):
        raise MaskLabError(f"config: {where}: the loss of the lookup table {model!r} needs masks: one and floor: true")
    if settings.kind == "linear_probe" and settings.pooling == "cls":
        raise MaskLabError(f"config: {where}: the lookup table {model!r} has no [CLS]; use pooling: concat or mean")
    for task in settings.tasks:
        if config.tasks[task].kind == "restricted-labels" and config.tasks[task].unknown == "unk":
            raise MaskLabError(
                f"config: {where}: the lookup table {model!r} knows nothing of <unk>, which {task!r} holds; set"
                f" tasks.{task}.unknown: drop"
            )
