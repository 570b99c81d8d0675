"""Writing the token arrays of a split piece by piece, going on from what a killed process wrote.

The arrays grow in a hidden folder beside the place where they belong, and are moved there when they are whole.
"""

import io
import logging
import os
import shutil
import zlib
from pathlib import Path

import numpy as np

from masklab.errors import MaskLabError
from masklab.files import read_json, settle, temporary_name, write_json

log = logging.getLogger("masklab")
SHARD = 1 << 30  # tokens after which the ids go on in another file
STATE = "state.json"
BLOCK = 1 << 22  # bytes read together


def ids_name(split: str, shard: int) -> str:
    """Name of a file of token ids: `train.ids.npy`, and where they are many `train.ids.1.npy`, ..."""
    return f"{split}.ids.{shard}.npy" if shard else f"{split}.ids.npy"


def shards(folder, split: str) -> list[Path]:
    """The files of a split's token ids, in order; the first is named whether it is there or not."""
    folder = Path(folder)
    paths = [folder / ids_name(split, 0)]
    while (path := folder / ids_name(split, len(paths))).is_file():
        paths.append(path)
    return paths


class TokenWriter:
    """Appends sequences of tokens to the arrays of one split.

    dtype: of the ids. mark: fingerprint of what the tokens are made from; with one, `save` keeps what is there for
    a later process, which finds in `sequences` where to go on, and `whole` is true where nothing is left to do.
    """

    def __init__(self, folder, split: str, dtype, mark: str | None = None):
        self.folder, self.split, self.dtype, self.mark = Path(folder), split, np.dtype(dtype), mark
        self.hidden = self.folder / f".{split}" if mark else temporary_name(self.folder / split)
        self.sequences = self.tokens = self.truncated = 0
        self.lengths, self.whole, self.files = [0], False, {}  # lengths: tokens of each shard
        self.sums = {}  # file -> CRC-32 of what was written behind its header
        if mark is None or not self._restore():
            shutil.rmtree(self.hidden, ignore_errors=True)
            self.hidden.mkdir(parents=True)

    def _restore(self) -> bool:
        if not self.hidden.is_dir():
            return False
        try:
            found = read_json(self.hidden / STATE)
            if found["mark"] != self.mark:
                log.warning("%s: of another tokenizer or corpus; encoding begins anew", self.hidden)
                return False
            lengths, sequences, sums = list(found["lengths"]), found["sequences"], dict(found["sums"])
            sizes = {ids_name(self.split, k): self.dtype.itemsize * count for k, count in enumerate(lengths)}
            sizes[f"{self.split}.offsets.npy"] = 8 * (sequences + 1)
            folder = self.folder if found["whole"] else self.hidden
            whole = all(_crc(folder / name, size) == sums.get(name, 0) for name, size in sizes.items())
            truncated, moved = found["truncated"], found["whole"]
        except (MaskLabError, OSError, ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            log.warning("%s: the tokens so far are not what was written; encoding begins anew", self.hidden)
            return False
        self.sequences, self.truncated, self.lengths, self.sums = sequences, truncated, lengths, sums
        self.tokens, self.whole = sum(lengths), moved
        if not self.whole:  # what was written after the state was saved is written again
            for path in folder.glob("*.npy"):
                if path.name in sizes:
                    os.truncate(path, _header(0, np.int64).nbytes + sizes[path.name])
                else:
                    path.unlink()
        return True

    def add(self, ids: np.ndarray, counts: np.ndarray, truncated: int = 0) -> None:
        """Append sequences: ids [sum of counts], counts [n]; so many of them were cut."""
        ids, ends = ids.astype(self.dtype, copy=False), np.cumsum(counts, dtype=np.int64)
        self._append(f"{self.split}.offsets.npy", self.tokens + ends)
        start = 0
        while start < len(ids):  # a shard ends with the sequence that fills it, wherever others were added
            if self.lengths[-1] >= SHARD:
                self.lengths.append(0)
            last = min(int(np.searchsorted(ends, start + SHARD - self.lengths[-1])), len(ends) - 1)
            some, start = ids[start : ends[last]], int(ends[last])
            self._append(ids_name(self.split, len(self.lengths) - 1), some)
            self.lengths[-1] += len(some)
        self.tokens += len(ids)
        self.sequences += len(counts)
        self.truncated += truncated

    def _append(self, name, values):
        values.tofile(self._file(name, values.dtype))
        self.sums[name] = zlib.crc32(values, self.sums.get(name, 0))

    def _file(self, name, dtype):
        if name not in self.files:
            path = self.hidden / name
            new = not path.exists()
            self.files[name] = file = open(path, "ab")  # noqa: SIM115 closed by `finish` or `discard`
            if new:
                _header(0, dtype).tofile(file)
                if name.endswith("offsets.npy"):
                    self._append(name, np.zeros(1, np.int64))
        return self.files[name]

    def save(self) -> None:
        """Keep what is there against a kill."""
        for file in self.files.values():
            file.flush()
            os.fsync(file.fileno())
        self._note(False)

    def _note(self, whole):
        facts = {"sequences": self.sequences, "truncated": self.truncated, "lengths": self.lengths, "whole": whole}
        write_json({"mark": self.mark, **facts, "sums": self.sums}, self.hidden / STATE)

    def finish(self) -> dict:
        """Move the whole arrays to their place; the split's counts."""
        if not self.whole:
            self._file(f"{self.split}.offsets.npy", np.dtype(np.int64))  # where there is no sequence, or no token
            self._file(ids_name(self.split, 0), self.dtype)
            self._close()
            names = {ids_name(self.split, k): (self.dtype, count) for k, count in enumerate(self.lengths)}
            names[f"{self.split}.offsets.npy"] = np.dtype(np.int64), self.sequences + 1
            for name, (dtype, count) in names.items():
                with open(self.hidden / name, "r+b") as file:
                    _header(count, dtype).tofile(file)
                    file.flush()
                    os.fsync(file.fileno())
            for old in shards(self.folder, self.split)[len(self.lengths) :]:
                old.unlink()
            for name in names:
                os.replace(self.hidden / name, self.folder / name)
            settle(self.folder)
            if self.mark:
                self._note(True)
        if not self.mark:
            self.discard()
        return {"sequences": self.sequences, "tokens": self.tokens, "truncated": self.truncated}

    def _close(self):
        for file in self.files.values():
            file.close()
        self.files = {}

    def discard(self) -> None:
        """Forget what is not whole, unless a later process may go on with it."""
        self._close()
        if not self.mark:
            shutil.rmtree(self.hidden, ignore_errors=True)


def move(folder, place) -> None:
    """Move token arrays to another folder, meta.json last, and forget how they came about."""
    place = Path(place)
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("*.ids.*.npy"):
        old.unlink()
    for path in sorted(Path(folder).iterdir(), key=lambda path: path.suffix == ".json"):
        if not path.name.startswith("."):
            shutil.move(path, place / path.name)
    shutil.rmtree(folder)


def _crc(path, size: int) -> int | None:
    """CRC-32 of the first `size` bytes behind the header of an array file; None if it has fewer."""
    crc, left = 0, size
    with open(path, "rb") as file:
        file.seek(_header(0, np.int64).nbytes)
        while left and (data := file.read(min(left, BLOCK))):
            crc, left = zlib.crc32(data, crc), left - len(data)
    return None if left else crc


def _header(count, dtype) -> np.ndarray:
    """Header of an array file, as bytes. NumPy pads it so that its size does not depend on the count."""
    stream = io.BytesIO()
    description = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(stream, description)
    return np.frombuffer(stream.getvalue(), np.uint8)
