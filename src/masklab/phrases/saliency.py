"""Saliency by occlusion: how probable a classifier still finds the label it predicts when a feature is hidden.

As Chiang and Yogatama (2023, section 6.2): a feature gives way to one [MASK], however many tokens it has, and the less
the label predicted for the whole text is then believed, the more salient the feature is. All hidden copies of all
examples go through the model together, sorted by length. Scores are in the order of the spans: the released code keeps
the score of the whole text in front and so reads, for each feature, the score of the one before. The text of a pair is
read with the other text beside it, as the classifier was trained; the released code leaves that out.
"""

import logging

import numpy as np
import torch

from masklab.tasks.encoding import fitting, joined, sorted_batches
from masklab.tokenizers import MASK, PAD

log = logging.getLogger("masklab")
TOKENS = {"cpu": 1024, "cuda": 65536}  # of a forward pass, padding included


def saliency(predict, examples, spans, longest: int, device="cpu") -> list[np.ndarray]:
    """Probability of each example's predicted label with each of its spans hidden, a float64 array per example.

    Args:
        predict: (ids [B, T], lengths [B]) on the device -> logits [B, C].
        examples: (ids of the first text, ids of the second or None) each, without special tokens.
        spans: of each example a list of (text, begin, end): tokens begin to end - 1 of text 0 or 1.
        longest: tokens of an example that are read; what is hidden makes room for what was cut off.
    """
    whole = [joined(*example, longest) for example in examples]
    hidden = [
        joined(*occluded(example, span), longest) for example, of in zip(examples, spans, strict=True) for span in of
    ]
    shown = probabilities(predict, whole + hidden, device)
    labels = shown[: len(whole)].argmax(1)
    counts = [len(of) for of in spans]
    scores = shown[len(whole) :][np.arange(len(hidden)), np.repeat(labels, counts)]
    return np.split(scores, np.cumsum(counts)[:-1])


def occluded(example, span):
    """An example with one [MASK] in the place of a span."""
    return replaced(example, span, [MASK])


def replaced(example, span, ids):
    """An example with other ids in the place of a span."""
    text, begin, end = span
    parts = list(example)
    parts[text] = [*parts[text][:begin], *ids, *parts[text][end:]]
    return tuple(parts)


@torch.inference_mode()
def probabilities(predict, rows, device="cpu") -> np.ndarray:
    """Softmax of `predict` on rows of ids, [CLS] and [SEP] included; [N, C] float64.

    Logits that are no numbers, of a classifier whose training diverged, count as equal ones: so the answer is class 0,
    as elsewhere, and whatever is replaced changes nothing.
    """
    lengths = np.array([len(row) for row in rows], np.int64)
    out, lost = None, 0
    for batch in sorted_batches(lengths, fitting(TOKENS, device)):
        logits = predict(*padded([rows[row] for row in batch], device)).double()
        known = logits.isfinite().all(-1, keepdim=True)
        lost += len(batch) - int(known.sum())
        given = torch.where(known, logits, 0.0).softmax(-1).cpu().numpy()
        if out is None:
            out = np.empty((len(rows), given.shape[1]))
        out[batch] = given
    if lost:
        log.warning("%s of %s rows get logits that are no numbers: training has diverged", lost, len(rows))
    return np.empty((0, 0)) if out is None else out


def padded(rows, device="cpu"):
    """(ids [B, T] long, lengths [B] long) of rows of ids, on the device."""
    lengths = np.array([len(row) for row in rows], np.int64)
    ids = np.full((len(rows), lengths.max(initial=0)), PAD, np.int64)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.concatenate(rows) if rows else []
    return torch.from_numpy(ids).to(device), torch.from_numpy(lengths).to(device)
