"""Files of text read part by part: filtered, packed, and kept on disk, where a later process goes on.

A part holds the sequences of so many blocks of a file, and in its schema where reading had come to. It is written whole
or not at all, and parts do not depend on who wrote those before them.
"""

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from masklab.corpora.text.duplicates import hashes
from masklab.corpora.text.formats import blocks
from masklab.corpora.text.packing import Packer, filtered
from masklab.files import atomic, sha256
from masklab.jobs import saved
from masklab.jobs.lacking import passes
from masklab.lines import Place

log = logging.getLogger("masklab")

BLOCKS = 4  # read for one part
KEY = b"masklab"
COLUMNS = ("text", "words", "hash")


@dataclass
class Part:
    """A part on disk. facts: `mark`, `rows`, `position` and `line` of the file after it, `held`, `last`."""

    path: Path
    facts: dict

    @property
    def rows(self) -> int:
        return self.facts["rows"]

    def table(self, columns) -> pa.Table:
        """Columns of it: `text`, `words` uint32; `hash` uint64 where lines are to be deduplicated."""
        only = pa.ipc.IpcReadOptions(included_fields=[COLUMNS.index(name) for name in columns])
        with pa.ipc.open_file(self.path, options=only) as source:
            return source.read_all()


class Parts:
    """The parts of every file under a prefix of a folder, as far as they are of `mark`; others are written over."""

    def __init__(self, folder, prefix: str, mark: str):
        self.folder, self.prefix, self.mark = Path(folder), prefix, mark

    def of(self, index: int) -> Iterator[Part]:
        """The parts of file number `index` that are there, in order."""
        number = 0
        while (part := self._find(index, number)) is not None:
            yield part
            if part.facts["last"]:
                return
            number += 1

    def _path(self, index, number):
        return self.folder / f"{self.prefix}.{index}.{number}.arrow"

    def _find(self, index, number) -> Part | None:
        path = self._path(index, number)
        try:
            with pa.ipc.open_file(path) as source:
                facts = json.loads(source.schema.metadata[KEY])
        except (OSError, pa.ArrowException, TypeError, KeyError, ValueError) as error:
            if passes(error):  # taken for one that is not there, it and those behind it would be missing in the corpus
                raise
            return None
        return Part(path, facts) if facts.get("mark") == self.mark else None

    def words(self, index: int) -> np.ndarray:
        """Words of each sequence of a file, uint32."""
        counts = [part.table(["words"])["words"].to_numpy() for part in self.of(index)]
        return np.concatenate([np.zeros(0, np.uint32), *counts])

    def check(self, index: int) -> None:
        """Remove the first part of a file that is not what was written, with a line: what follows is read again."""
        for part in self.of(index):
            if saved.kept(self._sum(part.path)) != sha256(part.path):
                log.warning("%s: not a whole part; the file is read again from there", part.path)
                part.path.unlink()
                return

    def _sum(self, path):
        return path.with_suffix(".sum")

    def write(self, index: int, number: int, batches: list[pa.RecordBatch], **facts) -> None:
        """Write a part, with facts besides `mark` and `rows`, and its checksum first."""
        facts = {"mark": self.mark, "rows": sum(map(len, batches)), **facts}
        schema = batches[0].schema.with_metadata({KEY: json.dumps(facts)})
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with atomic(self._path(index, number)) as temporary:
            with open(temporary, "wb") as file, pa.ipc.new_file(file, schema, options=options) as out:
                for batch in batches:
                    out.write(batch.replace_schema_metadata(schema.metadata))
            saved.keep(sha256(temporary), self._sum(self._path(index, number)))


def read(files, config, parts: Parts, progress=None) -> None:
    """Read those parts of files that are not there yet; progress(done, total) counts bytes of the files."""
    sizes = [os.path.getsize(file) if os.path.isfile(file) else 0 for file in files]
    for index, file in enumerate(files):
        before = sum(sizes[:index])
        parts.check(index)
        done = list(parts.of(index))
        facts = done[-1].facts if done else {"position": 0, "line": 0, "held": None, "last": False}
        if facts["last"]:
            continue
        if done:
            log.info("%s: going on after line %d", file, facts["line"])
        place, packer = Place(facts["position"], facts["line"]), Packer(config, facts["held"])
        number, made = len(done), []
        for lines in blocks(file, config.column, place):
            made.append(_batch(filtered(lines, config), config, packer))
            if len(made) == BLOCKS:
                parts.write(index, number, made, position=place.position, line=place.line, held=packer.held, last=False)
                number, made = number + 1, []
            if progress:
                progress(before + min(place.read, sizes[index]), sum(sizes))
        made.append(_batch([], config, packer, last=True))
        parts.write(index, number, made, position=place.position, line=place.line, held=None, last=True)


def _batch(lines, config, packer, last=False) -> pa.RecordBatch:
    """Lines [(text, words)] as a batch: packed already, unless those that occur twice are to go before."""
    if not config.deduplicate:
        lines = packer.pack(lines, last)
    columns = as_columns(lines)
    if config.deduplicate:
        columns["hash"] = hashes(text for text, _ in lines)
    return pa.record_batch(columns)


def as_columns(lines) -> dict:
    """[(text, words)] as Arrow columns."""
    texts, words = zip(*lines, strict=True) if lines else ((), ())
    return {"text": pa.array(texts, pa.string()), "words": pa.array(words, pa.uint32())}
