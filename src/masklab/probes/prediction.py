"""What a model predicts for one masked word: a distribution over tokens and one over atoms (the paper's Figure 1).

Rows: task = the sentence; split "vocabulary" or "atoms"; metric = token or atom label; value = probability;
n = rank. Tokens are shown without their word mark. An atom is named by the tokens with the largest mean
coefficient in it over the coded corpus.
"""

import numpy as np
import torch

from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint
from masklab.sparse.codes import CodeStore
from masklab.tasks.encoding import around_hole
from masklab.tokenizers import CLS, MARKS, MASK, SEP, load_tokenizer
from masklab.tokens import TokenStore

HOLE = "[MASK]"
LABEL_TOKENS = 3
MIN_COUNT = 5  # rarer tokens have no reliable mean coefficient
CHUNK = 1 << 24  # code entries read at a time


def measure(context) -> list[dict]:
    """The `top` most probable tokens and, for a model with latent logits, atoms."""
    model = load_checkpoint(context.checkpoint, context.device)
    tokenizer = load_tokenizer(context.checkpoint)
    sentence, top = context.probe.sentence, context.probe.top
    tokens, atoms = predict(model, masked_ids(tokenizer, sentence), context.device)
    best = _largest(tokens, top)
    rows = _rows(sentence, "vocabulary", [shown(tokenizer, token) for token in best], tokens[best])
    if atoms is not None:
        best = _largest(atoms, top)
        rows += _rows(sentence, "atoms", _labels(context, tokenizer, best), atoms[best])
    return rows


def masked_ids(tokenizer, sentence: str) -> list[int]:
    """Ids of a sentence with one [MASK], [CLS] and [SEP] included, cut as a word in its place would be."""
    if sentence.count(HOLE) != 1:
        raise MaskLabError(f"probe sentence {sentence!r}: must hold exactly one {HOLE}")
    left, right = sentence.split(HOLE)
    if left and not left.endswith(" "):
        raise MaskLabError(f"probe sentence {sentence!r}: {HOLE} must stand for a whole word, after a space")
    ((before, after),) = around_hole(tokenizer, [(left, right)])
    return [CLS, *before, MASK, *after, SEP]


@torch.inference_mode()
def predict(model, ids: list[int], device="cpu"):
    """Probabilities at the [MASK] of `ids`: over the vocabulary [V], and over the atoms [K] or None."""
    model.eval()
    at = torch.tensor([ids.index(MASK)], device=device)
    output = model(torch.tensor([ids], device=device), torch.tensor([len(ids)], device=device), at=at)
    tokens = output.logits[0].double().softmax(-1).cpu().numpy()
    atoms = None if output.latent is None else output.latent[0].double().softmax(-1).cpu().numpy()
    return tokens, atoms


def shown(tokenizer, token: int) -> str:
    """A token as a reader expects it: without the word mark (unless it is nothing else).

    A row of a model that its tokenizer has no token for (models made elsewhere have some) is shown as its number.
    """
    piece = tokenizer.id_to_token(int(token))
    return f"#{token}" if piece is None else piece.lstrip(MARKS) or piece


def top_tokens(codes, tokens, atoms, vocab_size: int, count=LABEL_TOKENS, chunk=CHUNK) -> list[list[int]]:
    """Per atom of `atoms`, up to `count` token ids with the largest mean coefficient over the training codes.

    codes, tokens: folders of the codes and of the token arrays they belong to, read by memory map, `chunk`
    entries at a time. Tokens seen fewer than 5 times are left out.
    """
    store, stored = TokenStore(tokens, "train"), CodeStore(codes, "train")
    ids = store.ids
    if stored.positions is None and len(stored) != len(ids):
        raise MaskLabError(f"{codes}: {len(stored)} codes for the {len(ids)} tokens of {tokens}")
    coded = stored.positions  # None: all are
    indices = stored.indices
    slot = np.full(max(int(max(atoms)), int(indices.max(initial=0))) + 1, -1)
    slot[atoms] = np.arange(len(atoms))
    sums = np.zeros(len(atoms) * vocab_size)
    for start in range(0, len(indices), chunk):
        slots = slot[indices[start : start + chunk]]
        hit = np.flatnonzero(slots >= 0)
        position = np.searchsorted(stored.indptr, start + hit, side="right") - 1
        cell = slots[hit] * vocab_size + ids[position if coded is None else coded[position]]
        sums += np.bincount(cell, weights=stored.values[start : start + chunk][hit], minlength=len(sums))
    counts = store.counts(vocab_size) if coded is None else np.bincount(ids[coded], minlength=vocab_size)
    means = np.where(counts >= MIN_COUNT, sums.reshape(len(atoms), vocab_size) / np.maximum(counts, 1), 0)
    return [[token for token in _largest(row, count) if row[token] > 0] for row in means]


def _labels(context, tokenizer, atoms):
    if context.codes is None:
        return [f"atom {atom}" for atom in atoms]
    names = top_tokens(context.codes, context.tokens, atoms, tokenizer.get_vocab_size())
    words = [", ".join(dict.fromkeys(shown(tokenizer, token) for token in row)) for row in names]
    return [f"atom {atom}: {text}" if text else f"atom {atom}" for atom, text in zip(atoms, words, strict=True)]


def _largest(values, count):
    return np.argsort(-values, kind="stable")[:count]


def _rows(sentence, split, labels, values):
    return [
        {"task": sentence, "split": split, "metric": label, "value": float(value), "n": rank}
        for rank, (label, value) in enumerate(zip(labels, values, strict=True), 1)
    ]
