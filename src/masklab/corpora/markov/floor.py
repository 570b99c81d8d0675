"""The loss floor: what the best possible reader loses on masked tokens of a corpus whose law is known."""

import numpy as np

from masklab.corpora.markov.law import HIDDEN, Channel
from masklab.corpora.markov.spelt import END
from masklab.symbols import FIRST
from masklab.tokenizers import MASK


def token_floor(law, original, corrupted, rows, columns, masking) -> np.ndarray:
    """Loss of the exact posterior at each masked token, in nats, [N]: the floor on these very batches.

    original, corrupted: token ids [B, T] with [CLS] and [SEP] as `mask_batch` takes and gives them, padded where
    features are of several tokens; rows, columns: the masked tokens [N].
    """
    seen = np.where(corrupted == MASK, HIDDEN, corrupted - FIRST)
    seen = np.where(original >= FIRST, seen, END)[:, 1:-1]
    targets = np.zeros(seen.shape, bool)
    targets[rows, columns - 1] = True
    posterior = law.posterior(seen, targets, Channel.of(masking))
    return -np.log(posterior[np.arange(len(rows)), original[rows, columns] - FIRST])
