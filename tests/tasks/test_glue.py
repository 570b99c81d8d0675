"""GLUE's files in their own formats, and SQuAD's; what `datasets` gives is replaced by frames of its form."""

import gzip
import json
import sys
import types

import numpy as np
import pandas as pd
import pytest

from masklab.config import read
from masklab.config.schema import GlueTask, SquadTask
from masklab.errors import MaskLabError
from masklab.plan.text_sizes import benchmark_sizes
from masklab.scores.facts import task_facts
from masklab.tasks import build, write_task
from masklab.tasks.glue import FORMS
from masklab.tasks.squad import read_squad

# The columns of GLUE's files, in their order; the values of one row, label last by name.
TSV = {
    "sst2": ("sentence\tlabel", "it's \"charming\t1", "dull \t0"),
    "mrpc": ("\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", '1\t7\t8\tHe ran.\tHe "did.', "0\t1\t2\tA.\tB."),
    "stsb": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
        "0\tnews\tf\t2012\t1\tn\tn\tA plane.\tA jet.\t3.8",
        "1\tnews\tf\t2012\t1\tn\tn\tA cat.\tA stone.\t0.000",
    ),
    "qqp": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "1\t2\t3\tWhy?\tWhy so?\t1", "4\t5\t6\tA?\tB?\t0"),
    "mnli": (
        "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence1\tsentence2\tlabel1\tgold_label",
        "0\t1\t2\tx\t( a )\tIt rains.\tIt is wet.\tneutral\tentailment",
        "1\t1\t2\tx\t( a )\tIt rains.\tIt is dry.\tneutral\tcontradiction",
    ),
    "qnli": ("index\tquestion\tsentence\tlabel", "0\tWho?\tHe.\tentailment", "1\tWho?\tYes.\tnot_entailment"),
    "rte": ("index\tsentence1\tsentence2\tlabel", "0\tA.\tB.\tentailment", "1\tA.\tC.\tnot_entailment"),
}


@pytest.fixture
def folder(tmp_path):
    def write(task, *extra):
        names = ("dev_matched", "dev_mismatched") if task == "mnli" else ("dev",)
        lines = ["gj04\t1\t\tShe ran.", "gj04\t0\t*\tRan she."] if task == "cola" else TSV[task]
        for name in ("train", *names):
            more = extra if name == "train" else ()
            (tmp_path / f"{name}.tsv").write_text("\n".join([*lines, *more]) + "\n", encoding="utf-8")
        return GlueTask(kind="glue", task=task, folder=str(tmp_path))

    return write


@pytest.mark.parametrize("task", FORMS)
def test_what_tables_report_is_what_the_best_model_is_chosen_by(task):
    assert GlueTask(kind="glue", task=task).own_metric == FORMS[task].metric
    config = read(values=[f"tasks={{mine: {{kind: glue, task: {task}}}}}"])
    assert task_facts(config, "mine")["metric"] == FORMS[task].metric


def test_every_task_in_its_own_format(folder, tmp_path):
    for task in FORMS:
        splits, facts = build(folder(task), "t", 1)
        assert facts["metric"] == {"cola": "mcc", "stsb": "spearman"}.get(task, "accuracy")
        assert facts["pair"] == (task not in ("cola", "sst2")) and set(facts["rows"].values()) <= {2, 4}
        for frame in splits.values():
            assert frame["text_b"].notna().all() == facts["pair"] and frame["text_a"].notna().all()
        labels = splits["train"]["label"].tolist()
        expected = {"stsb": [3.8, 0.0], "mnli": [0, 2]}
        assert labels == expected.get(task, [0, 1] if task in ("qnli", "rte") else [1, 0]), task
        write_task(tmp_path / "out" / task, splits, facts)
    splits, facts = build(folder("sst2"), "t", 1)
    assert splits["train"]["text_a"][0] == "it's \"charming"  # quotes are plain text
    splits, facts = build(folder("mnli"), "t", 1)
    assert splits["test"]["domain"].tolist() == ["matched"] * 2 + ["mismatched"] * 2 and len(splits["valid"]) == 2
    assert facts["names"] == ["entailment", "neutral", "contradiction"]
    assert folder("mnli").files[1:] == [f"{tmp_path}/dev_matched.tsv", f"{tmp_path}/dev_mismatched.tsv"]


def test_cut_lines_are_left_out_and_wrong_labels_are_named(folder, tmp_path, caplog):
    splits, _ = build(folder("qqp", "7\t8\t9\tWhy"), "t", 1)
    assert len(splits["train"]) == 2 and "1 of 3 rows are incomplete" in caplog.text
    with pytest.raises(MaskLabError, match=r"train.tsv: row 3: label 'maybe'; allowed: entailment, not_ent"):
        build(folder("rte", "2\tA.\tB.\tmaybe"), "t", 1)
    with pytest.raises(MaskLabError, match=r"train.tsv: row 4: label '7'; allowed: 0, 1"):  # rows left out count
        build(folder("qqp", "7\t8\t9\tWhy", "7\t8\t9\tA?\tB?\t7"), "t", 1)
    with pytest.raises(MaskLabError, match=r"row 3: label '5.5'; allowed: 0 to 5"):
        build(folder("stsb", "2\tn\tf\t1\t1\tn\tn\tA.\tB.\t5.5"), "t", 1)
    task = folder("stsb")
    (tmp_path / "dev.tsv").write_text("\n".join([*TSV["stsb"][:2], TSV["stsb"][1]]) + "\n", encoding="utf-8")
    with pytest.raises(MaskLabError, match=r"dev.tsv: every row has the score 3.8; ratings need at least two"):
        build(task, "t", 1)
    task = folder("rte")
    with pytest.raises(MaskLabError, match="no column 'question1'; columns: index, sentence1"):
        build(task.model_copy(update={"task": "qqp"}), "t", 1)


def test_by_name(monkeypatch):
    """The frames that `datasets` gives, in its columns and label numbers."""
    asked = []

    def load_dataset(name, config, split):
        asked.append((name, config, split))
        if config == "stsb":
            frame = pd.DataFrame({"sentence1": ["A"] * 2, "sentence2": ["B"] * 2, "label": [2.5, 0.0], "idx": [0, 1]})
        elif config is None:
            answers = [{"text": ["cat"], "answer_start": [2]}, {"text": [], "answer_start": []}]
            frame = pd.DataFrame({"question": [" Who?", "Why?"], "context": ["A cat.", "A cat."], "answers": answers})
        elif config == "rte":  # labels that are withheld
            frame = pd.DataFrame({"sentence1": ["A", "A"], "sentence2": ["B", "B"], "label": [1, -1]})
        else:
            frame = pd.DataFrame({"premise": ["A"], "hypothesis": ["B"], "label": [2], "idx": [0]})
        return types.SimpleNamespace(to_pandas=lambda: frame)

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    splits, _ = build(GlueTask(kind="glue", task="mnli"), "t", 1)
    assert splits["test"]["label"].tolist() == [2, 2]
    splits, facts = build(GlueTask(kind="glue", task="stsb"), "t", 1)
    assert splits["train"]["label"].tolist() == [2.5, 0.0] and facts["kind"] == "ratings"
    splits, facts = build(SquadTask(kind="squad"), "t", 1)
    assert splits["test"]["answers"].tolist() == [["cat"], []] and splits["train"]["question"][0] == "Who?"
    assert ("nyu-mll/glue", "mnli", "validation_mismatched") in asked
    assert ("rajpurkar/squad_v2", None, "validation") in asked

    with pytest.raises(MaskLabError, match=r"nyu-mll/glue: row 2: label -1; allowed: entailment, not_entailment"):
        build(GlueTask(kind="glue", task="rte"), "t", 1)

    def broken(*_, **__):
        raise ConnectionError("no\nnetwork")

    monkeypatch.setattr(sys.modules["datasets"], "load_dataset", broken)
    with pytest.raises(MaskLabError, match=r"tasks.t: cannot load nyu-mll/glue \(ConnectionError: no network\)"):
        build(GlueTask(kind="glue", task="rte"), "t", 1)


def test_squad_files(tmp_path):
    paragraph = {
        "context": "The cat ran.",
        "qas": [
            {"id": "1", "question": " Who ran?", "answers": [{"text": "The cat", "answer_start": 0}]},
            {"id": "2", "question": "Who sat?", "answers": [], "is_impossible": True,
             "plausible_answers": [{"text": "cat", "answer_start": 4}]},
        ],
    }  # fmt: skip
    path = tmp_path / "dev-v2.0.json"
    path.write_text(json.dumps({"version": "v2.0", "data": [{"title": "t", "paragraphs": [paragraph]}]}))
    splits, facts = build(SquadTask(kind="squad", train=str(path), valid=str(path), limit=1), "t", 1)
    assert facts == {"kind": "spans", "metric": "f1", "rows": {"train": 1, "valid": 2, "test": 2}}
    assert splits["valid"].to_dict("records") == [
        {"question": "Who ran?", "context": "The cat ran.", "answers": ["The cat"], "starts": [0]},
        {"question": "Who sat?", "context": "The cat ran.", "answers": [], "starts": []},
    ]
    write_task(tmp_path / "out", splits, facts)
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": "x", "qas": [{"id": "1"}]}]}]}))
    with pytest.raises(MaskLabError, match="question 1: not SQuAD's format"):
        build(SquadTask(kind="squad", train=str(path), valid=str(path)), "t", 1)
    with pytest.raises(ValueError, match="given together"):
        SquadTask(kind="squad", train="x")


QUESTION = {"question": "Who?", "answers": [{"text": "cat", "answer_start": 2}]}


@pytest.mark.parametrize(
    ("context", "second", "said"),
    [
        ("A cat.", {"question": 5, "answers": []}, "question 2: not SQuAD's format"),
        ("A cat.", "Who?", "question 2: not SQuAD's format"),
        (7, QUESTION, r"question 1: 'context' must be text \(got 7\)"),
        ("A cat.", QUESTION | {"answers": [{"text": 5, "answer_start": 2}]}, r"2: 'text' of an answer .* \(got 5\)"),
        ("A cat.", QUESTION | {"answers": [{"text": "cat", "answer_start": "2"}]}, r"0 to 5 \(got '2'\)"),
        ("A cat.", QUESTION | {"answers": [{"text": "cat", "answer_start": 6}]}, r"0 to 5 \(got 6\)"),
        ("A cat.", QUESTION | {"is_impossible": "false"}, r"2: 'is_impossible' must be true or false \(got 'false'\)"),
    ],
)
def test_bad_questions(tmp_path, context, second, said):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": [QUESTION, second]}]}]}))
    with pytest.raises(MaskLabError, match=rf"a\.json: .*{said}"):
        build(SquadTask(kind="squad", train=str(path), valid=str(path)), "t", 1)


def squad_file(path, context, start):
    """A file of one question, whose answer `cat` is said to begin at `start`."""
    question = {"question": "Who?", "answers": [{"text": "cat", "answer_start": start}]}
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": [question]}]}]}))
    return path


@pytest.mark.parametrize(("start", "found"), [(0, 2), (1, 2), (2, 2), (4, 2), (11, 13), (13, 13), (14, 13)])
def test_an_answer_that_lies_beside_its_place_is_moved_there(tmp_path, start, found):
    path = squad_file(tmp_path / "a.json", "A cat sat, a cat ran.", start)
    assert read_squad(path)["starts"].tolist() == [[found]]


@pytest.mark.parametrize("start", [5, 8, 16])
def test_an_answer_that_stands_nowhere_near_is_named(tmp_path, start):
    path = squad_file(tmp_path / "a.json", "A cat sat, a cat ran.", start)
    said = rf"a\.json: question 1: the answer 'cat' does not stand within 2 characters of 'answer_start', {start}$"
    with pytest.raises(MaskLabError, match=said):
        read_squad(path)


def test_answers_by_name_are_moved_and_named_alike(monkeypatch):
    answers = {"text": np.array(["cat"], object), "answer_start": np.array([3], np.int32)}
    frame = pd.DataFrame({"question": ["Who?"], "context": ["A cat."], "answers": [answers]})
    monkeypatch.setattr("masklab.tasks.squad.hub_split", lambda *_: frame)
    splits, _ = build(SquadTask(kind="squad"), "t", 1)
    assert splits["train"]["starts"].tolist() == [[2]] and splits["train"]["answers"].tolist() == [["cat"]]
    answers["answer_start"][0] = 5
    with pytest.raises(MaskLabError, match=r"rajpurkar/squad_v2: train: row 1: the answer 'cat' does not stand"):
        build(SquadTask(kind="squad"), "t", 1)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_byte_order_mark_before_squad_compressed_or_not(tmp_path, suffix):
    path = tmp_path / f"a.json{suffix}"
    text = json.dumps({"data": [{"paragraphs": [{"context": "A cat.", "qas": [QUESTION]}]}]})
    raw = text.encode("utf-8-sig")
    path.write_bytes(gzip.compress(raw) if suffix else raw)
    task = SquadTask(kind="squad", train=str(path), valid=str(path))
    assert len(build(task, "t", 1)[0]["train"]) == 1 and benchmark_sizes(task) == (1, 1, 1)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(MaskLabError, match=r"a\.json(\.gz: cannot be read \(|: not valid JSON \()"):
        build(task, "t", 1)
