import subprocess
import sys

import pandas as pd
import pytest

from masklab.config.kinds import OURS
from masklab.config.schema import MinimalPairsProbe
from masklab.errors import MaskLabError
from masklab.jobs import state
from masklab.probes.checkpoints import measure_checkpoints
from masklab.scores.schema import COLUMNS


def measure(make_checkpoint, task, folder, **changes):
    probe = MinimalPairsProbe(kind="minimal_pairs", tasks=["blimp"])
    values = {
        "study": "mlsm",
        "name": "blimp",
        "probe": probe,
        "model": "small",
        "checkpoints": [(10, make_checkpoint(seed=1)), (20, make_checkpoint(seed=2))],
        "tasks": {"blimp": task},
        "output": folder / "scores.parquet",
        "device": "cpu",
        "state_folder": folder / "state",
    }
    return measure_checkpoints(**(values | changes))


def test_what_measures_or_trains_starts_without_pandas_and_transformers():
    names = [
        *(kind.make.partition(":")[0] for kind in OURS["probes"].values()),
        "masklab.probes.checkpoints",
        "masklab.training.loop",
    ]
    code = f"import sys, importlib; [importlib.import_module(name) for name in {names}]; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "torch" in loaded and not {"pandas", "transformers"} & set(loaded)


def test_writes_score_rows_of_every_checkpoint_and_forgets_its_state(make_checkpoint, write_pairs, tmp_path, sentences):
    rows = [("agreement", *pair) for pair in zip(sentences(40)[::2], sentences(40)[1::2], strict=True)]
    frame = measure(make_checkpoint, write_pairs("blimp", rows), tmp_path).to_pandas()
    assert list(frame.columns) == list(COLUMNS)
    assert set(zip(frame["model"], frame["step"], frame["probe"], strict=True)) == {
        ("small", 10, "blimp"),
        ("small", 20, "blimp"),
    }
    assert len(frame) == 4
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "scores.parquet"), frame)
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["lock"]


def test_a_second_writer_is_refused(make_checkpoint, write_pairs, tmp_path, sentences):
    task = write_pairs("blimp", [("a", *sentences(2))])
    with state.locked(tmp_path / "state"), pytest.raises(MaskLabError, match="another process"):
        measure(make_checkpoint, task, tmp_path)
