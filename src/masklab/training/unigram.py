"""The pre-training run of an encoder of words: nothing is trained, the training tokens are counted."""

import numpy as np

from masklab.files import read_json
from masklab.models.words import FILE, Words, save_words
from masklab.tokenizers import CLS, MASK, PAD, SEP
from masklab.tokens import TokenStore
from masklab.training.lookup import finish
from masklab.training.run import Run

CHUNK = 1 << 24  # tokens counted at a time


def write_words(run: Run) -> None:
    """Leave in `run.output` what a finished run leaves: `step-0/`, `metrics.parquet` (one row) and `manifest.json`."""
    store, vocab_size = TokenStore(run.tokens, "train"), read_json(run.tokens / "meta.json")["vocab_size"]
    probabilities = unigram(store, vocab_size, run.model.masking.specials)
    words = Words(probabilities, run.encoder.order, run.encoder.max_positions)
    finish(run, FILE, lambda folder, **parts: save_words(folder, words, **parts))


def unigram(store: TokenStore, vocab_size: int, specials: bool) -> np.ndarray:
    """Share of each token among those of a split that can be masked, each counted once more (add one), [V] float64.

    Special tokens are none of them, <unk> is; with `specials` [CLS] and [SEP], which then are masked too, count once
    for every sequence.
    """
    counts = np.zeros(vocab_size)
    for start in range(0, len(store.ids), CHUNK):
        counts += np.bincount(store.ids[start : start + CHUNK], minlength=vocab_size)
    counts += 1
    counts[[PAD, MASK]] = 0
    counts[[CLS, SEP]] = len(store) + 1 if specials else 0
    return counts / counts.sum()
