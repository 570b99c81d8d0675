"""What recipes ask of the rest of the config. One line per fault."""

from masklab.config import check_objectives
from masklab.config.autoencoder import check_autoencoder
from masklab.config.declared import check_symbols, known, known_checkpoint
from masklab.config.exact import check_weightless
from masklab.config.places import Misfit
from masklab.config.references import law_entry, stated_sequences
from masklab.errors import MaskLabError


def check_model(config, name, model):
    """Corpus, tokenizer, encoder, objective and start of a recipe fit each other."""
    where = f"models.{name}"
    for key, section in (("corpus", "corpora"), ("tokenizer", "tokenizers")):
        known(getattr(config, section), getattr(model, key), f"{where}.{key}")
    check_symbols(config, model.corpus, model.tokenizer, f"{where}.tokenizer")
    known(config.encoders, model.encoder, f"{where}.encoder")
    known(config.objectives, model.objective, f"{where}.objective")
    encoder, objective = config.encoders[model.encoder], config.objectives[model.objective]
    _check_length(config, model, encoder, where)
    for key in ("init", "teacher"):
        if (reference := getattr(model, key)) is not None:
            known_checkpoint(config, reference, f"{where}.{key}")
    check_autoencoder(config, where, model, encoder, objective)
    check_objectives.check_model(config, model, objective, where)
    if not encoder.network:
        check_weightless(config, model, encoder, where)
    if encoder.kind == "folder":
        _check_adopted(model, where)
    elif model.folder is not None:
        raise MaskLabError(
            f"config: {where}.encoder: {model.encoder!r} is trained here; of a model made elsewhere it follows from"
            " folder: leave it out, or write encoder: null"
        )
    if model.masking.mask + model.masking.random > 1:
        raise MaskLabError(f"config: {where}.masking: mask + random must be at most 1")
    if problem := _hides_nothing(config, model, objective):
        raise MaskLabError(f"config: {where}.masking.rate: {problem}")
    _check_sequences(config, model, where)
    _check_processes(model, where)
    _check_checkpoints(model, where)
    if model.shuffle and model.init is None:
        raise MaskLabError(f"config: {where}.shuffle: needs weights to shuffle, given as init: model@step")
    if model.embeddings is not None:
        _check_vectors(config, model, encoder, where)
    if model.init is not None:
        _check_start(config, model, where)


def _check_length(config, model, encoder, where):
    """The encoder has a position for every token that the tokenizer lets through."""
    if config.tokenizers[model.tokenizer].max_length > encoder.max_positions:
        longest, most = config.tokenizers[model.tokenizer].max_length, encoder.max_positions
        raise Misfit(
            f"config: {where}.tokenizer: max_length ({longest}) of tokenizer {model.tokenizer!r} is above max_positions"
            f" ({most}) of encoder {model.encoder!r}",
            {
                f"tokenizers.{model.tokenizer}.max_length": f"{longest} is above max_positions ({most}) of encoder"
                f" {model.encoder!r} in {where}",
                f"encoders.{model.encoder}.max_positions": f"{most} is below max_length ({longest}) of tokenizer"
                f" {model.tokenizer!r} in {where}",
                f"{where}.encoder": f"max_positions ({most}) of {model.encoder!r} is below max_length ({longest}) of"
                f" its tokenizer {model.tokenizer!r}",
            },
        )


def _check_sequences(config, model, where):
    """The corpus has a sequence for every row of a batch."""
    sequences = stated_sequences(config, config.corpora[model.corpus])
    if sequences and model.steps and model.batch_size > sequences:
        fewer = f"{sequences} are fewer than batch_size ({model.batch_size}) of {where}"
        raise Misfit(
            f"config: {where}.batch_size: {model.batch_size} is more than the {sequences} training sequences of"
            f" {model.corpus!r}",
            {f"corpora.{model.corpus}.{key}": fewer for key in ("sentences", "sequences")},
        )


def _check_processes(model, where):
    """Every process has rows, and every node processes."""
    if model.micro_batch is None and model.processes > model.batch_size:
        raise Misfit(
            f"config: {where}.processes: {model.processes} is more than batch_size ({model.batch_size})",
            {f"{where}.batch_size": f"{model.batch_size} is less than processes ({model.processes})"},
        )
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


def _check_checkpoints(model, where):
    """No checkpoint lies after the last step."""
    late = [step for step in model.checkpoints if step > model.steps]
    if late:
        example = [step for step in (model.steps // 5, model.steps) if step]
        raise Misfit(
            f"config: {where}.checkpoints: {late[0]} is after the last step ({model.steps})",
            {
                f"{where}.steps": f"{model.steps}, but its checkpoints go up to {max(late)}; write checkpoints too,"
                f" such as {example}, or [] for five of them"
            },
        )


def _check_vectors(config, model, encoder, where):
    """The vectors that embeddings start from are of the encoder's width and the recipe's tokenizer."""
    known(config.embeddings, model.embeddings, f"{where}.embeddings")
    vectors = config.embeddings[model.embeddings]
    if vectors.size != encoder.hidden:
        raise Misfit(
            f"config: {where}.embeddings: size ({vectors.size}) of {model.embeddings!r} must be hidden"
            f" ({encoder.hidden}) of encoder {model.encoder!r}",
            {
                f"embeddings.{model.embeddings}.size": f"{vectors.size} must be hidden ({encoder.hidden}) of"
                f" encoder {model.encoder!r} in {where}",
                f"encoders.{model.encoder}.hidden": f"{encoder.hidden} must be size ({vectors.size}) of embeddings"
                f" {model.embeddings!r} in {where}",
            },
        )
    if vectors.tokenizer != model.tokenizer:
        raise Misfit(
            f"config: {where}.embeddings: tokenizer of {model.embeddings!r} ({vectors.tokenizer!r}) must be the"
            f" model's ({model.tokenizer!r})",
            {
                f"embeddings.{model.embeddings}.tokenizer": f"{vectors.tokenizer!r} must be the tokenizer of"
                f" {where} ({model.tokenizer!r})"
            },
        )


def _check_start(config, model, where):
    """The model that a recipe starts from has its encoder and tokenizer."""
    teacher = known_checkpoint(config, model.init, f"{where}.init")
    declared = teacher.encoder in config.encoders and teacher.tokenizer in config.tokenizers  # else said of it
    if declared and (teacher.encoder, teacher.tokenizer) != (model.encoder, model.tokenizer):
        differs = "encoder" if teacher.encoder != model.encoder else "tokenizer"
        theirs, own = getattr(teacher, differs), getattr(model, differs)
        raise Misfit(
            f"config: {where}.init: {model.init} must have the same encoder and tokenizer; its {differs} is"
            f" {theirs!r}, not {own!r}",
            {f"{where}.{differs}": f"{own!r}, but {model.init}, from which it starts, has {theirs!r}"},
        )


def _hides_nothing(config, model, objective) -> str | None:
    """Why the masking of a recipe hides no token of any sequence; None: it hides some, or a term has its own way."""
    own = any(term.reads for name, term in objective.terms.items() if name != "mae")
    if own or not model.steps or model.masking.count != "floor":
        return None
    rate, longest = model.masking.rate, config.tokenizers[model.tokenizer].max_length
    which, drawn = f"max_length of tokenizer {model.tokenizer!r}", _longest(config, config.corpora[model.corpus])
    if drawn is not None and drawn < longest:
        longest, which = drawn, f"the longest of corpus {model.corpus!r}"
    if int(rate * longest + 1e-9):
        return None
    return (
        f"{rate:g} of a sequence of at most {longest} tokens ({which}) is less than one, so that `count: floor` hides"
        " none; raise it, or write count: rounded"
    )


def _longest(config, corpus) -> int | None:
    """Tokens that no sequence of a corpus of symbols has more of, [CLS] and [SEP] counted; None of text."""
    if corpus.kind == "markov":
        law = law_entry(config, corpus)
        return 2 + corpus.length * (law.longest if law.features == "multi" else 1)
    key = {"hmm": "length", "causal": "length", "pcfg": "max_length"}.get(corpus.kind)
    return None if key is None else 2 + getattr(corpus, key)


def _check_adopted(model, where):
    """A model made elsewhere is measured as it is."""
    if model.steps:
        raise MaskLabError(f"config: {where}.steps: a model made elsewhere is not trained; set steps: 0")
    for key in ("init", "teacher", "embeddings"):
        if getattr(model, key) is not None:
            raise MaskLabError(f"config: {where}.{key}: a model made elsewhere takes none; it is measured as it is")


def check_coded(config, name, model):
    """The dictionary whose codes a recipe reads is of a recipe whose codes it can read."""
    where = f"models.{name}"
    if not config.objectives[model.objective].needs("codes"):
        return
    known(config.dictionaries, model.dictionary, f"{where}.dictionary")
    reference = f"dictionaries.{model.dictionary}.model"
    checkpoint, read = config.dictionaries[model.dictionary].model, model.teacher or model.init
    coded = known_checkpoint(config, checkpoint, reference)
    if coded.tokenizer != model.tokenizer:
        raise MaskLabError(
            f"config: {where}.dictionary: {model.dictionary!r} codes the states of {checkpoint}, whose tokenizer"
            f" ({coded.tokenizer!r}) must be the model's ({model.tokenizer!r})"
        )
    stored, source = model.codes != "on-the-fly", "teacher or init" if coded.encoder == model.encoder else "teacher"
    if stored and coded.corpus != model.corpus:
        advice = "use 'on-the-fly'" + ("" if read == checkpoint else f" and give {checkpoint} as {source}")
        raise MaskLabError(
            f"config: {where}.codes: {model.codes!r} needs the dictionary's own corpus ({coded.corpus!r}, not"
            f" {model.corpus!r}); {advice}"
        )
    if not stored and read != checkpoint:
        advice = f"give {checkpoint} as {source}" + (", or use 'stored' codes" if coded.corpus == model.corpus else "")
        raise Misfit(
            f"config: {where}.init: codes on-the-fly are those of dictionary {model.dictionary!r}, of the states of"
            f" {checkpoint}, not of {read}; {advice}",
            {
                f"{where}.codes": f"'on-the-fly' takes the codes of dictionary {model.dictionary!r} from the states of"
                f" {checkpoint}, not of {read}; {advice}"
            },
        )
