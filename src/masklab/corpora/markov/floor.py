"""The loss floor: what the best possible reader loses on masked tokens of a corpus whose law is known."""

import numpy as np

from masklab.corpora.markov.law import HIDDEN, Channel
from masklab.corpora.markov.spelt import END
from masklab.intervals import mean_and_error
from masklab.masking import mask_batch
from masklab.symbols import FIRST
from masklab.tokenizers import CLS, MASK, SEP


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


def floor(law, symbols, masking, rng) -> tuple[float, float, int]:
    """Expected MLM loss of the exact posterior under `masking`: (nats per masked token, standard error, tokens).

    symbols: [B, T] a sample of sequences, masked as a model's batches are. The error is that of sequences drawn anew.
    """
    symbols = np.asarray(symbols)
    ids = np.full((len(symbols), symbols.shape[1] + 2), CLS, np.int64)
    ids[:, 1:-1], ids[:, -1] = symbols + FIRST, SEP
    lengths = np.full(len(ids), ids.shape[1])
    corrupted, rows, columns = mask_batch(ids, lengths, masking, law.symbols + FIRST, rng)
    losses = token_floor(law, ids, corrupted, rows, columns, masking)
    return *mean_and_error(losses, rows), len(losses)
