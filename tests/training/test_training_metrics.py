import numpy as np
import pandas as pd
import pytest

from masklab.training.metrics_file import Means, MetricsFile


def updates(count):
    rng = np.random.default_rng(3)
    for step in range(1, count + 1):
        yield {"step": step, "lr": 1 / step, "tokens": int(rng.integers(50, 99)), "masked": int(rng.integers(5, 15)),
               "loss": rng.random(), "kd": rng.random(), "grad_norm": rng.random()}  # fmt: skip


def test_a_row_is_the_mean_over_masked_tokens():
    means, rows = Means(), list(updates(7))
    for row in rows:
        means = Means(means.sums, means.last)  # as if resumed
        means.add(row)
    found, frame = means.take(), pd.DataFrame(rows)
    for name in ("loss", "kd"):
        assert found[name] == pytest.approx(np.average(frame[name], weights=frame["masked"]), rel=1e-12)
    assert found["tokens"] == frame["tokens"].sum() and found["masked"] == frame["masked"].sum()
    assert [found[name] for name in ("step", "lr", "grad_norm")] == [7, 1 / 7, rows[-1]["grad_norm"]]
    assert means.sums == {} and means.last == {}


def test_a_file_grows_and_goes_on_from_the_rows_of_a_state(tmp_path):
    rows = [row | {"valid_loss": float("nan")} for row in updates(9)]
    file = MetricsFile(tmp_path / "m.parquet")
    file.write()
    assert not file.path.exists(), "no rows, no file"
    for row in rows[:6]:
        file.append(row)
        file.write()
    again = MetricsFile(tmp_path / "m.parquet")
    again.fill({name: column[:4] for name, column in file.columns().items()})
    for row in rows[4:]:
        again.append(row)
    assert len(again) == 9
    again.write(tmp_path / "end.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "end.parquet"), pd.DataFrame(rows), check_exact=True)
    assert len(pd.read_parquet(tmp_path / "m.parquet")) == 6
