"""Slices of the loss around a checkpoint, on the test split of the model's corpus (Liu et al. 2023, Figure 4).

The loss of one hidden token in each of the same sentences, along directions through the parameters: 0 is the one
along which gradients vary most, others are random (`masklab.curvature.slices`). With `width` or `layers` the model
first grows into a larger one that computes the same (`masklab.models.grow`), and the slices are those of the large
model: a small model and a large one can be compared at the same number of parameters.

Rows: task = the corpus, split "test", metric `loss` in nats per masked token, `layer` = number of the direction,
`at` = offset along it, n = masked tokens. Sentences and draws have an address without the model.
"""

import numpy as np
import torch

from masklab.config.growth import sized
from masklab.curvature.slices import random_direction, slice_loss, top_direction
from masklab.curvature.trace import SUMMED, draw_places, hide, random_signs
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint
from masklab.models.grow import grow
from masklab.rng import generator, torch_generator
from masklab.tokens import TokenStore


def measure(context) -> list[dict]:
    """Score rows of one checkpoint; see the module."""
    probe, store = context.probe, TokenStore(context.tokens, "test")
    model = load_checkpoint(context.checkpoint).eval()
    try:
        width, layers = sized(model.config, probe.width, probe.layers)
    except ValueError as error:
        raise MaskLabError(f"probes.{context.name}.{error}") from None
    if (width, layers) != (1, model.config.layers):
        model = grow(model, width, layers)
    model = model.to(context.device)
    batches = list(_sentences(context, store, "loss", probe.sentences, probe.batch_size))
    rows = []
    for number in range(probe.directions + 1):
        if number:
            address = (context.seed, context.name, "direction", number)
            direction = random_direction(model, probe.scale, torch_generator(*address))
        else:
            direction = top_direction(model, _signed(context, store, model.vocab_size))
        reach = probe.largest if number else probe.top_reach
        offsets = reach * np.linspace(-1, 1, probe.points).round(12)
        for offset, loss in zip(offsets, slice_loss(model, direction, offsets, batches), strict=True):
            rows.append({"task": context.corpus, "split": "test", "metric": "loss", "value": loss,
                         "layer": number, "at": float(offset), "n": probe.sentences})  # fmt: skip
        context.progress(number + 1, probe.directions + 1)
    return rows


def _sentences(context, store, purpose, count, size):
    """Batches (ids, lengths, at, labels) of sentences and positions drawn uniformly."""
    rows, columns = draw_places(store.lengths, count, generator(context.seed, context.name, purpose))
    for start in range(0, count, size):
        ids, lengths = store.batch(rows[start : start + size])
        column = torch.from_numpy(columns[start : start + size])
        labels = ids.gather(1, column[:, None])[:, 0]
        ids, at = hide(ids, column)
        yield tuple(tensor.to(context.device) for tensor in (ids, lengths, at, labels))


def _signed(context, store, vocab_size):
    rng = generator(context.seed, context.name, "signs")
    for ids, lengths, at, _ in _sentences(context, store, "gradients", context.probe.gradients * SUMMED, SUMMED):
        yield ids, lengths, at, random_signs(rng, len(ids), vocab_size).to(context.device)
