"""What a machine lacks (room on a disk, memory, rights) is not a bug of a job: one line says what, and what helps."""

import errno
import os

ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
OTHER = (
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.ESTALE,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENAMETOOLONG,
)
# Libraries written in Rust and C++ raise their own errors, with the system's words in them.
SAID = {os.strerror(number): number for number in (*ROOM, *OTHER)}
MEMORY = ("can't allocate memory", "cannot allocate memory", "out of memory", "std::bad_alloc", "status_alloc_failed")
# In the words of Python, of Arrow and of the system, which may have no room for another one's stack.
THREADS = ("can't start new thread", "failed to launch worker thread", os.strerror(errno.EAGAIN).lower())
OF_GPU = ("cuda", "cublas", "cudnn", "nccl")  # a library that says so has run out of a GPU's memory
# In the words of torch, where a tensor is put on a GPU.
NO_GPU = ("compiled with cuda enabled", "found no nvidia driver", "no cuda gpus are available", "driver on your system")
# In the words of torch.compile, where it has no compiler to hand its code to.
NO_COMPILER = ("no working c++ compiler", "failed to find c compiler", "calledprocesserror", "working triton",
               "triton gpu compiler")  # fmt: skip
# What to lower where a job runs out of memory.
LOWER = {
    "pretrain": "models.{recipe}.micro_batch (sequences per forward pass; a lower one begins the run anew)",
    "causal_model": "causal_models.{causal}.batch_size",
    "probe": "probes.{probe}.batch_size, batch_tokens or max_length, where the probe has them",
    "dictionary": "dictionaries.{dictionary}.sample or batch_size",
}


def lacking(error: BaseException, rule: str = "", **wildcards) -> str | None:
    """One line for an error that says what the machine lacks; None for any other. rule, wildcards: of the job."""
    if _is_of_memory(error):
        names = {name: value.partition("/")[0] for name, value in wildcards.items()}  # a model of replicate 2: m/r2
        key = LOWER.get(rule, "").format(**names)
        where, more = "", "give the job more memory"
        if _is_of_gpu(error):
            where = " on the GPU"
            more = "run fewer jobs on it at once (--resources gpu=<number>), or use one with more memory"
        said = _first(error).split(". Of the allocated memory")[0]  # torch goes on with its own settings
        advice = f"lower {key}, or {more}" if key else more
        return f"out of memory{where} ({said}); {advice}; run the same command again to resume"
    if any(words in str(error).lower() for words in THREADS):
        more = "raise the limits of processes and of memory (ulimit -u, ulimit -v), or run fewer jobs at once (--cores)"
        return f"no further thread can be started ({_first(error)}); {more}; run the same command again to resume"
    if isinstance(error, RuntimeError | AssertionError) and any(words in str(error).lower() for words in NO_GPU):
        return f"device: cuda, but torch finds no GPU that it can use here ({_first(error)}); set device: auto or cpu"
    if _is_of_compiler(error):
        key = "models.{recipe}.compile".format(**{"recipe": "<model>"} | wildcards)
        return f"compile: true, but torch cannot compile here ({_first(error)}); set {key}: false"
    number = _number(error)
    if number is None:
        return None
    file = getattr(error, "filename", None)
    where = f"{file}: " if file else ""
    if number in ROOM:
        said = _first(error) if not file else os.strerror(number)
        return f"{where}{said}: the disk is full, or a quota; make room and run the same command again to go on"
    return f"{where}{os.strerror(number) if file else _first(error)}"


def passes(error: BaseException) -> bool:
    """Whether an error in reading a file is the machine's, so that the file may be read tomorrow: memory, threads, open
    files, rights, a stale handle. What a disk cannot read (EIO) is lost."""
    return lacking(error) is not None and _number(error) != errno.EIO


def _is_of_memory(error):
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError | OSError) and any(words in text for words in MEMORY)


def _is_of_gpu(error):
    text = str(error).lower()
    return type(error).__name__ == "OutOfMemoryError" or any(words in text for words in OF_GPU)


def _is_of_compiler(error):
    ours = type(error).__module__.startswith(("torch._inductor", "torch._dynamo"))
    return ours and any(words in str(error).lower() for words in NO_COMPILER)


def _number(error) -> int | None:
    """The system's number of an error that is of the machine's; None if it is not."""
    number = getattr(error, "errno", None) if isinstance(error, OSError) else None
    if number is None:
        text = str(error)
        if isinstance(error, OSError) and "requested and" in text and "written" in text:  # numpy's tofile
            return errno.ENOSPC
        number = next((number for words, number in SAID.items() if words in text), None)
    return number if number in (*ROOM, *OTHER) else None


def _first(error) -> str:
    text = str(error).strip()
    return text.splitlines()[0].rstrip(". ") if text else type(error).__name__
