"""Corpora of any size: the same results as in memory, as an undisturbed run after kill -9, and bounded memory."""

import gzip
import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from masklab import tokens
from masklab.batches import BatchPlan
from masklab.config.schema import Embeddings, TextCorpus
from masklab.corpora import generate
from masklab.corpora.text import parts
from masklab.embeddings import train as train_embeddings
from masklab.files import write_table
from masklab.rng import generator
from masklab.subwords import train
from masklab.tokenizers import save_tokenizer
from masklab.tokens import TokenStore, write_tokens

WORDS = [
    *(
        "the",
        "dog",
        "sees",
        "a",
        "cat",
        "in",
        "big",
        "gardens",
        "and",
        "runs",
        "away",
        "quickly",
        "café",
        "isn't",
        "``",
        "''",
        "naïve",
    ),
    *("x1", "[SEP]", "Straße", "ΟΔΟΣ"),
]
CASES = {
    "all": {},
    "budget": {"max_words": 6000},
    "packed": {"unit": "packed", "packed_words": 17},
    "packed budget": {
        "unit": "packed", "packed_words": 40, "max_words": 5000, "min_words": 2, "min_characters": 12,
    },
}  # fmt: skip
# Of what the implementation gave that held whole corpora in memory.
FROZEN = {
    "all": ["7ffc5154b96deb85", "3e038836bcc3f5dd", "545b486c6966564c"],
    "budget": ["b8984ed5000d6006", "6fe9c3eca1eaba8f", "e5b4659fa3bd40c4"],
    "packed": ["3ddb9734b14fe059", "cd1c3f772860a7d5", "774f3820992be08e"],
    "packed budget": ["56c64a3ee78e8618", "6c9083c259d77713", "4743760abf4f8c72"],
    "unigram": "6de9c43ccfe80e99",
    "bpe": "c1f92d8da726ef0b",
    "wordpiece": "c63f1a42ebf643c8",
    "order": "717f872f3855bce6",
    "cbow": [15186, 2.813469, 2.586120, 0.01928753],  # tokens, losses of two epochs, spread of the vectors
}


def lines(name, count):
    stream = generator(1, "frozen", name)
    made = []
    for _ in range(count):
        words = stream.choice(WORDS, stream.integers(0, 30))
        gaps = stream.choice([" ", " ", " ", " ", "  ", "\t", "\u00a0"], len(words))
        made.append("".join(word + gap for word, gap in zip(words, gaps, strict=True)))
    return made


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of two formats, 1,050 lines."""
    folder = tmp_path_factory.mktemp("files")
    first, second, third = (folder / name for name in ("a.txt", "b.jsonl", "c.txt"))
    first.write_text("\ufeff" + "\r\n".join(lines("a", 400)), encoding="utf-8")
    rows = lines("b", 600)
    three = (json.dumps({"text": "\n".join(rows[i : i + 3])}) for i in range(0, 600, 3))
    second.write_text("\n".join(three) + "\n", encoding="utf-8")
    third.write_text("\n".join(lines("c", 50)) + "\n", encoding="utf-8")
    return [str(path) for path in (third, first, second)]


def corpus(files, **keys):
    return TextCorpus(kind="text", files=files, **{"valid": 20, "test": 30, **keys})


def digest(*things):
    found = hashlib.sha256()
    for thing in things:
        found.update(thing if isinstance(thing, bytes) else json.dumps(thing).encode())
    return found.hexdigest()[:16]


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_sequences_are_those_of_the_implementation_in_memory(files, case, small, tmp_path, monkeypatch):
    if small:
        monkeypatch.setattr("masklab.lines.BLOCK", 1000)
        monkeypatch.setattr(parts, "BLOCKS", 3)
        monkeypatch.setattr("masklab.corpora.text.draws.BLOCK", 7)
    found = generate(corpus(files, **CASES[case]), "c", 7, state_folder=tmp_path)
    assert [digest(reader.read_all().to_pylist()) for reader in found.values()] == FROZEN[case]
    assert len(list(tmp_path.glob("*.arrow"))) == 3 or small


def test_tokens_batches_and_vectors_are_those_of_the_implementation_in_memory(files, tmp_path):
    texts = generate(corpus(files), "c", 7)["train"]["text"]
    for kind in ("unigram", "bpe", "wordpiece"):
        tokenizer = train(texts.to_pylist(), 120, kind)
        counts = write_tokens(texts, tokenizer, 24, tmp_path / kind, "train")
        arrays = [(tmp_path / kind / f"train.{part}.npy").read_bytes() for part in ("ids", "offsets")]
        assert digest(*arrays, counts) == FROZEN[kind]
    store = TokenStore(tmp_path / "bpe", "train")
    plan = BatchPlan(store.lengths, 7, 3, "x", eligible=store.lengths > 5)
    assert digest([plan.batch(step).tolist() for step in range(3 * plan.per_epoch)]) == FROZEN["order"]
    settings = Embeddings(corpus="c", tokenizer="t", size=8, epochs=2)
    vectors, facts = train_embeddings(store, 120, settings, "e", 1)
    # processors add in different orders: 1e-4 leaves room for rounding, and none for another draw of a window
    assert [facts["tokens"], *facts["losses"], float(vectors.std())] == pytest.approx(FROZEN["cbow"], rel=1e-4)


# --- kill -9 --------------------------------------------------------------------------------------

READ = """
import os, signal, sys
from masklab import lines
from masklab.config.schema import TextCorpus
from masklab.corpora import generate
from masklab.corpora.text import formats, parts
from masklab.files import write_table

folder, kill = sys.argv[1], int(sys.argv[2])
lines.BLOCK, formats.BLOCK, parts.BLOCKS = 2000, 2000, 3
dump, written = parts.os.fsync, 0

def fsync(file):  # a part is written, but has no name yet
    global written
    written += 1
    if written == kill:
        os.kill(os.getpid(), signal.SIGKILL)
    dump(file)

parts.os.fsync = fsync
config = TextCorpus.model_validate_json(sys.argv[3])
for split, reader in generate(config, "c", 7, state_folder=folder + "/state").items():
    write_table(reader, f"{folder}/{split}.parquet")
"""


AGAIN = """
import os, signal, sys
import masklab.config.schema, masklab.corpora, masklab.corpora.text.parts, masklab.files, masklab.lines
import masklab.texts, masklab.token_writer, masklab.tokenizers, masklab.tokens

script = sys.argv.pop(1)
for killed in range(60):
    if os.fork() == 0:
        exec(script)
        sys.exit()
    status = os.waitstatus_to_exitcode(os.wait()[1])
    if status != -signal.SIGKILL:
        break
print(killed)
sys.exit(status)
"""


def until_done(script, *arguments):
    """Run a script that kills itself until it gets to its end; how often it was killed.

    Each time in a process of its own, forked from one that has imported what it needs and done nothing else.
    """
    done = subprocess.run([sys.executable, "-c", AGAIN, script, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def contents(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.[pn][ap][ry]*"))}


@pytest.mark.slow
@pytest.mark.parametrize("case", ["lines", "packed, each once"])
def test_reading_goes_on_after_kill_9(files, tmp_path, case):
    rows = [text for i in range(3) for text in lines(f"p{i}", 200)]
    pq.write_table(pa.table({"text": rows}), tmp_path / "d.parquet", row_group_size=200)
    (tmp_path / "e.txt.gz").write_bytes(gzip.compress("\n".join(lines("e", 300)).encode()))
    keys = {} if case == "lines" else {"unit": "packed", "packed_words": 30, "deduplicate": True}
    config = corpus([*files, str(tmp_path / "d.parquet"), str(tmp_path / "e.txt.gz")], max_words=20_000, **keys)
    killed = {}
    for name, after in (("undisturbed", 0), ("killed", 9)):
        (tmp_path / name / "state").mkdir(parents=True)
        killed[name] = until_done(READ, tmp_path / name, after, config.model_dump_json())
    assert killed["undisturbed"] == 0 and killed["killed"] >= 2
    assert len(contents(tmp_path / "killed")) == 3
    assert contents(tmp_path / "killed") == contents(tmp_path / "undisturbed")
    whole = generate(config, "c", 7)
    for split, table in whole.items():
        assert pq.read_table(tmp_path / "killed" / f"{split}.parquet").to_pylist() == table.to_pylist()


ENCODE = """
import os, signal, sys
from masklab import texts, token_writer, tokens
from masklab.texts import TextFile
from masklab.tokenizers import load_tokenizer

folder, out, kill = sys.argv[1], sys.argv[2], int(sys.argv[3])
texts.ROWS, tokens.SAVED, token_writer.SHARD = 7, 2000, 900
add, added = token_writer.TokenWriter.add, 0

def dying(writer, *given):  # what is added after the last state is half written
    global added
    added += 1
    add(writer, *given)
    if added == kill:
        writer.files[f"{writer.split}.offsets.npy"].flush()
        os.kill(os.getpid(), signal.SIGKILL)

token_writer.TokenWriter.add = dying
for split in ("train", "valid"):
    source = TextFile(f"{folder}/{split}.parquet")
    counts = tokens.write_tokens(source, load_tokenizer(folder), 24, out, split, threads=2, mark="m")
token_writer.move(out, out + "-there")
"""


def test_encoding_goes_on_after_kill_9(files, tmp_path):
    tables = generate(corpus(files, valid=200), "c", 7)
    save_tokenizer(train(tables["train"]["text"].to_pylist(), 120), tmp_path / "in", 24)
    for split, table in tables.items():
        write_table(table, tmp_path / "in" / f"{split}.parquet")
    killed = {name: until_done(ENCODE, tmp_path / "in", tmp_path / name, n) for name, n in (("a", 0), ("b", 30))}
    assert killed["a"] == 0 and killed["b"] >= 3
    assert not (tmp_path / "b").exists()
    found = contents(tmp_path / "b-there")
    assert len(found) > 6 and found == contents(tmp_path / "a-there")
    assert (tmp_path / "b-there/meta.json").read_text() == (tmp_path / "a-there/meta.json").read_text()
    store = TokenStore(tmp_path / "b-there", "train")
    write_tokens(tables["train"]["text"], train(tables["train"]["text"].to_pylist(), 120), 24, tmp_path / "c", "train")
    assert (store.ids[:] == TokenStore(tmp_path / "c", "train").ids).all()


def test_a_state_of_other_texts_or_cut_short_is_not_gone_on_with(files, tmp_path):
    tables = generate(corpus(files), "c", 7)
    texts = tables["train"]["text"].to_pylist()
    tokenizer = train(texts, 120)
    expected = write_tokens(texts[:50], tokenizer, 24, tmp_path / "plain", "train")

    def stopped():
        yield from texts[50:100]
        raise RuntimeError("stopped")

    cases = ("other", "theirs", False), ("short", "ours", True), ("broken", "ours", None), ("flipped", "ours", 3)
    for name, mark, cut in cases:
        folder = tmp_path / name
        writer = tokens.TokenWriter(folder, "train", np.uint16, mark)
        writer.add(np.arange(30), np.array([10, 20]))
        writer.save()
        if cut == 3:
            flip(folder / ".train/train.ids.npy", -3)
        elif cut:
            os.truncate(folder / ".train/train.ids.npy", 100)
        elif cut is None:
            (folder / ".train/state.json").write_text("{")
        assert write_tokens(texts[:50], tokenizer, 24, folder, "train", mark="ours") == expected
        assert contents(folder) == contents(tmp_path / "plain")


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)


def test_a_flipped_bit_in_a_part_is_noticed(files, tmp_path, caplog):
    """A bit of a text, which nothing in Arrow's format would notice."""

    def texts():
        found = generate(corpus(files), "c", 7, state_folder=tmp_path)
        return {split: reader.read_all() for split, reader in found.items()}

    before = texts()
    (first, *_) = sorted(tmp_path.glob("read.*.arrow"))
    flip(first, first.stat().st_size // 3)
    assert texts() == before and "not a whole part; the file is read again from there" in caplog.text
    caplog.clear()
    assert texts() == before and "not a whole part" not in caplog.text


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(lines("a", 400)), encoding="utf-8")
    (tmp_path / "state").mkdir()
    before = generate(corpus([str(path)]), "c", 7, state_folder=tmp_path / "state")["train"].read_all()
    path.write_text("\n".join(lines("b", 400)), encoding="utf-8")
    os.utime(path, (1, 1))
    after = generate(corpus([str(path)]), "c", 7, state_folder=tmp_path / "state")["train"].read_all()
    assert after.equals(generate(corpus([str(path)]), "c", 7)["train"]) and not after.equals(before)


# --- memory ---------------------------------------------------------------------------------------

MEMORY = """
import sys
from masklab.config.schema import TextCorpus
from masklab.corpora import generate
from masklab.files import write_table
from masklab.jobs.provenance import peak
from masklab.texts import TextFile
from masklab.tokenizers import load_tokenizer
from masklab.tokens import write_tokens

folder = sys.argv[1]

before = peak()
for split, reader in generate(TextCorpus(kind="text", files=[sys.argv[2]]), "c", 1, state_folder=folder).items():
    write_table(reader, f"{folder}/{split}.parquet")
write_tokens(TextFile(f"{folder}/train.parquet"), load_tokenizer(folder), 64, folder + "/tokens", "train", mark="m")
print(peak() - before)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_text(files, tmp_path):
    """60 MB of text take under 300 MiB, and 120 MB of it at most 60 MiB more."""
    texts = [line for line in lines("m", 2000) if len(line.split()) > 5]
    save_tokenizer(train(texts, 120), tmp_path, 64)
    block = "\n".join(texts * 10).encode() + b"\n"
    found = {}
    for megabytes in (60, 120):
        path = tmp_path / f"{megabytes}.txt"
        with open(path, "wb") as file:
            for _ in range(megabytes * 1_000_000 // len(block)):
                file.write(block)
        command = [sys.executable, "-c", MEMORY, str(tmp_path), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[megabytes] = float(done.stdout)
        path.unlink()
    assert found[60] < 300 and found[120] < found[60] + 60, found
