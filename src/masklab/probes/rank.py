"""Effective ranks of hidden states by layer, with and without [MASK], and what of [MASK] real tokens do not span.

The same sequences are read three times (Meng et al. 2024, section 2.2, read the first two): as they are, with tokens
masked, and with words drawn from other places of the text where the [MASK]s were. What is masked is drawn at an address
without the model, so that all models see the same. Splits:

    unmasked        every token of the sequences as they are
    masked          every token of the masked sequences
    mask-positions  the [MASK]s alone
    real-positions  the other tokens of the masked sequences
    with-words      every token of the sequences with drawn words
    beside-words    of these all but the drawn words
    random-words    the drawn words alone
    hidden-words    the very words that [MASK]s hide, in the sequences as they are

Rows: task = the corpus, layer 0 (the embeddings) to L, n = tokens. Of the first six splits `rank` (the paper's whole
number), `rank_interpolated` and `rank_entropy` (`masklab.spectrum`), each with `_centred` of the states without their
mean, and `mean_share` (share of the squared norm that the mean is). Of those three that are one place with three
things in it, [MASK]s, drawn words and hidden words, the share of the squared norm outside the subspace that holds
`subspace` of the norm of real tokens: `outside`, of those of sequences as they are; `outside_beside`, of those beside
the [MASK]s (Theorem 2.2's own). Subspaces come from one half of the sequences and shares from the other, in both ways,
so that hidden words are real tokens of another sample: up to sampling their `outside` is 1 - `subspace`.

Where the rank of the law's log conditionals is known (`HiddenMarkov.log_rank`), a split `law`, of no layer, is about
the matrix T of those of the very words that [MASK]s hide, given all other words: `rank_counted`, its algebraic rank,
counted, and `rank_interpolated` and `rank_entropy`. From each row of T its own mean is taken, which no prediction
depends on; the mean of its rows is not, so that none of the three is a `_centred` one.
"""

from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from masklab.corpora.laws import conditional_rank, law_of
from masklab.files import read_json
from masklab.masking import mask_batch
from masklab.models.checkpoint import load_checkpoint
from masklab.probes.sequences import spread
from masklab.rng import generator
from masklab.spectrum import Gram, entropy_rank, interpolated_rank, outside, ranks, subspace
from masklab.symbols import FIRST
from masklab.theory.conditional_rank import counted_rank, shifted_logs
from masklab.tokenizers import MASK
from masklab.tokens import TokenStore

SPLITS = ("unmasked", "masked", "mask-positions", "real-positions")
WITH_WORDS = ("with-words", "beside-words")
PLACES = ("mask-positions", "random-words", "hidden-words")
BASES = {"outside": "unmasked", "outside_beside": "real-positions"}
WHOLES = {"unmasked": ("seen", "hidden-words"), "masked": ("real-positions", "mask-positions"),
          "with-words": ("beside-words", "random-words")}  # fmt: skip
HALVES = (0, 1)


def measure(context) -> list[dict]:
    """Score rows of one checkpoint; see the module."""
    probe, device = context.probe, context.device
    store = TokenStore(context.tokens, probe.data)
    meta = read_json(Path(context.tokens) / "meta.json")
    vocab_size = meta["vocab_size"]
    model = load_checkpoint(context.checkpoint, device).eval()
    rows = spread(context, store, probe.masking, probe.data)
    rows = rows[np.argsort(store.lengths[rows], kind="stable")]

    def batches(progress=lambda done, of: None):
        for start in range(0, len(rows), probe.batch_size):
            yield store.batch(rows[start : start + probe.batch_size])
            progress(min(start + probe.batch_size, len(rows)), len(rows))

    def states(ids, lengths):
        return model.states(ids.to(device), lengths.to(device))

    def drawn(purpose):
        return generator(context.seed, context.name, purpose)

    rngs, words = (drawn("masks"), drawn("words")), probe.subspace is not None
    read = batches(context.progress)
    grams = state_grams(states, read, probe.masking, vocab_size, *rngs, specials=probe.specials, words=words)
    found = rank_rows(grams, probe.threshold, probe.subspace)
    if conditional_rank(meta.get("corpus")) is not None:
        found += law_rows(law_of(meta["corpus"]), batches(), probe.masking, vocab_size, drawn("masks"), probe.threshold)
    return [{"task": context.corpus, **row} for row in found]


def law_rows(law, batches, masking, vocab_size: int, rng, threshold: float) -> list[dict]:
    """Score rows of the exact log conditionals of the words that are hidden of some sequences, each given all others.

    Args:
        law: `conditionals` as `masklab.corpora.laws` says.
        batches, masking, vocab_size, rng: as of `state_grams`.
    """
    contexts = []
    for ids, lengths in batches:
        ids, lengths = ids.numpy(), lengths.numpy()
        shown, row, column = mask_batch(ids, lengths, masking, vocab_size, rng)
        word = (shown[row, column] == MASK) & (column > 0) & (column < lengths[row] - 1)
        exact = law.conditionals(np.maximum(ids[:, 1:-1] - FIRST, 0), lengths - 2)
        contexts.append(exact[row[word], column[word] - 1])
    logs = shifted_logs(np.concatenate(contexts))
    values = np.linalg.svd(logs, compute_uv=False) ** 2
    found = {
        "rank_counted": counted_rank(logs),
        "rank_interpolated": interpolated_rank(values, threshold),
        "rank_entropy": entropy_rank(values),
    }
    return _rows("law", -1, len(logs), found)


@torch.inference_mode()
def state_grams(
    states, batches, masking, vocab_size: int, rng, word_rng, mask_id=MASK, specials=False, words=True
) -> dict:
    """Gram matrices of the hidden states of an encoder: {(split, layer, half): Gram}.

    Every other sequence belongs to half 0.

    Args:
        states: (ids [B, T], lengths [B]) -> the states [B T, H] of every layer, in order.
        batches: (ids, lengths) on the CPU; a row is [CLS] tokens [SEP] padding.
        masking: `config.schema.Masking` of the masked input, whose random tokens are below `vocab_size`.
        rng, word_rng: what is masked, and which words are drawn, each from a place of its batch.
        mask_id: the id of [MASK].
        specials: count [CLS] and [SEP] too; a masked one counts always.
        words: read the sequences with drawn words too.
    """
    grams, read = defaultdict(Gram), 0

    def add(ids, lengths, half, **places):
        parts = {
            (split.replace("_", "-"), each): torch.from_numpy(np.flatnonzero(where & (half == each)[:, None]))
            for split, where in places.items()
            for each in HALVES
        }
        for layer, hidden_states in enumerate(states(torch.from_numpy(ids), lengths)):
            if layer == 0:
                parts = {part: own.to(hidden_states.device) for part, own in parts.items()}
            for (split, each), own in parts.items():
                grams[split, layer, each].add(hidden_states[own])

    for ids, lengths in batches:
        ids = ids.numpy()
        shown, row, column = mask_batch(ids, lengths.numpy(), masking, vocab_size, rng)
        hidden = np.zeros(shown.shape, bool)
        hidden[row, column] = shown[row, column] == MASK
        shown[hidden] = mask_id
        where = np.arange(shown.shape[1])
        inner = (where > 0) & (where < lengths.numpy()[:, None] - 1)
        counted = where < lengths.numpy()[:, None] if specials else inner
        half = (read + np.arange(len(ids))) % len(HALVES)
        read += len(ids)
        add(ids, lengths, half, seen=counted & ~hidden, hidden_words=counted & hidden)
        add(shown, lengths, half, real_positions=counted & ~hidden, mask_positions=hidden)
        if words:
            drawn = shown.copy()
            drawn[hidden] = word_rng.choice(ids[inner], size=int(hidden.sum())) if inner.any() else mask_id
            add(drawn, lengths, half, beside_words=counted & ~hidden, random_words=hidden)
    for layer, half in {(layer, half) for _, layer, half in grams}:
        for whole, parts in WHOLES.items():
            left, right = (grams[part, layer, half] for part in parts)
            grams[whole, layer, half] = left + right
    return dict(grams)


def rank_rows(grams: dict, threshold: float, held: float | None = None) -> list[dict]:
    """Score rows (split, layer, metric, value, n) of Gram matrices; held: the probe's `subspace`."""
    rows = []
    layers = sorted({layer for _, layer, _ in grams})
    for split in (*SPLITS, *(WITH_WORDS if held is not None else ())):
        for layer in layers:
            gram = grams[split, layer, 0] + grams[split, layer, 1]
            if gram.count:
                values = ranks(gram, threshold) | {"mean_share": gram.mean_share()}
                rows += _rows(split, layer, gram.count, values)
    for layer in layers if held is not None else ():
        bases = {(base, half): grams[base, layer, half] for base in BASES.values() for half in HALVES}
        spaces = {key: subspace(gram, held) for key, gram in bases.items() if gram.count}
        for split in PLACES:
            halves = [grams[split, layer, half] for half in HALVES]
            shares = {metric: _share(halves, [spaces.get((base, h)) for h in HALVES]) for metric, base in BASES.items()}
            measured = {metric: share for metric, share in shares.items() if share is not None}
            rows += _rows(split, layer, sum(half.count for half in halves), measured)
    return rows


def _share(halves: list[Gram], spaces: list) -> float | None:
    """Mean over two halves of rows of the share outside the other half's `subspace`; None where one has no tokens."""
    if not all(half.count for half in halves) or any(space is None for space in spaces):
        return None
    return sum(outside(half, space) for half, space in zip(halves, reversed(spaces), strict=True)) / len(halves)


def _rows(split, layer, count, values):
    shared = {"split": split, "layer": layer, "n": count}
    return [{**shared, "metric": metric, "value": float(value)} for metric, value in values.items()]
