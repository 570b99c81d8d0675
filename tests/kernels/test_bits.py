"""Random bits: those of torch's generator, whatever was drawn before and is drawn after."""

import pytest
import torch

from masklab.kernels.bits import Keep, draw, draw_seeded


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 5])
@pytest.mark.parametrize("sizes", [(1, 2, 3, 700, 5), (312, 312, 1), (311, 2, 4000, 3)])
def test_they_are_torchs(seed, sizes):
    torch.manual_seed(seed)
    wanted = [torch.empty(size, dtype=torch.int64).random_(-(2**63), None) for size in sizes]
    after = torch.rand(5)
    torch.manual_seed(seed)
    found = [torch.empty(size, dtype=torch.int64) for size in sizes]
    for words in found:
        draw(words)
    assert all(map(torch.equal, found, wanted))
    assert torch.equal(torch.rand(5), after)
    seeded = torch.empty(sizes[0], dtype=torch.int64)
    draw_seeded(seed, seeded)
    assert torch.equal(seeded, wanted[0])


def test_draws_begin_in_the_midst_of_a_number():
    torch.manual_seed(3)
    torch.rand(3)  # an odd number of halves
    wanted = torch.empty(1000, dtype=torch.int64).random_(-(2**63), None)
    torch.manual_seed(3)
    torch.rand(3)
    found = torch.empty(1000, dtype=torch.int64)
    draw(found)
    assert torch.equal(found, wanted)


def test_addresses_are_those_of_each_copys_bits():
    bits = torch.zeros(3, 40, dtype=torch.int16)
    keep = Keep(bits, [0, 4, 8], [(1, 2, 4)] * 3, 0.5)
    assert (keep.addresses - bits.data_ptr()).tolist() == [0, 2 * 44, 2 * 88]
    assert keep.arguments[2:] == (0, 2.0)
