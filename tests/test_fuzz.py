"""Damaged files: a few hundred here, 10,000 by `python tests/fuzz.py`; and lines without end in small archives."""

import gzip
import lzma
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="forks and limits of memory as Linux has them")
def test_damaged_files_are_refused_in_a_line_or_read_as_they_should_be():
    command = [sys.executable, str(Path(__file__).with_name("fuzz.py")), "--inputs", "400", "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "readers that failed: 0" in done.stdout, done.stdout + done.stderr


READ = """
import sys
from pathlib import Path
import masklab.tasks.label_files, masklab.corpora.text, masklab.config.data, pyarrow.parquet, pandas
from masklab.config.schema import LabelFiles, PairFiles, TextCorpus
from masklab.corpora import generate
from masklab.errors import MaskLabError
from masklab.jobs.provenance import peak
from masklab.tasks import build

file = sys.argv[1]
before = peak()
try:
    if ".txt" in file:
        generate(TextCorpus(kind="text", files=[file], valid=1, test=1), "c", 1)
    elif ".jsonl" in file:
        build(PairFiles(kind="pair-files", files=[file]), "t", 1)
    else:
        build(LabelFiles(kind="label-files", train=file, valid=file), "t", 1)
    said = "read"
except MaskLabError as error:
    said = str(error)
print(said, peak() - before, sep="\\n")
"""


@pytest.mark.parametrize("name", ["a.txt.gz", "a.jsonl.gz", "a.csv.gz", "a.tsv.xz"])
def test_a_line_without_end_takes_no_memory(tmp_path, name):
    """A gzip of 0.3 MB that holds one line of 300 MB: a megabyte, compressed once, 300 times behind each other."""
    path, megabyte = tmp_path / name, b"a" * 1_000_000
    path.write_bytes((gzip if name.endswith("gz") else lzma).compress(megabyte) * 300)
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    said, megabytes = done.stdout.splitlines()
    assert said == f"{path}: line 1: longer than 16,777,216 bytes" and int(megabytes) < 150
