"""Embeddings and their gradients, against double precision."""

import pytest
import torch

from masklab.kernels.embed import embed, embed_backward


def drawn(copies, count, width, length):
    generator = torch.Generator().manual_seed(1)
    tables = torch.randn(copies * 11, width, generator=generator)
    places = torch.randn(copies, length + 2, width, generator=generator)
    rows = torch.randint(0, 11, (copies, count), generator=generator) + 11 * torch.arange(copies)[:, None]
    columns = torch.randint(0, length, (copies * count,), generator=generator)
    return tables, places, rows.flatten(), columns, columns.view(copies, -1)


@pytest.mark.parametrize(
    "copies, count, width, length", [(1, 1, 1, 1), (3, 70, 24, 7), (2, 200, 80, 25), (1, 9, 192, 3)]
)
@pytest.mark.parametrize("absolute", [True, False])
def test_embeddings_and_their_gradients(copies, count, width, length, absolute):
    """Sums of two numbers to the bit; gradients to 2^-22 of the sums of what they are made of."""
    tables, places, rows, columns, stand = drawn(copies, count, width, length)
    places = places if absolute else None
    own = torch.arange(copies)[:, None]
    wanted = tables[rows].view(copies, count, width)
    wanted = wanted + places[own, stand] if absolute else wanted
    assert torch.equal(embed(tables, rows, places, columns, copies), wanted)

    g = torch.randn(copies, count, width, generator=torch.Generator().manual_seed(2))
    before = torch.ones_like(tables)
    found, at_places = before.clone(), None if places is None else torch.full_like(places, 7.0)
    embed_backward(g, found, rows, at_places, columns)
    true = before.double().index_add(0, rows, g.double().flatten(0, 1))
    size = before.double().index_add(0, rows, g.double().abs().flatten(0, 1))
    assert bool(((found - true).abs() <= 2.0**-22 * size).all())
    for copy in range(copies if absolute else 0):
        true = torch.zeros(places.shape[1:], dtype=torch.float64).index_add(0, stand[copy], g[copy].double())
        size = torch.zeros(places.shape[1:], dtype=torch.float64).index_add(0, stand[copy], g[copy].double().abs())
        assert bool(((at_places[copy] - true).abs() <= 2.0**-22 * size).all())


def test_gradients_depend_on_neither_company_nor_threads():
    _, _, rows, columns, _ = drawn(3, 200, 192, 25)
    g = torch.randn(3, 200, 192, generator=torch.Generator().manual_seed(2))

    def gradients(copies):
        table, position = torch.zeros(len(copies) * 11, 192), torch.empty(len(copies), 27, 192)
        own = rows.view(3, -1)[copies] - 11 * (torch.tensor(copies) - torch.arange(len(copies)))[:, None]
        stand = columns.view(3, -1)[copies].flatten()
        embed_backward(g[copies].contiguous(), table, own.flatten(), position, stand)
        return table.view(len(copies), 11, -1), position

    together, threads = gradients([0, 1, 2]), torch.get_num_threads()
    for copy in range(3):
        assert all(torch.equal(a[copy], b[0]) for a, b in zip(together, gradients([copy]), strict=True))
    try:
        torch.set_num_threads(3 - min(threads, 2))
        assert all(torch.equal(a, b) for a, b in zip(together, gradients([0, 1, 2]), strict=True))
    finally:
        torch.set_num_threads(threads)
