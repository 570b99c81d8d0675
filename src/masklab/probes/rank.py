"""Effective rank of hidden states by layer, for inputs with and without [MASK] (Meng et al. 2024, section 2.2).

The same sequences are read twice, as they are and with tokens masked at an address without the model, so that all
models see the same masks. Splits:

    unmasked        every token of the sequences as they are
    masked          every token of the masked sequences
    mask-positions  the [MASK]s alone
    real-positions  the other tokens of the masked sequences

Rows: task = the corpus, layer 0 (the embeddings) to L, n = tokens; metrics `rank` (of the states), `rank_centred` (of
the states without their mean) and `mean_share` (share of the squared norm that the mean is).
"""

from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from masklab.files import read_json
from masklab.masking import mask_batch, maskable
from masklab.models.checkpoint import load_checkpoint
from masklab.rng import generator
from masklab.spectrum import Gram, effective_rank
from masklab.tokenizers import MASK
from masklab.tokens import TokenStore

SPLITS = ("unmasked", "masked", "mask-positions", "real-positions")


def measure(context) -> list[dict]:
    """Score rows of one checkpoint; see the module."""
    probe, device = context.probe, context.device
    store = TokenStore(context.tokens, probe.data)
    vocab_size = read_json(Path(context.tokens) / "meta.json")["vocab_size"]
    model = load_checkpoint(context.checkpoint, device).eval()
    eligible = np.flatnonzero(maskable(store.lengths, probe.masking))
    rows = eligible[np.linspace(0, len(eligible) - 1, min(len(eligible), probe.sequences)).astype(int)]
    rows = rows[np.argsort(store.lengths[rows], kind="stable")]

    def batches():
        for start in range(0, len(rows), probe.batch_size):
            yield store.batch(rows[start : start + probe.batch_size])
            context.progress(min(start + probe.batch_size, len(rows)), len(rows))

    rng = generator(context.seed, context.name, "masks")

    def states(ids, lengths):
        return model.states(ids.to(device), lengths.to(device))

    grams = state_grams(states, batches(), probe.masking, vocab_size, rng, specials=probe.specials)
    return [{"task": context.corpus, **row} for row in rank_rows(grams, probe.threshold)]


@torch.inference_mode()
def state_grams(states, batches, masking, vocab_size: int, rng, mask_id=MASK, specials=False) -> dict:
    """Gram matrices of the hidden states of an encoder: {(split, layer): Gram}.

    Args:
        states: (ids [B, T], lengths [B]) -> the states [B T, H] of every layer, in order.
        batches: (ids, lengths) on the CPU; a row is [CLS] tokens [SEP] padding.
        masking: `config.schema.Masking` of the masked input, whose random tokens are below `vocab_size`.
        mask_id: the id of [MASK].
        specials: count [CLS] and [SEP] too; a masked one counts always.
    """
    grams = defaultdict(Gram)
    for ids, lengths in batches:
        shown, row, column = mask_batch(ids.numpy(), lengths.numpy(), masking, vocab_size, rng)
        hidden = np.zeros(shown.shape, bool)
        hidden[row, column] = shown[row, column] == MASK
        shown[hidden] = mask_id
        where = np.arange(shown.shape[1])
        counted = where < lengths.numpy()[:, None]
        if not specials:
            counted &= (where > 0) & (where < lengths.numpy()[:, None] - 1)
        for layer, hidden_states in enumerate(states(ids, lengths)):
            grams["unmasked", layer].add(_at(hidden_states, counted))
        for layer, hidden_states in enumerate(states(torch.from_numpy(shown), lengths)):
            grams["real-positions", layer].add(_at(hidden_states, counted & ~hidden))
            grams["mask-positions", layer].add(_at(hidden_states, hidden))
    for layer in {layer for _, layer in grams}:
        grams["masked", layer] = grams["real-positions", layer] + grams["mask-positions", layer]
    return dict(grams)


def _at(states, where):
    return states[torch.from_numpy(np.flatnonzero(where)).to(states.device)]


def rank_rows(grams: dict, threshold: float) -> list[dict]:
    """Score rows (split, layer, metric, value, n) of Gram matrices."""
    rows = []
    for (split, layer), gram in sorted(grams.items(), key=lambda item: (SPLITS.index(item[0][0]), item[0][1])):
        if not gram.count:
            continue
        values = {
            "rank": effective_rank(gram.eigenvalues(), threshold),
            "rank_centred": effective_rank(gram.eigenvalues(centred=True), threshold),
            "mean_share": gram.mean_share(),
        }
        shared = {"split": split, "layer": layer, "n": gram.count}
        rows += [{**shared, "metric": metric, "value": float(value)} for metric, value in values.items()]
    return rows
