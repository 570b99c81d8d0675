"""What attention adds to scores by distance where a row's tokens stand anywhere: laid out query by query and key by
key, and its gradient.

S copies, B rows each, n heads, P tokens of each copy among all its rows, L positions
"""

import torch

from masklab.kernels.attend import Layout, middle
from masklab.kernels.kernel import TILES, kernel, launch, next_tile, number_of, whole
from masklab.kernels.panels import wide
from masklab.kernels.vectors import number, put


@kernel
def forward(p):
    """What `spread` asks for."""
    heads, size, high = whole(p, 2), whole(p, 3), whole(p, 4)
    starts, counts, columns = whole(p, 5), whole(p, 6), whole(p, 7)
    bias, bias_copy, bias_head, values = whole(p, 8), whole(p, 9), whole(p, 10), whole(p, 11)
    while True:
        row = next_tile(p)
        if row >= whole(p, TILES):
            break
        start, count = number_of(starts, row), number_of(counts, row)
        own = columns + 8 * start
        for i in range(count):
            for head in range(heads):
                to = values + 4 * ((start + i) * heads + head) * high
                of = bias + 4 * (row // size * bias_copy + head * bias_head - number_of(own, i))
                for j in range(count):
                    put(to, j, number(of, number_of(own, j)))


@kernel
def backward(p):
    """What `gather` asks for."""
    heads, size, high = whole(p, 2), whole(p, 3), whole(p, 4)
    starts, counts, columns = whole(p, 5), whole(p, 6), whole(p, 7)
    bias, bias_copy, bias_head, values = whole(p, 8), whole(p, 9), whole(p, 10), whole(p, 11)
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        copy, head = tile // heads, tile % heads
        for row in range(copy * size, (copy + 1) * size):
            start, count = number_of(starts, row), number_of(counts, row)
            own = columns + 8 * start
            for i in range(count):
                of = values + 4 * ((start + i) * heads + head) * high
                to = bias + 4 * (copy * bias_copy + head * bias_head - number_of(own, i))
                for j in range(count):
                    at = number_of(own, j)
                    put(to, at, number(to, at) + number(of, j))


def spread(bias, columns, layout: Layout):
    """[S, P, n, `wide` of the most keys]: bias [S, n, 2 L - 1 + LANES], as `attend.attend` asks for, of each query and
    key of `layout`, whose queries are its keys. columns [S P]: where each token stands, below L."""
    copies, heads, _ = bias.shape
    values = torch.empty(copies, len(columns) // copies, heads, wide(layout.keys))
    launch(forward, len(layout.q_starts), *_arguments(bias, columns, layout, values))
    return values


def gather(values, columns, layout: Layout, into) -> None:
    """Add the gradient of what `spread` gave to that of the bias; in the order of rows, queries and keys."""
    copies, heads, _ = into.shape
    launch(backward, copies * heads, *_arguments(into, columns, layout, values))


def _arguments(bias, columns, layout, values):
    return (
        bias.shape[1], layout.size, values.shape[-1],
        layout.q_starts.data_ptr(), layout.q_counts.data_ptr(), columns.data_ptr(),
        bias.data_ptr() + 4 * middle(bias), bias.stride(0), bias.stride(1), values.data_ptr(),
    )  # fmt: skip
