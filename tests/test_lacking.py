"""What a machine lacks is one line."""

import errno
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import torch

from masklab.files import write_table
from masklab.jobs.lacking import lacking


def raised(action):
    with pytest.raises(Exception) as caught:
        action()
    return caught.value


@pytest.fixture
def full():
    """A device that is always full."""
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    return "/dev/full"


def test_a_full_disk_in_the_words_of_every_library(full):
    def text():
        with open(full, "w") as file:
            file.write("a" * 100_000)

    def array():
        with open(full, "wb", buffering=0) as file:
            np.ones(1_000_000).tofile(file)

    def table():
        with open(full, "wb", buffering=0) as file, pa.ipc.new_stream(file, pa.schema([("a", pa.int64())])) as out:
            out.write_table(pa.table({"a": range(1000)}))

    for action in (text, array, table):
        said = lacking(raised(action))
        assert said and "make room and run the same command again" in said and "\n" not in said


def test_safetensors_on_a_full_disk(tmp_path):
    """In a process whose files may have 4 kB: safetensors maps or writes them in Rust."""
    command = """
import resource, signal, sys, torch
from safetensors.torch import save_file
from masklab.jobs.lacking import lacking
tensors = {"a": torch.ones(100_000)}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    save_file(tensors, sys.argv[1])
except BaseException as error:
    print(lacking(error))
"""
    done = subprocess.run([sys.executable, "-c", command, str(tmp_path / "a")], capture_output=True, text=True)
    assert "make room and run the same command again" in done.stdout, done.stdout + done.stderr


def test_out_of_memory_names_what_to_lower():
    error = raised(lambda: torch.empty(1 << 50))
    said = lacking(error, "pretrain", recipe="m", replicate="1")
    assert said.startswith("out of memory (") and "lower models.m.micro_batch" in said and "\n" not in said
    assert "probes.p.batch_size" in lacking(MemoryError(), "probe", probe="p", recipe="m")
    assert lacking(MemoryError(), "corpus", corpus="c").count("give the job more memory") == 1
    assert "causal_models.m.batch_size" in lacking(MemoryError(), "causal_model", causal="m/r2")


@pytest.mark.parametrize("error", [
    torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.55 GiB of which 1.25 GiB is"
        " free. Including non-PyTorch memory, this process has 22.29 GiB memory in use. Of the allocated memory 21.60"
        " GiB is allocated by PyTorch, and 242.95 MiB is reserved by PyTorch but unallocated. If reserved but"
        " unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True."
    ),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    RuntimeError("CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."),
])  # fmt: skip
def test_out_of_memory_on_a_gpu_asks_for_no_memory_of_the_job(error):
    """That memory is the host's. A retry of the job does not ask for more of it either (`cluster._exhausted`)."""
    said = lacking(error, "pretrain", recipe="m")
    assert said.startswith("out of memory on the GPU (CU") or said.startswith("out of memory on the GPU (cuDNN")
    assert "lower models.m.micro_batch" in said and "--resources gpu=" in said
    assert "more memory; run the same command" in said and "give the job" not in said
    assert "\n" not in said and "PYTORCH" not in said
    assert "probes.p.batch_size, batch_tokens or" in lacking(error, "probe", probe="p", recipe="m")


def test_a_process_of_a_run_that_runs_out_of_memory_says_so_in_a_line(tmp_path, caplog, monkeypatch):
    """Of several processes each is a `python -m masklab.training`: no job stands around it."""
    from masklab.training import __main__, launch
    from masklab.training import run as runs

    monkeypatch.setattr(runs, "read_run", lambda path: SimpleNamespace(name="m"))
    monkeypatch.setattr(__main__, "_begin", lambda run: None)
    monkeypatch.setattr(__main__, "configure", lambda *_: None)
    raised = torch.OutOfMemoryError("CUDA out of memory.")
    monkeypatch.setattr(launch, "launch", lambda run, log: exec("raise given", {"given": raised}))
    assert __main__.main([str(tmp_path / "run.json")]) == 1
    (line,) = caplog.messages
    assert line.startswith("error: out of memory on the GPU") and "models.m.micro_batch" in line
    raised = ValueError("a bug")
    monkeypatch.setattr(launch, "launch", lambda run, log: exec("raise given", {"given": raised}))
    with pytest.raises(ValueError, match="a bug"):
        __main__.main([str(tmp_path / "run.json")])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there():
    said = lacking(raised(lambda: torch.zeros(1, device="cuda")), "pretrain", recipe="m")
    assert said.startswith("device: cuda, but torch finds no GPU") and "\n" not in said
    old = "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver."
    assert lacking(RuntimeError(old)).endswith("update your GPU driver); set device: auto or cpu")


def test_torch_without_a_compiler_names_the_key():
    from torch._inductor.exc import InductorError, InvalidCxxCompiler

    headers = subprocess.CalledProcessError(1, ["/usr/bin/gcc", "main.c"])
    for cause in (InvalidCxxCompiler(), RuntimeError("Failed to find C compiler."), headers):
        said = lacking(InductorError(cause, None), "pretrain", recipe="m", replicate="1")
        assert said.startswith("compile: true, but") and said.endswith("set models.m.compile: false")
        assert "\n" not in said
    assert lacking(InductorError(AssertionError("a bug of torch"), None), "pretrain", recipe="m") is None


def test_other_errors_are_bugs():
    for error in (ValueError("a"), RuntimeError("shape"), FileNotFoundError(2, "gone", "a"), KeyError("disk")):
        assert lacking(error) is None
    said = lacking(PermissionError(errno.EACCES, "Permission denied", "results/a"))
    assert said == "results/a: Permission denied"


def test_a_table_that_does_not_fit_leaves_nothing_behind(tmp_path):
    command = """
import resource, signal, sys, numpy, pyarrow as pa
from masklab.files import write_table
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
write_table(pa.table({"a": numpy.random.default_rng(1).random(100_000)}), sys.argv[1])
"""
    write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    before = (tmp_path / "a.parquet").read_bytes()
    done = subprocess.run([sys.executable, "-c", command, str(tmp_path / "a.parquet")], capture_output=True, text=True)
    assert done.returncode == 1 and "File too large" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
    assert (tmp_path / "a.parquet").read_bytes() == before


def test_the_command_line_says_it_too(tmp_path, monkeypatch):
    """`masklab grow` into a folder on a full disk."""
    from masklab import cli

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "new"))

    monkeypatch.setitem(cli.COMMANDS, "tasks", full)
    assert cli.main(["tasks"]) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space")
def test_training_beyond_the_memory():
    command = """
import resource, sys, torch
from masklab.jobs.lacking import lacking
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
try:
    (torch.ones(40_000, 30_000) @ torch.ones(30_000, 2)).sum()
except BaseException as error:
    print(lacking(error, "pretrain", recipe="m"))
"""
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert "lower models.m.micro_batch" in done.stdout, done.stdout + done.stderr


def test_threads_that_cannot_be_started_in_the_words_of_every_library():
    for error in (
        RuntimeError("can't start new thread"),
        pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
        BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)),
    ):
        said = lacking(error)
        assert said.startswith("no further thread can be started (") and "ulimit -u" in said and "\n" not in said
