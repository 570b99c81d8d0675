"""Masked-language-model loss against exact conditionals (Liu et al. 2023, appendix A.4).

One token of a sequence is hidden at a time. The expected loss given all the others is the entropy of the exact
conditional p plus the Kullback-Leibler divergence of the model's prediction f from it, -sum_v p_v log f_v, with f the
model's softmax over its whole vocabulary: what it gives to special tokens, which p never has, is lost, and nothing is
renormalised. No token is sampled, so the error is that of the choice of sequences alone, and a loss below the entropy
is impossible: `gap` is at least 0. Of words without a network f is the unigram distribution.
"""

import numpy as np
import torch

from masklab.conditionals import Conditionals
from masklab.errors import MaskLabError
from masklab.intervals import mean_and_error
from masklab.models.checkpoint import load_checkpoint
from masklab.models.lookup import is_lookup
from masklab.models.stacked import encoding_by_hand
from masklab.models.words import is_words, load_words
from masklab.probes.outcomes import of_items
from masklab.symbols import FIRST
from masklab.tokenizers import MASK
from masklab.tokens import TokenStore

SUBSETS = 5


def measure(context) -> list[dict]:
    """Rows `loss`, `floor` (the mean entropy), `gap` (the mean divergence), each `_se` and its items, and `loss_std`.

    In nats per masked token, each sequence counting once, as in training with one mask per sequence: a sequence is an
    item, and its value the mean over its positions measured. The errors are over sequences, two at least; `loss_std` is
    the standard deviation of the loss over 5 disjoint subsets of them (the paper's). n counts masked tokens.
    `parameters` counts the model's.
    """
    stored, store = Conditionals(context.conditionals), TokenStore(context.tokens, "test")
    if is_lookup(context.checkpoint):
        gaps, parameters = np.zeros(len(stored)), 0
    elif is_words(context.checkpoint):
        gaps, parameters = unigram_divergences(load_words(context.checkpoint), stored, context.probe.batch_size), 0
    else:
        model = encoding_by_hand(load_checkpoint(context.checkpoint, context.device)).eval()
        parameters = sum(parameter.numel() for parameter in model.parameters())
        gaps = divergences(model, store, stored, context.probe.batch_size, context.device, context.progress)
    rows, entropies = np.asarray(stored.rows), np.asarray(stored.entropies)
    shared = {"task": context.corpus, "split": "test"}
    means, numbers = summary(rows, entropies, gaps)
    scores = [row for metric, values in means.items() for row in of_items(values, metric, n=len(stored), **shared)]
    numbers |= {"parameters": float(parameters)}
    return scores + [{**shared, "n": len(stored), "metric": m, "value": value} for m, value in numbers.items()]


def summary(rows, entropies, gaps) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """From the sequence, entropy and divergence of each masked token, [N] each; see `measure`.

    Returns the values of the sequences [S] of each metric, in the order of the corpus, and their errors by name.
    """
    _, group, counts = np.unique(rows, return_inverse=True, return_counts=True)
    means, errors = {}, {}
    for metric, values in (("loss", entropies + gaps), ("floor", entropies), ("gap", gaps)):
        means[metric] = np.bincount(group, values) / counts
        if len(counts) > 1:
            _, errors[f"{metric}_se"] = mean_and_error(means[metric], np.arange(len(counts)))
    if len(counts) >= SUBSETS:
        parts = [means["loss"][part::SUBSETS].mean() for part in range(SUBSETS)]
        errors["loss_std"] = float(np.std(parts, ddof=1))
    return means, errors


def unigram_divergences(words, stored, batch_size: int) -> np.ndarray:
    """KL(exact conditional || unigram distribution) in nats at each pair of `stored`, [N] float64, at least 0."""
    _check_symbols(stored, words.vocab_size)
    logs = words.logs[FIRST:]
    parts = [slice(start, start + batch_size) for start in range(0, len(stored), batch_size)]
    cross = np.concatenate([-(stored.distributions(part) @ logs) for part in parts])
    return np.maximum(cross - stored.entropies, 0)


def _check_symbols(stored, vocab_size):
    if stored.symbols + FIRST != vocab_size:
        raise MaskLabError(f"the law has {stored.symbols} symbols, the model's vocabulary {vocab_size - FIRST}")


@torch.inference_mode()
def divergences(model, store, stored, batch_size: int, device="cpu", progress=None) -> np.ndarray:
    """KL(exact conditional || model's prediction) in nats at each pair of `stored`, [N] float64, at least 0."""
    _check_symbols(stored, model.vocab_size)
    gaps = np.empty(len(stored))
    for start in range(0, len(stored), batch_size):
        part = slice(start, start + batch_size)
        ids, lengths = store.batch(stored.rows[part])
        at = torch.arange(len(ids)) * ids.shape[1] + torch.from_numpy(np.array(stored.columns[part]))
        ids.view(-1)[at] = MASK
        logits = model(ids.to(device), lengths.to(device), at=at.to(device)).logits
        exact = torch.from_numpy(stored.distributions(part)).to(device)
        cross = -(exact * logits.double().log_softmax(-1)[:, FIRST:]).sum(-1).cpu().numpy()
        # Gibbs: never negative, up to the rounding of the two sums
        gaps[part] = np.maximum(cross - stored.entropies[part], 0)
        if progress:
            progress(min(start + batch_size, len(stored)), len(stored))
    return gaps
