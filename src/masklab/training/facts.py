"""Facts of a finished run, for its manifest: what it is, what it cost, and what it learned beyond word frequencies."""

import numpy as np

from masklab.config import checkpoints
from masklab.masking import FIRST_PIECE
from masklab.models.flops import pretraining_flops_per_token


def unigram_loss(store, vocab_size: int, targets) -> float | None:
    """Mean cross-entropy in nats of the tokens `targets` [N] under the frequencies of the tokens of a `TokenStore`.

    Add-one smoothed. Of the special tokens only those that are to be predicted have a share: [CLS] and [SEP] one in
    each sequence, <unk> as often as it occurs. None where there is nothing to predict.
    """
    targets = np.asarray(targets)
    if not len(targets):
        return None
    counts = store.counts(vocab_size)
    counts[np.delete(np.arange(FIRST_PIECE), np.unique(targets[targets < FIRST_PIECE]))] = -1
    return float(np.mean(np.log((counts + 1).sum()) - np.log(counts[targets] + 1)))


def facts(run, vocab_size: int, parameters: int, rows: list[dict], lengths, unigram: float | None) -> dict:
    """What the manifest of a `Run` says besides its configuration, JSON-able.

    rows: of metrics.parquet; lengths [n]: tokens of each sequence that batches are made of; unigram: `unigram_loss` of
    the validation tokens. `tokens` counts special tokens, but no padding; `flops` are those of the model's own
    matrix products (`masklab.models.flops`); losses are in nats per token; `valid_loss` is that of each kept step.
    """
    tokens = int(sum(row.get("tokens", 0) for row in rows))
    each = 0.0
    if tokens:
        latent = run.dictionary_config.atoms if run.objective.needs("codes") else 0
        setting = run.encoder, run.objective, run.model.masking
        each = pretraining_flops_per_token(*setting, vocab_size, lengths, latent)
    said = {row["step"]: row["valid_loss"] for row in rows}
    return {
        "parameters": parameters,
        "vocab_size": vocab_size,
        "tokens": tokens,
        "flops": tokens * each,
        "valid_loss": {str(step): None if unigram is None else said[step] for step in checkpoints(run.model)},
        "unigram_loss": unigram,
    }
