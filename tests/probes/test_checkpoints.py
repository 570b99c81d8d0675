import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from masklab.config import kinds
from masklab.config.kinds import OURS
from masklab.config.schema import MinimalPairsProbe, PredictionProbe
from masklab.errors import MaskLabError
from masklab.files import sha256
from masklab.jobs import state
from masklab.probes import Context, checkpoints, minimal_pairs, outcomes
from masklab.probes.checkpoints import measure_checkpoints
from masklab.scores.items import read
from masklab.scores.schema import COLUMNS


def measure(make_checkpoint, task, folder, **changes):
    probe = MinimalPairsProbe(kind="minimal_pairs", tasks=["blimp"])
    values = {
        "recipe": "small",
        "replicate": 2,
        "name": "blimp",
        "probe": probe,
        "checkpoints": [(10, make_checkpoint(seed=1)), (20, make_checkpoint(seed=2))],
        "tasks": {"blimp": task},
        "output": folder / "scores.parquet",
        "device": "cpu",
        "state_folder": folder / "state",
    }
    return measure_checkpoints(**(values | changes))


def test_what_measures_or_trains_starts_without_pandas_transformers_and_scikit_learn():
    names = [
        *(kind.make.partition(":")[0] for kind in OURS["probes"].values()),
        "masklab.probes.checkpoints",
        "masklab.training.loop",
    ]
    code = f"import sys, importlib; [importlib.import_module(name) for name in {names}]; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "torch" in loaded and not {"pandas", "transformers", "sklearn"} & set(loaded)


def test_writes_score_rows_of_every_checkpoint_and_forgets_its_state(make_checkpoint, write_pairs, tmp_path, sentences):
    rows = [("agreement", *pair) for pair in zip(sentences(40)[::2], sentences(40)[1::2], strict=True)]
    frame = measure(make_checkpoint, write_pairs("blimp", rows), tmp_path).to_pandas()
    assert list(frame.columns) == list(COLUMNS)
    assert set(zip(frame["recipe"], frame["replicate"], frame["step"], frame["probe"], strict=True)) == {
        ("small", 2, 10, "blimp"),
        ("small", 2, 20, "blimp"),
    }
    assert len(frame) == 4
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "scores.parquet"), frame)
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["lock"]
    # other items make another file of scores, which is what claims have as their input
    said = pq.read_schema(tmp_path / "scores.parquet").metadata[b"masklab.items"]
    assert said.decode() == sha256(tmp_path / "scores.items.parquet")
    items = read(tmp_path / "scores.items.parquet").to_pylist()
    assert [(each["step"], each["metrics"]) for each in items] == [
        (step, [metric]) for step in (10, 20) for metric in ("accuracy", "accuracy_full_width")
    ]
    for each, value in zip(items, frame["value"], strict=True):
        assert each["recipe"] == "small" and each["replicate"] == 2 and len(each["predictions"]) == 20
        assert np.mean(each["predictions"]) == pytest.approx(value, abs=1e-12)


def test_a_probe_without_items_leaves_an_empty_file_of_them(make_checkpoint, tmp_path, caplog):
    probe = PredictionProbe(kind="prediction", sentence="The cat [MASK].", top=3)
    folder = make_checkpoint(seed=1)
    with caplog.at_level("INFO"):
        table = measure_checkpoints(
            recipe="small", replicate=1, name="figure1", probe=probe, checkpoints=[(7, folder)], tasks={},
            output=tmp_path / "step-7.parquet", device="cpu",
        )  # fmt: skip
    assert len(table) == 3 and len(read(tmp_path / "step-7.items.parquet")) == 0


def test_scores_that_are_refused_are_said_with_the_probe_and_its_file(tmp_path, monkeypatch):
    monkeypatch.setitem(kinds._yours["probes"], "own", kinds.Kind("probes", "own", None, measured, (), "mine.py"))
    how = {"recipe": "small", "replicate": 1, "name": "p", "tasks": {}, "output": tmp_path / "x", "device": "cpu"}
    for value, said in ((float("nan"), "a finite number"), (0.5, "and that of row 0 are of the same measurement")):
        with pytest.raises(MaskLabError, match=rf"mine.py: probe p: scores: row \d \(small/r1 .*: value .*{said}"):
            probe = SimpleNamespace(kind="own", values=[value, value])
            measure_checkpoints(**how, probe=probe, checkpoints=[(7, tmp_path)])
    assert not list(tmp_path.iterdir())


def measured(context):
    """Score rows of a probe of one's own: the values that its settings name."""
    return [{"task": "t", "split": "test", "metric": "m", "value": value, "n": 3} for value in context.probe.values]


def test_progress_says_which_replicate(make_checkpoint, write_pairs, tmp_path, sentences, monkeypatch):
    said = []
    monkeypatch.setattr(checkpoints, "Progress", lambda label, *_, **__: said.append(label) or (lambda *_: None))
    measure(make_checkpoint, write_pairs("blimp", [("a", *sentences(2))]), tmp_path)
    assert said == ["blimp small/r2@10", "blimp small/r2@20"]


def test_checkpoints_that_were_measured_before_a_kill_are_not_measured_again(
    make_checkpoint, write_pairs, tmp_path, sentences, monkeypatch
):
    """If measuring one takes long; not if the probe, the checkpoint or a task is another one by then."""
    pairs = [("agreement", *pair) for pair in zip(sentences(40)[::2], sentences(40)[1::2], strict=True)]
    task = first = write_pairs("blimp", pairs)
    asked, scored = [], minimal_pairs._scores
    places = [(step, make_checkpoint(seed=step)) for step in (10, 20, 30)]
    whole = measure(make_checkpoint, task, tmp_path, checkpoints=places).to_pandas()
    of_items = sha256(tmp_path / "scores.items.parquet")

    def kill(model, *rest, **keys):
        asked.append(model)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return scored(model, *rest, **keys)

    def ask(model, *rest, **keys):
        asked.append(model)
        return scored(model, *rest, **keys)

    def measured(long=0.0, task=task, **changes):
        """Scores after the third checkpoint was interrupted; `asked` has those that are then measured."""
        shutil.rmtree(tmp_path / "state", ignore_errors=True)
        monkeypatch.setattr(outcomes, "LONG", long)
        monkeypatch.setattr(minimal_pairs, "_scores", kill)
        asked.clear()
        with pytest.raises(KeyboardInterrupt):
            measure(make_checkpoint, first, tmp_path, checkpoints=places)
        monkeypatch.setattr(minimal_pairs, "_scores", ask)
        asked.clear()
        return measure(make_checkpoint, task, tmp_path, **({"checkpoints": places} | changes))

    pd.testing.assert_frame_equal(measured().to_pandas(), whole, check_exact=True)
    assert len(asked) == 1 and sha256(tmp_path / "scores.items.parquet") == of_items
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["lock"]
    for again, changes in (
        (3, {"long": 1e9}),
        (3, {"probe": MinimalPairsProbe(kind="minimal_pairs", tasks=["blimp"], batch_tokens=999)}),
        (3, {"seed": 7}),
        (2, {"checkpoints": [(10, make_checkpoint(seed=4)), *places[1:]]}),
        (3, {"task": write_pairs("other", pairs[::-1])}),
    ):
        measured(**changes)
        assert len(asked) == again, changes


def test_a_corpus_is_named_whether_drawn_once_or_for_a_replicate():
    for folder in ("tokens/c/t", "tokens/c/r2/t", "x/r7/tokens/c/r2/t/r2", "tokens/c/t/r12"):
        assert Context(None, Path("x"), tokens=Path("results") / folder).corpus == "c"


def test_a_second_writer_is_refused(make_checkpoint, write_pairs, tmp_path, sentences):
    task = write_pairs("blimp", [("a", *sentences(2))])
    with state.locked(tmp_path / "state"), pytest.raises(MaskLabError, match="another process"):
        measure(make_checkpoint, task, tmp_path)
