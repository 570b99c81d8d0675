"""What a user's files hold, from a look at parts of them: lines and their words, rows of tasks."""

import bz2
import functools
import json
import lzma
import zlib
from pathlib import Path
from typing import NamedTuple

from masklab.config import data
from masklab.config.sources import existing, expand, missing, named
from masklab.errors import MaskLabError
from masklab.lines import COMPRESSED, READ_ERRORS, format_of, open_bytes

BLOCKS, BLOCK = 8, 1 << 17  # a plain file is read at so many places, so many bytes each
UNPACKERS = {
    ".gz": functools.partial(zlib.decompressobj, wbits=31),
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
}
SIP = 512  # bytes of a packed file that are read at a time
SHRUNK = 3  # how many times smaller a compressed file is whose packing is none of these


class Part(NamedTuple):
    """Lines of a file, and which share of it they are."""

    lines: list[str]
    share: float


class Kept(NamedTuple):
    """What a corpus keeps of a file: about how many lines, and the words of some of them."""

    count: float
    words: tuple[int, ...]

    @property
    def all_words(self) -> float:
        return self.count * sum(self.words) / len(self.words)


def corpus_size(corpus) -> tuple[float, list[float]] | None:
    """(sequences of a corpus of text, valid and test among them; the words of some of them).

    None where a file is missing or holds nothing that can be read. `max_words` is shared out as the corpus does it:
    evenly over the files, and what a small one leaves goes to the larger ones.
    """
    if missing(corpus):
        return None
    settings = corpus.column, corpus.min_characters, corpus.min_words
    files = [_kept(file, *settings) for file in dict.fromkeys(existing(corpus))]
    if not files or None in files:
        return None
    left = float("inf") if corpus.max_words is None else float(corpus.max_words)
    count, weighted = 0.0, []
    for rank, file in enumerate(sorted(files, key=lambda file: file.all_words)):
        share = min(1.0, left / (len(files) - rank) / file.all_words)
        left -= share * file.all_words
        count += share * file.count
        weighted += [(number, share * file.count / len(file.words)) for number in file.words]
    if corpus.unit == "packed":
        return sum(number * weight for number, weight in weighted) / corpus.packed_words, [corpus.packed_words]
    return count, _drawn(weighted)


def task_size(task, split: str) -> tuple[float, float] | None:
    """(rows of a split of a task of label files, mean words of a row); None where the file says nothing."""
    named = getattr(task, split, None)
    file = next(iter(expand(named)), "") if isinstance(named, str) else ""  # "": a glob that matches nothing
    if not Path(file).is_file():
        return None
    try:
        found = data.table(file, task.columns)
        templates = [text for text in (task.text_a, task.text_b) if text is not None]
        names = [name for text in templates for name in data.template_parts(text)[1::2]]
        words = [sum(len(str(row[name]).split()) for name in names) for row in found.rows]
        return len(words) if found.whole else _rows(file), sum(words) / len(words)
    except (MaskLabError, OSError, KeyError, ZeroDivisionError):
        return None


def benchmark_sizes(task) -> tuple[float, float, float] | None:
    """(training, validation, test rows) of the files of GLUE or SQuAD; None where one is missing, or none is named."""
    if not any(named(task)) or missing(task):
        return None
    if task.kind == "squad":
        return tuple(map(_questions, (task.train, task.valid, task.test or task.valid)))
    train, *held_out = (_rows(file) - (task.task != "cola") for file in task.files)  # but CoLA's have a header line
    return train, held_out[0], sum(held_out)


@functools.cache
def _questions(file: str) -> float:
    try:
        with open_bytes(file) as source:
            return float(source.read().count(b'"question"'))
    except (MaskLabError, *READ_ERRORS):
        return 0.0


def pairs(task) -> float | None:
    """Minimal pairs of files; None where one is missing."""
    if missing(task):
        return None
    counts = [_rows(file) for file in dict.fromkeys(existing(task))]
    return sum(min(count, task.limit or count) for count in counts)


def _drawn(weighted, most: int = 2000) -> list[float]:
    """Values with weights as a list in which each stands as often as it weighs."""
    total, drawn, passed = sum(weight for _, weight in weighted), [], 0.0
    for value, weight in sorted(weighted):
        passed += weight
        drawn += [value] * (round(most * passed / total) - len(drawn))
    return drawn


@functools.cache
def _kept(file: str, column: str, characters: int, least: int) -> Kept | None:
    """None where nothing of a file is kept or it cannot be read: `masklab check` says what is wrong with it."""
    try:
        part = _texts(file, column)
    except (MaskLabError, OSError, KeyError, AttributeError, TypeError):
        return None
    counts = [len(text.split()) for text in part.lines if len(text.rstrip()) >= characters]
    words = tuple(count for count in counts if count >= max(least, 1))
    return Kept(len(words) / part.share, words) if words else None


def _texts(file: str, column: str) -> Part:
    """Lines of text of a file of any format."""
    if format_of(file) == ".parquet":
        found = data.table(file)
        return Part([line for row in found.rows for line in row[column].split("\n")], len(found.rows) / _rows(file))
    part = _part(file)
    if format_of(file) not in data.JSON:
        return part
    texts = []
    for line in part.lines:
        try:
            texts += json.loads(line)[column].split("\n")
        except ValueError:  # cut in two
            continue
    return Part(texts, part.share)


def _rows(file: str) -> float:
    """Rows of a table; the header line of TSV and CSV counts."""
    if format_of(file) == ".parquet":
        return data.row_count(file)
    part = _part(file)
    return sum(bool(line.strip()) for line in part.lines) / part.share


@functools.cache
def _part(file: str) -> Part:
    size, suffix, most = Path(file).stat().st_size, Path(file).suffix.lower(), BLOCKS * BLOCK
    with open(file, "rb") as source:
        if suffix in UNPACKERS:
            text = _unpacked(source, UNPACKERS[suffix], most)
            share = source.tell() / size if size else 1.0
        elif suffix in COMPRESSED:
            text = "\n".join(data.head(file).lines).encode()
            share = len(text) / SHRUNK / size
        elif size <= most:
            text, share = source.read(), 1.0
        else:
            parts = []
            for at in range(BLOCKS):
                source.seek(at * (size - BLOCK) // (BLOCKS - 1))
                parts.append(source.read(BLOCK))
            text, share = b"\n".join(parts), most / size
    return Part(text.decode("utf-8", "replace").split("\n"), min(1.0, share))


def _unpacked(source, unpacker, most: int) -> bytes:
    """All that the first bytes of a file hold; of so many that it is `most` bytes, or of the whole file.

    What unpacks files for itself reads ahead: Python's gzip by 128 KiB since 3.12, bzip2 by blocks of 900 kB of text.

    Raises:
        OSError: it is packed in another way, or damaged.
    """
    text, part, begun = bytearray(), unpacker(), False
    try:
        while len(text) < most and (packed := source.read(SIP)):
            while packed := packed if begun else packed.lstrip(b"\0"):  # zeros may fill up what lies between parts
                text += part.decompress(packed)
                begun = not part.eof
                packed, part = (b"", part) if begun else (part.unused_data, unpacker())
    except (zlib.error, lzma.LZMAError) as error:
        raise OSError(str(error)) from error
    return bytes(text)
