"""Random bits: those of torch's generator."""

import pytest
import torch

from masklab.kernels.bits import Keep, draw_seeded


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 5])
@pytest.mark.parametrize("size", [1, 2, 311, 312, 313, 4000])
def test_they_are_torchs(seed, size):
    wanted, found = (torch.empty(size, dtype=torch.int64) for _ in range(2))
    wanted.random_(-(2**63), None, generator=torch.Generator().manual_seed(seed))
    draw_seeded(seed, found)
    assert torch.equal(found, wanted)


def test_addresses_are_those_of_each_copys_bits():
    bits = torch.zeros(3, 40, dtype=torch.int16)
    keep = Keep(bits, [0, 4, 8], [(1, 2, 4)] * 3, 0.5)
    assert (keep.addresses - bits.data_ptr()).tolist() == [0, 2 * 44, 2 * 88]
    assert keep.arguments[2:] == (0, 2.0)
