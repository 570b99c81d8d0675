"""Kernels run each tile once, in any number of threads, and without torch's pool of them."""

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
