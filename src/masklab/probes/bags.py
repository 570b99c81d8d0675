"""What a linear classifier reads of words alone: a column for each token, in its place or counted.

Only columns that occur in one of the splits given together are made: all others are 0 everywhere.
"""

import numpy as np
import torch

from masklab.errors import MaskLabError
from masklab.tokenizers import CLS, MASK, PAD, SEP

LARGEST = 1 << 30  # numbers of a table of features that is held whole


def word_features(splits, order: bool) -> list:
    """Sparse features [N, F] of each split (scipy's CSR, float64), with the columns that occur in any of them.

    order: a column stands for a token in a place of its text, and holds 1 or 0; else for a token, and holds how often
    it occurs. The two texts of a pair have columns of their own; special tokens have none, but <unk>.
    """
    from scipy.sparse import csr_matrix

    longest = max(split.ids.shape[1] for split in splits)
    coded = [_codes(split, longest if order else None) for split in splits]
    columns = np.unique(np.concatenate([codes for _, codes in coded]))
    features = []
    for split, (rows, codes) in zip(splits, coded, strict=True):
        shape = len(split), max(1, len(columns))
        features.append(csr_matrix((np.ones(len(rows)), (rows, np.searchsorted(columns, codes))), shape))
    return features


def _codes(split, longest):
    """(row, code of its column) of every token of a split, [n] int64 each; longest: places there are, None: counted."""
    ids = split.ids.cpu().numpy().astype(np.int64)
    where = np.arange(ids.shape[1])
    ends = (ids == SEP) & (where < split.lengths[:, None])
    second = np.cumsum(ends, 1) - ends  # 0 in the first text of a row, 1 in the second
    inside = (where < split.lengths[:, None]) & ~np.isin(ids, (CLS, SEP, PAD, MASK))
    begins = np.where(second > 0, ends.argmax(1)[:, None] + 1, 1)
    codes = ids[inside] * 2 + second[inside]
    if longest is not None:
        codes = codes * longest + (where - begins)[inside]
    return np.nonzero(inside)[0], codes


def word_tables(splits, order: bool, width: int | None, generators, where: str, device="cpu") -> list[torch.Tensor]:
    """`word_features` as a linear probe reads them: projected [N, S, width], or as they are [N, 1, F], float32.

    generators: one per seed, of its projection (see `representations.projections`); width None: no projection.

    Raises:
        MaskLabError: naming `where`: without a projection, more numbers than `LARGEST`.
    """
    features = word_features(splits, order)
    columns = features[0].shape[1]
    if width is None:
        rows = sum(len(split) for split in splits)
        if rows * columns > LARGEST:
            raise MaskLabError(f"{where}: {rows} rows of {columns} words in their places; set a projection")
        return [torch.from_numpy(each.toarray().astype(np.float32))[:, None].to(device) for each in features]
    tables = [torch.empty(len(split), len(generators), width) for split in splits]
    for seed, generator in enumerate(generators):
        matrix = (torch.randn(columns, width, generator=generator) / columns**0.5).numpy()
        for table, each in zip(tables, features, strict=True):
            table[:, seed] = torch.from_numpy(each @ matrix)
    return [table.to(device) for table in tables]
