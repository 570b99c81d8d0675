"""What recipes ask of the rest of the config. One line per fault."""

from masklab.config import check_objectives
from masklab.config.autoencoder import check_autoencoder
from masklab.config.declared import check_symbols, known, known_checkpoint
from masklab.config.exact import check_weightless
from masklab.config.references import split_reference, stated_sequences
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
    if config.tokenizers[model.tokenizer].max_length > encoder.max_positions:
        raise MaskLabError(
            f"config: {where}.tokenizer: tokenizers.{model.tokenizer}.max_length"
            f" ({config.tokenizers[model.tokenizer].max_length}) is above encoders.{model.encoder}.max_positions"
            f" ({encoder.max_positions})"
        )
    check_autoencoder(config, where, model, encoder, objective)
    check_objectives.check_model(config, model, objective, where)
    if not encoder.network:
        check_weightless(config, model, encoder, where)
    if model.masking.mask + model.masking.random > 1:
        raise MaskLabError(f"config: {where}.masking: mask + random must be at most 1")
    sequences = stated_sequences(config, config.corpora[model.corpus])
    if sequences and model.steps and model.batch_size > sequences:
        raise MaskLabError(
            f"config: {where}.batch_size: {model.batch_size} is more than the {sequences} training sequences of"
            f" {model.corpus!r}"
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
    late = [step for step in model.checkpoints if step > model.steps]
    if late:
        raise MaskLabError(f"config: {where}.checkpoints: {late[0]} is after the last step ({model.steps})")
    if model.shuffle and model.init is None:
        raise MaskLabError(f"config: {where}.shuffle: needs weights to shuffle, given as init: model@step")
    if model.embeddings is not None:
        known(config.embeddings, model.embeddings, f"{where}.embeddings")
        vectors = config.embeddings[model.embeddings]
        if vectors.size != encoder.hidden or vectors.tokenizer != model.tokenizer:
            raise MaskLabError(
                f"config: {where}.embeddings: {model.embeddings!r} must have the model's tokenizer and the encoder's"
                f" width ({encoder.hidden})"
            )
    if model.init is not None:
        teacher = known_checkpoint(config, model.init, f"{where}.init")
        if (teacher.encoder, teacher.tokenizer) != (model.encoder, model.tokenizer):
            differs = "encoder" if teacher.encoder != model.encoder else "tokenizer"
            raise MaskLabError(
                f"config: {where}.init: {model.init} must have the same encoder and tokenizer; its {differs} is"
                f" {getattr(teacher, differs)!r}, not {getattr(model, differs)!r}"
            )


def check_coded(config, name, model):
    """The dictionary whose codes a recipe reads is of a recipe whose codes it can read."""
    where = f"models.{name}"
    if not config.objectives[model.objective].needs("codes"):
        return
    known(config.dictionaries, model.dictionary, f"{where}.dictionary")
    reference = f"dictionaries.{model.dictionary}.model"
    source, _ = split_reference(config.dictionaries[model.dictionary].model, reference)
    known(config.models, source, reference)
    coded = config.models[source]
    if model.codes == "stored" and (coded.corpus, coded.tokenizer) != (model.corpus, model.tokenizer):
        raise MaskLabError(
            f"config: {where}.codes: 'stored' needs the dictionary's own corpus and tokenizer"
            f" ({coded.corpus}, {coded.tokenizer}); use 'on-the-fly'"
        )
