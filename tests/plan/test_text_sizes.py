"""What a plan knows of a user's files before anything has read them."""

import bz2
import functools
import gzip
import json
import lzma
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from masklab.config import load
from masklab.config.schema import LabelFiles, PairFiles, TextCorpus
from masklab.plan import make_plan, read_assumptions, text_sizes
from masklab.plan.graph import checkout_paths
from masklab.plan.sizes import LINES, Sizes
from masklab.plan.table import table

LINE = "one two three four five six seven eight nine ten\n"
PACKERS = {".gz": gzip.compress, "bz2": bz2.compress, ".xz": functools.partial(lzma.compress, preset=0)}


@pytest.fixture(autouse=True)
def _empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text_sizes._kept.cache_clear()
    text_sizes._part.cache_clear()


def corpus(*files, **settings):
    return TextCorpus(kind="text", files=list(files), **settings)


def test_small_files_are_counted(tmp_path):
    (tmp_path / "a.txt").write_text(LINE * 30 + "too short\n\n" * 9)
    (tmp_path / "b.jsonl").write_text((json.dumps({"text": LINE * 2}) + "\n") * 20)
    count, words = text_sizes.corpus_size(corpus("a.txt", "b.jsonl"))
    assert count == 70 and set(words) == {10}
    pq.write_table(pa.table({"text": [LINE.strip()] * 50}), tmp_path / "c.parquet")
    assert text_sizes.corpus_size(corpus("*.parquet"))[0] == 50
    assert text_sizes.corpus_size(corpus("a.txt", "none.txt")) is None
    (tmp_path / "d.txt").write_text("too short\n")
    assert text_sizes.corpus_size(corpus("d.txt")) is None


@pytest.mark.parametrize("line", ['["a"]', "3", '{"text": 3}', '"text"'])
def test_a_line_that_is_no_row_says_nothing(line, tmp_path):
    (tmp_path / "a.jsonl").write_text(f"{json.dumps({'text': LINE})}\n{line}\n")
    assert text_sizes.corpus_size(corpus("a.jsonl")) is None


def test_a_budget_of_words_is_shared_as_the_corpus_shares_it(tmp_path):
    (tmp_path / "a.txt").write_text(LINE * 10)
    (tmp_path / "b.txt").write_text(LINE * 500)
    assert text_sizes.corpus_size(corpus("*.txt", max_words=1100))[0] == pytest.approx(110)
    assert text_sizes.corpus_size(corpus("*.txt", max_words=100))[0] == pytest.approx(10)
    assert text_sizes.corpus_size(corpus("*.txt", max_words=10**6))[0] == pytest.approx(510)
    packed = text_sizes.corpus_size(corpus("*.txt", max_words=2000, unit="packed", packed_words=100))
    assert packed == (pytest.approx(20), [100])


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "A.TXT.GZ", "a.txt.bz2", "a.txt.xz", "a.jsonl"])
def test_of_a_large_file_a_part_is_read(name, tmp_path):
    drawn = random.Random(1)
    lines = [" ".join(drawn.choices(["alpha", "be", "gammas", "delta"], k=drawn.randint(5, 30))) for _ in range(60_000)]
    text = "".join(f"{json.dumps({'text': line}) if 'json' in name else line}\n" for line in lines).encode()
    assert len(text) > 4 * text_sizes.BLOCKS * text_sizes.BLOCK
    (tmp_path / name).write_bytes(PACKERS.get(name[-3:].lower(), bytes)(text))
    count, words = text_sizes.corpus_size(corpus(name))
    assert count == pytest.approx(60_000, rel=0.03)
    assert sum(words) / len(words) == pytest.approx(17.5, rel=0.03)


@pytest.mark.parametrize("name", ["a.txt.gz", "a.txt.bz2", "a.txt.xz"])
def test_packed_files_one_behind_the_other_are_one(name, tmp_path):
    part = PACKERS[name[-3:]]((LINE * 100).encode())
    filled = b"" if name.endswith("bz2") else bytes(1024)
    (tmp_path / name).write_bytes(part + filled + part + part + filled)
    assert text_sizes.corpus_size(corpus(name))[0] == 300
    (tmp_path / f"damaged.{name}").write_bytes(part[:20] + part)
    assert text_sizes.corpus_size(corpus(f"damaged.{name}")) is None


def test_rows_of_tasks(tmp_path):
    rows = [{"a": "one two", "b": "three", "label": n % 2} for n in range(40)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = LabelFiles(kind="label-files", train="train.jsonl", valid="none.jsonl", text_a="a", text_b="b")
    assert text_sizes.task_size(task, "train") == (40, 3) and text_sizes.task_size(task, "valid") is None
    assert text_sizes.task_size(task.model_copy(update={"text_a": "Is {a} {b}?", "text_b": None}), "train") == (40, 3)
    (tmp_path / "pairs.jsonl").write_text('{"sentence_good": "a", "sentence_bad": "b"}\n' * 30)
    pairs = PairFiles(kind="pair-files", files=["pairs.jsonl"])
    assert text_sizes.pairs(pairs) == 30 and text_sizes.pairs(pairs.model_copy(update={"limit": 7})) == 7


def config(**settings):
    text = {"kind": "text", "files": ["a.txt"], "valid": 10, "test": 10} | settings
    model = {"corpus": "c", "tokenizer": "t", "encoder": "e", "objective": "mlm", "steps": 10, "batch_size": 8}
    return load({
        "corpora": {"c": text},
        "tokenizers": {"t": {"corpus": "c", "vocab_size": 4000, "max_length": 64, "sample": 20}},
        "encoders": {"e": {"layers": 1, "hidden": 32, "heads": 2, "max_positions": 64}},
        "objectives": {"mlm": {"mlm": 1}},
        "models": {"m": model},
        "probes": {"loss": {"kind": "loss"}},
        "studies": {"s": {"panels": {"p": ["m"]}, "probes": {"loss": "all"}}},
    })  # fmt: skip


def test_a_plan_honours_what_cuts_a_corpus(tmp_path):
    """120 lines of 10 words, of which 20 are held out and max_words leaves half: 10 x 1.54 + 2 tokens a line."""
    (tmp_path / "a.txt").write_text(LINE * 120)
    assumed = read_assumptions()
    whole, half = make_plan(config(), "cpu"), make_plan(config(max_words=600), "cpu")
    assert not whole.guessed
    for plan, lines in ((whole, 100), (half, 40)):
        tokens = lines * (10 * 1.54 + 2)
        assert plan.costs["corpus", "c"].stored == pytest.approx(2 * tokens, rel=0.01)
        assert plan.costs["pretrain", "m", "1"].tokens == 10 * 8 * 17
        sampled = 20 / lines * tokens / assumed["unigram_tokens_per_second"]
        assert plan.costs["tokenizer", "t"].seconds == pytest.approx(assumed["start_seconds"] + sampled, rel=1e-3)


def test_without_files_a_budget_of_words_still_counts():
    assumed = read_assumptions()
    found = Sizes(checkout_paths(config(max_words=1300)), assumed)
    assert found.sequences("c", "t") == pytest.approx(1300 / (sum(LINES) / len(LINES) / 1.3))
    plan = make_plan(config(), "cpu")
    assert plan.guessed == {"c"} and Sizes(checkout_paths(config()), assumed).sequences("c", "t") == 1e7
    assert "GUESSED: how large c is." in table(plan)


def test_a_pattern_that_matches_no_file_says_nothing_of_a_task(tmp_path):
    task = LabelFiles(kind="label-files", train=f"{tmp_path}/*.csv", valid=f"{tmp_path}/v.csv")
    assert [text_sizes.task_size(task, split) for split in ("train", "valid", "test")] == [None] * 3


def sizes(tasks) -> Sizes:
    config = load({"corpora": {"drawn": {"kind": "causal", "causal": "a/b", "length": 20}}, "tasks": tasks})
    return Sizes(checkout_paths(config), read_assumptions())


def test_a_task_of_a_benchmark_by_name_has_its_published_size_whatever_its_entry_is_called():
    tasks = {f"my-{task}": {"kind": "glue", "task": task} for task in ("mnli", "stsb")}
    tasks |= {"few": {"kind": "glue", "task": "mnli", "limit": 50}, "my-squad": {"kind": "squad"}}
    for release in (2023, 2025):
        tasks[f"baby-{release}"] = {"kind": "babylm-labels", "task": "mnli", "folder": "f", "release": release}
    found = sizes(tasks)
    assert found.rows("my-mnli") == (392702, 9815, 9815 + 9832) and found.rows("my-stsb") == (5749, 1500, 1500)
    assert found.rows("few") == (50, 9815, 9815 + 9832) and found.rows("my-squad") == (130319, 11873, 11873)
    assert found.rows("baby-2023")[0] == 392702 and found.rows("baby-2025")[0] == 10000  # the release of 2025 is cut
    assert found.task_length("my-squad", 512) == 180 and found.task_length("my-squad", 64) == 64
    own = Sizes(found.paths, found.assumed | {"task_rows": found.assumed["task_rows"] | {"my-mnli": [300, 20]}})
    assert own.rows("my-mnli")[0] == 300


def test_files_of_glue_and_of_squad_are_counted(tmp_path):
    for name, train, dev in (("CoLA", 40, 8), ("SST-2", 41, 9)):  # those of CoLA have no header line
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.tsv").write_text("a\tb\n" * train)
        (tmp_path / name / "dev.tsv").write_text("a\tb\n" * dev)
    questions = [{"context": "one two", "qas": [{"question": "one?", "answers": []}] * 3}] * 2
    (tmp_path / "squad.json").write_text(json.dumps({"data": [{"paragraphs": questions}]}))
    tasks = {"cola": {"kind": "glue", "task": "cola", "folder": "CoLA"},
             "sentiment": {"kind": "glue", "task": "sst2", "folder": "SST-2", "limit": 30},
             "answers": {"kind": "squad", "train": "squad.json", "valid": "squad.json"}}  # fmt: skip
    found = sizes(tasks)
    assert [found.rows(task) for task in tasks] == [(40, 8, 8), (30, 8, 8), (6, 6, 6)]


def test_a_restricted_task_is_as_large_as_the_one_it_is_made_of():
    labels = {"kind": "english-labels", "recipe": "sentiment", "train": 70, "valid": 8, "test": 9}
    tasks = {"all": labels, "few": {"kind": "restricted-labels", "task": "all", "corpus": "drawn"}}
    tasks["short"] = tasks["few"] | {"length": 6}
    found = sizes(tasks)
    assert found.rows("few") == (70, 8, 9)
    assert (found.task_length("few", 128), found.task_length("short", 128)) == (22, 8)
