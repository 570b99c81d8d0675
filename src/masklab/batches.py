"""Which sequences make up the batch of a step: a function of (seed, address, step) alone.

An epoch is a fresh permutation of the corpus. Within windows of `WINDOW`
batches the sequences are sorted by length, so that a batch holds sequences of
like length and next to no padding; the batches are then shuffled over the
epoch. Nothing is remembered between steps: resuming at any step costs one
permutation, in memory eight bytes a sequence.
"""

import numpy as np

from masklab.errors import MaskLabError
from masklab.rng import generator

WINDOW = 50


class BatchPlan:
    """Rows of each step's batch.

    lengths: [n] tokens per sequence (specials counted); `eligible` rows only are drawn. `name`: whose plan it is, for
    the error where there are too few.
    """

    def __init__(self, lengths, batch_size: int, seed: int, *address, eligible=None, name=None):
        self.lengths = np.asarray(lengths)
        number = np.uint32 if len(self.lengths) < 1 << 32 else np.int64
        self.rows = np.arange(len(self.lengths), dtype=number)
        if eligible is not None:
            self.rows = self.rows[eligible]
        if len(self.rows) < batch_size:
            raise MaskLabError(
                f"{name or '/'.join(map(str, address))}: the corpus has {len(self.rows)} sequences with a maskable"
                f" token, fewer than one batch of {batch_size}"
            )
        self.batch_size, self.seed, self.address = batch_size, seed, address
        self.per_epoch = len(self.rows) // batch_size
        self._epoch, self._order, self._shuffled = None, None, None

    def batch(self, step: int) -> np.ndarray:
        """Rows of the batch of `step` (0-based), sorted by length, [batch_size] int64."""
        epoch, index = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, None  # the last epoch's, before another takes its memory
            self._shuffled, self._order = self._shuffle(epoch)
        return self._shuffled[self._order[index]].astype(np.int64)

    def _shuffle(self, epoch):
        """Rows in an order of their own [per_epoch, batch_size], and the order in which batches are taken from it."""
        self._shuffled = None
        rng = generator(self.seed, *self.address, "order", epoch)
        rows = rng.permutation(self.rows)[: self.per_epoch * self.batch_size]
        window = WINDOW * self.batch_size
        for start in range(0, len(rows), window):
            part = rows[start : start + window]
            rows[start : start + window] = part[np.argsort(self.lengths[part], kind="stable")]
        return rows.reshape(self.per_epoch, self.batch_size), rng.permutation(self.per_epoch)
