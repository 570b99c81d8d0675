"""What this processor has instructions for, and where compiled products are faster than those of libraries."""

import functools
import os

import torch

from masklab import cpu


@functools.cache
def features() -> frozenset[str]:
    """`cpu.features`; nothing where numba is told to compile for another processor than this one."""
    if any(os.environ.get(name) is not None for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX")):
        return frozenset()
    return cpu.features()


@functools.cache
def faster_compiled(dtype: torch.dtype) -> bool:
    """Whether `kernels.matmul` is the faster way to products of such factors: on AMD's processors with AVX-512, which
    was measured on Zen 5, and not where a processor multiplies tiles of bf16 numbers (AMX)."""
    needed = {"AuthenticAMD", "avx512f", "avx512bw", "avx512vl"}
    if dtype == torch.bfloat16:
        needed |= {"avx512_bf16"}
    return needed <= features() and "amx_bf16" not in features()
