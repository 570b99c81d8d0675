"""The evaluation data of the BabyLM challenges as they lie in their folders, in files of their formats."""

import json
import logging

import pandas as pd
import pytest

from masklab.config.schema import BabylmLabels, BabylmPairs, LabelFiles, entry
from masklab.errors import MaskLabError
from masklab.tasks import build
from masklab.tasks.pair_files import as_released

AMBIGUOUS = [("train", 0), ("train", 1), ("control", 0), ("control", 1), ("test", 0), ("test", 1), ("test", 1)]


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def task(kind, folder, name, **keys):
    return entry("tasks", {"kind": f"babylm-{kind}", "folder": str(folder), "task": name, **keys})


def msgs(folder, name="main_verb_lexical_content_the"):
    rows = [{"sentence": f"s{n}", "label": label, "condition": name} for n, (name, label) in enumerate(AMBIGUOUS)]
    write(folder / f"msgs_filtered/{name}.train.json", rows[:2])
    write(folder / f"msgs_filtered/{name}.validation.json", rows[2:])
    return task("labels", folder, name)


# --- labels --------------------------------------------------------------------


def test_msgs_selects_on_all_rows_and_is_scored_on_those_of_the_test_condition(tmp_path):
    splits, facts = build(msgs(tmp_path), "msgs", 1)
    assert splits["valid"]["text_a"].tolist() == ["s2", "s3", "s4", "s5", "s6"]
    assert splits["test"]["text_a"].tolist() == ["s4", "s5", "s6"] and splits["test"]["label"].tolist() == [0, 1, 1]
    assert facts["metric"] == "mcc" and facts["rows"] == {"train": 2, "valid": 5, "test": 3}


@pytest.mark.parametrize(
    ("name", "row", "first", "second", "metric"),
    [
        ("boolq", {"question": "is it", "passage": "It is."}, "is it", "It is.", "accuracy"),
        ("cola", {"sentence": "It is."}, "It is.", None, "mcc"),
        ("mnli", {"premise": "p", "hypothesis": "h"}, "p", "h", "accuracy"),
        ("mrpc", {"sentence1": "a", "sentence2": "b"}, "a", "b", "f1"),
        ("multirc", {"paragraph": "p", "question": "q", "answer": "a"}, "Question: q Answer: a", "p", "accuracy"),
        ("qnli", {"question": "q", "sentence": "s"}, "q", "s", "accuracy"),
        ("qqp", {"question1": "a", "question2": "b"}, "a", "b", "f1"),
        ("rte", {"sentence1": "a", "sentence2": "b"}, "a", "b", "accuracy"),
        ("sst2", {"sentence": "good"}, "good", None, "accuracy"),
        ("wsc", {"text": "Ann saw Bea.", "span1_text": "Ann", "span2_text": "she"},
         'Does "she" refer to "Ann" in this passage?', "Ann saw Bea.", "accuracy"),
    ],
)  # fmt: skip
def test_every_task_of_glue_reads_what_the_pipeline_reads(tmp_path, name, row, first, second, metric):
    rows = [{**row, "idx": n, "label": n % 2} for n in range(4)]
    for release, valid, suffix in ((2023, "validation", "json"), (2025, "valid", "jsonl")):
        valid = "validation_matched" if (name, release) == ("mnli", 2023) else valid
        write(tmp_path / f"{release}/glue_filtered/{name}.train.{suffix}", rows)
        write(tmp_path / f"{release}/glue_filtered/{name}.{valid}.{suffix}", rows[:3])
        made, facts = build(task("labels", tmp_path / str(release), name, release=release), name, 1)
        assert made["test"].iloc[0]["text_a"] == first and made["test"].iloc[0]["label"] == 0
        assert (second is None and made["test"]["text_b"].isna().all()) or made["test"].iloc[0]["text_b"] == second
        assert facts["metric"] == metric and facts["rows"] == {"train": 4, "valid": 3, "test": 3}


def test_mismatched_mnli_trains_on_the_same_file(tmp_path):
    matched, mismatched = (task("labels", tmp_path, name) for name in ("mnli", "mnli-mm"))
    assert matched.train == mismatched.train and mismatched.valid.endswith("mnli.validation_mismatched.json")


def test_files_of_another_length_than_the_release_are_read_and_said_to_be(tmp_path, caplog):
    rows = [{"sentence1": "a", "sentence2": "b", "label": n % 2} for n in range(99)]
    write(tmp_path / "glue_filtered/rte.train.json", rows)
    write(tmp_path / "glue_filtered/rte.validation.json", rows)
    with caplog.at_level(logging.WARNING, "masklab"):
        facts = build(task("labels", tmp_path, "rte"), "rte", 1)[1]
    assert facts["as_released"] is False
    assert "rte.train.json has 99 lines; that of 2023 has 858" in caplog.text and "validation" not in caplog.text
    assert build(msgs(tmp_path), "msgs", 1)[1]["as_released"] is None


def test_a_release_that_lacks_a_task_says_so():
    for kind, name, said in (
        ("labels", "main_verb_control", "the release of 2025 has no MSGS"),
        ("labels", "mnli-mm", "the release of 2025 has no mismatched MNLI"),
    ):
        with pytest.raises(ValueError, match=said):
            task(kind, "x", name, release=2025)
    with pytest.raises(ValueError, match="the release of 2023 has no ewok; it has blimp, supplement"):
        task("pairs", "x", "ewok")
    with pytest.raises(ValueError, match="release"):
        task("pairs", "x", "blimp", release=2021)


def test_keys_of_an_entry_come_before_those_of_the_release(tmp_path):
    own = task("labels", tmp_path, "cola", metric="accuracy", limit=3)
    assert own.metric == "accuracy" and own.limit == 3 and isinstance(own, LabelFiles)
    assert BabylmLabels.model_validate(own.model_dump()) == own
    assert BabylmPairs.model_validate((one := task("pairs", "x/", "blimp")).model_dump()) == one
    assert one.files == ["x/blimp_filtered/*.json"]


# --- rows of a split -------------------------------------------------------------


def test_rows_of_a_split_are_told_by_their_values(tmp_path):
    rows = [{"sentence": f"s{n}", "label": n % 2, "kind": n % 3, "odd": n % 2 == 1} for n in range(12)]
    write(tmp_path / "a.jsonl", rows)

    def texts(**where):
        keys = {"kind": "label-files", "train": str(tmp_path / "a.jsonl"), "valid": str(tmp_path / "a.jsonl")}
        return build(entry("tasks", keys | {"where": where}), "t", 1)[0]

    made = texts(train={"kind": [0, 2]}, test={"odd": True, "kind": 1})
    assert made["train"]["text_a"].tolist() == ["s0", "s2", "s3", "s5", "s6", "s8", "s9", "s11"]
    assert made["test"]["text_a"].tolist() == ["s1", "s7"] and len(made["valid"]) == 12
    with pytest.raises(MaskLabError, match=r"a.jsonl: no row is kept; where: {'kind': 7}"):
        texts(test={"kind": 7})
    with pytest.raises(MaskLabError, match=r"a.jsonl: no column 'condition'; columns: sentence, label, kind, odd"):
        texts(test={"condition": "test"})
    write(tmp_path / "a.jsonl", [*rows, {"sentence": " ", "label": 0, "kind": 1, "odd": False}])
    with pytest.raises(MaskLabError, match=r"a.jsonl: row 13: 'sentence' is empty"):
        texts(test={"kind": 1, "odd": False})  # numbered as in the file
    assert len(texts(**{split: {"odd": True} for split in ("train", "valid", "test")} | {"train": {"kind": 0}})) == 3


# --- pairs -----------------------------------------------------------------------


def test_blimp_counts_phenomena_in_2023_and_paradigms_in_2025(tmp_path):
    row = {"sentence_good": "g", "sentence_bad": "b", "linguistics_term": "s-selection", "UID": "animate"}
    write(tmp_path / "2023/blimp_filtered/argument_structure.json", [row, row | {"UID": "causative"}])
    write(tmp_path / "2025/blimp_filtered/animate.jsonl", [row])
    write(tmp_path / "2025/blimp_filtered/causative.jsonl", [row | {"UID": "causative"}])
    phenomena = [
        build(task("pairs", tmp_path / str(release), "blimp", release=release), "b", 1)[1]["phenomena"]
        for release in (2023, 2025)
    ]
    assert phenomena == [{"argument_structure": 2}, {"animate": 1, "causative": 1}]


@pytest.mark.parametrize(("files", "pairs", "said"), [(67, 59875, True), (67, 59874, False), (66, 59875, False)])
def test_blimp_of_2025_is_told_by_its_files_and_pairs_together(tmp_path, caplog, files, pairs, said):
    line = json.dumps({"sentence_good": "g", "sentence_bad": "b"}) + "\n"
    (tmp_path / "blimp_filtered").mkdir()
    for at in range(files):
        count = pairs // files + (at < pairs % files)
        (tmp_path / f"blimp_filtered/p{at}.jsonl").write_text(line * count + "\n")  # a blank line is no pair
    config = task("pairs", tmp_path, "blimp", release=2025)
    with caplog.at_level(logging.WARNING, "masklab"):
        found = as_released(config, sorted((tmp_path / "blimp_filtered").iterdir()), "b")
    assert found is said
    warning = f"tasks.b: BLiMP has {pairs} pairs in {files} files; that of 2025 has 59875 in 67"
    assert (warning in caplog.text) == (not said)


def test_files_of_ones_own_beside_those_of_a_release_are_not_counted(tmp_path):
    rows = [{"sentence1": "a", "sentence2": "b", "label": n % 2} for n in range(99)]
    write(tmp_path / "glue_filtered/rte.validation.json", rows)
    pd.DataFrame(rows).to_parquet(tmp_path / "own.parquet")
    assert (
        build(task("labels", tmp_path, "rte", train=str(tmp_path / "own.parquet")), "rte", 1)[1]["as_released"] is None
    )


def test_ewok_and_entity_tracking(tmp_path):
    ewok = {"Domain": "social", "Context1": "Ann waves.", "Target1": "She is kind.", "Target2": "She is cruel."}
    tracked = {"numops": 1, "input_prefix": "Box 0 contains ", "options": ["the car.", "the book.", "nothing."]}
    write(tmp_path / "ewok_filtered/social.jsonl", [ewok])
    write(tmp_path / "entity_tracking/regular.jsonl", [tracked, tracked | {"numops": 0}])
    frame = build(task("pairs", tmp_path, "ewok", release=2025), "e", 1)[0]["test"]
    assert frame.values.tolist() == [
        ["social", "social", "Ann waves. She is kind.", "Ann waves. She is cruel.", 0, "Ann waves."]
    ]
    splits, facts = build(task("pairs", tmp_path, "entity-tracking", release=2025), "t", 1)
    assert facts["phenomena"] == {"regular_1_ops": 1, "regular_0_ops": 1}
    assert splits["test"]["item"].tolist() == [0, 0, 1, 1]
    assert splits["test"]["bad"].tolist()[:2] == ["Box 0 contains the book.", "Box 0 contains nothing."]
    assert set(splits["test"]["given"]) == {"Box 0 contains "}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"Context1": "c", "Target1": "t"}, "line 2: no field 'Target2'; fields: Context1, Target1"),
        ({"input_prefix": "p", "options": ["a"], "numops": 0}, "line 2: 'options' must be a list of two texts or more"),
        ({"input_prefix": "p", "options": ["a", ""], "numops": 0}, "line 2: 'options' must be a list of two texts"),
        ({"input_prefix": "p", "options": ["a", "b"]}, r"line 2: 'numops' must be a whole number \(got None\)"),
        ({"sentence": "a", "label": 1}, "line 2: no field 'sentence_good'; .*looks like a labelled task"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, row, said):
    good = {"sentence_good": "g", "sentence_bad": "b"}
    write(tmp_path / "supplement_filtered/x.json", [good, row])
    with pytest.raises(MaskLabError, match=f"x.json: {said}"):
        build(task("pairs", tmp_path, "supplement"), "t", 1)
