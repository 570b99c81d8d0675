"""Kernels run each tile once, in any number of threads, and without torch's pool of them."""

import ctypes
import os
import platform
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch

from masklab import inside_libc
from masklab.kernels import kernel as launching
from masklab.kernels.kernel import TILES, kernel, launch, next_tile, whole
from masklab.kernels.scalars import array_at

COUNT = np.int64(0)


@kernel
def count(p):
    """Add one to the number of every tile."""
    numbers = array_at(whole(p, 2), COUNT, whole(p, TILES), 1)
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        numbers[tile, 0] += whole(p, 3)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("pool", [True, False], ids=["torch's threads", "none"])
def test_every_tile_is_made_once(threads, pool, request, monkeypatch):
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(threads)
    if not pool:
        monkeypatch.setattr(launching, "parallel", lambda: None)
    for tiles in (0, 1, 2, 1000):
        numbers = torch.zeros(tiles, dtype=torch.int64)
        launch(count, tiles, numbers.data_ptr(), 3)
        assert (numbers == 3).all()


def test_torchs_pool_of_threads_is_there():
    """As it is in the wheels of Linux; elsewhere kernels run in one thread."""
    assert inside_libc.parallel() is not None


def test_torchs_pool_is_found_where_it_is_not_open_to_all(monkeypatch):
    """As in the wheels for Linux on arm64."""
    opened, there = ctypes.CDLL, ctypes.cast(inside_libc.parallel(), ctypes.c_void_p).value

    def without(name, *how):
        if name is None:
            raise AttributeError("GOMP_parallel")
        return opened(name, *how)

    monkeypatch.setattr(ctypes, "CDLL", without)
    found = inside_libc.parallel.__wrapped__()
    assert ctypes.cast(found, ctypes.c_void_p).value == there


LONG = """
import torch
from masklab.kernels.attend import Layout, attend, attend_backward
from masklab.kernels.rowwise import add_norm, add_norm_backward, gelu, gelu_backward_

torch.set_num_threads(2)
length, starts = torch.tensor([700, 700]), torch.tensor([0, 700])
layout = Layout(2, starts, length, starts, length, 700, 700, ends=([1400],) * 2)
qkv = torch.randn(1, 1400, 3 * 128)
for _ in range(5):
    context, weights = attend(qkv, qkv, layout, 2, 0.1)
    attend_backward(context, qkv, qkv, weights, layout, 2, 0.1)
x, weight, into = torch.randn(1, 70, 6000), torch.ones(1, 6000), torch.empty(3, 1, 6000)
for _ in range(5):
    z, moments = add_norm(x, weight, weight, 1e-6)
    add_norm_backward(z, x, moments, weight, into)
    gelu_backward_(gelu(x, weight), x, weight, into[0])
print(bool(context.isfinite().all() and z.isfinite().all()))
"""


def test_what_kernels_compute_in_is_theirs_until_they_end():
    """In a process whose freed memory is gone at once: what was let go of too early would be a segmentation fault."""
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "8192", "MALLOC_TRIM_THRESHOLD_": "0"}
    done = subprocess.run([sys.executable, "-c", LONG], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


ROUND = """
import numba
import numpy as np
import torch
from masklab.kernels.processor import faster_compiled
from masklab.kernels.scalars import written
from masklab.kernels.vectors import load, rounded, store, store_low

@numba.njit
def both(source, low, whole):
    store_low(low, 0, load(source, 0))
    store(whole, 0, rounded(load(source, 0)))

@numba.njit
def one(value):
    return written(value, np.uint16(0))

torch.manual_seed(1)
x, whole = torch.cat([torch.randn(14), torch.tensor([1 + 2**-8, 1 + 3 * 2**-8])]), torch.empty(16)
low = torch.empty(16, dtype=torch.bfloat16)
both(x.data_ptr(), low.data_ptr(), whole.data_ptr())
assert torch.equal(low, x.bfloat16()) and torch.equal(whole, x.bfloat16().float())
assert [one(value) for value in x.numpy()] == x.bfloat16().view(torch.uint16).tolist()
print(faster_compiled(torch.float32))
"""


@pytest.mark.parametrize("processor", ["this one", "x86-64-v3"])
def test_rounding_to_bf16(processor):
    """Halves to even, on processors without an instruction for it too; there libraries make the products."""
    if processor != "this one" and platform.machine() != "x86_64":
        pytest.skip("another processor of the same kind of machine")
    other = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""} if processor != "this one" else {}
    done = subprocess.run([sys.executable, "-c", ROUND], capture_output=True, text=True, env=os.environ | other)
    assert done.returncode == 0, done.stderr
    assert not other or done.stdout == "False\n"
