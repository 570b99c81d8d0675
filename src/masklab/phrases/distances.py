"""How far apart predictions lie, and how much one distance tells about another.

The released code of Chiang and Yogatama (2023) sums absolute differences, which is twice the total variation; a
correlation is the same for both.
"""

import numpy as np
import torch

from masklab.phrases.saliency import TOKENS, padded
from masklab.rng import generator
from masklab.scores.items import resampled
from masklab.scores.metrics import pearson
from masklab.tasks.encoding import fitting, sorted_batches
from masklab.tokenizers import MASK

DRAWS = 1000  # of a bootstrap over features


def total_variation(p, q):
    """Half the sum of absolute differences over the last axis: 0 of equal ones, 1 of those that share nothing."""
    return np.abs(np.asarray(p, np.float64) - np.asarray(q, np.float64)).sum(-1) / 2


@torch.inference_mode()
def template_distances(model, pairs, device="cpu", among=None) -> np.ndarray:
    """Total variation between what a language model predicts at the [MASK] of two texts, [N] float64.

    Args:
        pairs: (row, row) each, of ids with [CLS] and [SEP] and one [MASK].
        among: ids of the only tokens that count, as distributions of their own (verbalisers); None: the vocabulary.
    """
    distances = np.empty(len(pairs))
    lengths = np.array([max(len(left), len(right)) for left, right in pairs], np.int64)
    for batch in sorted_batches(2 * lengths, fitting(TOKENS, device)):
        rows = [row for pair in batch for row in pairs[pair]]
        given = mask_predictions(model, rows, device, among)
        distances[batch] = total_variation(given[0::2], given[1::2])
    return distances


@torch.inference_mode()
def mask_predictions(model, rows, device="cpu", among=None) -> np.ndarray:
    """What a language model predicts at the one [MASK] of each row, [N, V] float64; `among`: of these ids alone."""
    ids, lengths = padded(rows, device)
    at = (ids == MASK).flatten().nonzero()[:, 0]
    logits = model(ids, lengths, at=at).logits.double()
    logits = logits if among is None else logits[:, list(among)]
    return logits.softmax(-1).cpu().numpy()


def without(values, covariates) -> np.ndarray:
    """[N] values less what goes with [N, K] covariates, by least squares, which leaves their mean as it is.

    Pearson's correlation of two such is their partial correlation, the covariates held fixed.
    """
    values, covariates = np.asarray(values, np.float64), np.asarray(covariates, np.float64)
    centred = covariates - covariates.mean(0)
    return values - centred @ np.linalg.lstsq(centred, values - values.mean(), rcond=None)[0]


def correlation_over_features(xs, ys, *address) -> tuple[float, float, float]:
    """(Pearson's correlation, its 95 % bootstrap interval over features): of [N] and [N]; 0 where one is constant.

    address: where the draws are made (`rng.generator`).
    """
    xs, ys = np.asarray(xs, np.float64), np.asarray(ys, np.float64)
    counts = generator(*address).multinomial(len(xs), np.full(len(xs), 1 / len(xs)), size=DRAWS)
    low, high = np.quantile(resampled("pearson", xs, ys[None], counts)[0], [0.025, 0.975])
    return pearson(xs, ys), float(low), float(high)
