"""Batches of random tokens with padding, for tests of models."""

import torch


def batch(vocab: int, lengths=(17, 2, 9, 17), seed=0):
    """(ids [B, T] below `vocab`, lengths [B], which places are no padding [B, T])."""
    lengths = torch.tensor(lengths)
    real = torch.arange(int(lengths.max())) < lengths[:, None]
    ids = torch.randint(5, vocab, real.shape, generator=torch.Generator().manual_seed(seed))
    return ids.masked_fill(~real, 3), lengths, real
