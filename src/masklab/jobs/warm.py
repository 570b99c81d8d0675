"""A warm process whose forks are the jobs of a local run: it imports once what takes every cold job 1 to 3 s.

Snakemake would start a Python for every script. In its place (`run`) it sends its environment, folder and open files
to the warm process (`serve`), which has imported what jobs import (`preloaded`) and never used it: no thread runs and
no library holds a state. Two forks later the script runs there as a Python of its own would run it. In between stands
a process that waits for both ends: if Snakemake is killed, it kills the job. If it is killed itself, the kernel kills
the job (PR_SET_PDEATHSIG), which has failed then.

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
import time
import traceback
import weakref
from contextlib import suppress
from pathlib import Path

from masklab.inside_libc import can_end_with, end_with
from masklab.jobs import preloaded, temporary

VARIABLE = "MASKLAB_WARM"
_server = None  # the warm process that this one has started
SIZE = struct.Struct("!q")  # of the request; also an exit status
POLL = 1.0  # seconds between looks at whether Snakemake is still there


def start(threads: int) -> None:
    """Start a warm process for jobs of `threads` threads, which ends with this one; `run` finds it by `VARIABLE`.

    The libraries that compute read their number of threads when they are loaded, so other jobs start cold.
    """
    global _server
    if os.environ.get(VARIABLE) == "0" or not (hasattr(os, "pidfd_open") and can_end_with()):
        return
    path = str(temporary.folder("warm") / str(threads))
    environment = os.environ | _counts(threads)
    environment["JE_ARROW_MALLOC_CONF"] = "background_thread:false"  # the one thread that imports would start
    _server = subprocess.Popen(
        [sys.executable, "-P", "-m", "masklab.jobs.warm", path, str(os.getpid())],
        stdin=subprocess.DEVNULL,
        env=environment,
    )
    os.environ[VARIABLE] = path


def run(script: str, threads: int, variables=None) -> int | None:
    """Run a script in the warm process, with this process's environment, folder and open files: its exit status.

    threads: of the job; variables: laid over the environment. None, and nothing was run, if no warm process is there
    or it is one for another number of threads. Waits for one that is still starting.
    """
    path = os.environ.get(VARIABLE, "")
    if Path(path).name != str(threads):
        return None
    connection = _connection(path)
    if connection is None:
        return None
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    request = {
        "script": script,
        "folder": os.getcwd(),
        "environment": environment | _counts(threads) | (variables or {}),
        "umask": _umask(),
    }
    sent = json.dumps(request).encode()
    with connection:
        try:
            socket.send_fds(connection, [SIZE.pack(len(sent))], [0, 1, 2])
            connection.sendall(sent)
            status = connection.recv(SIZE.size)
        except OSError:
            status = b""
    if len(status) < SIZE.size:
        sys.stderr.write("masklab: the warm process ended before this job did\n")
        return 1
    return SIZE.unpack(status)[0]


def _counts(threads: int) -> dict[str, str]:
    """What Snakemake sets in the environment of a script of so many threads."""
    libraries = ("OMP", "GOTO", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR")
    return {f"{name}_NUM_THREADS": str(threads) for name in libraries}


def _connection(path: str):
    """A connection to the warm process at the socket `path`; None if there is none and none is starting."""
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
            return connection
        except OSError:
            connection.close()
            if _server is None or _server.poll() is not None:
                return None
            time.sleep(0.02)


def serve(path: str, parent: int) -> dict | None:
    """Answer `run`s at the socket `path` until the process `parent` ends; a fork returns with the job to run.

    It ends too when somebody has removed the socket, so that `run` does not wait for one that cannot be reached.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how those in between ended
    path_of_modules = list(sys.path)  # imports add to it
    marks = preloaded.load()
    _settle()
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(path)
    except OSError:  # Snakemake has ended meanwhile
        return None
    listener.listen(256)
    listener.settimeout(POLL)
    while os.getppid() == parent and os.path.exists(path):
        with suppress(TimeoutError):
            connection, _ = listener.accept()
            job = _received(connection)
            if job and os.fork() == 0:
                listener.close()
                return _between(connection, job) | {"path": path_of_modules, "marks": marks}
            for file in job["files"] if job else ():
                os.close(file)
            connection.close()
    shutil.rmtree(Path(path).parent, ignore_errors=True)
    return None


def _received(connection) -> dict | None:
    """The job that `run` asks for; None if it has ended meanwhile."""
    connection.settimeout(None)
    files, sent = [], b""
    with suppress(OSError):
        head, files, *_ = socket.recv_fds(connection, SIZE.size, 3)
        (size,) = SIZE.unpack(head.rjust(SIZE.size, b"\xff"))  # less came: it has ended
        while len(sent) < size and (part := connection.recv(size - len(sent))):
            sent += part
        if 0 < len(sent) == size:
            return json.loads(sent) | {"files": files}
    for file in files:
        os.close(file)
    return None


def _settle() -> None:
    """Leave what was imported as it is: forks neither look through it for garbage nor take it down when they end."""
    for finalizer in list(getattr(weakref.finalize, "_registry", ())):
        finalizer.atexit = False
    gc.collect()
    gc.freeze()


def _between(connection, asked: dict) -> dict:
    """Fork the job and wait for it and for the process that handed it over; only the job returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    between = os.getpid()
    if (job := os.fork()) == 0:
        connection.close()
        _end_with(between)
        return asked
    for file in asked["files"]:
        os.close(file)
    ended = os.pidfd_open(job)
    if ended not in select.select([connection, ended], [], [])[0]:  # Snakemake has ended
        os.kill(job, signal.SIGKILL)
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
    sys.path[:] = [str(Path(job["script"]).resolve().parent), *job["path"]]
    sys.argv = [job["script"]]
    tempfile.tempdir = None
    preloaded.fresh(job["marks"])


def _umask() -> int:
    """This process's; asking the system for it would change it for a moment, for other threads too."""
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("Umask:")).split()[1], 8)


if __name__ == "__main__":
    if (job := serve(sys.argv[1], int(sys.argv[2]))) is not None:
        _run(job)
