"""Compiled functions give the same bits in the process that compiles them and in those that find them in the cache."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib
import numpy as np
from masklab.embeddings import _epoch
from masklab.sparse.active_set import solve
from masklab.sparse.descent import descend

rng, found = np.random.default_rng(0), hashlib.sha256()
atoms = rng.normal(size=(64, 256)).astype(np.float32)
atoms /= np.linalg.norm(atoms, axis=0)
x = rng.normal(size=(400, 64)).astype(np.float32)
x /= np.linalg.norm(x, axis=1)[:, None]
for array in solve(x @ atoms, atoms.T @ atoms, (x.astype(float) ** 2).sum(1), 0.05, 1e-4, 64):
    found.update(array.tobytes())
block, gradient = atoms.T[:128].copy(), rng.normal(size=(128, 64)).astype(np.float32)
descend(block, gradient, np.abs(rng.normal(size=(128, 128))).astype(np.float32), 1e-6)
ids, offsets = rng.integers(0, 50, 2000), np.arange(0, 2001, 20)
vectors, outputs = rng.normal(size=(50, 64)).astype(np.float32), np.zeros((50, 64), np.float32)
drawn = np.ones(50), np.zeros(50, np.int64)
_epoch(ids, offsets, 0, 2000, vectors, outputs, *drawn, 5, 5, 0.05, 0.01, np.uint64(12345), 0.0)
for array in (block, gradient, vectors, outputs):
    found.update(array.tobytes())
print(found.hexdigest())
"""

KERNELS = """
import hashlib
import torch
from masklab.kernels.rowwise import add_norm, add_norm_backward, gelu, gelu_backward_

found, shape = hashlib.sha256(), (2, 300, 96)
for dtype in (torch.float32, torch.bfloat16):
    torch.manual_seed(1)
    y, residual, g, more, beside = torch.randn(5, *shape).to(dtype)
    bias, weight, shift = torch.randn(3, 2, 96)
    z, moments = add_norm(y, weight, shift, 1e-6, residual, bias)
    into, of_bias = torch.empty(3, 2, 96), torch.empty(2, 96)
    back = add_norm_backward(g, y, moments, weight, into, more=more, beside=beside)
    active = gelu(y, bias)
    for made in (z, moments, *back, into, active, gelu_backward_(g, y, bias, of_bias), of_bias):
        found.update(made.view(torch.uint8).numpy().tobytes())
print(found.hexdigest())
"""


@pytest.mark.parametrize("script", [SCRIPT, KERNELS], ids=["loops", "kernels"])
def test_compiled_and_cached_code_agree_bit_for_bit(tmp_path, script):
    variables = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found = [
        subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert list(tmp_path.rglob("*.nbc")) and found[0] == found[1]
