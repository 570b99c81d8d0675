"""Scripts that a warm process runs: they behave as if Python had been started for them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from masklab.jobs import warm

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="warm processes are for Linux")
PARENT = """
import os, sys
from masklab.jobs import warm
warm.start(1)
print(os.environ[warm.VARIABLE], flush=True)
sys.stdin.read()
"""
SNAKEMAKE = """
import os, subprocess, sys
from masklab.jobs import warm
status = warm.run(sys.argv[1], int(sys.argv[2]), {"TMPDIR": "/somewhere"})
if status is None:
    os.environ.pop(warm.VARIABLE, None)
    os.environ["TMPDIR"] = "/somewhere"
    names = ("OMP", "GOTO", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR")
    os.environ.update({f"{name}_NUM_THREADS": sys.argv[2] for name in names})
    status = subprocess.call([sys.executable, sys.argv[1]])
sys.exit(status)
"""


def eventually(true, seconds=60):
    """Wait until `true()` holds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process runs (one that has ended and was not asked for its status does not)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def parent():
    """A process that has started a warm one: (process, path of the socket)."""
    process = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    path = process.stdout.readline().strip()
    eventually(lambda: os.path.exists(path))
    yield process, path
    process.kill()
    process.wait()
    eventually(lambda: not os.path.exists(path))  # with its parent the warm process ends, and leaves nothing


@pytest.fixture
def begin(parent, tmp_path):
    """Begin a script of these lines, as Snakemake does: the process that has it run, warm or not."""

    def begun(body, threads="1", name="script.py", **environment):
        script = tmp_path / name
        script.write_text(body)
        variables = os.environ | {warm.VARIABLE: parent[1]} | environment
        command = [sys.executable, "-c", SNAKEMAKE, str(script), threads]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=tmp_path, env=variables, text=True, stdout=pipe, stderr=pipe)

    return begun


FACTS = """
import json, os, sys
warm_already = "torch" in sys.modules
import masklab.errors, torch
print(json.dumps({
    "warm": warm_already, "folder": os.getcwd(), "argv": sys.argv, "name": __name__, "threads": torch.get_num_threads(),
    "told": os.environ.get("TOLD"), "variable": os.environ.get("MASKLAB_WARM"), "path": sys.path,
    "environment": dict(os.environ),
    "umask": next(line for line in open("/proc/self/status") if line.startswith("Umask")),
}))
"""


def test_a_script_finds_what_it_would_have_found_and_torch_already_there(begin, tmp_path):
    out, err = begin(FACTS, TOLD="something").communicate()
    found = json.loads(out)
    assert err == "" and found.pop("warm")
    out, _ = begin(FACTS, TOLD="something", threads="2").communicate()  # loaded for one thread: this one starts cold
    assert json.loads(out)["threads"] == 2 and not json.loads(out)["warm"]
    out, _ = begin(FACTS, TOLD="something", **{warm.VARIABLE: "0"}).communicate()
    cold = json.loads(out)
    assert not cold.pop("warm") and found["threads"] == 1
    assert found == cold
    assert found["folder"] == str(tmp_path) and found["told"] == "something" and found["variable"] is None


def test_what_is_forked_has_one_thread(parent):
    (process,) = Path(f"/proc/{parent[0].pid}/task/{parent[0].pid}/children").read_text().split()
    assert os.listdir(f"/proc/{process}/task") == [process]


NUMBA = """
import sys
print("numba.core.typing.builtins" in sys.modules)
"""
FINALIZERS = """
import tempfile, weakref
imported = sum(one.atexit for one in weakref.finalize._registry)
folder = tempfile.TemporaryDirectory()
print(imported, folder.name)
"""


def test_a_job_ends_with_its_own_finalizers_alone(begin):
    """Those of what was imported, among them hundreds of torch's operators, take 35 ms."""
    out, err = begin(FINALIZERS).communicate()
    imported, folder = out.split()
    assert imported == "0" and not os.path.exists(folder) and "ResourceWarning" not in err


def test_a_script_finds_all_that_numba_imports_when_it_first_compiles(begin):
    assert begin(NUMBA).communicate()[0] == "True\n"


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0" * 8, (100).to_bytes(8) + b"{}"])
def test_who_asks_for_half_a_job_is_forgotten(parent, begin, sent):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(parent[1])
        connection.sendall(sent)
    assert begin("print('here')").communicate()[0] == "here\n"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("pass", 0, ""),
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('no')", 1, "no\n"),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL, ""),
    ],
)
def test_its_exit_status_is_the_jobs(begin, body, status, said):
    process = begin(body)
    _, err = process.communicate()
    assert process.returncode == status and said in err


WAITING = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print(os.getpid(), flush=True)
time.sleep(600)
"""


def test_with_snakemake_its_jobs_are_killed(begin):
    process = begin(WAITING)
    job = int(process.stdout.readline())
    assert job != process.pid and alive(job)
    process.kill()
    eventually(lambda: not alive(job))


def test_a_job_does_not_outlive_the_process_between_it_and_its_script(begin):
    process = begin(WAITING)
    job = int(process.stdout.readline())
    between = int(Path(f"/proc/{job}/stat").read_text().rpartition(")")[2].split()[1])
    assert between != process.pid
    os.kill(between, signal.SIGKILL)
    eventually(lambda: not alive(job), seconds=10)
    assert process.wait() == 1 and "ended before this job did" in process.stderr.read()


def test_without_a_warm_process_scripts_run_all_the_same(begin, tmp_path, monkeypatch):
    process = begin("print('here')", **{warm.VARIABLE: str(tmp_path / "nobody" / "1")})
    assert process.communicate()[0] == "here\n" and process.returncode == 0
    monkeypatch.setenv(warm.VARIABLE, "0")
    warm.start(1)
    assert os.environ[warm.VARIABLE] == "0"
    assert begin("print('here')", **{warm.VARIABLE: "0"}).communicate()[0] == "here\n"


REMOVED = """
import os, shutil, sys
from masklab.jobs import warm
warm.start(1)
print(warm.run(sys.argv[1], 1))
shutil.rmtree(os.path.dirname(os.environ[warm.VARIABLE]))
print(warm.run(sys.argv[1], 1))
"""


def test_jobs_start_cold_when_somebody_has_cleared_the_folder_of_temporary_files(tmp_path):
    """As systems do with what is some days old: nobody can come to the warm process any more, and it ends."""
    script = tmp_path / "script.py"
    script.touch()
    done = subprocess.run([sys.executable, "-c", REMOVED, str(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["0", "None"], done.stderr


PRELOADED = """
import os, sys
import torch
from masklab.jobs import preloaded

def asked(*_, **__):
    os.write(2, b"what is forked has asked for a GPU: its forks cannot use one\\n")
    os._exit(1)

for name in ("is_available", "device_count", "current_device", "get_device_properties", "init", "_lazy_init"):
    setattr(torch.cuda, name, asked)
marks = preloaded.load()
print(torch.cuda.is_initialized(), flush=True)
name = "masklab.config.kinds"
file, time, size = marks[name]
preloaded.fresh(marks)
kept = name in sys.modules
for changed in ((file, time + 1, size), (file, time, size + 1), (file + "x", time, size)):
    if os.fork() == 0:
        preloaded.fresh(marks | {name: changed})
        left = [module for module in sys.modules if module.partition(".")[0] == "masklab"]
        print(kept, left, "torch" in sys.modules, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def preloaded():
    """Lines that a process says which has loaded all that a warm one does: of GPUs, and of files that changed."""
    done = subprocess.run([sys.executable, "-c", PRELOADED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("changed", ["time", "size", "file"])
def test_a_job_runs_the_code_of_its_own_moment(changed, preloaded):
    assert preloaded[1 + ["time", "size", "file"].index(changed)] == "True [] True"


def test_what_is_forked_has_not_looked_for_a_gpu(preloaded):
    """CUDA that was begun before a fork fails in the fork; so does one that has counted its devices."""
    assert preloaded[0] == "False" and len(preloaded) == 4
