"""Several copies of one encoder at once, or one, with gradients written by hand.

A small model on a CPU spends much of its time between the operations, not in them. Here the copies' weights are
stacked, so that one batched product serves all of them; gradients are computed without a tape and written where the
optimiser reads them; tokens are packed, and what lies between products is compiled (`masklab.kernels`); and attention
of the last block, where only the first position is asked for, never computes the keys and values of the others. Every
copy computes what `encoder.MaskedLM` does alone, dropout included.

Fine-tuning (`supports`) asks for the first position of a row or for all, pre-training (`supports_masked`) for masked
tokens.
"""

from masklab.config.schema import Encoder

KNOWN = ("positions", "layers", "hidden", "heads", "intermediate", "max_positions", "dropout", "init_range")
MASKED = ("absolute", "relative_buckets", "relative_distance", "norm", "embedding_norm", "norm_eps", "tied_head")
MASKED += ("head",)
WORD = "embeddings.word"  # the parameter that a stack has as its table
WIDEST = 128  # hidden width up to which attention on a grid, that of distances, is faster here
COMPILED = ("absolute", "relative", "none")  # positions whose attention is a compiled loop


def supports(config) -> bool:
    """Whether the encoder can be fine-tuned here: keys beyond `KNOWN` must have their defaults."""
    return config.positions in ("absolute", "disentangled") and _has_defaults_beyond(KNOWN, config)


def supports_masked(config, precision: str = "fp32") -> bool:
    """Whether the encoder can be pre-trained here, and gains by it; with its decoder, where it has one.

    precision: bf16, or what may become bf16, is for encoders whose states are normalised after every sum.
    """
    compiled = config.positions in COMPILED
    if config.decoder is not None:
        if not compiled or config.decoder.attention != "self":
            return False
        config = config.model_copy(update={"decoder": None})
    rounds = compiled and config.norm == "post" and config.embedding_norm
    fits = (compiled or config.hidden <= WIDEST) and (precision == "fp32" or rounds)
    return fits and _has_defaults_beyond(KNOWN + MASKED, config)


def _has_defaults_beyond(known, config):
    if not isinstance(config, Encoder) or config.dropout > 0.99:
        return False
    others = {name: field for name, field in Encoder.model_fields.items() if name not in known}
    return all(getattr(config, name) == field.default for name, field in others.items())
