"""What a linear classifier reads of a frozen model: pooled representations of whole sequences, projected.

A source gives `size(longest)`, the number F of features of sequences of up to `longest` tokens (specials left out),
and `blocks(split, longest)`, pairs (rows [b], features [b, f]) of every row once, where f <= F and features from f on
are 0.
"""

from dataclasses import replace

import numpy as np
import torch

from masklab.corpora.laws import shared
from masklab.errors import MaskLabError
from masklab.models.pooling import pooled
from masklab.probes.single import EVALUATION_TOKENS
from masklab.symbols import FIRST
from masklab.tasks.encoding import fitting, sorted_batches
from masklab.tokenizers import UNK

LOOKUP_NUMBERS = 1 << 23  # conditionals of a lookup table computed together, in numbers


class EncoderSource:
    """Last hidden states of a `MaskedLM`, which is put into eval mode: its dropout is off.

    pooling: `concat`, the states of all tokens of the sequence ([CLS] and [SEP] left out) side by side; `mean`, their
    mean; `cls`, the state of [CLS].
    """

    def __init__(self, model, pooling: str):
        self.model, self.pooling = model.eval(), pooling

    def size(self, longest: int) -> int:
        return self.model.config.hidden * (longest if self.pooling == "concat" else 1)

    @torch.inference_mode()
    def blocks(self, split, longest: int):
        for rows in sorted_batches(split.lengths, fitting(EVALUATION_TOKENS, split.ids.device)):
            ids, lengths, _ = split.batch(rows)
            if self.pooling == "cls":
                first = torch.arange(len(ids), device=ids.device) * ids.shape[1]
                yield rows, self.model.encode(ids, lengths, at=first)
            else:
                yield rows, pooled(self.model.encode(ids, lengths)[:, 1:-1], lengths - 2, self.pooling)


class LookupSource:
    """Exact conditionals of every token given the others, [V] numbers a token; pooling: `concat` or `mean`.

    `blocks` raises a MaskLabError where a row holds <unk>, of which a law says nothing.
    """

    def __init__(self, law, pooling: str):
        self.law, self.pooling = law, pooling

    def size(self, longest: int) -> int:
        return self.law.symbols * (longest if self.pooling == "concat" else 1)

    def blocks(self, split, longest: int):
        for rows in sorted_batches(split.lengths - 2, LOOKUP_NUMBERS // self.law.symbols):
            ids, lengths, _ = split.batch(rows)
            if (ids == UNK).any():
                raise MaskLabError("a lookup table knows nothing of <unk>, which rows of the task hold")
            symbols = (ids[:, 1:-1] - FIRST).clamp(min=0).cpu().numpy()  # padding reads as symbol 0
            among = shared(self.law, torch.get_num_threads())
            conditionals = self.law.conditionals(symbols, lengths.cpu().numpy() - 2, **among)
            conditionals = torch.from_numpy(np.asarray(conditionals, np.float32)).to(ids.device)
            yield rows, pooled(conditionals, lengths - 2, self.pooling)


def first_rows(split, count: int):
    """The first `count` rows of a split."""
    return replace(split, ids=split.ids[:count], lengths=split.lengths[:count], labels=split.labels[:count])


def projected(source, split, longest: int, matrices=None):
    """Features of every row of a split, [N, S, P]: those of a source times each of S projections.

    matrices: [F, S, P]; None: no projection, [N, 1, F]. Computed block by block, so that the features themselves,
    often more than the classifier can read, are never held all together.
    """
    size = source.size(longest)
    flat = None if matrices is None else matrices.flatten(1)
    width = size if flat is None else flat.shape[1]
    features = torch.zeros(len(split), width, device=split.ids.device)
    for rows, block in source.blocks(split, longest):
        at, used = torch.from_numpy(rows).to(features.device), block.shape[1]
        if flat is None:
            features[at, :used] = block
        else:
            features[at] = block @ flat[:used]
    return features.view(len(split), *((1, size) if matrices is None else matrices.shape[1:]))


def projections(size: int, width: int, generators, device="cpu"):
    """Gaussian matrices with variance 1 / size, one per generator, [size, S, width].

    The paper names no variance; with this one projected features are as large as the features themselves.
    """
    drawn = torch.empty(size, len(generators), width)
    for column, generator in enumerate(generators):
        drawn[:, column] = torch.randn(size, width, generator=generator) / size**0.5
    return drawn.to(device)
