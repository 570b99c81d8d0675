"""A warm process whose forks are the jobs of a local run: it imports torch once, which takes every cold job 1 to 2 s.

Snakemake starts a Python for every script. That one (`hand_over`) sends its environment, folder and open files to the
warm process (`serve`), which has imported what jobs import, but nothing of MaskLab's, and never used it: no thread
runs and no library holds a state. Two forks later the script runs there as it would have here. In between stands a
process that waits for both ends: a script that is killed takes its job along, and a job's exit status is its script's.
If that process is killed itself, the kernel kills the job (PR_SET_PDEATHSIG) and the script fails.

Only on Linux, only where Snakemake itself runs the jobs, and not within a container; else jobs start cold.
`MASKLAB_WARM=0` in the environment turns it off.
"""

import atexit
import gc
import json
import os
import runpy
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from masklab.inside_libc import can_end_with, end_with

VARIABLE = "MASKLAB_WARM"
PRELOADED = (
    "torch", "safetensors.torch", "tokenizers", "pyarrow.parquet", "pyarrow.compute", "pandas", "pydantic",
    "scipy.special", "matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf",
    "snakemake.script",
)  # fmt: skip
SIZE = struct.Struct("!q")  # of the request; also an exit status
POLL = 1.0  # seconds between looks at whether Snakemake is still there


def start(threads: int) -> None:
    """Start a warm process for jobs of `threads` threads, which ends with this one; scripts find it by `VARIABLE`.

    The libraries that compute read their number of threads when they are loaded, so other jobs start cold.
    """
    if os.environ.get(VARIABLE) == "0" or not (hasattr(os, "pidfd_open") and can_end_with()):
        return
    folder = tempfile.mkdtemp(prefix="masklab-")  # readable by its owner alone
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = str(Path(folder, str(threads)))
    counts = ("OMP", "GOTO", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR")  # what Snakemake sets for a script
    environment = os.environ | {f"{name}_NUM_THREADS": str(threads) for name in counts}
    environment["JE_ARROW_MALLOC_CONF"] = "background_thread:false"  # the one thread that imports would start
    subprocess.Popen(
        [sys.executable, "-P", "-m", "masklab.jobs.warm", path, str(os.getpid())],
        stdin=subprocess.DEVNULL,
        env=environment,
    )
    os.environ[VARIABLE] = path


def hand_over() -> None:
    """Have a warm process run this script and leave with its exit status; return if there is none."""
    path = os.environ.pop(VARIABLE, "")
    if Path(path).name != os.environ.get("OMP_NUM_THREADS"):
        return
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:  # it is not ready yet
        return
    request = {
        "script": sys.argv[0],
        "folder": os.getcwd(),
        "path": sys.path,
        "environment": dict(os.environ),
        "umask": _umask(),
    }
    sent = json.dumps(request).encode()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the job as well
    signal.signal(signal.SIGTERM, lambda *_: connection.send(b"T"))
    try:
        socket.send_fds(connection, [SIZE.pack(len(sent))], [0, 1, 2])
        connection.sendall(sent)
        status = connection.recv(SIZE.size)
    except OSError:
        status = b""
    if len(status) < SIZE.size:
        sys.stderr.write("masklab: the warm process ended before this job did\n")
        os._exit(1)
    os._exit(SIZE.unpack(status)[0])


def serve(path: str, parent: int) -> dict | None:
    """Answer `hand_over`s at the socket `path` until the process `parent` ends; a fork returns with the job to run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how those in between ended
    for name in PRELOADED:
        with suppress(ImportError):
            import_module(name)
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(path)
    except OSError:  # Snakemake has ended meanwhile
        return None
    listener.listen(256)
    listener.settimeout(POLL)
    while os.getppid() == parent:
        with suppress(TimeoutError):
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                return _between(connection)
            connection.close()
    shutil.rmtree(Path(path).parent, ignore_errors=True)
    return None


def _between(connection) -> dict:
    """Fork the job and wait for it and for the script that handed it over; only the job returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    connection.setblocking(True)
    head, files, *_ = socket.recv_fds(connection, SIZE.size, 3)
    if len(head) < SIZE.size:
        os._exit(1)
    (size,) = SIZE.unpack(head)
    sent = b""
    while len(sent) < size and (part := connection.recv(size - len(sent))):
        sent += part
    if len(sent) < size:
        os._exit(1)
    between = os.getpid()
    if (job := os.fork()) == 0:
        connection.close()
        _end_with(between)
        return json.loads(sent) | {"files": files}
    for file in files:
        os.close(file)
    ended = os.pidfd_open(job)
    while ended not in select.select([connection, ended], [], [])[0]:
        os.kill(job, signal.SIGTERM if connection.recv(1) else signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
    with suppress(OSError):
        connection.sendall(SIZE.pack(status if status >= 0 else 128 - status))
    os._exit(0)


def _end_with(parent: int) -> None:
    """Have the kernel kill this process when `parent`, which forked it, ends."""
    if not end_with() or os.getppid() != parent:  # it ended before the kernel knew
        os._exit(1)


def _run(job: dict) -> None:
    """Become the script of `job`, and leave without taking down module by module what was imported."""
    status = 0
    try:
        _become(job)
        runpy.run_path(job["script"], run_name="__main__")
    except SystemExit as ending:
        status = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        if isinstance(ending.code, str):
            sys.stderr.write(ending.code + "\n")
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _become(job):
    for number, file in enumerate(job["files"]):
        os.dup2(file, number)
        os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.chdir(job["folder"])
    os.umask(job["umask"])
    os.environ.clear()
    os.environ.update(job["environment"])
    sys.path[:] = job["path"]
    sys.argv = [job["script"]]
    tempfile.tempdir = None
    for name in [name for name in sys.modules if name.partition(".")[0] == "masklab"]:
        del sys.modules[name]  # the code of today


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


if __name__ == "__main__":
    if (job := serve(sys.argv[1], int(sys.argv[2]))) is not None:
        _run(job)
