import gzip
import json
import logging
import lzma

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from masklab.config.data import is_kept, row_count, table
from masklab.config.schema import LabelFiles, PairFiles
from masklab.errors import MaskLabError
from masklab.files import read_json, sha256
from masklab.tasks import build, write_task

SPLITS = ("train", "valid", "test")
ROWS = [
    {"sentence": "Good one.", "label": 1},
    {"sentence": "Bad one.", "label": 0},
    {"sentence": 'An "odd one.', "label": 1},
]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def labels(train, valid, **keys):
    return LabelFiles(kind="label-files", train=str(train), valid=str(valid), **keys)


def pair(number, **keys):
    return {"sentence_good": f"good {number}", "sentence_bad": f"bad {number}", **keys}


# --- labelled files ----------------------------------------------------------


def as_json(rows, path):
    return write(path, rows)


def as_tsv(rows, path):
    lines = ["label\tsentence", *(f"{row['label']}\t{row['sentence']}" for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def as_parquet(rows, path):
    pd.DataFrame(rows).to_parquet(path)
    return path


def as_csv(rows, path):
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("writer", "suffix"),
    [(as_json, ".jsonl"), (as_json, ".json"), (as_tsv, ".tsv"), (as_csv, ".csv"), (as_parquet, ".parquet")],
)
@pytest.mark.parametrize("compression", ["", ".gz", ".xz"])
def test_every_format_gives_the_same_task(tmp_path, writer, suffix, compression):
    path = writer(ROWS, tmp_path / f"a{suffix}")
    if compression:
        packed = tmp_path / f"a{suffix}{compression}"
        packed.write_bytes((gzip if compression == ".gz" else lzma).compress(path.read_bytes()))
        path = packed
    assert [row["sentence"] for row in table(str(path)).rows] == [row["sentence"] for row in ROWS]  # by `masklab check`
    assert suffix != ".parquet" or row_count(str(path)) == 3
    splits, facts = build(labels(path, path, metric="mcc"), "t", 1)
    for split in ("train", "valid", "test"):
        assert splits[split]["text_a"].tolist() == [row["sentence"] for row in ROWS]
        assert splits[split]["label"].tolist() == [1, 0, 1] and splits[split]["label"].dtype == "int64"
        assert splits[split]["text_b"].isna().all()
    rows = {"train": 3, "valid": 3, "test": 3}
    assert facts == {"kind": "labels", "labels": 2, "names": [0, 1], "pair": False, "metric": "mcc", "rows": rows}


def test_tsv_without_header(tmp_path):
    (tmp_path / "cola.tsv").write_text('gj04\t1\t\tA fine "one.\ngj04\t0\t*\tA one fine.\n')
    config = labels(tmp_path / "cola.tsv", tmp_path / "cola.tsv", columns=["source", "label", "star", "sentence"])
    splits, _ = build(config, "t", 1)
    assert splits["train"]["text_a"].tolist() == ['A fine "one.', "A one fine."]
    assert splits["train"]["label"].tolist() == [1, 0]


@pytest.mark.parametrize(("suffix", "between"), [("tsv", "\t"), ("csv", ",")])
def test_a_carriage_return_within_a_line_ends_no_row(tmp_path, suffix, between):
    path = tmp_path / f"a.{suffix}"
    rows = [("sentence", "label"), ("One\rof two.", "1"), ("Another.", "0")]
    path.write_bytes("".join(between.join(row) + "\r\n" for row in rows).encode())
    train = build(labels(path, path), "t", 1)[0]["train"]
    assert train["text_a"].tolist() == ["One\rof two.", "Another."] and train["label"].tolist() == [1, 0]
    seen = [row["sentence"] for row in table(str(path)).rows]  # by `masklab check`
    assert seen == ["One\rof two." if suffix == "tsv" else "One of two.", "Another."]


@pytest.mark.parametrize("twice", ["sentence", "label", "kind"])
def test_a_column_that_is_there_twice_is_refused_where_it_is_read(tmp_path, twice):
    path = tmp_path / "a.tsv"
    path.write_text(f"sentence\tlabel\tkind\t{twice}\nA.\t1\tx\t0\nB.\t0\tx\t0\n")
    with pytest.raises(MaskLabError, match=rf"a\.tsv: several columns are called '{twice}'; columns: sentence, label"):
        build(labels(path, path, where={"train": {"kind": "x"}}), "t", 1)
    path.write_text("sentence\tlabel\tmore\tmore\nA.\t1\tx\t0\nB.\t0\tx\t0\n")
    assert build(labels(path, path), "t", 1)[1]["rows"]["train"] == 2


def test_pairs_with_named_labels_are_sorted(tmp_path):
    path = tmp_path / "rte.tsv"
    path.write_text(
        "index\tsentence1\tsentence2\tlabel\n0\tA man.\tA dog.\tnot_entailment\n1\tA cat.\tA pet.\tentailment\n"
    )
    splits, facts = build(labels(path, path, text_a="sentence1", text_b="sentence2"), "rte", 1)
    assert facts["names"] == ["entailment", "not_entailment"] and facts["pair"]
    assert splits["train"][["text_a", "text_b", "label"]].values.tolist() == [
        ["A man.", "A dog.", 1],
        ["A cat.", "A pet.", 0],
    ]


def test_templates_and_nested_fields(tmp_path):
    rows = [
        {"text": "Ann saw Bea {there}.", "target": {"span1": "Ann", "span2": 7}, "label": value}
        for value in (True, False)
    ]
    path = write(tmp_path / "wsc.jsonl", rows)
    template = 'Does "{target.span2}" refer to "{target.span1}" in this passage?'
    splits, _ = build(labels(path, path, text_a=template, text_b="text"), "wsc", 1)
    assert splits["test"].iloc[0].tolist() == ['Does "7" refer to "Ann" in this passage?', "Ann saw Bea {there}.", 1]
    assert splits["test"]["label"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("written", "expected"),
    [([0.0, 1.0, 2.0], [0, 1, 2]), (["0", "10", "9"], [0, 2, 1]), (["b", "a", "c"], [1, 0, 2]), ([5, 3, 5], [1, 0, 1])],
)
def test_labels_become_numbers_in_sorted_order(tmp_path, written, expected):
    path = write(tmp_path / "a.jsonl", [{"sentence": "x", "label": label} for label in written])
    assert build(labels(path, path), "t", 1)[0]["train"]["label"].tolist() == expected


@pytest.mark.parametrize(("positive", "expected"), [(None, ["ham", "spam"]), ("spam", ["ham", "spam"]),
                                                    ("ham", ["spam", "ham"])])  # fmt: skip
def test_the_label_that_f1_looks_for_is_class_1(tmp_path, positive, expected):
    path = write(tmp_path / "a.jsonl", [{"sentence": "x", "label": label} for label in ("spam", "ham", "ham")])
    splits, facts = build(labels(path, path, metric="f1", positive=positive), "t", 1)
    assert facts["names"] == expected and facts["positive"] == expected[1]
    for split in SPLITS:
        assert [expected[number] for number in splits[split]["label"]] == ["spam", "ham", "ham"]
    assert "positive" not in build(labels(path, path), "t", 1)[1], "without F1 nothing is looked for"


@pytest.mark.parametrize(("written", "positive"), [([0, 1], "0"), (["0", "1"], 0), ([False, True], False)])
def test_a_positive_number_is_one_however_it_is_written(tmp_path, written, positive):
    path = write(tmp_path / "a.jsonl", [{"sentence": "x", "label": label} for label in written])
    assert build(labels(path, path, metric="f1", positive=positive), "t", 1)[1]["names"] == [1, 0]


@pytest.mark.parametrize(
    ("written", "positive", "said"),
    [
        (["ham", "spam"], "Spam", "no label 'Spam'; labels: ham, spam"),
        (["no", "yes"], True, "no label True; labels: no, yes; write a word in quotes"),
        (["a", "b", "c"], "a", "F1 looks for one class of two, and there are 3 labels"),
    ],
)
def test_a_positive_that_cannot_be_looked_for(tmp_path, written, positive, said):
    path = write(tmp_path / "a.jsonl", [{"sentence": "x", "label": label} for label in written])
    with pytest.raises(MaskLabError) as caught:
        build(labels(path, path, metric="f1", positive=positive), "t", 1)
    assert str(caught.value) == f"tasks.t.positive: {path}: {said}"


@pytest.mark.parametrize("as_text", [False, True])
def test_labels_of_many_digits_stay_apart(tmp_path, as_text):
    """Beyond what a float tells apart, and beyond what it holds."""
    numbers = [2**53 + 1, 2**53, 10**400]
    written = [str(number) if as_text else number for number in numbers]
    path = write(tmp_path / "a.jsonl", [{"sentence": "x", "label": label} for label in written])
    splits, facts = build(labels(path, path), "t", 1)
    assert facts["names"] == sorted(numbers) and splits["train"]["label"].tolist() == [1, 0, 2]


@pytest.mark.parametrize(("texts", "got"), [([b"a", b"b"], "bytes"), ([{"a": "x"}, {"a": "y"}], "an object")])
def test_a_column_that_holds_no_text_is_refused(tmp_path, texts, got):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"sentence": texts, "label": [0, 1]}), path)
    with pytest.raises(MaskLabError, match=rf"a\.parquet: row 1: 'sentence' must be text \(got {got}\)"):
        build(labels(path, path), "t", 1)


def test_separate_test_split_and_limit(tmp_path):
    rows = [{"sentence": f"s{i}", "label": i % 2} for i in range(50)]
    train, test = write(tmp_path / "a.jsonl", rows), write(tmp_path / "b.jsonl", rows[:7])
    config = labels(train, train, test=str(test), limit=20)
    splits, facts = build(config, "t", 1)
    assert facts["rows"] == {"train": 20, "valid": 50, "test": 7}
    drawn = [int(text[1:]) for text in splits["train"]["text_a"]]
    assert drawn == sorted(drawn) and drawn != list(range(20))
    assert splits["train"]["label"].tolist() == [i % 2 for i in drawn]
    assert build(config, "t", 1)[0]["train"].equals(splits["train"])
    assert not build(config.model_copy(update={"seed": 2}), "t", 1)[0]["train"].equals(splits["train"])


def test_held_out_rows_are_capped_and_drawn_alike_from_one_file(tmp_path):
    rows = [{"sentence": f"s{i}", "label": i % 2} for i in range(50)]
    whole, few = write(tmp_path / "a.jsonl", rows), write(tmp_path / "b.jsonl", rows[:7])
    splits, facts = build(labels(whole, whole, limit_held_out=20), "t", 1)
    assert facts["rows"] == {"train": 50, "valid": 20, "test": 20} and splits["valid"].equals(splits["test"])
    drawn = [int(text[1:]) for text in splits["test"]["text_a"]]
    assert drawn == sorted(set(drawn)) and drawn != list(range(20))
    assert splits["test"]["label"].tolist() == [i % 2 for i in drawn]
    splits, facts = build(labels(whole, whole, test=str(few), limit=30, limit_held_out=7), "t", 1)
    assert facts["rows"] == {"train": 30, "valid": 7, "test": 7} and splits["test"]["text_a"].tolist()[6] == "s6"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"sentence": "x", "label": -1}] * 2, "train split of tasks.t has no labels"),
        ([{"sentence": "x", "label": 1}, {"sentence": "x", "label": -1}], r"row 2: no label \(-1\)"),
        ([{"sentence": "x", "label": 1}, {"sentence": None, "label": 0}], "row 2: 'sentence' is missing"),
        ([{"sentence": "x", "label": 1}, {"label": 0}], "row 2: 'sentence' is missing"),
        ([{"sentence": "x", "label": 1}, {"sentence": " ", "label": 0}], "row 2: 'sentence' is empty"),
        ([{"sentence": "x", "label": 1}, {"sentence": "y"}], "row 2: 'label' is missing"),
        ([{"text": "x", "label": 1}], "no column 'sentence'; columns: text, label"),
        ([{"sentence": "x", "label": 1}, {"sentence": ["y"], "label": 0}], "row 2: 'sentence' must be text"),
        ([{"sentence": "x", "label": 0.5}], "row 1: label 0.5 is not a class"),
        ([{"sentence": "x", "label": "v.5"}, {"sentence": "x", "label": "-.50"}], "row 2: label '-.50' is not a class"),
        (
            [{"sentence": "x", "label": 0}, {"sentence": "x", "label": "1"}, {"sentence": "x", "label": "yes"}],
            "row 3: label 'yes'; row 1 has 0: all must be numbers, or all words",
        ),
        ([{"sentence": "x", "label": 1}] * 3, "every row has the label 1"),
        ([], "no rows"),
    ],
)
def test_bad_labelled_rows(tmp_path, rows, said):
    path = write(tmp_path / "a.jsonl", rows)
    with pytest.raises(MaskLabError, match=rf"a\.jsonl: .*{said}|a\.jsonl: {said}"):
        build(labels(path, path), "t", 1)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_whole_number_is_one_where_other_rows_have_none(tmp_path, suffix):
    """pandas makes 1.0 of it, which is not the 1 of `where`, nor what a text says."""
    rows = [{"sentence": text, "label": label, "fold": 1} for text, label in (("a", 1), ("b", 0))]
    rows += [{"sentence": "c", "label": 0, "fold": None}, {"sentence": "d", "label": 0, "fold": 2}]
    path = tmp_path / f"a{suffix}"
    pq.write_table(pa.Table.from_pylist(rows), path) if suffix == ".parquet" else write(path, rows)
    config = labels(path, path, where={split: {"fold": 1} for split in SPLITS}, text_a="{sentence} {fold}")
    splits, _ = build(config, "t", 1)
    assert [splits[split]["text_a"].tolist() for split in SPLITS] == [["a 1", "b 1"]] * 3


@pytest.mark.parametrize("wanted", [1, 1.0, [3, 1]])
def test_a_column_of_fractions_holds_the_whole_numbers_of_where(tmp_path, wanted):
    """As pandas writes a column of whole numbers of which one is missing; text stays what it says."""
    pd.DataFrame([row | {"fold": 1.0} for row in ROWS] + [ROWS[0] | {"fold": 1.5}]).to_parquet(tmp_path / "a.parquet")
    config = labels(*[tmp_path / "a.parquet"] * 2, where={split: {"fold": wanted} for split in SPLITS})
    assert len(build(config, "t", 1)[0]["train"]) == len(ROWS)
    assert not is_kept({"version": "1.0"}, {"version": "1"}) and is_kept({"version": "1.0"}, {"version": 1.0})


@pytest.mark.parametrize("index", ["sentence", "label", ["label", "sentence"]])
def test_a_column_that_was_an_index_of_pandas_is_a_column(tmp_path, index):
    pd.DataFrame(ROWS).set_index(index).to_parquet(tmp_path / "a.parquet")
    splits, _ = build(labels(tmp_path / "a.parquet", tmp_path / "a.parquet"), "t", 1)
    assert splits["test"]["text_a"].tolist() == [row["sentence"] for row in ROWS]
    assert splits["test"]["label"].tolist() == [1, 0, 1]


def test_unlabelled_or_unseen_test_rows(tmp_path):
    train = write(tmp_path / "a.jsonl", ROWS)
    hidden = write(tmp_path / "hidden.jsonl", [{"sentence": "x", "label": -1}])
    with pytest.raises(MaskLabError, match=r"hidden\.jsonl: test split of tasks.t has no labels \(-1"):
        build(labels(train, train, test=str(hidden)), "t", 1)
    unseen = write(tmp_path / "unseen.jsonl", [ROWS[0], {"sentence": "x", "label": 2}])
    with pytest.raises(MaskLabError, match=r"unseen\.jsonl: row 2: label 2 does not occur in training"):
        build(labels(train, train, test=str(unseen)), "t", 1)


def test_bad_tables(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("1\tx\n0\ty\tz\n")
    with pytest.raises(MaskLabError, match=r"a\.tsv: cannot be read \(.*line 2"):
        build(labels(path, path, columns=["label", "sentence"]), "t", 1)
    path.write_text("1\tx\n0\ty\n")
    with pytest.raises(MaskLabError, match="2 columns, but `columns` names 3"):
        build(labels(path, path, columns=["label", "sentence", "more"]), "t", 1)
    path.write_text("1\tx\n0\n")
    with pytest.raises(MaskLabError, match="row 2: 'sentence' is empty"):
        build(labels(path, path, columns=["label", "sentence"]), "t", 1)
    path.write_bytes(b"label\tsentence\n1\t\xff\n")
    with pytest.raises(MaskLabError, match=r"a\.tsv: line 2: not valid UTF-8"):
        build(labels(path, path), "t", 1)
    with pytest.raises(MaskLabError, match=r"absent\.tsv: no such file"):
        build(labels(tmp_path / "absent.tsv", path), "t", 1)
    with pytest.raises(MaskLabError, match=r"a\.txt: unknown format"):
        build(labels(tmp_path / "a.txt", path), "t", 1)


# --- minimal pairs -----------------------------------------------------------


def test_pairs_are_grouped_by_term_or_file(tmp_path):
    rows = [
        pair(0, linguistics_term="binding", UID="c_command"),
        pair(1, linguistics_term="s-selection", UID="animate"),
    ]
    write(tmp_path / "a.json", rows)
    (tmp_path / "hypernym.jsonl.gz").write_bytes(gzip.compress(json.dumps(pair(2)).encode()))
    config = PairFiles(kind="pair-files", files=[str(tmp_path / "*.json"), str(tmp_path / "*.gz")])
    splits, facts = build(config, "blimp", 1)
    assert list(splits) == ["test"]
    expected = [
        ["binding", "c_command", "good 0", "bad 0"],
        ["argument_structure", "animate", "good 1", "bad 1"],
        ["hypernym", "hypernym", "good 2", "bad 2"],
    ]
    assert splits["test"].values.tolist() == expected
    assert facts == {"kind": "pairs", "phenomena": {"binding": 1, "argument_structure": 1, "hypernym": 1}}
    by_file, _ = build(config.model_copy(update={"group_by": "file"}), "blimp", 1)
    assert by_file["test"]["phenomenon"].tolist() == ["a", "a", "hypernym"]


def test_pair_limit_is_per_file_and_random(tmp_path):
    for name in "ab":
        write(tmp_path / f"{name}.jsonl", [pair(i) for i in range(100)])
    config = PairFiles(kind="pair-files", files=[str(tmp_path / "*.jsonl")], limit=10)
    frame = build(config, "blimp", 1)[0]["test"]
    assert frame["phenomenon"].value_counts().to_dict() == {"a": 10, "b": 10}
    numbers = [int(text.split()[1]) for text in frame["good"]]
    assert numbers[:10] == sorted(numbers[:10]) and numbers[:10] != list(range(10)) and numbers[:10] != numbers[10:]
    assert build(config, "blimp", 1)[0]["test"].equals(frame)


def test_pairs_of_equal_sentences_are_counted_in_the_log(tmp_path, caplog):
    write(tmp_path / "a.jsonl", [pair(0), pair(1) | {"sentence_bad": "good 1"}, pair(2)])
    with caplog.at_level(logging.WARNING, "masklab"):
        build(PairFiles(kind="pair-files", files=[str(tmp_path / "a.jsonl")]), "t", 1)
    assert "tasks.t: 1 of 3 pairs have equal sentences" in caplog.text


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([pair(0), {"sentence_good": "x"}], "line 2: no field 'sentence_bad'; fields: sentence_good"),
        ([{"sentence_good": "", "sentence_bad": "y"}], "line 1: 'sentence_good' is empty; a pair"),
        ([pair(0), pair(1) | {"sentence_bad": 3}], "line 2: 'sentence_bad' must be text .got 3."),
        ([pair(0), pair(1) | {"UID": 5}], "line 2: 'UID' must be text .got 5."),
        ([pair(0) | {"linguistics_term": ["x"]}], "line 1: 'linguistics_term' must be text"),
        (
            [{"Context1": "a b", "Target1": "c", "Target2": "d", "Domain": True}],
            "line 1: 'Domain' must be text .got True.",
        ),
        ([], "no pairs"),
    ],
)
def test_bad_pairs(tmp_path, rows, said):
    write(tmp_path / "a.jsonl", rows)
    with pytest.raises(MaskLabError, match=said):
        build(PairFiles(kind="pair-files", files=[str(tmp_path / "a.jsonl")]), "t", 1)
    with pytest.raises(MaskLabError, match=r"tasks\.t\.files: .* matches no file"):
        build(PairFiles(kind="pair-files", files=[str(tmp_path / "*.none")]), "t", 1)


# --- the artifact ------------------------------------------------------------


def test_written_task_reads_back(tmp_path):
    path = write(tmp_path / "a.jsonl", ROWS)
    splits, facts = build(labels(path, path), "t", 1)
    write_task(tmp_path / "t", splits, facts)
    assert read_json(tmp_path / "t/task.json") == facts | {
        "sha256": {split: sha256(tmp_path / f"t/{split}.parquet") for split in splits}
    }
    assert sorted(p.name for p in (tmp_path / "t").iterdir()) == [
        "task.json",
        "test.parquet",
        "train.parquet",
        "valid.parquet",
    ]
    frame = pd.read_parquet(tmp_path / "t/test.parquet")
    assert list(frame.columns) == ["text_a", "text_b", "label"] and frame["text_b"].isna().all()
    assert frame["text_a"].tolist() == splits["test"]["text_a"].tolist()
