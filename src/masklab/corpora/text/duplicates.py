"""Lines that occurred before, by a hash of 64 bits.

Among a thousand million different lines two have the same hash, and one of them is lost, in one corpus of 37.
"""

import hashlib
import logging
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

log = logging.getLogger("masklab")

TOGETHER = 1 << 22  # hashes compared in memory


def hashes(texts: Iterable[str]) -> pa.Array:
    """64-bit hashes of strings."""
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return pa.array(np.frombuffer(digests, np.uint64))


def without_duplicates(parts, files, config):
    """Parts of what the lines in `parts` leave when each stays where it stands first; packed if asked."""
    from masklab.corpora.text.packing import Packer
    from masklab.corpora.text.parts import Parts, as_columns

    left = Parts(parts.folder, "left", parts.mark)
    every = [part for index in range(len(files)) for part in parts.of(index)]
    found = (part.table(["hash"])["hash"].to_numpy() for part in every)
    first = first_seen(found, sum(part.rows for part in every), parts.folder)
    log.info("%d lines of %d occurred before", len(first) - int(first.sum()), len(first))
    start = 0
    for index in range(len(files)):
        left.check(index)
        done = list(left.of(index))
        packer = Packer(config, done[-1].facts["held"] if done else None)
        for number, part in enumerate(parts.of(index)):
            keep, start = first[start : start + part.rows], start + part.rows
            if number < len(done):
                continue
            table = part.table(["text", "words"]).filter(pa.array(keep))
            lines = list(zip(table["text"].to_pylist(), table["words"].to_pylist(), strict=True))
            last = part.facts["last"]
            batch = pa.record_batch(as_columns(packer.pack(lines, last)))
            left.write(index, number, [batch], held=packer.held, last=last)
    return left


def first_seen(arrays: Iterable[np.ndarray], total: int, folder=None) -> np.ndarray:
    """Of `total` numbers, given in arrays, whether each is the first of its value, [total] bool.

    Memory holds a byte of each and about `TOGETHER` of them: they are sorted in groups that lie in `folder` meanwhile.
    """
    first, groups = np.zeros(total, bool), -(-total // TOGETHER)
    if groups <= 1:
        _mark(np.concatenate([np.zeros(0, np.uint64), *arrays]), np.arange(total), first)
        return first
    with tempfile.TemporaryDirectory(dir=folder) as place:
        files, start = [Path(place, str(number)) for number in range(groups)], 0
        for file in files:
            file.touch()
        for values in arrays:
            group = values % np.uint64(groups)
            for number in np.unique(group):
                inside = np.flatnonzero(group == number)
                with open(files[number], "ab") as file:
                    np.stack([values[inside], (start + inside).astype(np.uint64)], 1).tofile(file)
            start += len(values)
        for file in files:
            values, places = np.fromfile(file, np.uint64).reshape(-1, 2).T
            _mark(values, places.astype(np.int64), first)
    return first


def _mark(values, places, first):
    """Set `first` at the place of the first of each value; places ascend."""
    _, at = np.unique(values, return_index=True)
    first[places[at]] = True
