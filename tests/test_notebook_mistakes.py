"""What is wrongly given to the functions of a notebook, where no model is needed to say so; paths from home."""

import re
from pathlib import Path

import pandas as pd
import pytest

import masklab
from masklab import notebook
from masklab.errors import MaskLabError
from masklab.files import write_json
from masklab.scores.schema import GATHERED


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: masklab.load_model(3), "checkpoint: must be the path of a folder (got 3)"),
        (lambda: masklab.load_model(None), "checkpoint: must be the path of a folder (got None)"),
        (lambda: masklab.load_model(".", device=0), "device: 0: must be auto, cpu or cuda"),
        (lambda: masklab.load_tokenizer(3), "checkpoint: must be the path of a folder (got 3)"),
        (lambda: masklab.load_scores(3), "run: must be the path of a folder (got 3)"),
        (lambda: masklab.fill_mask(".", 3), "text: must be text (got 3)"),
        (lambda: masklab.fill_mask(".", "a [MASK]", top="5"), "top: must be a whole number (got '5')"),
        (lambda: masklab.fill_mask(".", "a [MASK]", top=2.5), "top: must be a whole number (got 2.5)"),
        (lambda: masklab.pseudo_log_likelihood(".", "a"), "sentences: must be several texts, as a list (got 'a')"),
        (lambda: masklab.pseudo_log_likelihood(".", 3), "sentences: must be several texts, as a list (got 3)"),
        (lambda: masklab.pseudo_log_likelihood(".", ["a", None]), "text: must be text (got None)"),
        (lambda: masklab.hidden_states(".", ["a"]), "text: must be text (got ['a'])"),
        (lambda: masklab.hidden_states(".", "a", "1"), "layer: must be a whole number (got '1')"),
        (lambda: masklab.measure(".", "rank", seed="1"), "seed: must be a whole number (got '1')"),
        (lambda: masklab.measure(".", "rank", text=3), "text: must be the path of a file (got 3)"),
        (
            lambda: notebook._tasks(3, Path(), 1),
            "task: must be a task's folder, its settings, or a mapping of names (got 3)",
        ),
        (lambda: notebook._tasks({"a": 3}, Path(), 1), "task 'a': must be a task's folder, or its settings (got 3)"),
        (lambda: notebook._tasks({1: "x"}, Path(), 1), "task: a name must be text (got 1)"),
    ],
)
def test_an_argument_of_another_type_is_one_line(call, said):
    with pytest.raises(MaskLabError, match=f"^{re.escape(said)}$"):
        call()


def test_folders_below_home_are_found_by_all(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    made = {"model": "mlm", "step": 40, "config": {"replicate": 3}}
    write_json(made, tmp_path / "mlm/masklab.json")
    write_json({}, tmp_path / "blimp/task.json")
    assert notebook._named("~/mlm") == {"recipe": "mlm", "replicate": 3, "step": 40}
    assert notebook._tasks("~/blimp", tmp_path, 1) == {"blimp": tmp_path / "blimp"}
    assert notebook._tasks({"b": "~/blimp"}, tmp_path, 1) == {"b": tmp_path / "blimp"}


@pytest.mark.parametrize("template", ["Is it {sentence?", "{{sentence}}", "Is it sentence}?{"])
def test_a_template_with_a_stray_brace_is_refused_as_in_a_config(template, tmp_path):
    (tmp_path / "a.tsv").write_text("sentence\tlabel\n" + "good\t1\nbad\t0\n" * 20)
    task = {"kind": "label-files", "label": "label", "text_a": template}
    task |= dict.fromkeys(("train", "valid", "test"), str(tmp_path / "a.tsv"))
    with pytest.raises(MaskLabError, match="a brace that holds no column; write"):
        notebook._tasks({"t": task}, tmp_path / "work", 1)


def test_a_table_of_another_program_with_text_for_numbers_is_one_line(tmp_path):
    pd.DataFrame({column: ["x"] for column in GATHERED}).to_parquet(tmp_path / "scores.parquet")
    with pytest.raises(MaskLabError, match=r"scores[.]parquet: a column is of another type: "):
        masklab.load_scores(tmp_path)
