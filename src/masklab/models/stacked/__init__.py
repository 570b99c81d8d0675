"""Several copies of one encoder at once, or one, with gradients written by hand.

A small model on a CPU spends much of its time between the operations, not in them. Here the copies' weights are
stacked, so that one batched product serves all of them; gradients are computed without a tape and written where the
optimiser reads them; tokens are packed, and what lies between products is compiled (`masklab.kernels`). Every copy
computes what `encoder.MaskedLM` does alone, dropout included.

Fine-tuning (`supports`) asks for the first position of a row or for all, pre-training (`supports_masked`) for masked
tokens.
"""

from masklab.config.schema import Encoder

KNOWN = ("kind", "positions", "layers", "hidden", "heads", "intermediate", "max_positions", "dropout", "init_range")
KNOWN += ("absolute", "relative_buckets", "relative_distance", "norm", "embedding_norm", "norm_eps", "tied_head")
KNOWN += ("head", "decoder")
WORD = "embeddings.word"  # the parameter that a stack has as its table
WIDEST = 128  # hidden width up to which copies gain by being side by side


def supports(config, precision: str = "fp32") -> bool:
    """Whether the encoder can be fine-tuned here: keys beyond `KNOWN` must have their defaults.

    precision: bf16 is for encoders whose states are normalised after every sum; of others `auto` makes fp32.
    """
    if not isinstance(config, Encoder) or config.kind not in ("transformer", "lstm") or config.dropout > 0.99:
        return False
    if precision == "bf16" and not (config.norm == "post" and config.embedding_norm):
        return False
    others = {name: field for name, field in Encoder.model_fields.items() if name not in KNOWN}
    return all(getattr(config, name) == field.default for name, field in others.items())


def in_fp32_alone(config) -> bool:
    """Whether the encoder is supported in fp32 and not in bf16."""
    return supports(config) and not supports(config, "bf16")


def supports_masked(config, precision: str = "fp32") -> bool:
    """Whether the encoder can be pre-trained here in a precision, with its decoder, where it has one."""
    apart = config.decoder is not None and (config.positions == "disentangled" or config.decoder.attention != "self")
    return not apart and supports(config, precision)


def encoding_by_hand(model):
    """The model, which from now on encodes by compiled code where there is some of it: on a CPU, if it `supports` it.

    Its parameters must stay where they are.
    """
    if supports(model.config) and model.embeddings.word.device.type == "cpu":
        from masklab.models.stacked.by_hand import ByHand  # numba, which it needs, takes half a second

        model.by_hand = ByHand(model)
    return model
