"""After the work of a job nothing can fail it: a record, a state or a store that cannot be written is a warning."""

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from masklab.config import kinds
from masklab.files import read_json, write_json
from masklab.jobs import queued, state, store
from masklab.jobs.code import Code
from masklab.jobs.status import status
from masklab.jobs.underway import path_of

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow/scripts"))


class Named(dict):
    """Stands for Snakemake's named lists: items, attributes and positions."""

    def __getattr__(self, name):
        return self[name]

    def __getitem__(self, key):
        return list(self.values())[key] if isinstance(key, int) else super().__getitem__(key)

    def __iter__(self):
        return iter(self.values())


@pytest.fixture
def job(tmp_path, monkeypatch):
    """`_job.job` for a job as Snakemake describes it to a script, in a folder of its own."""
    import _job

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_job, "configure", lambda file: None)
    monkeypatch.delenv(store.VARIABLE, raising=False)
    monkeypatch.delenv("MASKLAB_WARM", raising=False)
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")
    Path("input").write_text("rows")
    params = {"config": {"size": 4}, "code": Code.of({"a": "1"}), "state": "results/state/tasks/t"}
    snakemake = SimpleNamespace(
        rule="task", wildcards={"task": "t"}, threads=1, params=params, input=["input"],
        output=Named(facts="results/tasks/t/task.json"), log=["results/logs/tasks/t.log"],
    )  # fmt: skip
    return lambda: _job.job(snakemake)


def work():
    write_json({"kind": "labels"}, "results/tasks/t/task.json")


def test_a_job_leaves_record_and_entry(job):
    with job():
        work()
    assert read_json("results/made/tasks/t.json")["finished"]
    assert read_json("results/tasks/t/task.json")["made_from"] == {"size": 4}
    Path("results/tasks/t/task.json").unlink()
    with pytest.raises(SystemExit) as ending, job():
        pytest.fail("it lies in the store")
    assert ending.value.code == 0 and Path("results/tasks/t/task.json").exists()


def test_the_state_of_a_job_that_finds_its_artifact_in_the_store_goes(job):
    """Else `masklab status` would show a job for ever that was interrupted before somebody else's had ended."""
    with job():
        work()
    Path("results/tasks/t/task.json").unlink()
    write_json({"done": 3, "total": 4, "unit": "rows", "time": 0.0}, "results/state/tasks/t/status.json")
    with pytest.raises(SystemExit), job():
        pytest.fail("it lies in the store")
    assert status(Path("results"))["jobs"] == []


def test_a_record_that_cannot_be_written(job, caplog):
    Path("results").mkdir()
    Path("results/made").write_text("a file where the folder of records should be")
    with job():
        work()
    assert "the record could not be written" in caplog.text and Path("results/tasks/t/task.json").exists()


def test_a_store_that_cannot_be_written(job, caplog):
    Path(".masklab").write_text("a file where the folder should be")
    with job():
        work()
    assert "not kept in the store" in caplog.text and read_json("results/made/tasks/t.json")["finished"]


def test_an_error_of_the_work_itself_is_one_line_and_status_1(job, caplog):
    from masklab.errors import MaskLabError

    with pytest.raises(SystemExit) as ending, job():
        raise MaskLabError("input: no rows")
    assert ending.value.code == 1 and "error: input: no rows" in caplog.text
    assert read_json("results/made/tasks/t.json")["finished"] is False and not Path(".masklab/store/task").exists()


@pytest.mark.parametrize(
    ("code", "said"),
    [("raise KeyError('two\\nlines')", "KeyError: 'two\\nlines'"), ("import sys; sys.exit(0)", "SystemExit: 0")],
)
def test_an_error_of_a_users_file_is_one_line_with_its_own(code, said, job, tmp_path, caplog):
    """Whatever it was in, and the traceback is in the log of the job."""
    (tmp_path / "mine.py").write_text(f"def made():\n    {code}\n")
    kinds.load([tmp_path / "mine.py"])
    log = Path("results/logs/tasks/t.log")
    log.parent.mkdir(parents=True)
    with pytest.raises(SystemExit) as ending, job():
        sys.modules["mine"].made()
    kinds.load([])
    assert ending.value.code == 1 and caplog.messages == [f"error: mine.py:2: {said}"]
    assert "Traceback" in log.read_text() and "in made" in log.read_text()
    assert read_json(path_of(log))["failed"] == caplog.messages[0]


def test_an_error_that_a_machine_explains_is_not_the_users(job, tmp_path, caplog):
    (tmp_path / "mine.py").write_text("def made():\n    raise MemoryError('no room')\n")
    kinds.load([tmp_path / "mine.py"])
    with pytest.raises(SystemExit), job():
        sys.modules["mine"].made()
    kinds.load([])
    assert caplog.messages[0].startswith("error: out of memory (no room)")


def test_an_input_that_changes_while_a_job_reads_it_is_read_again(job, caplog):
    """What was made of the old content is newer than the file: nothing else would ever make it again."""
    with pytest.raises(SystemExit) as ending, job():
        work()
        Path("input").write_text("other rows")
    assert ending.value.code == 1 and "input: changed while this job read it; run the same command again" in caplog.text
    assert not Path(".masklab/store/task").exists() and not read_json("results/made/tasks/t.json")["finished"]
    with job():
        work()
    assert read_json("results/made/tasks/t.json")["finished"]


def test_a_users_file_that_was_edited_while_a_job_waited_is_no_longer_its_code(tmp_path):
    import _job
    from masklab.jobs.code import Sources

    file = tmp_path / "mine.py"
    file.write_text("RATE = 1")
    noted = Sources(Path(_job.__file__).parents[2] / "src", Path(_job.__file__).parent).of("corpus.py", str(file))
    noted.files = [str(file)]
    assert _job.edited(noted) == []
    file.write_text("RATE = 1  # a comment")
    assert _job.edited(noted) == []
    file.write_text("RATE = 2")
    assert _job.edited(noted) == ["mine.py"]
    assert _job.edited(Code.of({"mine.py": "1"})) == []


def test_so_is_what_a_users_file_imports_from_beside_itself(tmp_path):
    import _job
    from masklab.jobs.code import Sources

    file, helper = tmp_path / "mine.py", tmp_path / "helper.py"
    file.write_text("import helper")
    helper.write_text("RATE = 1")
    noted = Sources(Path(_job.__file__).parents[2] / "src", Path(_job.__file__).parent).of("corpus.py", str(file))
    noted.files = [str(file)]
    assert "helper.py" in noted.modules and _job.edited(noted) == []
    helper.write_text("RATE = 2")
    assert _job.edited(noted) == ["helper.py"]
    helper.unlink()
    assert _job.edited(noted) == ["helper.py"]
    file.unlink()
    assert _job.edited(noted) == ["helper.py", "mine.py"]


@pytest.mark.parametrize("text", ["RATE = (", "<<<<<<< HEAD", "\0"])
def test_so_is_what_is_no_python_any_more(text, tmp_path):
    """It is just being written, or a merge has left its marks."""
    import _job
    from masklab.jobs.code import Sources

    file, helper = tmp_path / "mine.py", tmp_path / "helper.py"
    file.write_text("import helper\nRATE = 1\n\n\ndef made():\n    return helper.RATE")
    helper.write_text("RATE = 1")
    sources = Sources(Path(_job.__file__).parents[2] / "src", Path(_job.__file__).parent)
    for root in (str(file), f"{file}:made"):
        helper.write_text("RATE = 1")
        noted = sources.of("corpus.py", root)
        noted.files = [str(file)]
        assert _job.edited(noted) == []
        helper.write_text(text)
        assert _job.edited(noted) == ["helper.py"]
    file.write_text(text)
    assert {"mine.py:made", "helper.py"} <= set(_job.edited(noted))


def test_so_is_what_scripts_import_from_beside_themselves(monkeypatch):
    """Snakemake keeps a script as it was when the run began, and not these."""
    import _job
    from masklab.jobs import code

    noted = code.Sources(Path(_job.__file__).parents[2] / "src", Path(_job.__file__).parent).of("figure.py")
    part = "workflow/scripts/_results.py"
    monkeypatch.setenv(code.BEGAN, "0")
    assert part in noted.modules and _job.edited(noted) == []
    assert _job.edited(Code.of(noted.modules | {part: "1"})) == [part]
    monkeypatch.setenv(code.BEGAN, str((Path(_job.__file__).parent / "_results.py").stat().st_ctime))
    assert code.written_since([part])


def test_so_is_code_of_masklab_itself_that_was_edited_since_the_run_began(monkeypatch):
    """A `git pull` while a run goes: its jobs import what lies there, and would keep it under the old code's name."""
    import _job
    from masklab.jobs import code

    sources = code.Sources(Path(_job.__file__).parents[2] / "src", Path(_job.__file__).parent)
    noted = sources.of("corpus.py")
    other = Code.of(noted.modules | {"masklab.rng": "1", "masklab.gone": "2", "workflow/scripts/corpus.py": "3"})
    for began, found in (("0", ["masklab.gone", "masklab.rng"]), (None, [])):
        if began is None:
            monkeypatch.delenv(code.BEGAN)
        else:
            monkeypatch.setenv(code.BEGAN, began)
        assert _job.edited(noted) == [] and _job.edited(other) == found
    code.leave_time()
    assert not code.written_since(noted.modules)


def test_code_of_masklab_that_keeps_its_older_time_is_looked_at_too(tmp_path, monkeypatch):
    """`rsync -a` and `mv` do so."""
    from masklab.jobs import code

    file = tmp_path / "src/masklab/rng.py"
    file.parent.mkdir(parents=True)
    monkeypatch.setattr(code, "__file__", str(tmp_path / "src/masklab/jobs/code.py"))
    file.write_text("one")
    time.sleep(0.05)
    code.leave_time()
    assert not code.written_since(["masklab.rng"])
    time.sleep(0.05)
    new = file.with_name("new")
    new.write_text("two")
    os.utime(new, (1e9, 1e9))
    new.rename(file)
    assert code.written_since(["masklab.rng"])


def test_users_files_of_one_name_are_not_taken_for_each_other(tmp_path):
    import _job
    from masklab.jobs.code import Sources

    files = [tmp_path / folder / "probe.py" for folder in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        file.write_text(f"NAME = {file.parent.name!r}")
    sources = Sources(Path(_job.__file__).parents[2] / "src", Path(_job.__file__).parent)
    noted = sources.of("corpus.py", str(files[0]), files=list(map(str, files)))
    noted.files = list(map(str, files))
    assert _job.edited(noted) == []
    files[1].write_text("NAME = 2")
    assert _job.edited(noted) == [], "another job's"
    files[0].write_text("NAME = 1")
    assert _job.edited(noted) == ["one/probe.py"]


def test_that_a_job_has_ended_cannot_be_said(job, caplog, monkeypatch):
    from masklab.jobs.underway import Underway

    def refuse(self):
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(Underway, "ended", refuse)
    with job():
        work()
    assert "that it ended could not be written" in caplog.text and Path("results/tasks/t/task.json").exists()


def test_a_state_that_cannot_be_removed(tmp_path, caplog, monkeypatch):
    (tmp_path / "state.safetensors").touch()

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    with caplog.at_level(logging.WARNING):
        state.done(tmp_path)
    assert "the state of finished work could not be removed (Permission denied)" in caplog.text
    with pytest.raises(PermissionError):
        state.clear(tmp_path)


ALONE = """
import sys, time
sys.path.insert(0, "workflow/scripts")
import _job
_job.watch(0.1)
print("begun", flush=True)
time.sleep(60)
"""


def test_where_the_kernel_ends_no_job_a_job_ends_itself_with_its_snakemake(monkeypatch):
    """As on macOS, where a job's parent is a shell that outlives Snakemake."""
    with subprocess.Popen(["sleep", "60"]) as snakemake:
        monkeypatch.setenv(queued.SNAKEMAKE, str(snakemake.pid))
        root = Path(__file__).parents[1]
        job = subprocess.Popen([sys.executable, "-c", ALONE], cwd=root, stdout=subprocess.PIPE, text=True)
        assert "begun\n" in iter(job.stdout.readline, "")
        time.sleep(0.3)
        assert job.poll() is None
        snakemake.kill()
    assert job.wait(30) == -signal.SIGKILL


def test_a_job_watches_only_where_the_kernel_does_not(job, monkeypatch):
    import _job

    watched = []
    monkeypatch.setenv(store.VARIABLE, "off")
    monkeypatch.setattr(_job, "watch", lambda: watched.append(1))
    for kernel in (True, False):
        monkeypatch.setattr(_job, "end_with", lambda kernel=kernel: kernel)
        with job():
            work()
    assert watched == [1]
