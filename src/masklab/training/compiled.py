"""A model whose transformer blocks are compiled: once for all blocks of a kind, whatever the widths of the batches.

torch compiles a block in seconds and a whole encoder of twelve in half a minute, and does so again wherever a width
asks for another kernel: over 12 x 768 on an H200 a forward pass compiled as one took 190 s of its first 60 updates, and
after eight forms torch gives up. What lies between the blocks is a few operations.
"""

import torch

from masklab import inside_torch

FORMS = 64  # of a block that torch may compile, for the widths and the queries that it meets, before it gives up


def compiled(model):
    """A model of the same weights; an LSTM, which torch does not compile, stays as it is."""
    inside_torch.allow_forms(FORMS)
    copied = inside_torch.shallow_copy(model)
    if copied.embeddings is not model.embeddings:  # a torch that copies weights: those of the copy would be trained
        return model
    copied.blocks, copied.one_path = _each(model.blocks), True
    if model.decoder is not None:
        copied.decoder = inside_torch.shallow_copy(model.decoder)
        copied.decoder.blocks, copied.decoder.one_path = _each(model.decoder.blocks), True
    return copied


def _each(blocks):
    if any(isinstance(part, torch.nn.LSTM) for part in blocks.modules()):
        return blocks
    return torch.nn.ModuleList(torch.compile(block, dynamic=True) for block in blocks)
