"""Token arrays: a corpus encoded once, read by memory map.

A folder holds, per split, `<split>.ids.npy` (the content tokens of all sequences end to end, without special
tokens) and `<split>.offsets.npy` (where each sequence begins; n+1 numbers), and one `meta.json`, which holds their
hashes: whoever reads it is told of any other content.
"""

from itertools import islice
from pathlib import Path

import numpy as np

from masklab.errors import MaskLabError
from masklab.files import atomic, read_json, sha256, write_json
from masklab.tokenizers import CLS, PAD, SEP, SPECIALS, UNK

CHUNK = 8192  # sequences encoded together
COUNTED = 1 << 22  # tokens counted together
PARTS = ("ids", "offsets")


def write_tokens(texts, tokenizer, max_length: int, folder, split: str, progress=None) -> dict:
    """Encode an iterable of strings, one sequence each, to token arrays; returns the split's counts.

    A sequence keeps at most max_length - 2 tokens (room for [CLS] and [SEP]); rows stay aligned with `texts`, so
    that an empty text is an empty row. Memory does not grow with the number of tokens. Text that spells a special
    token becomes <unk>. `progress(done, total)` is called per chunk (an iterator's unknown total is given
    as what is done).
    Write the splits of one folder one after another: they share meta.json.
    """
    folder, total = Path(folder), len(texts) if hasattr(texts, "__len__") else None
    vocab_size = tokenizer.get_vocab_size()
    dtype = np.dtype(np.uint16 if vocab_size < 65536 else np.int32)
    lengths, truncated, done = [], 0, 0
    source = iter(texts)
    with atomic(folder / f"{split}.ids.npy") as temporary, open(temporary, "wb") as file:
        _write_header(file, dtype, 0)
        while chunk := [str(text) for text in islice(source, CHUNK)]:
            rows = [encoding.ids for encoding in tokenizer.encode_batch_fast(chunk, add_special_tokens=False)]
            truncated += sum(len(row) > max_length - 2 for row in rows)
            rows = [row[: max_length - 2] for row in rows]
            lengths.append(np.array([len(row) for row in rows], np.int64))
            ids = np.array([token for row in rows for token in row], dtype)
            ids[(ids < len(SPECIALS)) & (ids != UNK)] = UNK
            ids.tofile(file)
            done += len(chunk)
            if progress:
                progress(done, total or done)
        offsets = np.concatenate([[0], *lengths]).cumsum(dtype=np.int64)
        file.seek(0)
        _write_header(file, dtype, int(offsets[-1]))
    with atomic(folder / f"{split}.offsets.npy") as temporary, open(temporary, "wb") as file:
        np.save(file, offsets)
    counts = {"sequences": done, "tokens": int(offsets[-1]), "truncated": truncated}
    _write_meta(folder, {"vocab_size": vocab_size, "max_length": max_length}, split, counts)
    return counts


def write_symbol_tokens(symbols, vocab_size: int, max_length: int, folder, split: str, facts=None) -> dict:
    """Token arrays of an Arrow column of symbols (`corpora.symbols`): id = symbol + 5, by array operations alone.

    Rows are cut to max_length - 2 tokens, as those of text. `facts` of the corpus are kept in meta.json, which then
    knows the law of the tokens. Returns the split's counts.
    """
    from masklab.symbols import FIRST, rows

    folder = Path(folder)
    dtype = np.dtype(np.uint16 if vocab_size < 65536 else np.int32)
    lengths, truncated = [], 0
    with atomic(folder / f"{split}.ids.npy") as temporary, open(temporary, "wb") as file:
        _write_header(file, dtype, 0)
        for start in range(0, len(symbols), CHUNK):
            values, counts = rows(symbols.slice(start, CHUNK))
            if values.max(initial=0) + FIRST >= vocab_size:
                raise MaskLabError(f"{split}: symbol {values.max()} is not among the tokenizer's {vocab_size - FIRST}")
            kept = np.minimum(counts, max_length - 2)
            if (kept < counts).any():
                truncated += int((kept < counts).sum())
                starts = np.cumsum(counts) - counts
                inside = np.arange(len(values)) - np.repeat(starts, counts) < max_length - 2
                values = values[inside]
            (values.astype(dtype) + dtype.type(FIRST)).tofile(file)
            lengths.append(kept)
        offsets = np.concatenate([[0], *lengths]).cumsum(dtype=np.int64)
        file.seek(0)
        _write_header(file, dtype, int(offsets[-1]))
    with atomic(folder / f"{split}.offsets.npy") as temporary, open(temporary, "wb") as file:
        np.save(file, offsets)
    counts = {"sequences": len(offsets) - 1, "tokens": int(offsets[-1]), "truncated": truncated}
    settings = {"vocab_size": vocab_size, "max_length": max_length} | ({"corpus": facts} if facts else {})
    _write_meta(folder, settings, split, counts)
    return counts


def _write_header(file, dtype, count):
    # NumPy pads the header so that its size does not depend on the count: it can be filled in afterwards.
    description = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(file, description)


def _write_meta(folder, settings, split, counts):
    path = folder / "meta.json"
    old = read_json(path) if path.exists() else {}
    same = all(old.get(key) == value for key, value in settings.items())
    counts = counts | {"sha256": {part: sha256(folder / f"{split}.{part}.npy") for part in PARTS}}
    write_json({**settings, "splits": {**(old.get("splits", {}) if same else {}), split: counts}}, path)


class TokenStore:
    """The token arrays of one split.

    `ids` [tokens] and `offsets` [n+1] are memory maps; `lengths` [n] int64 counts [CLS] and [SEP] too.
    """

    def __init__(self, folder, split: str):
        paths = [Path(folder) / f"{split}.{part}.npy" for part in PARTS]
        for path in paths:
            if not path.is_file():
                raise MaskLabError(f"{path}: no such file")
        self.ids, self.offsets = (np.load(path, mmap_mode="r") for path in paths)
        if len(self.ids) != self.offsets[-1]:
            raise MaskLabError(f"{paths[0]}: {len(self.ids)} tokens, but its offsets end at {self.offsets[-1]}")
        self.lengths = np.diff(self.offsets) + 2

    def __len__(self):
        return len(self.lengths)

    def batch(self, rows):
        """Rows [B] of sequence numbers -> (ids [B, T], lengths [B]), both LongTensors on the CPU.

        A row reads [CLS] tokens [SEP] <pad>...; T is the longest row's length.
        """
        import torch

        rows = np.asarray(rows)
        starts, counts = self.offsets[rows], self.lengths[rows] - 2
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

    def flat(self, rows, row_index, column) -> np.ndarray:
        """Positions in `ids` of the tokens at (row_index, column) of `batch(rows)`; columns count from 1.

        `row_index` and `column` are integer arrays of one shape, which is the result's shape too.
        """
        return self.offsets[np.asarray(rows)[np.asarray(row_index)]] + np.asarray(column) - 1
