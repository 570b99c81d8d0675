"""Corpora read from text files, one sequence a line or packed; filters as in the paper's released code."""

import logging
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from masklab.config.sources import matched
from masklab.errors import MaskLabError
from masklab.lines import format_of, read_json_lines, read_lines
from masklab.rng import generator

log = logging.getLogger("masklab")

CHUNK = 100_000  # sequences per Arrow array


def generate(config, name: str, seed: int) -> dict[str, pa.Table]:
    """Read `config.files` into tables `train`, `valid`, `test` with columns `text` and `source` (the file's name).

    Sequences keep the order of files and lines; word budget and held-out sequences are drawn at random.
    MaskLabError for files that are missing, broken or not UTF-8, and if nothing is left to train on.
    """
    where = f"corpora.{name}"
    files = matched(config, where)
    texts, words = zip(*(_read(file, config) for file in files), strict=True)
    kept = _within_budget(words, config.max_words, lambda index: generator(seed, name, "budget", index))
    table = pa.concat_tables(
        pa.table({"text": text, "source": pa.repeat(Path(file).name, len(text))}).filter(pa.array(keep))
        for file, text, keep in zip(files, texts, kept, strict=True)
    )
    held_out = config.valid + config.test
    if table.num_rows <= held_out:
        raise MaskLabError(
            f"{where}: {table.num_rows} sequences are left; valid ({config.valid}) and test ({config.test}) leave none"
            " to train on"
        )
    log.info(
        "%s: %d sequences, %d words", where, table.num_rows, sum(w[k].sum() for w, k in zip(words, kept, strict=True))
    )
    split = np.zeros(table.num_rows, np.int8)
    drawn = generator(seed, name, "held-out").permutation(table.num_rows)[:held_out]
    split[drawn[: config.valid]], split[drawn[config.valid :]] = 1, 2
    return {part: table.filter(pa.array(split == index)) for index, part in enumerate(("train", "valid", "test"))}


def _read(file, config) -> tuple[pa.ChunkedArray, np.ndarray]:
    """Sequences of one file and the words of each [n]."""
    sequences = _kept(_texts(file, config.column), config)
    if config.unit == "packed":
        sequences = _packed(sequences, config.packed_words)
    chunks, words = [], []
    while chunk := list(islice(sequences, CHUNK)):
        chunks.append(pa.array((text for text, _ in chunk), pa.string(), size=len(chunk)))
        words.append(np.array([count for _, count in chunk], np.int64))
    log.info("%s: %d sequences kept", file, sum(map(len, chunks)))
    return pa.chunked_array(chunks, pa.string()), np.concatenate([np.zeros(0, np.int64), *words])


def _texts(file, column):
    """Lines of a file of any format; a JSON or Parquet text of several lines counts as several."""
    kind = format_of(file)
    if kind == ".parquet":
        rows = _parquet(file, column)
    elif kind in (".jsonl", ".json"):
        rows = ((f"line {number}", _field(row, column, file, number)) for number, row in read_json_lines(file))
    else:
        yield from (line for _, line in read_lines(file))
        return
    for place, text in rows:
        if not isinstance(text, str):
            raise MaskLabError(f"{file}: {place}: {column!r} must be a string")
        yield from text.split("\n")


def _field(row, column, file, number):
    if column not in row:
        raise MaskLabError(f"{file}: line {number}: no field {column!r}; fields: {', '.join(row)}")
    return row[column]


def _parquet(file, column):
    try:
        with pq.ParquetFile(file) as source:
            names = source.schema_arrow.names
            if column not in names:
                raise MaskLabError(f"{file}: no column {column!r}; columns: {', '.join(names)}")
            number = 0
            for batch in source.iter_batches(columns=[column]):
                for text in batch.column(0).to_pylist():
                    number += 1
                    yield f"row {number}", text
    except (OSError, pa.ArrowException) as error:
        raise MaskLabError(f"{file}: cannot be read as Parquet ({error})") from None


def _kept(lines, config):
    """(stripped line, words) of the lines that pass the filters; empty lines never do."""
    for line in lines:
        text = line.rstrip()
        if text and len(text) >= config.min_characters:
            words = len(text.split())
            if words >= max(config.min_words, 1):
                yield text, words


def _packed(lines, size):
    """Join lines while they fit into `size` words; a longer line is cut into pieces of `size` words."""
    held, count = [], 0
    for text, words in lines:
        pieces = [(text, words)]
        if words > size:
            parts = text.split()
            pieces = [(" ".join(parts[at : at + size]), min(size, words - at)) for at in range(0, words, size)]
        for piece, length in pieces:
            if count + length > size:
                yield " ".join(held), count
                held, count = [], 0
            held.append(piece)
            count += length
    if held:
        yield " ".join(held), count


def _within_budget(words, budget, stream) -> list[np.ndarray]:
    """One mask per file: sequences drawn at random within the file's even share of `budget` words.

    What a small file leaves of its share goes to the larger ones.
    """
    totals = [int(counts.sum()) for counts in words]
    if budget is None or sum(totals) <= budget:
        return [np.ones(len(counts), bool) for counts in words]
    masks = [None] * len(words)
    left = budget
    for rank, index in enumerate(sorted(range(len(words)), key=lambda i: totals[i])):
        share = left // (len(words) - rank)
        masks[index] = np.ones(len(words[index]), bool)
        if totals[index] > share:
            order = stream(index).permutation(len(words[index]))
            masks[index][order[np.cumsum(words[index][order]) > share]] = False
        left -= int(words[index][masks[index]].sum())
    return masks
