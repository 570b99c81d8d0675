"""Trace of the Hessian of the loss at saturation, on the test split of the model's corpus.

One token of each sentence is hidden, sentences and positions drawn uniformly; the trace is over all parameters that
the loss has gradients for (a latent head has none), by the estimators of `masklab.curvature.trace`, with the model's
own distribution in the place of the labels'. Sentences, positions and signs are drawn at an address without the
model: models of one corpus are measured on the same.

Rows, one each per repeat (`seed` = 1, 2, ...): task = the corpus, split "test", n = sentences; metrics `trace`, its
standard error `trace_se`, and, where the probe gives a reference `width`, `trace_embedded` and its standard error
`trace_embedded_se`: the trace of the same function in a model of that width (`masklab.curvature.width`; k = width /
the encoder's, any ratio).
"""

from pathlib import Path

import numpy as np
import torch

from masklab.curvature.per_example import covers
from masklab.curvature.trace import hide, random_signs, squared_norms
from masklab.curvature.width import embedded
from masklab.models.checkpoint import load_checkpoint
from masklab.rng import generator
from masklab.tokens import TokenStore


def measure(context) -> list[dict]:
    """Score rows of one checkpoint; see the module."""
    probe, store = context.probe, TokenStore(context.tokens, "test")
    model = load_checkpoint(context.checkpoint, context.device).eval()
    shared = {"task": Path(context.tokens).parent.name, "split": "test", "n": probe.sentences}
    rows = []
    for repeat in range(1, probe.repeats + 1):
        parts = squared_norms(model, _batches(context, store, model, repeat))
        found = {"trace": parts.sum(-1)}
        if probe.width is not None:
            found["trace_embedded"] = embedded(parts, probe.width / model.config.hidden)
        for metric, values in found.items():
            numbers = {metric: values.mean(), f"{metric}_se": values.std() / len(values) ** 0.5}
            rows += [{**shared, "seed": repeat, "metric": key, "value": float(each)} for key, each in numbers.items()]
    return rows


def _batches(context, store, model, repeat):
    probe, address = context.probe, (context.seed, context.name, "sentences", repeat)
    rng, eligible = generator(*address), np.flatnonzero(store.lengths > 2)
    rows = eligible[rng.integers(len(eligible), size=probe.sentences)]
    inner = store.lengths[rows] - 2
    columns = 1 + np.minimum((rng.random(len(rows)) * inner).astype(np.int64), inner - 1)
    if covers(model):  # one by one, sentences of like length can go together
        order = np.argsort(inner, kind="stable")
        rows, columns = rows[order], columns[order]
    for start in range(0, len(rows), probe.batch_size):
        part = slice(start, start + probe.batch_size)
        ids, lengths = store.batch(rows[part])
        ids, at = hide(ids, torch.from_numpy(columns[part]))
        signs = random_signs(generator(*address, start), len(ids), model.vocab_size)
        yield tuple(tensor.to(context.device) for tensor in (ids, lengths, at, signs))
        done = (repeat - 1) * len(rows) + start + len(ids)
        context.progress(done, probe.repeats * len(rows))
