"""Mistakes in a user's files, or in what the config says of them: one line each, before any job."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from masklab.config import data
from masklab.config.sources import expand
from masklab.corpora import generate
from masklab.errors import MaskLabError
from masklab.foreign_tokenizers import renumbered
from masklab.plan.graph import opened
from masklab.subwords import train
from masklab.tasks import build
from masklab.tasks.label_files import label_files, read_rows
from masklab.tokenizers import save_tokenizer

WORDS = "the cat sees a dog that runs far from here\n"
TEXT = {"kind": "text", "files": ["a.txt"], "valid": 5, "test": 5}
PAIR = {"sentence_good": "The cat runs.", "sentence_bad": "The cat run."}
ROWS = [{"sentence": f"a film number {n}", "label": n % 2} for n in range(20)]
LABELS = {"kind": "label-files", "train": "train.jsonl", "valid": "valid.jsonl"}


def lines(rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def parquet(**columns) -> bytes:
    """A table; of `name_` the column is called `name`, as another may be."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table([*columns.values()], names=[name.rstrip("_") for name in columns]), sink)
    return sink.getvalue().to_pybytes()


def text(contents, **keys):
    """A config with a corpus of text, and its files."""
    return {"corpora": {"mine": TEXT | keys}}, contents


def labels(files, **keys):
    """A config with a labelled task of files; those that are not given are sound."""
    sound = {"train.jsonl": lines(ROWS), "valid.jsonl": lines(ROWS[:4])}
    return {"tasks": {"mine": LABELS | keys}}, sound | files


def pairs(files, name="pairs.jsonl"):
    return {"tasks": {"mine": {"kind": "pair-files", "files": [name]}}}, files


def glue(task, files):
    return {"tasks": {"mine": {"kind": "glue", "task": task, "folder": "glue"}}}, files


def folder(**files):
    """A config with a tokenizer of a folder, and the files in it."""
    named = {f"made/{name.replace('__', '.')}": content for name, content in files.items()}
    return {"tokenizers": {"mine": {"kind": "folder", "folder": "made"}}}, named


def model(batch_size, **tokenizer):
    return {
        "tokenizers": {"mine": {"corpus": "mine", "vocab_size": 60, "max_length": 32} | tokenizer},
        "models": {"mine": {"like": "strict-phase1", "corpus": "mine", "tokenizer": "mine", "batch_size": batch_size}},
    }


def several(top):
    """A model and another one like it, whose name sorts after its own."""
    return top | {
        "models": top["models"] | {"mine-80-10-10": {"like": "mine", "masking": {"mask": 0.8, "random": 0.1}}}
    }


def both(one, top):
    return one[0] | top, one[1]


SIZES = {"kind": "finetune", "tasks": ["mine"], "sizes": [10, 5000]}
CSV = "sentence,label\n" + '"a film\n\nof two and many more words",0\na film of a word or two,1\n' * 1500
SST = "sentence\tlabel\nIt runs all the way home.\t1\nIt sees all of the house.\t0\n"
STS = "index\tgenre\tsentence1\tsentence2\tscore\n1\tx\ta b\tc d\t3.2\n"
LONG = {"a.txt": WORDS * 40}
MISTAKES = {
    "empty": text({"a.txt": ""}),
    "blank": text({"a.txt": "\n \n"}),
    "folder": text({"a.txt/b.txt": WORDS}),
    "latin-1": text({"a.txt": (WORDS * 2).encode() + "café\n".encode("latin-1")}),
    "binary": text({"a.txt": b"\x00\x01\x02abc"}),
    "zip": text({"a.zip": b"PK"}, files=["a.zip"]),
    "gzip": text({"a.txt.gz": gzip.compress(WORDS.encode() * 99)[:40]}, files=["a.txt.gz"]),
    "no gzip": text({"a.txt.gz": WORDS}, files=["a.txt.gz"]),
    "one of a glob": text({"a.txt": WORDS * 40, "b.txt": ""}, files=["*.txt"]),
    "few": text({"a.txt": WORDS * 8}),
    "short lines": text({"a.txt": WORDS * 8 + "yes .\n" * 30}),
    "budget": text(LONG, max_words=40),
    "packed": text(LONG, unit="packed", packed_words=200),
    "batch": both(text(LONG), model(32)),
    "batch of several": both(text(LONG), several(model(32))),
    "characters": both(text(LONG), model(4, vocab_size=16)),
    "characters of word pieces": both(text(LONG), model(4, kind="wordpiece", vocab_size=30)),
    "rare characters": both(text(LONG), {"tokenizers": {"mine": {"corpus": "mine", "rarest_character": 1000}}}),
    "jsonl": text({"a.jsonl": lines([{"body": "a text of some words"}])}, files=["a.jsonl"]),
    "json": text({"a.json": "[\n{}\n]"}, files=["a.json"]),
    "endless row": text({"a.jsonl": lines([{"text": "some words " * 1_600_000}])}, files=["a.jsonl"]),
    "pairs as text": text({"a.jsonl": lines([PAIR])}, files=["a.jsonl"]),
    "number": text({"a.jsonl": lines([{"text": "some words"}, {"text": 3}])}, files=["a.jsonl"]),
    "number behind blank lines": text({"a.jsonl": '{"text": "some words"}\n\n\n{"text": 3}\n'}, files=["a.jsonl"]),
    "parquet": text({"a.parquet": parquet(body=["a b c"])}, files=["a.parquet"]),
    "column twice in Parquet": text({"a.parquet": parquet(text=["a b c"], text_=["d e f"])}, files=["a.parquet"]),
    "broken parquet": text({"a.parquet": parquet(text=["a b c"])[:-9]}, files=["a.parquet"]),
    "no rows": text({"a.parquet": parquet(text=pa.array([], pa.string()))}, files=["a.parquet"]),
    "no partner": pairs({"pairs.jsonl": lines([PAIR, {"sentence_good": "Yes."}])}),
    "no partner behind blank lines": pairs({"pairs.jsonl": f'{lines([PAIR])}\n\n{{"sentence_good": "Yes."}}\n'}),
    "empty partner": pairs({"pairs.jsonl": lines([PAIR, PAIR | {"sentence_bad": " "}])}),
    "labels as pairs": pairs({"pairs.jsonl": lines(ROWS)}),
    "part of pairs": both(pairs({"pairs.jsonl": lines([PAIR])}), {"studies": {"mlsm": {"sets": {"g": ["mine/pair"]}}}}),
    "table as pairs": pairs({"pairs.tsv": "a\tb\n"}, "pairs.tsv"),
    "no pairs": pairs({"pairs.jsonl": ""}),
    "column": labels({}, text_a="sentences"),
    "column of a template": labels({}, text_a="Is it {question}?"),
    "brace without end": labels({}, text_a="Is it {sentence?"),
    "second brace without end": labels({}, text_a="Is {sentence} like {sentence?"),
    "no column in braces": labels({}, text_a="Is it {}?"),
    "second column": labels({}, text_b="sentence2"),
    "label column": labels({}, label="gold"),
    "column twice": labels({"train.tsv": "sentence\tlabel\tsentence\na b\t1\tc d\nc d\t0\ta b\n"}, train="train.tsv"),
    "label column twice": labels({"train.csv": "sentence,label,label\na b,1,0\nc d,0,1\n"}, train="train.csv"),
    "column named twice": labels(
        {"train.tsv": "a b\t1\tc d\nc d\t0\ta b\n"}, train="train.tsv", columns=["sentence", "label", "sentence"]
    ),
    "column of one split": labels({"valid.jsonl": lines([{"text": "a b", "label": 1}])}),
    "pairs as labels": labels({"train.jsonl": lines([PAIR])}),
    "label of validation": labels({"valid.jsonl": lines([{"sentence": "a b", "label": 2}])}),
    "withheld": labels({"valid.jsonl": lines([{"sentence": "a b", "label": -1}])}),
    "share": labels({"train.jsonl": lines([*ROWS, {"sentence": "a b", "label": 0.5}])}),
    "numbers and words": labels({"train.jsonl": lines([*ROWS, {"sentence": "a b", "label": "yes"}])}),
    "no label": labels({"train.jsonl": lines([*ROWS, {"sentence": "a b", "label": None}])}),
    "row of those kept": labels(
        {"valid.jsonl": lines([row | {"in": "x"} for row in ROWS[:3]] + [{"sentence": "a", "label": 7, "in": "y"}])},
        where={"valid": {"in": "y"}},
    ),
    "validation as test": labels({}, where={"test": {"sentense": "a"}}),
    "one label": labels({"train.jsonl": lines(ROWS[:1] * 9)}),
    "positive": labels({}, metric="f1", positive=2),
    "too long a sentence": both(
        pairs({"pairs.jsonl": lines([*[PAIR] * 1500, PAIR | {"sentence_bad": "the cat " * 40}])}),
        {
            "probes": {"mine": {"kind": "minimal_pairs", "tasks": ["mine"]}},
            "studies": {"mlsm": {"probes": {"mine": "all"}}},
        },
    ),
    "sizes": both(labels({}), {"probes": {"mine": {"kind": "finetune", "tasks": ["mine"], "sizes": [10, 30]}}}),
    "sizes of many rows": both(labels({"train.jsonl": lines(ROWS * 100)}), {"probes": {"mine": SIZES}}),
    "sizes of a table": both(labels({"train.csv": CSV}, train="train.csv"), {"probes": {"mine": SIZES}}),
    "sizes of Parquet": both(
        labels({"train.parquet": parquet(sentence=["a", "b"] * 1500, label=[0, 1] * 1500)}, train="train.parquet"),
        {"probes": {"mine": SIZES}},
    ),
    "sizes of GLUE": both(
        glue("sst2", {"glue/train.tsv": SST[:15] + SST[15:] * 1500, "glue/dev.tsv": SST}), {"probes": {"mine": SIZES}}
    ),
    "empty text": labels({"train.jsonl": lines([*ROWS, {"sentence": "", "label": 1}])}),
    "bytes for text": labels(
        {"train.parquet": parquet(sentence=[b"a b", b"c d"], label=[0, 1])}, train="train.parquet"
    ),
    "digits without end": labels({"train.jsonl": lines([*ROWS, {"sentence": "a b", "label": "1" * 1001}])}),
    "semicolons": labels({"train.csv": "sentence;label\nIt runs.;1\nIt sees it.;0\n"}, train="train.csv"),
    "no header": labels({"train.tsv": "gj04\t1\t\tOur friends go .\n"}, train="train.tsv"),
    "header alone": labels({"train.tsv": "sentence\tlabel\n"}, train="train.tsv"),
    "columns": labels({"train.tsv": "a b\t1\tx\n"}, train="train.tsv", columns=["sentence", "label"]),
    "format": labels({"train.xlsx": b"x"}, train="train.xlsx"),
    "pattern": labels({}, train="*.jsonl"),
    "another of GLUE": glue("sst2", {"glue/train.tsv": STS, "glue/dev.tsv": STS}),
    "tokenizer of a file": ({"tokenizers": {"mine": {"kind": "folder", "folder": "made"}}}, {"made": "x"}),
    "nameless tokenizer": ({"tokenizers": {"mine": {"kind": "folder", "folder": " "}}}, {}),
    "no tokenizer": folder(vocab__txt="[PAD]\n"),
    "half a tokenizer": folder(tokenizer__json='{"model": {}'),
    "no model": folder(tokenizer__json="{}", tokenizer_config__json="{}"),
    "list": folder(tokenizer__json='{"model": {}}', tokenizer_config__json="[]"),
    "no mask": folder(
        tokenizer__json='{"model": {}}',
        tokenizer_config__json=lines([{f"{role}_token": role for role in ("cls", "sep", "unk", "pad")}]),
    ),
    "one token for two": folder(
        tokenizer__json='{"model": {}}',
        tokenizer_config__json=lines(
            [
                {"cls_token": "<s>", "sep_token": {"content": "<s>"}}
                | {f"{role}_token": role for role in ("unk", "pad", "mask")}
            ]
        ),
    ),
    "CoLA": glue("cola", {"glue/train.tsv": STS, "glue/dev.tsv": STS}),
    "SQuAD": (
        {"tasks": {"mine": {"kind": "squad", "train": "train.jsonl", "valid": "train.jsonl"}}},
        {"train.jsonl": lines(ROWS)},
    ),
}


def lay_down(config, files, folder):
    """The files, and a config over the default one, of whose studies it keeps none unless it changes one.

    What these draw and claim takes four times as long to check as all else, and no mistake in data has to do with it.
    """
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    config = config if "studies" in config else config | {"studies": {"*": None}}
    (folder / "my.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


SAID = dict(
    line.split(" => ", 1) for line in Path(__file__).with_name("bad_data.txt").read_text(encoding="utf-8").splitlines()
)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_with_file_line_and_key(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lay_down(*MISTAKES[name], tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(MaskLabError) as caught:
        opened(["my.yaml"])
    message, said = str(caught.value), SAID[name]
    assert message.startswith(said.removesuffix("...")) if said.endswith("...") else message == said
    assert "\n" not in message and sorted(tmp_path.rglob("*")) == before


FILES = {f"{number}.txt": WORDS for number in range(12)}
SHORT = {"unit": "packed", "packed_words": 3, "min_words": 10, "max_words": 60}
PACKED = {
    "a sequence of each file": text(FILES, files=["*.txt"], unit="packed", packed_words=200),
    "pieces of lines are shorter than a line may be": text(LONG, **SHORT),
}


@pytest.mark.parametrize("name", PACKED)
def test_no_packed_corpus_is_refused_that_the_job_makes(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lay_down(*PACKED[name], tmp_path)
    corpus = opened(["my.yaml"]).config.corpora["mine"]
    assert len(generate(corpus, "mine", 1)["train"]) > 0


def test_rows_that_are_not_kept_may_be_anything(tmp_path, monkeypatch):
    """As the job reads the files: it looks at the rows alone that `where` keeps, and a column of it may be empty."""
    monkeypatch.chdir(tmp_path)
    odd = [{"sentence": "", "label": -1, "in": "x"}, {"sentence": "a b", "label": 1, "in": ""}, *ROWS]
    config = labels({"test.jsonl": lines(odd)}, test="test.jsonl", where={"test": {"in": ""}})
    lay_down(*config, tmp_path)
    assert [note for note in opened(["my.yaml"]).notices if "tasks.mine" in note] == []
    splits, _ = label_files(opened(["my.yaml"]).config.tasks["mine"], "mine", 1)
    assert splits["test"]["text_a"].tolist() == ["a b"]


@pytest.mark.parametrize(("file", "between"), [("a.tsv", "\t"), ("a.csv", ",")])
def test_lines_of_blanks_are_passed_over_as_the_job_does(file, between, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [["label", "sentence"], ["0", "a film"], ["   "], ["1", "the film"], [""], ["0", "no film"], ["  "]]
    table = "".join(between.join(row) + "\n" for row in rows)
    lay_down(*labels({file: table}, train=file, valid=file), tmp_path)
    assert data.table(file).rows == read_rows(file).to_dict("records")
    assert "mine" in opened(["my.yaml"]).config.tasks


BOOK = "a text of many words " * 7000
BOOKS = {
    "texts": text({"a.jsonl": lines([{"text": BOOK}] * 20)}, files=["a.jsonl"]),
    "pairs": pairs({"pairs.jsonl": lines([{**PAIR, "sentence_good": BOOK}])}),
    "json lines": labels({"train.jsonl": lines([row | {"sentence": BOOK} for row in ROWS])}),
    "tsv": labels({"train.tsv": f"sentence\tlabel\n{BOOK}\t1\n{BOOK}\t0\n"}, train="train.tsv"),
    "csv": labels({"train.csv": f'sentence,label\n"{BOOK}",1\n{BOOK}\r.,0\n'}, train="train.csv"),
    "counted csv": both(
        labels({"train.csv": f'sentence,label\n"{BOOK}",1\n{BOOK}\r.,0\n'}, train="train.csv"),
        {"probes": {"mine": SIZES | {"sizes": [1, 2]}}},
    ),
}


@pytest.mark.parametrize("name", BOOKS)
def test_the_first_row_may_be_longer_than_what_is_looked_at(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lay_down(*BOOKS[name], tmp_path)
    opened(["my.yaml"])


ASKED = {"question": "Where?", "answers": [{"text": "Rome", "answer_start": 10}]}
SQUAD = {"data": [{"paragraphs": [{"context": "He was in Rome.", "qas": [ASKED]}]}]}


def test_a_tilde_is_the_home_of_whoever_runs_it(tmp_path, monkeypatch):
    """In the paths of every kind of entry: for the first look at the files, and for the jobs that read them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", f"{tmp_path}/home")
    tasks = {
        "answers": {"kind": "squad", "train": "~/squad.json", "valid": "~/squad.json"},
        "films": {"kind": "glue", "task": "sst2", "folder": "~/SST-2"},
        "labels": {"kind": "label-files", "train": "~/train.jsonl", "valid": "~/train.jsonl"},
        "released": {"kind": "babylm-labels", "task": "cola", "folder": "~/filter-data"},
        "pairs": {"kind": "pair-files", "files": ["~/pairs.json"]},
    }
    files = {"train.jsonl": lines(ROWS), "squad.json": json.dumps(SQUAD), "pairs.json": lines([PAIR])}
    files |= {f"SST-2/{split}.tsv": SST for split in ("train", "dev")} | {"opt/config.json": "{}", "a.txt": WORDS * 40}
    files |= {f"filter-data/glue_filtered/cola.{split}.json": lines(ROWS) for split in ("train", "validation")}
    config = {"corpora": {"mine": TEXT | {"files": ["~/*.txt"]}, "drawn": {"kind": "causal", "causal": "~/opt"}},
              "tokenizers": {"made": {"kind": "folder", "folder": "~/made"}}, "tasks": tasks}  # fmt: skip
    lay_down(config, {f"home/{name}": content for name, content in files.items()}, tmp_path)
    save_tokenizer(train([WORDS] * 30, 40), tmp_path / "home/made", 64)
    read = opened(["my.yaml"])
    assert not [note for note in read.notices if "no file matches" in note]
    for name in tasks:
        splits, _ = build(read.config.tasks[name], name, 1)
        assert len(splits["test"])
    assert renumbered(read.config.tokenizers["made"].folder)[0].get_vocab_size()
    assert read.config.corpora["drawn"].causal == f"{tmp_path}/home/opt"
    assert len(generate(read.config.corpora["mine"], "mine", 1)["train"]) == 30


def test_brackets_in_the_name_of_a_file_that_is_there_are_brackets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = ["news [2024]/a.txt", "news [2]/*.txt"]
    task = LABELS | {"train": "news [2024]/train.jsonl", "valid": "news [2024]/train.jsonl"}
    config = {"corpora": {"mine": TEXT | {"files": files}}, "tasks": {"mine": task}}
    there = {"news [2024]/a.txt": WORDS * 40, "news 2/b.txt": WORDS * 40, "news [2024]/train.jsonl": lines(ROWS)}
    lay_down(config, there, tmp_path)
    read = opened(["my.yaml"])
    assert not [note for note in read.notices if "no file matches" in note]
    assert len(generate(read.config.corpora["mine"], "mine", 1)["train"]) == 70
    assert len(build(read.config.tasks["mine"], "mine", 1)[0]["train"]) == 20


def test_brackets_in_the_name_of_a_folder_that_is_there_are_brackets(tmp_path, monkeypatch):
    """Below it all else is as below any other: patterns, and names of files that are not there."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my [data]"
    lay_down({}, {f"my [data]/{name}": "" for name in ("a.txt", "b.txt", "x/c.txt")}, tmp_path)
    for start in (folder, "my [data]"):
        assert expand(f"{start}/*.txt") == [f"{start}/a.txt", f"{start}/b.txt"]
        assert expand(f"{start}/**/[bc].txt") == [f"{start}/b.txt", f"{start}/x/c.txt"]
        assert expand(f"{start}/nosuch.txt") == [f"{start}/nosuch.txt"] and expand(f"{start}/no*.txt") == []
    (tmp_path / "a").mkdir()
    (tmp_path / "a/c.txt").touch()
    assert expand("[ab]/*.txt") == ["a/c.txt"] and expand("*.txt") == [] and expand("**/c.txt")[0] == "a/c.txt"


def test_a_causal_model_lies_in_the_folder_of_data_as_other_paths_do(tmp_path, monkeypatch):
    """But an entry of `causal_models`, and what is on the hub alone."""
    monkeypatch.chdir(tmp_path)
    names = {"folder": "models/opt", "hub": "facebook/opt-125m", "entry": "lm"}
    config = {
        "data": "data",
        "corpora": {"mine": TEXT} | {name: {"kind": "causal", "causal": causal} for name, causal in names.items()},
        "tokenizers": {"mine": {"corpus": "mine"}},
        "causal_models": {"lm": {"corpus": "mine", "tokenizer": "mine", "steps": 1}},
    }
    lay_down(config, {"data/models/opt/config.json": "{}", "data/lm/config.json": "{}"}, tmp_path)
    found = opened(["my.yaml"]).config.corpora
    assert {name: found[name].causal for name in names} == names | {"folder": "data/models/opt"}
