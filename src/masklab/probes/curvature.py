"""Trace of the Hessian of the loss at saturation, on the test split of the model's corpus.

One token of each sentence is hidden, sentences and positions drawn uniformly; the trace is over all parameters that
the loss has gradients for (a latent head has none), by the estimators of `masklab.curvature.trace`, with the model's
own distribution in the place of the labels'. Sentences, positions and signs are drawn at an address without the
model: models of one corpus are measured on the same.

Rows, one each per repeat (`seed` = 1, 2, ...): task = the corpus, split "test", n = sentences; metrics `trace`, its
standard error `trace_se`, and, where the probe gives a reference `width`, `trace_embedded` and its standard error
`trace_embedded_se`: the trace of the same function in a model of that width (`masklab.curvature.width`; k = width /
the encoder's, any ratio). The items are the sentences of the repeat in the order
drawn, or the sums of 8 of them where gradients are not taken one by one; a single one has no standard error.
"""

import numpy as np
import torch

from masklab.config.growth import head_problem
from masklab.curvature.per_example import covers
from masklab.curvature.trace import draw_places, hide, random_signs, squared_norms
from masklab.curvature.width import embedded
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.probes.outcomes import of_items
from masklab.rng import generator
from masklab.tokens import TokenStore


def measure(context) -> list[dict]:
    """Score rows of one checkpoint; see the module."""
    probe, store = context.probe, TokenStore(context.tokens, "test")
    model = load_checkpoint(context.checkpoint, context.device).eval()
    if probe.width is not None and (not isinstance(model, MaskedLM) or model.decoder is not None):
        where = f"probes.{context.name}.width: {context.checkpoint}"
        raise MaskLabError(f"{where}: only an encoder of ours without a decoder is known in a larger width")
    if probe.width not in (None, model.config.hidden) and (problem := head_problem(model.config)):
        raise MaskLabError(f"probes.{context.name}.width: {context.checkpoint}: {problem}")
    rows = []
    for repeat in range(1, probe.repeats + 1):
        rng = generator(context.seed, context.name, "sentences", repeat)
        drawn, columns = draw_places(store.lengths, probe.sentences, rng)
        # one by one, sentences of like length can go together
        order = np.argsort(store.lengths[drawn], kind="stable") if covers(model) else np.arange(len(drawn))
        parts = squared_norms(model, _batches(context, store, model, repeat, drawn[order], columns[order]))
        if covers(model):
            parts = parts[np.argsort(order)]
        shared = {"task": context.corpus, "split": "test", "seed": repeat}
        traces = {"trace": parts.sum(-1)}
        if probe.width is not None:
            traces["trace_embedded"] = embedded(parts, probe.width / model.config.hidden)
        for metric, values in traces.items():
            rows += of_items(values, metric, n=probe.sentences, **shared)
            if len(values) > 1:
                error = float(values.std() / len(values) ** 0.5)
                rows.append({**shared, "metric": f"{metric}_se", "value": error, "n": probe.sentences})
    return rows


def _batches(context, store, model, repeat, rows, columns):
    probe, address = context.probe, (context.seed, context.name, "sentences", repeat)
    for start in range(0, len(rows), probe.batch_size):
        part = slice(start, start + probe.batch_size)
        ids, lengths = store.batch(rows[part])
        ids, at = hide(ids, torch.from_numpy(columns[part]))
        signs = random_signs(generator(*address, start), len(ids), model.vocab_size)
        yield tuple(tensor.to(context.device) for tensor in (ids, lengths, at, signs))
        done = (repeat - 1) * len(rows) + start + len(ids)
        context.progress(done, probe.repeats * len(rows))
