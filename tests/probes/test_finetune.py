import dataclasses
import shutil

import numpy as np
import pandas as pd
import pytest

from checked_run import items, run
from masklab import probes
from masklab.config.schema import FinetuneProbe
from masklab.errors import MaskLabError
from masklab.files import read_json, write_json
from masklab.probes import Context
from masklab.probes.recipe import EarlyStopping

PROBE = FinetuneProbe(
    kind="finetune", tasks=["number"], seeds=[1, 2], lr=3e-3, batch_size=16, epochs=4, evaluate_every=10, patience=4
)


def number_rows(count, seed, pair=False):
    """Label 1: plural verb; separable from the tokens alone."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        noun, label = rng.choice(["cat", "dog", "bird", "horse"]), int(rng.integers(2))
        text = f"The {noun}s run." if label else f"The {noun} runs today."
        rows.append((f"The {noun}.", text, label) if pair else (text, None, label))
    return rows


@pytest.fixture
def context(make_checkpoint, write_task):
    def make(pair=False, **changes):
        folder = write_task("number", number_rows(160, 1, pair), 2, test=number_rows(60, 2, pair))
        values = {"probe": PROBE, "checkpoint": make_checkpoint(), "tasks": {"number": folder}, "name": "glue"}
        return Context(**(values | changes))

    return make


@pytest.mark.parametrize("pair", [False, True])
def test_learns_a_separable_task(context, pair):
    rows = run(context(pair=pair))
    assert [(row["seed"], row["metric"]) for row in rows] == [
        (seed, metric)
        for seed in (1, 2)
        for metric in ("accuracy", "mcc", "f1", "majority", "majority_f1", "best_step", "capped")
    ]
    for row in rows:
        assert (row["task"], row["split"], row["train_size"], row["n"]) == ("number", "test", 160, 60)
        if row["metric"] == "best_step":
            assert row["value"] in (10, 20, 30, 40)
        elif row["metric"] == "capped":
            assert row["value"] == 1  # four evaluations, and patience for more
        elif row["metric"].startswith("majority"):
            assert 0.5 <= row["value"] < 0.7
        else:
            assert row["value"] > 0.95


def test_same_seed_twice_gives_identical_rows_and_seeds_do_not_touch_each_other(context):
    hard = PROBE.model_copy(update={"lr": 5e-4, "epochs": 1})
    first = run(context(probe=hard))
    assert run(context(probe=hard)) == first
    alone = run(context(probe=hard.model_copy(update={"seeds": [2]})))
    assert alone == first[7:]
    values = [[row["value"] for row in rows] for rows in (first[:5], first[7:12], run(context(probe=hard, seed=7))[:5])]
    assert values[0] != values[1]
    assert values[0] != values[2]


def test_tasks_start_from_the_checkpoint_not_from_each_other(context, write_task):
    hard = PROBE.model_copy(update={"lr": 5e-4, "epochs": 1, "seeds": [1]})
    rows = [(a, None, label * 2) for a, _, label in number_rows(64, 5)]
    other = write_task("other", rows, 3)
    number = context(probe=hard)
    both = run(context(probe=hard, tasks={"other": other, **number.tasks}))
    assert both[7:] == run(number)


def test_resumes_at_the_next_fine_tuning(context, tmp_path, monkeypatch):
    monkeypatch.setattr("masklab.probes.stacked.SHORT", 1)  # none is small enough to run beside another
    large = PROBE.model_copy(update={"batch_size": 96})
    whole = run(context(probe=large))
    state, killed = tmp_path / "state", context(probe=large, state_folder=tmp_path / "state")

    def kill(done, total, note=""):
        if done >= 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(context(probe=large, state_folder=state, progress=kill))
    (kept,) = state.iterdir()
    before = kept.stat().st_mtime_ns
    assert run(killed) == whole
    assert kept.stat().st_mtime_ns == before
    assert len(list(state.iterdir())) == 2
    # Another learning rate does not take up these results.
    run(context(state_folder=state, probe=PROBE.model_copy(update={"lr": 1e-4, "epochs": 1, "seeds": [1]})))
    assert len(list(state.iterdir())) == 3


@pytest.mark.parametrize("stacked", [True, False])
def test_a_fine_tuning_that_was_killed_midway_goes_on_where_it_was(stacked, context, tmp_path, monkeypatch):
    """The same rows, whichever loop it is; no state is left behind, and it does not begin anew."""
    monkeypatch.setattr("masklab.jobs.midway.EVERY", 0.0)
    if not stacked:
        monkeypatch.setattr("masklab.probes.finetune.supports", lambda *_: False)
    hard = PROBE.model_copy(update={"lr": 5e-4, "epochs": 2})
    whole, state, told = run(context(probe=hard)), tmp_path / "state", []

    def kill(done, total, note=""):
        told.append(done)
        if done >= 0.6 * total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(context(probe=hard, state_folder=state, progress=kill))
    assert told == sorted(told) and len({*told}) > 10  # at each update
    assert [file for file in state.iterdir() if file.suffix == ".safetensors"]
    done, told[:] = told[-1], []
    monkeypatch.setattr("masklab.jobs.midway.EVERY", 1e9)
    assert run(context(probe=hard, state_folder=state, progress=lambda *said: told.append(said[0]))) == whole
    assert told[1 - stacked] == pytest.approx(done, abs=0.11)  # of twenty updates the last that was kept
    assert {file.suffix for file in state.iterdir()} == {".json"}


def test_what_a_model_is_includes_its_config_and_tokenizer(context, tmp_path):
    """By which kept fine-tunings are found again: dropout has no weights."""
    made = context()
    for name, key, other in (("config.json", "hidden_dropout_prob", 0.25), ("tokenizer.json", "version", "1.1")):
        again = dataclasses.replace(made, checkpoint=shutil.copytree(made.checkpoint, tmp_path / key))
        assert again.identity == made.identity
        known = read_json(again.checkpoint / name)
        assert key in known
        write_json(known | {key: other}, again.checkpoint / name)
        assert again.identity != made.identity
        (again.checkpoint / name).unlink()
        assert again.identity != made.identity


@pytest.mark.parametrize("batch_size", [8, 96], ids=["side by side", "alone"])
def test_a_run_that_makes_all_its_updates_is_capped_whatever_its_patience(context, batch_size):
    still = {"lr": 1e-12, "epochs": 3, "evaluate_every": "epoch", "seeds": [1], "batch_size": batch_size}
    capped = []
    for patience in (1, 2, 3):  # the third evaluation is the last
        rows = run(context(probe=PROBE.model_copy(update=still | {"patience": patience})))
        capped += [row["value"] for row in rows if row.get("metric") == "capped"]
    assert capped == [0, 1, 1]


def test_best_model_is_measured_and_patience_ends_the_run(context, monkeypatch):
    probe = PROBE.model_copy(update={"lr": 3e-3, "epochs": 30, "patience": 2, "seeds": [1], "schedule": "constant"})
    evaluations, update = [], EarlyStopping.update

    def watch(self, value, counts_patience):
        evaluations.append(value)
        return update(self, value, counts_patience)

    monkeypatch.setattr(EarlyStopping, "update", watch)
    rows = {row["metric"]: row["value"] for row in run(context(probe=probe))}
    assert len(evaluations) < 30  # 300 steps would be 30 evaluations
    assert rows["best_step"] == 10 * (int(np.argmax(evaluations)) + 1) and rows["capped"] == 0
    assert rows["f1"] == pytest.approx(max(evaluations))  # validation and test rows are the same here


@pytest.fixture
def symbols(tmp_path):
    """symbols(name, rows, **columns): task whose label is whether symbol 3 occurs; test has 60 rows."""

    def write(name, rows, facts=(), **columns):
        folder = tmp_path / name
        folder.mkdir()
        rng = np.random.default_rng(rows)
        for split, count in (("train", rows), ("valid", 60), ("test", 60)):
            sequences = rng.integers(0, 6, (count, 5)).astype(np.uint16)
            frame = pd.DataFrame({"symbols": list(sequences), "label": (sequences == 3).any(1).astype(np.int64)})
            if split == "test":
                frame = frame.assign(**columns)
            frame.to_parquet(folder / f"{split}.parquet")
        write_json({"kind": "labels", "labels": 2, **dict(facts)}, folder / "task.json")
        return folder

    return write


def test_learns_from_symbols_without_a_tokenizer(make_checkpoint, symbols, tmp_path):
    checkpoint = tmp_path / "no-tokenizer"
    shutil.copytree(make_checkpoint("absolute"), checkpoint)
    for file in checkpoint.glob("*token*"):
        file.unlink()
    domains = np.where(np.arange(60) % 3 == 0, "B-D1", "A-D1")
    task = symbols("present", 400, domain=domains)
    probe = PROBE.model_copy(
        update={"evaluate_every": "epoch", "sizes": [100, 400], "seeds": [1], "pooling": "mean", "select": "accuracy"}
    )
    rows = run(Context(probe=probe, checkpoint=checkpoint, tasks={"present": task}, name="dh"))
    names = ("accuracy", "mcc", "f1", "majority", "majority_f1")
    metrics = [
        *((split, metric, n) for split, n in (("B-D1", 20), ("A-D1", 40)) for metric in names),
        ("test", "best_step", 60),
        ("test", "capped", 60),
    ]
    assert [(row["split"], row["metric"], row["n"]) for row in rows] == 2 * metrics
    assert [row["train_size"] for row in rows] == 12 * [100] + 12 * [400]
    assert all(row["value"] > 0.9 for row in rows[12:] if row["metric"] == "accuracy")
    assert rows[10]["value"] in range(7, 29, 7) and rows[22]["value"] in range(25, 101, 25)


def test_domains_partition_the_test_split(context, write_task):
    whole = context(probe=PROBE.model_copy(update={"epochs": 1, "seeds": [1]}))
    test = whole.tasks["number"] / "test.parquet"
    frame = pd.read_parquet(test)
    frame.assign(label=frame["label"].where(np.arange(60) % 5 > 0, 0)).to_parquet(test)  # some labels are wrong
    frame = pd.read_parquet(test)
    (accuracy,) = [row["value"] for row in run(whole) if row["metric"] == "accuracy"]
    assert 0.2 < accuracy < 0.99
    frame.assign(domain=pd.Categorical(np.where(np.arange(60) < 13, "x", "y"))).to_parquet(test)
    parts = {row["split"]: row for row in run(whole) if row["metric"] == "accuracy"}
    assert {name: row["n"] for name, row in parts.items()} == {"x": 13, "y": 47}
    assert sum(row["n"] * row["value"] for row in parts.values()) == pytest.approx(60 * accuracy)


def test_a_size_is_the_task_cut_to_its_first_rows(context, write_task, tmp_path):
    sized = context(probe=PROBE.model_copy(update={"lr": 5e-4, "epochs": 2, "sizes": [50, 160]}))
    rows = run(sized)
    whole = run(context(probe=PROBE.model_copy(update={"lr": 5e-4, "epochs": 2})))
    assert rows[14:] == whole
    assert rows[:14] != [{**row, "train_size": 50} for row in whole]
    train = tmp_path / "number" / "train.parquet"
    pd.read_parquet(train)[:50].to_parquet(train)
    assert run(context_of(sized, PROBE.model_copy(update={"lr": 5e-4, "epochs": 2}))) == rows[:14]
    with pytest.raises(MaskLabError, match=r"probes.glue.sizes: 160 is more than the 50 training rows of 'number'"):
        run(sized)


def test_items_are_the_answers_in_the_order_of_the_test_set(context, tmp_path):
    whole = context(probe=PROBE.model_copy(update={"seeds": [1]}), state_folder=tmp_path / "state")
    test = whole.tasks["number"] / "test.parquet"
    frame = pd.read_parquet(test).assign(domain=np.where(np.arange(60) < 13, "x", "y"))
    frame.to_parquet(test)
    rows = probes.run(whole)
    found = {item["split"]: item for item in items(rows)}
    assert found["x"]["targets"] + found["y"]["targets"] == frame["label"].tolist()
    assert {item["train_size"] for item in found.values()} == {160} and found["x"]["seed"] == 1
    assert found["x"]["metrics"] == ["accuracy", "mcc", "f1", "majority", "majority_f1"]
    assert np.mean(np.equal(found["y"]["targets"], found["y"]["predictions"])) > 0.95
    assert items(probes.run(whole)) == items(rows)  # from the record that was kept


def test_one_record_per_size_and_seed(context, tmp_path):
    sized = context(probe=PROBE.model_copy(update={"epochs": 1, "sizes": [32, 160]}), state_folder=tmp_path / "state")
    rows = run(sized)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "state").iterdir()}
    assert len(kept) == 4
    more = context_of(sized, sized.probe.model_copy(update={"sizes": [32, 96, 160]}))
    assert [row for row in run(more) if row["train_size"] != 96] == rows
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())


def context_of(other, probe):
    return dataclasses.replace(other, probe=probe)
