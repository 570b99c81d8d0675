"""Who goes on without those that it was trained beside keeps what it had, and so do the others."""

import dataclasses

import pandas as pd
import pytest
from runs import warm
from several import left, metrics, replicates, start, stop_at

from masklab.errors import MaskLabError
from masklab.jobs import saved
from masklab.jobs import stacks as told
from masklab.training import apart, together
from masklab.training.apart import FILE, folder_of
from masklab.training.launch import launch
from masklab.training.run import read_run
from masklab.training.together import take, train_together


def test_each_of_those_that_are_stopped_can_bestarted_by_itself(english, tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", "masklab")
    runs = replicates(english, tmp_path, 2)
    update = together.Together.update

    def interrupted(self, step):
        if step == 3:
            self.interruption.receive(15)
        return update(self, step)

    monkeypatch.setattr(together.Together, "update", interrupted)
    with pytest.raises(MaskLabError, match="stopped by signal 15 at step 3; the state of step 3 is saved"):
        train_together(runs[0], runs[1:])
    monkeypatch.undo()
    assert [read_run(run.state / "run.json") for run in runs] == runs
    for run in runs:
        launch(read_run(run.state / "run.json"))
    assert caplog.text.count("m: resuming at step 3 of 60") == 2


def test_a_state_goes_on_with_those_it_is_of(english, tmp_path, caplog):
    """Of three that were stopped half-way, one is asked for anew: the two others go on, a fourth trains by itself."""
    caplog.set_level("INFO", "masklab")
    runs = replicates(english, tmp_path, 4, save_minutes=1e-6)
    stop_at(30, runs[:3])
    changed = dataclasses.replace(runs[1], seed=5)
    launch(runs[0], beside=[changed, *runs[2:]])
    launch(runs[2])
    assert "m: r1, r3 train side by side, from step 30 of 60" in caplog.text
    for run in (runs[0], runs[2]):
        assert list(metrics(run)["step"]) == [1, 10, 20, 30, 40, 50, 60]
    assert not (runs[3].output / "manifest.json").exists() and not take(changed) and not take(runs[3])


@pytest.mark.parametrize("asked", [[[2], [1], [3]], [[3, 1], [2]], [[2], [1, 3]], [[4, 5], [1, 2, 3]]], ids=str)
def test_who_is_asked_for_without_the_others_goes_on(english, tmp_path, caplog, asked):
    """Three are stopped at step 30; later runs ask for some at a time, and nobody's work is lost."""
    caplog.set_level("INFO", "masklab")
    whole, torn = (replicates(english, tmp_path / name, 5) for name in ("whole", "torn"))
    launch(whole[0], beside=whole[1:])
    for run in whole[1:]:
        launch(run)
    stop_at(30, torn[:3])
    caplog.clear()
    for few in asked:
        own, *others = (torn[k - 1] for k in few)
        launch(own, beside=others)
        for run in others:
            launch(run)
    for k in (k for few in asked for k in few):
        assert left(torn[k - 1])[0] == left(whole[k - 1])[0]
        pd.testing.assert_frame_equal(left(torn[k - 1])[1], left(whole[k - 1])[1], check_exact=True)
    begun = caplog.text.count("starting, ") + caplog.text.count("from step 0 of 60")
    assert begun == (asked[0] == [4, 5])
    files = [path for path in torn[0].state.parent.rglob("*") if path.is_file() and path.name != "lock"]
    assert not files


def test_a_part_that_is_put_aside_is_kept_until_it_is_asked_for(english, tmp_path, caplog):
    """Through a kill of those that went on, and through a second company of the same recipe."""
    caplog.set_level("INFO", "masklab")
    runs = replicates(english, tmp_path, 5)
    folder = folder_of(runs[0])
    stop_at(30, runs[:3])
    with pytest.raises(KeyboardInterrupt), pytest.MonkeyPatch.context() as patch:
        patch.setattr(together.Together, "update", killed)
        launch(runs[0], beside=[runs[1]])
    assert told.replicates(folder / FILE) == [1, 2, 3] and told.aside(folder, 3).is_file()
    launch(runs[0], beside=runs[1:3])
    launch(runs[1])
    assert caplog.text.count("m: r1, r2 train side by side, from step 30 of 60") == 2
    launch(runs[3], beside=runs[4:])
    launch(runs[2])
    assert "m: resuming at step 30 of 60" in caplog.text and not told.aside(folder, 3).exists()
    assert list(metrics(runs[2])["step"]) == [1, 10, 20, 30, 40, 50, 60]


def killed(*_):
    raise KeyboardInterrupt


def test_all_may_go_on_by_themselves_at_the_same_time(english, tmp_path):
    """As jobs of a cluster, where a run on one machine was stopped before."""
    runs, errors = replicates(english, tmp_path, 3), tmp_path / "errors"
    stop_at(30, runs)
    processes = [warm.Process(target=start, args=([run], str(errors)), daemon=True) for run in runs]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0], errors.read_text()
    assert errors.read_text().count("m: resuming at step 30 of 60") == 3
    assert not told.replicates(folder_of(runs[0]) / FILE)


def test_a_part_of_another_config_is_not_gone_on_from(english, tmp_path, caplog):
    caplog.set_level("INFO", "masklab")
    runs = replicates(english, tmp_path, 3)
    stop_at(30, runs)
    launch(dataclasses.replace(runs[0], seed=5))
    assert "it was made from another config or other inputs; beginning anew" in caplog.text
    assert "starting, " in caplog.text
    launch(runs[1], beside=runs[2:])
    assert "m: r2, r3 train side by side, from step 30 of 60" in caplog.text


def test_a_part_that_is_put_aside_goes_when_nobody_can_go_on_from_it(english, tmp_path, caplog):
    runs = replicates(english, tmp_path, 3)
    stop_at(30, runs)
    launch(runs[0], beside=[runs[1]])
    aside = told.aside(folder_of(runs[0]), 3)
    assert aside.is_file()
    launch(dataclasses.replace(runs[2], seed=5))
    assert not aside.exists() and not (folder_of(runs[0]) / "r3").exists()
    stop_at(30, runs)
    launch(runs[0], beside=[runs[1]])
    (folder_of(runs[0]) / "code").write_text('{"code": {"another": "1"}, "versions": {}}')
    launch(runs[2])
    assert not aside.exists() and "made by other code or versions; m begins anew" in caplog.text
    (folder_of(runs[0]) / "code").unlink()
    stop_at(30, runs)
    other = [dataclasses.replace(run, seed=run.seed + 1) for run in runs]
    launch(other[0], beside=[other[1]])  # of another config: nobody's part is put aside
    assert not aside.exists()


def test_a_part_that_cannot_be_made_a_state_of_its_own_stays(english, tmp_path, caplog, monkeypatch):
    """On a full disk: in the common state, and where it was put aside."""
    runs = replicates(english, tmp_path, 2)
    folder = folder_of(runs[0])
    stop_at(30, runs)

    def full(*_, **__):
        raise OSError("no space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saved, "save", full)
        apart.leave(runs[0])
        assert told.replicates(folder / FILE) == [1, 2] and (folder / "r1").is_dir()
    apart.leave(runs[0])
    assert told.aside(folder, 2).is_file() and not told.replicates(folder / FILE)
    monkeypatch.setattr(saved, "save", full)
    apart.leave(runs[1])
    assert told.aside(folder, 2).is_file() and (folder / "r2").is_dir()
    assert caplog.text.count("the state could not be written (no space left on device)") == 2


def test_a_part_that_is_put_aside_while_it_is_looked_for_is_found(english, tmp_path, caplog, monkeypatch):
    caplog.set_level("INFO", "masklab")
    runs = replicates(english, tmp_path, 2)
    folder, load = folder_of(runs[0]), saved.load
    stop_at(30, runs)

    def meanwhile(file, *others):
        monkeypatch.setattr(saved, "load", load)
        apart.leave(runs[0])
        return load(file, *others)

    monkeypatch.setattr(saved, "load", meanwhile)
    launch(runs[1])
    assert caplog.text.count("goes on by itself from what it was trained beside others") == 2
    assert "m: resuming at step 30 of 60" in caplog.text and not told.aside(folder, 2).exists()
