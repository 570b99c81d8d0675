"""Only the tokens that tasks have: the embeddings of all others are neither read nor, in effect, trained."""

import copy
from dataclasses import replace

import torch
from torch import nn

from masklab.models.encoder import MaskedLM


def restricted(models, splits):
    """(copies of models with the embeddings of the tokens in `splits` alone, the splits with ids renumbered).

    models: of one vocabulary. Fine-tuning one gives what fine-tuning the whole model does: other tokens occur in no
    input and have no gradient. An optimiser step then costs what the tasks need, not what the vocabulary holds. A model
    of transformers keeps all of its tokens, whose place it alone knows.
    """
    models = [copy.deepcopy(model) for model in models]
    if not all(isinstance(model, MaskedLM) for model in models):
        return models, list(splits)
    used = torch.unique(torch.cat([torch.unique(split.ids) for split in splits]))
    for model in models:
        model.embeddings.word = nn.Parameter(model.embeddings.word.detach()[used.long()].clone())
    return models, [replace(split, ids=torch.searchsorted(used, split.ids).to(torch.int32)) for split in splits]
