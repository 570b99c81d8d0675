"""Several copies of one small encoder at once, with gradients written by hand.

A small model on a CPU spends much of its time between the operations, not in them. Here the copies' weights are
stacked, so that one batched product serves all of them; gradients are computed without a tape and written where the
optimiser reads them; and attention of the last block, where only the first position is asked for, never computes the
keys and values of the others. Every copy computes what `encoder.MaskedLM.encode` does, dropout included.

Absolute positions and post-layer-norm only (`supports`).
"""

from masklab.config.schema import Encoder

KNOWN = ("positions", "layers", "hidden", "heads", "intermediate", "max_positions", "dropout", "init_range")


def supports(config) -> bool:
    """Whether the encoder is one that is computed here: keys beyond `KNOWN` must have their defaults."""
    if not isinstance(config, Encoder) or config.positions != "absolute" or config.dropout > 0.99:
        return False
    others = {name: field for name, field in Encoder.model_fields.items() if name not in KNOWN}
    return all(getattr(config, name) == field.default for name, field in others.items())
