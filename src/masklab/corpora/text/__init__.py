"""Corpora read from text files, one sequence a line or packed; filters as in the paper's released code.

Files are read in parts that lie on disk (`parts`), and the splits are taken from these, so that memory holds a part and
some bytes of every sequence: its words, whether it is kept, and the order of the draws.
"""

import logging
import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa

from masklab.config.sources import matched
from masklab.corpora import SPLITS
from masklab.corpora.text.draws import held_out, within_budget
from masklab.corpora.text.duplicates import without_duplicates
from masklab.corpora.text.parts import Parts, read
from masklab.errors import MaskLabError
from masklab.files import fingerprint
from masklab.jobs.store import contents
from masklab.rng import generator

log = logging.getLogger("masklab")


def generate(config, name: str, seed: int, state_folder=None, progress=None) -> dict:
    """Read `config.files` into `train`, `valid`, `test` with columns `text` and `source` (the file's name).

    Sequences keep the order of files and lines; word budget and held-out sequences are drawn at random. The splits are
    tables; with `state_folder` they are readers of record batches, of which memory never holds more than some, and what
    a killed process had read is not read again. progress(done, total) counts bytes of the files.
    MaskLabError for files that are missing, broken, not UTF-8 or of endless lines, and if nothing is left to train on.
    """
    where = f"corpora.{name}"
    files = matched(config, where)
    with tempfile.TemporaryDirectory() if state_folder is None else nullcontext(state_folder) as folder:
        marks = _marks(files) if state_folder else None
        parts = Parts(folder, "read", fingerprint([config.model_dump(mode="json"), marks]))
        read(files, config, parts, progress)
        if config.deduplicate:
            parts = without_duplicates(parts, files, config)
        words = [parts.words(index) for index in range(len(files))]
        for file, counts in zip(files, words, strict=True):
            log.info("%s: %d sequences kept", file, len(counts))
        kept = within_budget(words, config.max_words, lambda index: generator(seed, name, "budget", index))
        total = sum(int(keep.sum()) for keep in kept)
        if total <= config.valid + config.test:
            raise MaskLabError(
                f"{where}: {total} sequences are left; valid ({config.valid}) and test ({config.test}) leave none"
                " to train on"
            )
        sums = (counts.sum(where=keep.view(bool), dtype=np.int64) for counts, keep in zip(words, kept, strict=True))
        log.info("%s: %d sequences, %d words", where, total, sum(sums))
        del words
        held_out(kept, config.valid, config.test, generator(seed, name, "held-out"))
        readers = {split: _reader(parts, files, kept, code) for code, split in enumerate(SPLITS, 1)}
        return readers if state_folder else {split: reader.read_all() for split, reader in readers.items()}


def _marks(files):
    """What says that files are those that were read before: their content, which the job's key asks for as well."""
    return [[str(file), contents(file) if Path(file).is_file() else None] for file in files]


def _reader(parts, files, splits, code) -> pa.RecordBatchReader:
    """Record batches of the sequences of one split; splits: per file the split of every sequence read, 0 is none."""
    schema = pa.schema({"text": pa.string(), "source": pa.string()})

    def batches():
        for index, file in enumerate(files):
            start = 0
            for part in parts.of(index):
                chosen = splits[index][start : start + part.rows] == code
                start += part.rows
                if chosen.any():
                    texts = part.table(["text"])["text"].combine_chunks().filter(pa.array(chosen))
                    yield pa.record_batch([texts, pa.array([Path(file).name] * len(texts))], schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
