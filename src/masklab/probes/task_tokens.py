"""Only the tokens that a task has: the embeddings of all others are neither read nor, in effect, trained."""

import copy
from dataclasses import replace

import torch
from torch import nn

from masklab.models.encoder import MaskedLM


def restricted(pretrained, splits):
    """(a copy of the model with the embeddings of the tokens in `splits` alone, the splits with ids renumbered).

    Fine-tuning it gives what fine-tuning the whole model does: other tokens occur in no input and have no gradient.
    An optimiser step then costs what the task needs, not what the vocabulary holds. A model of transformers keeps all
    of its tokens, whose place it alone knows.
    """
    if not isinstance(pretrained, MaskedLM):
        return copy.deepcopy(pretrained), list(splits)
    used = torch.unique(torch.cat([torch.unique(split.ids) for split in splits]))
    model = copy.deepcopy(pretrained)
    model.embeddings.word = nn.Parameter(model.embeddings.word.detach()[used.long()].clone())
    return model, [replace(split, ids=torch.searchsorted(used, split.ids).to(torch.int32)) for split in splits]
