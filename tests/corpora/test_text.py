import bz2
import errno
import gzip
import json
import lzma
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from backports import zstd

from masklab.config.schema import TextCorpus
from masklab.corpora import generate
from masklab.corpora.text import duplicates
from masklab.corpora.text.formats import blocks
from masklab.errors import MaskLabError
from masklab.lines import BLOCK, Place
from masklab.texts import PIECE, TextFile, rows_together

LINES = [f"line {i} has some more words " + "x" * (i % 7 + 1) for i in range(60)]


def corpus(*files, **keys):
    keys = {"valid": 1, "test": 1, **keys}
    return TextCorpus(kind="text", files=[str(file) for file in files], **keys)


def texts(tables):
    """All texts of all splits, sorted."""
    return sorted(text for table in tables.values() for text in table["text"].to_pylist())


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_json_lines_by_a_name_in_capitals_are_no_plain_text(tmp_path):
    path = write(tmp_path / "A.JSONL", [json.dumps({"text": line}) for line in LINES])
    assert texts(generate(corpus(path), "c", 1)) == sorted(LINES)


@pytest.mark.parametrize("name", ["a.txt", "bnc_spoken.train", "a.dev", "a.test", "noending"])
@pytest.mark.parametrize("compression", ["", ".bz2", ".gz", ".xz", ".zst"])
def test_plain_text_under_any_name_and_compression(tmp_path, name, compression):
    raw = ("\ufeff" + "\r\n".join(LINES)).encode()
    frames = zstd.compress(raw[:500]) + zstd.compress(raw[500:])
    data = {"": raw, ".gz": gzip.compress(raw), ".xz": lzma.compress(raw), ".zst": frames, ".bz2": bz2.compress(raw)}
    data = data[compression]
    path = tmp_path / (name + compression)
    path.write_bytes(data)
    tables = generate(corpus(path), "c", 1)
    assert texts(tables) == sorted(LINES)
    assert set(tables["train"]["source"].to_pylist()) == {path.name}


@pytest.mark.parametrize("compression", ["", ".gz"])
def test_json_lines(tmp_path, compression):
    rows = [json.dumps({"content": f"{LINES[i]}\n{LINES[i + 1]}", "id": i}) for i in range(0, 60, 2)]
    raw = ("\n\n".join(rows) + "\n").encode()
    path = tmp_path / f"a.jsonl{compression}"
    path.write_bytes(gzip.compress(raw) if compression else raw)
    assert texts(generate(corpus(path, column="content"), "c", 1)) == sorted(LINES)


def test_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"content": LINES, "n": range(60)}), path, row_group_size=25)
    assert texts(generate(corpus(path, column="content"), "c", 1)) == sorted(LINES)
    packed = tmp_path / "b.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert texts(generate(corpus(packed, column="content"), "c", 1)) == sorted(LINES)
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(MaskLabError, match=r"b\.parquet\.gz: cannot be read as Parquet \("):
        generate(corpus(packed, column="content"), "c", 1)


def test_filters_by_hand(tmp_path):
    lines = [
        "a b c d e  ",
        "a b c d",
        "abc def ghi jkl",
        "",
        "   ",
        " a b c d",
        "longer than five words of text",
        "abcd",
    ]
    path = write(tmp_path / "a.txt", lines + LINES[:3])
    kept = ["a b c d e", "longer than five words of text", *LINES[:3]]
    assert texts(generate(corpus(path), "c", 1)) == sorted(kept)
    # 4 words suffice, but " a b c d" must have 9 characters and has 8
    some = texts(generate(corpus(path, min_words=4, min_characters=9), "c", 1))
    assert some == sorted([*kept, "abc def ghi jkl"])
    every = texts(generate(corpus(path, min_words=0, min_characters=0), "c", 1))
    assert every == sorted(line.rstrip() for line in lines + LINES[:3] if line.strip())


def test_splits_are_random_disjoint_and_in_order(tmp_path):
    path = write(tmp_path / "a.txt", LINES)
    config = corpus(path, valid=10, test=5)
    tables = generate(config, "c", 1)
    assert {split: table.num_rows for split, table in tables.items()} == {"train": 45, "valid": 10, "test": 5}
    assert texts(tables) == sorted(LINES)
    for table in tables.values():
        places = [LINES.index(text) for text in table["text"].to_pylist()]
        assert places == sorted(places)
    assert tables["valid"]["text"].to_pylist() != LINES[:10]
    again, other = generate(config, "c", 1), generate(config, "c", 2)
    assert all(again[split].equals(tables[split]) for split in tables)
    assert not other["valid"].equals(tables["valid"])


def test_globs_are_sorted_and_files_read_once(tmp_path):
    write(tmp_path / "b.train", LINES[30:])
    write(tmp_path / "a.train", LINES[:30])
    again = f"{tmp_path}/../{tmp_path.name}/b.train"
    tables = generate(corpus(tmp_path / "*.train", tmp_path / "a.train", again), "c", 1)
    assert texts(tables) == sorted(LINES)
    sources = tables["train"]["source"].to_pylist()
    assert sources == sorted(sources) and set(sources) == {"a.train", "b.train"}


def test_word_budget_is_shared_evenly_and_drawn_at_random(tmp_path):
    small = write(tmp_path / "small.txt", ["one two three four five"] * 20)  # 100 words
    large = write(tmp_path / "large.txt", [f"{i} two three four five six" for i in range(1000)])
    larger = write(tmp_path / "larger.txt", [f"{i} b c d e f g h i j" for i in range(1000)])
    config = corpus(larger, small, large, max_words=1300)
    tables = generate(config, "c", 1)
    rows = pa.concat_tables(tables.values()).to_pylist()
    words = {
        source: sum(len(r["text"].split()) for r in rows if r["source"] == source)
        for source in ("small.txt", "large.txt", "larger.txt")
    }
    # small gives all it has; the other two share the remaining 1200, each within one line of 600
    assert words["small.txt"] == 100
    assert 594 < words["large.txt"] <= 600 and 590 < words["larger.txt"] <= 610
    assert sum(words.values()) <= 1300
    drawn = [int(r["text"].split()[0]) for r in tables["train"].to_pylist() if r["source"] == "large.txt"]
    assert drawn == sorted(drawn)
    assert np.mean(drawn) == pytest.approx(500, abs=4 * 289 / np.sqrt(len(drawn)))  # uniform over the file
    assert generate(config, "c", 1)["train"].equals(tables["train"])


def test_large_budget_keeps_everything(tmp_path):
    path = write(tmp_path / "a.txt", LINES)
    assert texts(generate(corpus(path, max_words=10**6), "c", 1)) == sorted(LINES)


def test_packed_joins_lines_and_cuts_long_ones(tmp_path):
    long = " ".join(f"w{i}" for i in range(23))
    first = write(tmp_path / "a.txt", ["a b c d e", "f g h i j", "k l m n o p", long])
    second = write(tmp_path / "b.txt", ["q r s t u", "v w x y z"])
    tables = generate(corpus(first, second, unit="packed", packed_words=10), "c", 1)
    pieces = [" ".join(f"w{i}" for i in range(at, min(at + 10, 23))) for at in (0, 10, 20)]
    expected = ["a b c d e f g h i j", "k l m n o p", *pieces, "q r s t u v w x y z"]  # files are not joined
    assert texts(tables) == sorted(expected)


def test_missing_and_unmatched(tmp_path):
    with pytest.raises(MaskLabError, match=r"absent\.txt: no such file"):
        generate(corpus(tmp_path / "absent.txt"), "c", 1)
    with pytest.raises(MaskLabError, match=r"corpora\.c\.files: .*\*\.train' matches no file"):
        generate(corpus(tmp_path / "*.train"), "c", 1)
    with pytest.raises(MaskLabError, match="is a folder"):
        generate(corpus(tmp_path), "c", 1)


def test_invalid_utf8_names_file_and_line(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a good line of five words\nbad \xff byte in this line\n")
    with pytest.raises(MaskLabError, match=r"a\.txt: line 2: not valid UTF-8"):
        generate(corpus(tmp_path / "a.txt"), "c", 1)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_broken_compression(tmp_path, suffix):
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(b"this is not compressed at all, not at all")
    with pytest.raises(MaskLabError, match=rf"a\.txt\{suffix}: after line 0: cannot be read"):
        generate(corpus(path), "c", 1)


def test_archives_are_refused(tmp_path):
    (tmp_path / "a.tar.xz").write_bytes(lzma.compress(b"x"))
    with pytest.raises(MaskLabError, match="unpack it"):
        generate(corpus(tmp_path / "a.tar.xz"), "c", 1)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{broken", "line 2: not valid JSON"),
        ("[1]", "line 2: must be a JSON object"),
        ('{"other": 1}', "line 2: no field 'text'; fields: other"),
        ('{"text": null}', "line 2: 'text' must be a string"),
    ],
)
def test_bad_json_lines(tmp_path, line, said):
    path = write(tmp_path / "a.jsonl", ['{"text": "a b c d e"}', line])
    with pytest.raises(MaskLabError, match=said):
        generate(corpus(path), "c", 1)


def test_bad_parquet(tmp_path):
    path = write(tmp_path / "a.parquet", ["text"])
    with pytest.raises(MaskLabError, match="cannot be read as Parquet"):
        generate(corpus(path), "c", 1)
    pq.write_table(pa.table({"other": ["x"]}), path)
    with pytest.raises(MaskLabError, match="no column 'text'; columns: other"):
        generate(corpus(path), "c", 1)
    pq.write_table(pa.table({"text": ["a b c d e", None]}), path)
    with pytest.raises(MaskLabError, match="row 2: 'text' must be a string"):
        generate(corpus(path), "c", 1)


def test_too_few_sequences(tmp_path):
    path = write(tmp_path / "a.txt", LINES)
    with pytest.raises(MaskLabError, match=r"corpora\.c: 60 sequences are left; valid \(50\) and test \(10\)"):
        generate(corpus(path, valid=50, test=10), "c", 1)


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
     pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable")],
    ids=["files", "threads"],
)  # fmt: skip
def test_a_part_that_cannot_be_read_now_is_not_left_out(tmp_path, monkeypatch, error):
    """What has been read lies on disk: without its second file the corpus would be made, and nobody would know."""
    files = [write(tmp_path / "a.txt", LINES), write(tmp_path / "b.txt", LINES)]
    read = pa.ipc.open_file

    def open_file(path, **how):
        if path.name == "read.1.0.arrow" and path.exists():
            raise error
        return read(path, **how)

    monkeypatch.setattr(pa.ipc, "open_file", open_file)
    with pytest.raises(type(error)):
        generate(corpus(*files), "c", 1)


def test_an_empty_file_adds_nothing(tmp_path):
    empty = write(tmp_path / "empty.txt", [])
    path = write(tmp_path / "a.txt", LINES)
    assert texts(generate(corpus(empty, path, max_words=10**6), "c", 1)) == sorted(LINES)


@pytest.mark.parametrize("together", [5, 10**6])
def test_of_equal_lines_the_first_stays(tmp_path, monkeypatch, together):
    monkeypatch.setattr(duplicates, "TOGETHER", together)
    first = write(tmp_path / "a.txt", [*LINES[:10], LINES[3] + "  ", *LINES[5:15], "too short"])
    second = write(tmp_path / "b.txt", [LINES[20], *LINES[10:30], LINES[20]])
    tables = generate(corpus(first, second, deduplicate=True, valid=1, test=1), "c", 1)
    rows = sorted((row for table in tables.values() for row in table.to_pylist()), key=lambda row: row["source"])
    assert {row["text"] for row in rows if row["source"] == "a.txt"} == set(LINES[:15])
    assert {row["text"] for row in rows if row["source"] == "b.txt"} == set(LINES[15:30])
    assert len(rows) == 30
    everything = generate(corpus(first, second, valid=1, test=1), "c", 1)
    assert len(texts(everything)) == 21 + 22


def test_equal_lines_go_before_packing_and_the_budget(tmp_path):
    path = write(tmp_path / "a.txt", ["a b c d e", "a b c d e", "f g h i j", "f g h i j", *["k l m n o p"] * 50])
    keys = {"deduplicate": True, "min_words": 5, "valid": 1, "test": 1}
    assert texts(generate(corpus(path, max_words=16, **keys), "c", 1)) == ["a b c d e", "f g h i j", "k l m n o p"]
    more = write(tmp_path / "b.txt", ["a b c d e", "q r s t u", "v w x y z", "1 2 3 4 5", "6 7 8 9 0"])
    packed = texts(generate(corpus(path, more, unit="packed", packed_words=10, **keys), "c", 1))
    assert packed == sorted(["a b c d e f g h i j", "k l m n o p", "q r s t u v w x y z", "1 2 3 4 5 6 7 8 9 0"])


def test_first_of_each_value_in_groups_on_disk(monkeypatch):
    monkeypatch.setattr(duplicates, "TOGETHER", 50)
    values = np.random.default_rng(1).integers(0, 300, 1000).astype(np.uint64)
    found = duplicates.first_seen(np.array_split(values, 17), len(values))
    expected = np.zeros(len(values), bool)
    expected[np.unique(values, return_index=True)[1]] = True
    assert (found == expected).all()


def test_a_text_of_json_or_parquet_is_bounded_too(tmp_path, monkeypatch):
    monkeypatch.setattr("masklab.corpora.text.formats.LONGEST", 100)
    pq.write_table(pa.table({"text": ["a b c d e", "x" * 101]}), tmp_path / "a.parquet")
    with pytest.raises(MaskLabError, match=r"a\.parquet: row 2: longer than 100 characters"):
        generate(corpus(tmp_path / "a.parquet"), "c", 1)


def test_a_text_that_stands_in_many_rows_of_parquet_counts_in_each(tmp_path):
    """Parquet holds it once: a file of some kilobytes would fill memory."""
    path, line = tmp_path / "a.parquet", "many words of a text " * 3000
    pq.write_table(pa.table({"text": [line] * 500}), path)
    sizes = [sum(map(len, lines)) for lines in blocks(path, "text", Place())]
    assert sum(sizes) == 500 * len(line) and max(sizes) <= BLOCK and path.stat().st_size < 50_000
    assert rows_together(TextFile(path).file, 0, "text", PIECE) * len(line) <= PIECE
