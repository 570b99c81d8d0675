import bz2
import gzip
import io
import lzma
import random
import subprocess
import sys

import pytest
from backports import zstd

from masklab import lines
from masklab.errors import MaskLabError
from masklab.lines import LONGEST, Place, format_of, read_blocks, read_lines, read_texts, stem_of

PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zstd.compress}


def plain(raw):
    for number, line in enumerate(io.BytesIO(raw), 1):
        text = line.decode()
        yield number, (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n")


@pytest.mark.parametrize("suffix", PACK)
def test_blocks_of_any_size_hold_the_lines_and_can_be_gone_on_from(tmp_path, monkeypatch, suffix):
    stream, path = random.Random(1), tmp_path / f"a.txt{suffix}"
    for _ in range(60):
        monkeypatch.setattr(lines, "BLOCK", stream.choice([1, 5, 50, 1000]))
        parts = ["a", "é", "\n", "\r\n", "\r", "\ufeff", "bc", "\u2028"]
        raw = "".join(stream.choice(parts) for _ in range(stream.randint(0, 200))).encode()
        path.write_bytes(PACK[suffix](raw))
        assert list(read_lines(path)) == list(plain(raw))
        blocks, place = list(read_blocks(path)), Place()
        for number, block in enumerate(read_blocks(path, place)):
            assert block == blocks[number]
            assert list(read_blocks(path, Place(place.position, place.line))) == blocks[number + 1 :]
        assert place.position == len(raw) and place.line == len(list(plain(raw)))


def test_the_format_of_a_name_in_any_case():
    names = {"a.jsonl": (".jsonl", "a"), "A.b.JSONL.gz": (".jsonl", "A.b"), "B.TXT.GZ": (".txt", "B"), "c": ("", "c")}
    assert {name: (format_of(f"f/{name}"), stem_of(f"f/{name}")) for name in names} == names


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n", b"\nmore"])
@pytest.mark.parametrize("before", [b"", b"a line\n"])
def test_the_longest_line(tmp_path, before, ending):
    path = tmp_path / "a.txt"
    path.write_bytes(before + b"x" * LONGEST + ending)
    assert max(len(line) for _, line in read_lines(path)) == LONGEST
    path.write_bytes(before + b"x" * (LONGEST + 1) + ending)
    number = 1 + before.count(b"\n")
    with pytest.raises(MaskLabError, match=rf"a\.txt: line {number}: longer than 16,777,216 bytes$"):
        list(read_lines(path))


def test_invalid_utf8_far_into_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK", 64)
    path = tmp_path / "a.txt"
    path.write_bytes(b"a good line\n" * 50 + b"a bad \xff byte\n" + b"a good line\n")
    with pytest.raises(MaskLabError, match=r"a\.txt: line 51: not valid UTF-8 \(byte 6\)$"):
        list(read_lines(path))


BOMB = """
import sys
from masklab.config.schema import TextCorpus
from masklab.corpora import generate
from masklab.errors import MaskLabError
from masklab.jobs.provenance import peak

before = peak()
try:
    generate(TextCorpus(kind="text", files=sys.argv[1:]), "c", 1)
except MaskLabError as error:
    print(peak() - before, error, sep="|")
"""


@pytest.mark.parametrize("name", ["bomb.txt.gz", "bomb.jsonl.gz", "line.txt"])
def test_a_bomb_is_one_line_and_bounded_memory(tmp_path, name):
    """1.3 GB in one line of 1.3 MB compressed (a megabyte is compressed once), and 100 MB as they are."""
    path, megabyte = tmp_path / name, b"x" * 1_000_000
    path.write_bytes(gzip.compress(megabyte) * 1300 if name.endswith(".gz") else megabyte * 100)
    done = subprocess.run([sys.executable, "-c", BOMB, str(path)], capture_output=True, text=True, check=True)
    peak, _, said = done.stdout.partition("|")
    assert said == f"{path}: line 1: longer than 16,777,216 bytes\n"
    assert int(peak) < 150


@pytest.mark.parametrize("name", ["a.jsonl", "a.json.gz", "a.parquet"])
def test_a_text_to_look_at_is_plain(tmp_path, name):
    (tmp_path / "a.txt").write_text("one\n \ntwo")
    assert [*read_texts(tmp_path / "a.txt")] == ["one", "two"]
    with pytest.raises(MaskLabError, match=rf"{name}: must be plain text, one sequence a line"):
        [*read_texts(tmp_path / name)]
