"""Masked-language-model loss on the test split of the model's corpus, against the best possible.

Where the exact conditionals are at hand (`masks: one` on a corpus that has them), see `exact_loss`. Otherwise:

Sequences from all over the split are masked as in the model's own training, or with one [MASK] each (`masks: one`),
at an address without the model, so that models of one corpus are measured on the same masks. Where the law of the
corpus gives the posterior of such masks, the floor is the loss of the exact posterior on these very batches, and the
gap the difference token by token: an estimate of the mean Kullback-Leibler divergence of the model from the law.

Rows: task = the corpus, split "test", n = masked tokens; metrics `loss`, `floor`, `gap` in nats per masked token, and
each one's standard error over sequences, `loss_se`, `floor_se`, `gap_se`, which a single sequence does not have; and
`parameters`, those of the model. The items are the sequences that have a masked token, in the order of the corpus
(`sequence_values`). Words without a network have no parameters, and predict the unigram distribution.
"""

from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from masklab.config.schema import Masking
from masklab.corpora.laws import law_of
from masklab.corpora.markov.floor import token_floor
from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.intervals import mean_and_error
from masklab.masking import mask_batch
from masklab.models.checkpoint import load_checkpoint
from masklab.models.companions import of_recipe
from masklab.models.stacked import encoding_by_hand
from masklab.models.words import is_words, load_words
from masklab.probes import exact_loss
from masklab.probes.outcomes import of_items
from masklab.probes.sequences import spread
from masklab.rng import generator
from masklab.tokens import TokenStore


def measure(context) -> list[dict]:
    """Score rows of one checkpoint; see the module."""
    if context.conditionals is not None:
        return exact_loss.measure(context)
    probe, store = context.probe, TokenStore(context.tokens, "test")
    meta = read_json(Path(context.tokens) / "meta.json")
    masking = Masking(count="one") if probe.masks == "one" else training_masking(context.checkpoint)
    law = law_of(meta.get("corpus")) if probe.floor else None
    law = law if hasattr(law, "posterior") else None
    if getattr(law, "whole", False) and meta["splits"]["test"]["truncated"]:
        law = None
    words = load_words(context.checkpoint) if is_words(context.checkpoint) else None
    model = None if words else encoding_by_hand(load_checkpoint(context.checkpoint, context.device)).eval()
    rows = spread(context, store, masking, "test")
    losses, floors, groups = [], [], []
    for start in range(0, len(rows), probe.batch_size):
        part = rows[start : start + probe.batch_size]
        ids, lengths = store.batch(part)
        rng = generator(context.seed, context.name, "masks", start)
        batch = ids.numpy(), *mask_batch(ids.numpy(), lengths.numpy(), masking, meta["vocab_size"], rng)
        original, _, hidden, columns = batch
        if words:
            losses.append(-words.logs[original[hidden, columns]])
        else:
            losses.append(token_losses(model, *batch, lengths, context.device))
        groups.append(part[hidden])
        if law is not None:
            floors.append(token_floor(law, *batch, masking))
        context.progress(start + len(part), len(rows))
    losses, groups = np.concatenate(losses), np.concatenate(groups)
    if not len(losses):
        raise MaskLabError(f"probes.{context.name}: chance hid no token of {len(rows)} sequences; raise `sequences`")
    measures = {"loss": losses}
    if floors:
        floors = np.concatenate(floors)
        measures |= {"floor": floors, "gap": losses - floors}
    shared, n = {"task": context.corpus, "split": "test"}, len(losses)
    parameters = float(sum(parameter.numel() for parameter in model.parameters())) if model else 0.0
    scores = [{**shared, "metric": "parameters", "value": parameters, "n": n}]
    for metric, values in measures.items():
        _, error = mean_and_error(values, groups)
        scores += of_items(sequence_values(values, groups), metric, n=n, **shared)
        if np.isfinite(error):
            scores.append({**shared, "metric": f"{metric}_se", "value": error, "n": n})
    return scores


def sequence_values(values, groups) -> np.ndarray:
    """One number per sequence from values [N] of tokens of the sequences `groups` [N]: [S], sequences ascending.

    Their mean is the mean over tokens, and sequences drawn again from them spread as `mean_and_error` says: a
    sequence stands for what it adds to that mean, to first order, so that a long one does not count for its length.
    """
    _, group, counts = np.unique(groups, return_inverse=True, return_counts=True)
    mean = values.mean()
    return mean + (np.bincount(group, values) - counts * mean) / counts.mean()


def training_masking(checkpoint) -> Masking:
    """The masking a checkpoint was trained with, from its masklab.json."""
    return Masking(**of_recipe(checkpoint, "masking"))


@torch.inference_mode()
def token_losses(model, original, corrupted, rows, columns, lengths, device="cpu") -> np.ndarray:
    """Cross-entropy in nats at the masked tokens (rows, columns) [N] of a batch, [N] float64."""
    at = torch.from_numpy(rows * original.shape[1] + columns).to(device)
    logits = model(torch.from_numpy(corrupted).to(device), lengths.to(device), at=at).logits
    wanted = torch.from_numpy(original[rows, columns]).to(device)
    return F.cross_entropy(logits.double(), wanted, reduction="none").cpu().numpy()
