"""Parameters and floating-point operations of an encoder, from its configuration alone.

Only matrix products count, two operations for each multiply-add, as is the custom
for model FLOPs utilisation; norms, softmax, gelu and lookups do not. What is counted
is what the encoder computes: the last block has queries of, attends from, and feeds
forward, only the positions asked for, and the head reads only those. (On GPUs the
last block's queries and attention products are computed from every position; that
excess is no useful work and is not counted.)
"""

import numpy as np

from masklab.config.schema import Encoder
from masklab.masking import masked_count


def count_parameters(config: Encoder, vocab_size: int, latent: int = 0) -> int:
    """Trainable parameters of `MaskedLM(config, vocab_size, latent)`, a decoder's included.

    A model made elsewhere counts as one of ours of its size.
    """
    import torch

    from masklab.models.encoder import MaskedLM

    config = config.model_copy(update={"kind": "transformer"}) if config.kind == "folder" else config
    with torch.device("meta"):
        model = MaskedLM(config, vocab_size, latent)
    return sum(parameter.numel() for parameter in model.parameters())


def forward_flops(
    config: Encoder, vocab_size: int, size: int, length: int, masked: int, latent: int = 0, dropped: int | None = None
) -> int:
    """FLOPs of one forward pass over `size` sequences of `length` tokens, `masked` of them asked for in each.

    Args:
        config, vocab_size, latent: as of `MaskedLM`.
        dropped: with a decoder, positions per sequence that leave the encoder; None: `masked`.
            A causal decoder is asked for every position: masked = length.
    """
    asked = size * masked
    if config.decoder is None:
        total = _stack(config, size, length, masked)
        width = config.hidden
    else:
        short = length - (masked if dropped is None else dropped)
        stack = config.decoder_stack
        width = stack.hidden
        total = _stack(config, size, short, short) + _decoder(config, size, length, short, masked)
        if width != config.hidden:
            total += 2 * size * length * config.hidden * width + 2 * asked * width * config.hidden
    transform = width * width if config.head == "transform" else 0
    return total + 2 * asked * (transform + config.hidden * (vocab_size + latent))


def training_flops(config: Encoder, vocab_size: int, size: int, length: int, masked: int, **options) -> int:
    """Forward and backward: three times the forward pass (the backward has two products for each of its own)."""
    return 3 * forward_flops(config, vocab_size, size, length, masked, **options)


def mean_masks(masking, length: int) -> int:
    """Tokens that are masked of a sequence of `length`, on average, rounded; at least one."""
    if masking.count in ("one", "floor"):
        return max(1, int(masked_count([length], masking)[0]))
    inner = length - 2 if masking.count == "bernoulli" and not masking.specials else length
    return max(1, round(masking.rate * inner))


def pretraining_flops(config: Encoder, objective, masking, vocab_size: int, size: int, length: int, latent=0) -> int:
    """`training_flops` of `size` sequences under an `Objective` and a `Masking`, each with its mean number of masks.

    Of a masked autoencoder the share of masks that `objective.leaving` says leaves the encoder. The passes of a
    teacher and of terms that are added once per update are not part of it.
    """
    masked, options = mean_masks(masking, length), {}
    if config.decoder is not None:
        options["dropped"] = round(objective.leaving(masking) * masked)
        masked = length if config.decoder.attention == "causal+cross" else masked
    return training_flops(config, vocab_size, size, length, masked, latent=latent, **options)


def pretraining_flops_per_token(
    config: Encoder, objective, masking, vocab_size: int, size: int, lengths, latent=0
) -> float:
    """The same for each token of sequences of `lengths` [n] tokens, special tokens counted.

    size: sequences of a forward pass, which share what disentangled positions compute once; they are of like length.
    """
    distinct, counts = np.unique(np.asarray(lengths), return_counts=True)
    each = [
        pretraining_flops(config, objective, masking, vocab_size, size, length, latent) / size
        for length in distinct.tolist()
    ]
    return float(counts @ np.array(each, float)) / float(distinct @ counts)


def _stack(config: Encoder, size: int, length: int, asked: int) -> int:
    """All blocks; the last one is asked for `asked` positions of each sequence."""
    inner = _block(config, size, length, length)
    return (config.layers - 1) * inner + _block(config, size, length, asked)


def _block(config: Encoder, size: int, length: int, asked: int) -> int:
    hidden, tokens = config.hidden, size * length
    if config.kind == "lstm":
        # two directions, four gates, each from the input [H] and from the state [H / 2]
        return 2 * tokens * 2 * 4 * (hidden // 2) * (hidden + hidden // 2)
    projections = size * (asked + 2 * length) * hidden * hidden
    products = 2 * size * asked * length * hidden
    rest = size * asked * (hidden * hidden + 2 * hidden * config.ffn)
    if config.positions == "disentangled":
        distances = 2 * length - 1
        projections += 2 * distances * hidden * hidden
        products += size * (asked + length) * distances * hidden
    return 2 * (projections + products + rest)


def _decoder(config: Encoder, size: int, length: int, kept: int, asked: int) -> int:
    """The decoder's blocks: `kept` tokens of each sequence have been in the encoder, `asked` want scores."""
    stack, kind = config.decoder_stack, config.decoder.attention
    if kind == "self":
        return _stack(stack, size, length, asked)
    wide, total = stack.hidden, 0
    for number in range(stack.layers):
        queries = asked if kind == "cross" or number == stack.layers - 1 else length
        block = _block(stack, size, length, queries)
        if kind == "cross":
            block = 2 * 2 * size * queries * wide * stack.ffn
        # query and output projections; keys and values of the encoder's states; products
        cross = 2 * queries * wide * wide + 2 * kept * config.hidden * wide + 2 * queries * kept * wide
        total += block + 2 * size * cross
    return total
