"""A labelled split as arrays: tokenised once, padded, ready to be cut into batches."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from masklab.errors import MaskLabError
from masklab.files import read_table
from masklab.symbols import LIMIT, UNKNOWN
from masklab.tasks import UNITS
from masklab.tokenizers import CLS, MARKS, MASK, PAD, SEP, SPECIALS, UNK


@dataclass(frozen=True)
class Split:
    """ids [N, T] int32 on the device, padded; lengths [N] int64 (specials counted) and labels [N] on the CPU.

    Labels are int64, or float64 in a task of ratings.

    domains: {name: rows [n] int64} in order of appearance, where the split names domains, else empty.
    """

    ids: torch.Tensor
    lengths: np.ndarray
    labels: np.ndarray
    domains: dict[str, np.ndarray]

    def __len__(self):
        return len(self.labels)

    def rows(self, size: int) -> int:
        """Rows of the first `size` examples."""
        return size

    def batch(self, rows: np.ndarray):
        """(ids [B, T] long, lengths [B] long, labels [B] long) of `rows`, on the device, T = longest of them."""
        device = self.ids.device
        lengths = self.lengths[rows]
        rows, counts, labels = (
            torch.from_numpy(part).to(device, non_blocking=True) for part in (rows, lengths, self.labels[rows])
        )
        return self.ids[rows, : int(lengths.max())].long(), counts, labels


def encode_split(path, tokenizer, max_length: int, device="cpu", vocab_size: int | None = None) -> Split:
    """A split's file as arrays: columns label, perhaps domain (strings), and either texts or symbols.

    text_a, text_b: [CLS] a [SEP] or [CLS] a [SEP] b [SEP], a and b encoded by `tokenizer`. Longer ones are
    truncated to `max_length` tokens: a pair loses tokens of its longer side first.
    symbols (list of integers): [CLS] symbols [SEP], symbol 0 being the first id that is no special token and
    `symbols.UNKNOWN` <unk>; truncated to `max_length` tokens at the end. No tokenizer is needed (None). `vocab_size`:
    the model's, to check them.

    Raises:
        MaskLabError: naming file and row: a missing domain, a missing symbol or one outside the vocabulary; texts
        without a tokenizer.
    """
    table = read_table(path)
    if "symbols" in table.column_names:
        ids, lengths = _symbol_ids(table.column("symbols"), max_length, vocab_size, path)
    elif tokenizer is None:
        raise MaskLabError(f"{path}: holds texts, but the model has no tokenizer; it can only read a column `symbols`")
    else:
        ids, lengths = _text_ids(table, tokenizer, max_length)
    return Split(torch.from_numpy(ids).to(device), lengths, _labels(table), _domains(table, path))


def encode_units(path) -> Split:
    """A split's file as arrays whose ids stand for what its rows spell, column `units`, whole and on the CPU.

    Raises:
        MaskLabError: naming the file: it has no such column.
    """
    table = read_table(path)
    if UNITS not in table.column_names:
        raise MaskLabError(f"{path}: has no column {UNITS!r}: the task does not say what its rows spell")
    ids, lengths = _symbol_ids(table.column(UNITS), LIMIT, None, path)
    return Split(torch.from_numpy(ids), lengths, _labels(table), _domains(table, path))


def _labels(table):
    labels = table.column("label").to_numpy()
    return labels.astype(np.float64 if labels.dtype.kind == "f" else np.int64)


def _text_ids(table, tokenizer, max_length):
    first = content_ids(tokenizer, table.column("text_a").to_pylist())
    pair = table.column("text_b").null_count < len(table)
    if pair:
        second = content_ids(tokenizer, [text or "" for text in table.column("text_b").to_pylist()])
    else:
        second = [None] * len(first)
    rows = [joined(a, b, max_length) for a, b in zip(first, second, strict=True)]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.full((len(rows), lengths.max(initial=2)), PAD, dtype=np.int32)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.concatenate(rows) if rows else []
    return ids, lengths


def _symbol_ids(column, max_length, vocab_size, path):
    counts = pc.list_value_length(column).combine_chunks()
    values = pc.list_flatten(column).combine_chunks()
    if counts.null_count or values.null_count:
        rows = counts.is_null() if counts.null_count else values.is_null()
        row = int(np.flatnonzero(rows.to_numpy(zero_copy_only=False))[0])
        if not counts.null_count:
            row = int(np.searchsorted(np.cumsum(counts.to_numpy()), row, side="right"))
        raise MaskLabError(f"{path}: row {row + 1}: a symbol is missing")
    counts, values = counts.to_numpy().astype(np.int64), values.to_numpy()
    known = np.inf if vocab_size is None else vocab_size - len(SPECIALS)
    strange = ((values < 0) | (values >= known)) & (values != UNKNOWN)
    if strange.any():
        at = int(np.flatnonzero(strange)[0])
        row = int(np.searchsorted(np.cumsum(counts), at, side="right"))
        raise MaskLabError(f"{path}: row {row + 1}: symbol {values[at]}; the model has symbols 0 to {known - 1}")
    kept = np.minimum(counts, max_length - 2)
    ids = np.full((len(counts), kept.max(initial=0) + 2), PAD, dtype=np.int32)
    ids[:, 0] = CLS
    ids[np.arange(len(ids)), kept + 1] = SEP
    if (kept < counts).any():
        within = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
        values = values[within < np.repeat(kept, counts)]
    ids[:, 1:-1][np.arange(ids.shape[1] - 2) < kept[:, None]] = np.where(
        values == UNKNOWN, UNK, values.astype(np.int32) + len(SPECIALS)
    )
    return ids, kept + 2


def _domains(table, path):
    if "domain" not in table.column_names:
        return {}
    column = table.column("domain").cast(pa.string())
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise MaskLabError(f"{path}: row {row + 1}: 'domain' is missing; name it in every row or in none")
    values = column.to_numpy()
    return {name: np.flatnonzero(values == name) for name in column.unique().to_pylist()}


def content_ids(tokenizer, texts: list[str]) -> list[list[int]]:
    """Ids of each text without [CLS] and [SEP], those of the token arrays: what spells a special token is <unk>."""
    return [of_text(encoding.ids) for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]


def of_text(ids):
    """Ids with <unk> in the place of any other special token, which a text can spell."""
    return ids if min(ids, default=len(SPECIALS)) > MASK else [UNK if token <= MASK else token for token in ids]


def around_hole(tokenizer, texts: list[tuple[str, str]]) -> list[tuple[list[int], list[int]]]:
    """(ids before, ids after) a missing word, of the texts on both sides of it: cut as around a word in its place.

    What follows it at once ("." or "'s") begins no word, and what follows it after a space does, however the tokenizer
    cuts the beginning of a text. Blanks at its end, such as the line ending of a block of YAML, are no part of a text.
    """
    behind = [after.rstrip().partition(" ") for _, after in texts]
    glued, rest = [first for first, _, _ in behind], [others for _, _, others in behind]
    before = content_ids(tokenizer, [text.rstrip() for text, _ in texts])
    after = content_ids(tokenizer, [f" {text}" if text else "" for text in rest])
    first = {text: _glued_ids(tokenizer, text) for text in set(glued)}
    return [(left, first[text] + right) for left, text, right in zip(before, glued, after, strict=True)]


def _glued_ids(tokenizer, text: str) -> list[int]:
    """Ids of a text without spaces that goes on where another ends: without the mark of a word's beginning."""
    text = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer and text else text
    cut = tokenizer.pre_tokenizer.pre_tokenize_str(text) if tokenizer.pre_tokenizer and text else [(text, None)]
    pieces = [piece for piece, _ in cut]
    if pieces and text[:1] not in MARKS:  # of blanks alone WordPiece has none
        pieces[0] = pieces[0].lstrip(MARKS)
    return of_text([token.id for piece in pieces if piece for token in tokenizer.model.tokenize(piece)])


def content_ends(tokenizer, texts: list[str]) -> list[list[int]]:
    """The character after the last one of each token of `content_ids`."""
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    return [[end for _, end in encoding.offsets] for encoding in encodings]


def joined(a, b, max_length: int) -> list[int]:
    """[CLS] a [SEP], or [CLS] a [SEP] b [SEP], of ids, cut to `max_length` as `encode_split` says; b None: no pair."""
    if b is None:
        return [CLS, *a[: max_length - 2], SEP]
    keep_a, keep_b = longest_first(len(a), len(b), max_length - 3)
    return [CLS, *a[:keep_a], SEP, *b[:keep_b], SEP]


def longest_first(a: int, b: int, budget: int) -> tuple[int, int]:
    """Tokens kept of a pair with `a` and `b` tokens so that at most `budget` remain.

    The longer side is cut first; when both are above half, each keeps half, the longer one the odd token
    (tokenizers' `longest_first`).
    """
    if a + b <= budget:
        return a, b
    short, long = min(a, b), max(a, b)
    long = max(short, budget - short)
    if short + long > budget:
        short, long = budget // 2, budget - budget // 2
    return (short, long) if a <= b else (long, short)


def shuffled_batches(lengths, batch_size: int, rng, window: int) -> list[np.ndarray]:
    """One epoch: every row once, in batches of similar length, in random order; the smallest may be short.

    Rows are shuffled, then sorted by length within `window` batches; with 1 a batch is any rows.
    """
    rows = rng.permutation(len(lengths))
    batches = []
    for start in range(0, len(rows), window * batch_size):
        part = rows[start : start + window * batch_size]
        part = part[np.argsort(lengths[part], kind="stable")]
        batches += [part[at : at + batch_size] for at in range(0, len(part), batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def fitting(tokens: dict[str, int], device) -> int:
    """Tokens of a forward pass without gradients: those of `tokens` for this kind of device.

    On a GPU not more than it has MiB of memory: the scores of a layer of DeBERTa-base, with their terms, are some .14
    MiB a token in fp32 where sequences have 512 tokens.
    """
    device = torch.device(device)
    most = tokens[device.type]
    return min(most, torch.cuda.get_device_properties(device).total_memory >> 20) if device.type == "cuda" else most


def sorted_batches(lengths, batch_tokens: int) -> list[np.ndarray]:
    """Every row once, sorted by length, in batches of at most `batch_tokens` padded tokens (at least one row)."""
    order = np.argsort(-lengths, kind="stable")
    batches, start = [], 0
    while start < len(order):
        size = max(1, batch_tokens // int(lengths[order[start]]))
        batches.append(order[start : start + size])
        start += size
    return batches
