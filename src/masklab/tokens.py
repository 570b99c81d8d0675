"""Token arrays: a corpus encoded once, read by memory map.

A folder holds, per split, `<split>.ids.npy` (the content tokens of all sequences end to end, without special
tokens; from `token_writer.SHARD` tokens on they go on in `<split>.ids.1.npy`, ..., each of whole sequences),
`<split>.offsets.npy` (where each sequence begins; n+1 numbers), and one `meta.json`, which holds their hashes: whoever
reads it is told of any other content.
"""

import functools
import logging
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from masklab.errors import MaskLabError
from masklab.files import read_json, sha256, write_json
from masklab.token_writer import TokenWriter, shards
from masklab.tokenizers import CLS, PAD, SEP, SPECIALS, UNK

log = logging.getLogger("masklab")

CHUNK = 8192  # sequences of symbols taken together
COUNTED = 1 << 22  # tokens counted together
SAVED = 1 << 25  # bytes of text between two states
ENCODERS = 4  # threads that encode: each holds about 150 MB, and more would wait for Python's lock


def write_tokens(
    texts, tokenizer, max_length: int, folder, split: str, progress=None, threads: int = 1, mark: str | None = None
) -> dict:
    """Encode texts, one sequence each, to token arrays; returns the split's counts.

    texts: strings, an Arrow column or a `texts.TextFile`. A sequence keeps at most max_length - 2 tokens (room for
    [CLS] and [SEP]); rows stay aligned with `texts`, so that an empty text is an empty row. Memory does not grow with
    the number of tokens. Text that spells a special token becomes <unk>. `progress(done, total)` is called per chunk
    (an iterator's unknown total is given as what is done). `mark`: fingerprint of what goes in; a call that was killed
    is gone on with by the next one of the same mark, and the arrays are those of one that was not. threads: how many
    may encode side by side.
    Write the splits of one folder one after another: they share meta.json.
    """
    from masklab.texts import pieces

    total = len(texts) if hasattr(texts, "__len__") else None
    vocab_size = tokenizer.get_vocab_size()
    writer = TokenWriter(folder, split, np.uint16 if vocab_size < 65536 else np.int32, mark)
    try:
        if writer.sequences:
            log.info("%s: going on after sequence %d", split, writer.sequences)
        encode, unsaved = _encoder(tokenizer), 0
        source = () if writer.whole else pieces(texts, writer.sequences)
        for piece, (ids, counts) in _side_by_side(encode, source, min(threads, ENCODERS)):
            ids, counts, truncated = _cut(ids, counts, max_length - 2)
            ids[(ids < len(SPECIALS)) & (ids != UNK)] = UNK
            writer.add(ids, counts, truncated)
            if (unsaved := unsaved + piece.nbytes) >= SAVED and mark:
                writer.save()
                unsaved = 0
            if progress:
                progress(writer.sequences, total or writer.sequences)
        counts = writer.finish()
    finally:
        writer.discard()
    _write_meta(Path(folder), {"vocab_size": vocab_size, "max_length": max_length}, split, counts)
    return counts


def _encoder(tokenizer):
    """Function from Arrow strings to (token ids end to end, tokens of each string)."""
    from masklab.wordwise import Wordwise, applies

    if applies(tokenizer):
        return Wordwise(tokenizer).encode

    def encode(piece):
        rows = [row.ids for row in tokenizer.encode_batch_fast(piece.to_pylist(), add_special_tokens=False)]
        counts = np.array([len(row) for row in rows], np.int64)
        return np.array([token for row in rows for token in row], np.int32), counts

    return encode


def _side_by_side(function, items, threads) -> Iterator[tuple]:
    """(item, function of it) in order, with so many threads; items are taken as they are needed."""
    if threads == 1:
        yield from ((item, function(item)) for item in items)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting = deque()
        for item in items:
            waiting.append((item, pool.submit(function, item)))
            if len(waiting) > threads:
                item, result = waiting.popleft()
                yield item, result.result()
        yield from ((item, result.result()) for item, result in waiting)


def _cut(ids, counts, most):
    """Rows of at most `most` tokens: (ids, counts, rows that were longer)."""
    kept = np.minimum(counts, most)
    truncated = int((kept < counts).sum())
    if truncated:
        starts = np.cumsum(counts) - counts
        ids = ids[np.arange(len(ids)) - np.repeat(starts, counts) < most]
    return ids, kept, truncated


def write_symbol_tokens(symbols, vocab_size: int, max_length: int, folder, split: str, facts=None) -> dict:
    """Token arrays of an Arrow column of symbols (`masklab.symbols`): id = symbol + 5, by array operations alone.

    Rows are cut to max_length - 2 tokens, as those of text. `facts` of the corpus are kept in meta.json, which then
    knows the law of the tokens. Returns the split's counts.
    """
    from masklab.symbols import FIRST, rows

    writer = TokenWriter(folder, split, np.uint16 if vocab_size < 65536 else np.int32)
    try:
        for start in range(0, len(symbols), CHUNK):
            values, counts = rows(symbols.slice(start, CHUNK))
            if int(values.max(initial=0)) + FIRST >= vocab_size:  # int: 16 bits would wrap around
                raise MaskLabError(f"{split}: symbol {values.max()} is not among the tokenizer's {vocab_size - FIRST}")
            values, counts, truncated = _cut(values, counts, max_length - 2)
            writer.add(values.astype(writer.dtype) + writer.dtype.type(FIRST), counts, truncated)
        counts = writer.finish()
    finally:
        writer.discard()
    settings = {"vocab_size": vocab_size, "max_length": max_length} | ({"corpus": facts} if facts else {})
    _write_meta(Path(folder), settings, split, counts)
    return counts


def _write_meta(folder, settings, split, counts):
    path = folder / "meta.json"
    old = read_json(path) if path.exists() else {}
    same = all(old.get(key) == value for key, value in settings.items())
    counts = counts | {"sha256": {path.name: sha256(path) for path in arrays(folder, split)}}
    write_json({**settings, "splits": {**(old.get("splits", {}) if same else {}), split: counts}}, path)


def arrays(folder, split: str) -> list[Path]:
    """The files of a split, offsets last."""
    return [*shards(folder, split), Path(folder) / f"{split}.offsets.npy"]


class Shards:
    """Arrays end to end, read as one: `len`, slices, and arrays of positions."""

    def __init__(self, arrays):
        self.arrays, self.dtype = arrays, arrays[0].dtype
        self.starts = np.cumsum([0, *map(len, arrays)])

    def __len__(self):
        return int(self.starts[-1])

    def __getitem__(self, where):
        if isinstance(where, slice):
            start, stop, step = where.indices(len(self))
            if step != 1:
                raise ValueError("slices of shards are contiguous")
            parts = [
                array[max(0, start - begin) : max(0, stop - begin)]
                for array, begin in zip(self.arrays, self.starts, strict=False)
            ]
            return np.concatenate(parts)
        where = np.asarray(where)
        found = np.empty(where.shape, self.dtype)
        shard = np.searchsorted(self.starts, where, "right") - 1
        for number in np.unique(shard):
            inside = shard == number
            found[inside] = self.arrays[number][where[inside] - self.starts[number]]
        return found


class TokenStore:
    """The token arrays of one split.

    `ids` [tokens] (a `Shards` where they are in several files) and `offsets` [n+1] are memory maps; `lengths` [n]
    int32, the only array in memory, counts [CLS] and [SEP] too.
    """

    def __init__(self, folder, split: str):
        paths = arrays(folder, split)
        for path in paths:
            if not path.is_file():
                raise MaskLabError(f"{path}: no such file")
        # as plain arrays, which are faster to index
        *ids, self.offsets = (np.asarray(np.load(path, mmap_mode="r")) for path in paths)
        self.ids = ids[0] if len(ids) == 1 else Shards(ids)
        if len(self.ids) != self.offsets[-1]:
            raise MaskLabError(f"{paths[0]}: {len(self.ids)} tokens, but its offsets end at {self.offsets[-1]}")
        self.lengths = np.empty(len(self.offsets) - 1, np.int32)
        for start in range(0, len(self.lengths), COUNTED):
            self.lengths[start : start + COUNTED] = np.diff(self.offsets[start : start + COUNTED + 1]) + 2

    def __len__(self):
        return len(self.lengths)

    @functools.cached_property
    def longest(self) -> int:
        """Tokens of the longest sequence, special ones included."""
        return int(self.lengths.max(initial=0))

    def batch(self, rows):
        """Rows [B] of sequence numbers -> (ids [B, T], lengths [B]), both LongTensors on the CPU.

        A row reads [CLS] tokens [SEP] <pad>...; T is the longest row's length.
        """
        import torch

        rows = np.asarray(rows)
        starts = self.offsets[rows]
        counts = self.offsets[rows + 1] - starts
        ends = np.cumsum(counts)
        ids = np.full((len(rows), counts.max() + 2), PAD, np.int64)
        ids[:, 0] = CLS
        ids[np.arange(len(rows)), counts + 1] = SEP
        inner = np.arange(ids.shape[1] - 2) < counts[:, None]
        ids[:, 1:-1][inner] = self.ids[np.repeat(starts - ends + counts, counts) + np.arange(ends[-1])]
        return torch.from_numpy(ids), torch.from_numpy(counts + 2)

    def counts(self, vocab_size: int) -> np.ndarray:
        """How often each token occurs in `ids` and how often [CLS] and [SEP] frame a sequence, [vocab_size] int64.

        Memory does not grow with the corpus.
        """
        counts = np.zeros(vocab_size, np.int64)
        for start in range(0, len(self.ids), COUNTED):
            counts += np.bincount(self.ids[start : start + COUNTED], minlength=vocab_size)
        counts[[CLS, SEP]] += len(self)
        return counts

    def blocks(self, tokens: int = COUNTED) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """The corpus in contiguous parts of about `tokens` tokens: (first token, ids, offsets [n+1] of the corpus)."""
        first = 0
        while first < len(self):
            begin = int(self.offsets[first])
            last = max(first + 1, int(np.searchsorted(self.offsets, begin + tokens, "right")) - 1)
            offsets = np.asarray(self.offsets[first : last + 1])
            yield begin, self.ids[begin : int(offsets[-1])], offsets
            first = last

    def flat(self, rows, row_index, column) -> np.ndarray:
        """Positions in `ids` of the tokens at (row_index, column) of `batch(rows)`; columns count from 1.

        `row_index` and `column` are integer arrays of one shape, which is the result's shape too.
        """
        return self.offsets[np.asarray(rows)[np.asarray(row_index)]] + np.asarray(column) - 1
