"""Facts of a finished run, for its manifest: what it is, what it cost, and what it learned beyond word frequencies."""

import math

import numpy as np

from masklab.config import checkpoints
from masklab.models.flops import pretraining_flops_per_token
from masklab.tokenizers import CLS, MASK, PAD, SEP


def unigram(store, vocab_size: int, specials: bool) -> np.ndarray:
    """Share of each token among those of a `TokenStore` that can be masked, each counted once more (add one), [V].

    Special tokens are none of them, <unk> is; with `specials` [CLS] and [SEP], which then are masked too, count once
    for every sequence. float64; memory does not grow with the corpus.
    """
    counts = store.counts(vocab_size) + 1.0
    counts[[PAD, MASK]] = 0
    counts[[CLS, SEP]] = len(store) + 1 if specials else 0
    return counts / counts.sum()


def unigram_loss(store, vocab_size: int, targets) -> float | None:
    """`loss_of` the tokens' frequencies in a `TokenStore`; [CLS] and [SEP] count where they are to be predicted."""
    return loss_of(unigram(store, vocab_size, bool(np.isin(targets, (CLS, SEP)).any())), targets)


def loss_of(probabilities: np.ndarray, targets) -> float | None:
    """Mean cross-entropy in nats of the tokens `targets` [N] where `probabilities` [V] are predicted for each.

    None where there is nothing to predict.
    """
    return float(-np.log(probabilities[targets]).mean()) if len(targets) else None


def facts(run, vocab_size: int, parameters: int, rows: list[dict], lengths, unigram_loss: float | None) -> dict:
    """What the manifest of a `Run` says besides its configuration, JSON-able.

    rows: of metrics.parquet; lengths [n]: tokens of each sequence that batches are made of; unigram_loss: of the
    validation tokens. `tokens` counts special tokens, but no padding; `flops` are those of the model's own matrix
    products (`masklab.models.flops`); losses are in nats per token, None where none was taken; `valid_loss` is that of
    each kept step.
    """
    tokens = int(sum(row.get("tokens", 0) for row in rows))
    each = 0.0
    if tokens:
        setting = run.encoder, run.objective, run.model.masking
        size = min(run.model.micro, run.model.batch_size)  # sequences of a forward pass
        each = pretraining_flops_per_token(*setting, vocab_size, size, lengths, run.atoms)
    losses = {row["step"]: None if math.isnan(row["valid_loss"]) else row["valid_loss"] for row in rows}
    return {
        "parameters": parameters,
        "vocab_size": vocab_size,
        "tokens": tokens,
        "flops": tokens * each,
        "valid_loss": {str(step): losses[step] for step in checkpoints(run.model)},
        "unigram_loss": unigram_loss,
    }
