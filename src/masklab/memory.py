"""The C library's memory allocator, set for training on CPUs."""

import ctypes

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # malloc.h
MADV_HUGEPAGE = 14  # sys/mman.h
GIB, HUGE_PAGE = 2**30, 2**21
HEAP = GIB // 2


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
