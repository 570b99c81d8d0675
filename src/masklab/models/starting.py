"""Where a model starts from besides random weights and a checkpoint: shuffled weights, given word embeddings."""

import numpy as np
import torch

from masklab.errors import MaskLabError
from masklab.rng import torch_generator

FUSED = ("in_proj.weight", "in_proj.bias")  # query, key and value of all heads in one tensor


@torch.no_grad()
def shuffle_weights(model, seed: int, *address) -> None:
    """Permute the numbers within each tensor of `model`, in place (Chiang & Yogatama 2023, section 5.2).

    A tensor keeps its mean, its spread and every other statistic of its numbers, and nothing else. BERT's query, key
    and value are a tensor each, although stored as one; the tied decoder is the word embeddings. The permutation of a
    tensor is drawn at (seed, address, its name).
    """
    absolute = model.config.positions == "absolute"
    for name, parameter in model.named_parameters():
        generator = torch_generator(seed, *address, "shuffle", name)
        parts = [parameter.data]
        if absolute and name.endswith(FUSED):
            stack = model.config.decoder_stack if name.startswith("decoder.") else model.config
            parts = parameter.data.view(stack.heads, 3, -1).unbind(1)
        for part in parts:
            order = torch.randperm(part.numel(), generator=generator)
            part.copy_(part.reshape(-1).cpu()[order].view(part.shape))


@torch.no_grad()
def place_embeddings(model, vectors: np.ndarray) -> None:
    """Copy the rows of `vectors` [V, H] that are not all 0 into the model's word embeddings.

    Rows of 0 (special tokens, tokens that were never seen) leave the model's own. MaskLabError for another shape.
    """
    word = model.embeddings.word
    if tuple(word.shape) != vectors.shape:
        raise MaskLabError(f"embeddings: {vectors.shape}; the model's word embeddings are {tuple(word.shape)}")
    given = vectors.any(1)
    word[torch.from_numpy(given)] = torch.from_numpy(vectors[given]).to(word)
