"""The pre-training run of an encoder of words: nothing is trained, the training tokens are counted."""

from masklab.models.words import FILE, Words, save_words
from masklab.tokens import TokenStore
from masklab.training.lookup_run import finish
from masklab.training.manifest import unigram
from masklab.training.run import Run


def write_words(run: Run) -> None:
    """Leave in `run.output` what a finished run leaves: `step-0/`, `metrics.parquet` (one row) and `manifest.json`."""
    store = TokenStore(run.tokens, "train")
    probabilities = unigram(store, run.vocab_size, run.model.masking.specials)
    words = Words(probabilities, run.encoder.order, run.encoder.max_positions, run.encoder.units)
    finish(run, FILE, lambda folder, **parts: save_words(folder, words, **parts), probabilities)
