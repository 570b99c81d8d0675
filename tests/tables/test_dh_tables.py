"""Tables of `dh`: means, deviations and seeds by starting point, domain and size."""

import pandas as pd
import pytest

from masklab.scores.schema import rows_to_frame
from masklab.tables import TABLES
from masklab.tables.write import write_table

NAMES = [name for name in TABLES["dh"] if name != "losses"]


def make(name, scores, dh, labels=None):
    return TABLES["dh"][name].function()(scores, dh.STUDY, labels or {}, {})


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_means_over_seeds(name, dh, tmp_path):
    scores = dh.dh_scores(dh.plausible, sizes=(100, 1000), seeds=3)
    frame = make(name, scores, dh)
    sets = TABLES["dh"][name].sets
    assert len(frame) == len(sets) * 4 * 2 * (5 + 1)  # domains x sizes x (starting points, majority class)
    cell = frame[(frame["label"] == "shuffled") & (frame["row"] == "B-D1, 1,000 examples")].iloc[0]
    task = dh.SETS[sets[0]][0]
    at = {"metric": "accuracy", "task": task, "model": cell["model"], "split": "B-D1", "train_size": 1000}
    values = scores.loc[(scores[list(at)] == pd.Series(at)).all(axis=1), "value"]
    assert (cell["value"], cell["std"], cell["seeds"], cell["n"]) == pytest.approx(
        (values.mean(), values.std(), 3, 500)
    )
    chance = frame[(frame["label"] == "majority class") & frame["row"].str.startswith("A-D2")]
    assert set(chance["value"]) == {0.55} and chance["std"].isna().all()
    write_table(frame, tmp_path / name)
    wide = pd.read_csv(tmp_path / f"{name}.csv")
    assert len(wide) == 8 and len(wide.columns) == 3 + 6 * len(sets)
    assert "± 0.0" in (tmp_path / f"{name}.md").read_text()


def test_losses(dh, tmp_path):
    base = {"study": "dh", "step": 9, "probe": "loss", "task": "corpus", "split": "test", "n": 100}
    values = {"single-0": (1.5, 1.0), "single-1": (1.25, 1.0)}
    rows = [
        base | {"model": model, "metric": metric, "value": value}
        for model, (loss, floor) in values.items()
        for metric, value in (("loss", loss), ("floor", floor), ("gap", loss - floor))
    ]
    labels = {model: label for panel in dh.PANELS.values() for label, model in panel.items()}
    frame = make("losses", rows_to_frame(rows), dh, labels)
    assert set(frame["panel"]) == {"single"} and set(frame["label"]) == {"w/ DH", "w/o DH"}
    assert frame.set_index(["row", "label"])["value"].to_dict() == {
        ("loss", "w/ DH"): 1.5, ("floor", "w/ DH"): 1.0, ("gap", "w/ DH"): 0.5,
        ("loss", "w/o DH"): 1.25, ("floor", "w/o DH"): 1.0, ("gap", "w/o DH"): 0.25,
    }  # fmt: skip
    write_table(frame, tmp_path / "losses")
    assert (
        "**0.5" not in (tmp_path / "losses.md").read_text() and "| gap | 100 |" in (tmp_path / "losses.md").read_text()
    )
