"""What Python does not offer of the C library and the kernel: each with a guard, and False where it is not there.

The allocator is glibc's, set for training on CPUs; `end_with` is Linux'. Without the one memory is asked for again and
again, without the other jobs start cold (`masklab.jobs.warm`).
"""

import ctypes
import functools
import os
import signal
import sys

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # malloc.h
MADV_HUGEPAGE = 14  # sys/mman.h
GIB, HUGE_PAGE = 2**30, 2**21
HEAP = GIB // 2
PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


def keep_freed_memory() -> bool:
    """Have glibc keep what is freed for the next allocation; returns whether it does (elsewhere: False).

    By default every tensor above 32 MiB, and at first above 128 KiB, is fresh memory from the kernel, which zeroes
    it page by page. The first `HEAP` bytes are asked for in huge pages, where the kernel gives them on request: fewer
    pages to make, and fewer addresses to translate. They are not taken before they are used.
    """
    try:
        libc = ctypes.CDLL("libc.so.6")
        mallopt = libc.mallopt
    except (OSError, AttributeError):
        return False
    kept = all([mallopt(MMAP_THRESHOLD, GIB), mallopt(TRIM_THRESHOLD, 2 * GIB - 1), mallopt(TOP_PAD, GIB // 16)])
    if kept:
        _ask_for_huge_pages(libc)
    return kept


def _ask_for_huge_pages(libc) -> None:
    """Grow the heap by `HEAP` bytes and advise the kernel on what lies there; no harm done where it declines."""
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if block := libc.malloc(HEAP):
        first = -(-block // HUGE_PAGE) * HUGE_PAGE
        libc.madvise(first, (block + HEAP - first) // HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE)
        libc.free(block)


def can_end_with() -> bool:
    """Whether `end_with` can be asked for."""
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "prctl")


def end_with() -> bool:
    """Have the kernel kill this process when the one that forked it ends; returns whether it will."""
    return can_end_with() and ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) == 0


@functools.cache
def parallel():
    """`GOMP_parallel(function, data, threads, flags)` of the OpenMP library that torch computes with, None where
    there is none: `function(data)` in each of `threads` threads of its pool, this one among them.

    torch opens its library for all to see, but for torch's builds for Linux on arm64: there it is asked for by name,
    which gives the one that is open.
    """
    for name, how in ((None, ctypes.DEFAULT_MODE), ("libgomp.so.1", os.RTLD_NOLOAD)):
        try:
            found = ctypes.CDLL(name, how).GOMP_parallel
        except (OSError, AttributeError, TypeError):
            continue
        found.argtypes, found.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint], None
        return found
    return None


@functools.cache
def function_at(address: int):
    """The compiled function of one address that lies at `address`; returns nothing."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
