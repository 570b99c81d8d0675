"""The C library's memory allocator, set for training on CPUs."""

import ctypes

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # malloc.h
GIB = 2**30


def keep_freed_memory() -> bool:
    """Have glibc keep what is freed for the next allocation; returns whether it does (elsewhere: False).

    By default every tensor above 32 MiB, and at first above 128 KiB, is fresh memory from the kernel, which zeroes
    it page by page: a tenth of the time of an update of a small model.
    """
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return all([mallopt(MMAP_THRESHOLD, GIB), mallopt(TRIM_THRESHOLD, 2 * GIB - 1), mallopt(TOP_PAD, GIB // 16)])
