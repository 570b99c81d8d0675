"""The steps of LSTMs ahead and behind, forward and backward, against torch's LSTM in double precision."""

import pytest
import torch

from masklab.kernels.recurrent import GROUP, lstm, lstm_backward
from masklab.models.stacked.ragged import Ragged


@pytest.mark.parametrize("width", [1, 15, 16, 24])
@pytest.mark.parametrize("copies, size", [(1, 1), (2, GROUP + 5), (3, 2 * GROUP)])
def test_states_and_gradients(copies, size, width):
    """To 1e-5, of rows of 0 to 9 tokens; 0 where there is no token."""
    torch.manual_seed(1)
    lengths = torch.randint(0, 10, (copies, size))
    lengths[:, 0], lengths[:, -1] = 9, 1
    ragged = Ragged.of(lengths, 9)
    given = torch.randn(2, copies, ragged.places, 4 * width)
    weights = torch.randn(2, copies, 4 * width, width) * 0.5
    g = torch.randn(copies, ragged.places, 2 * width)
    hidden, before, told = lstm([*given.clone()], [*weights], ragged)
    slopes = lstm_backward(g, told, ragged)
    tokens = torch.zeros(copies, ragged.places, dtype=torch.bool)
    for copy in range(copies):
        for row in range(size):
            count = int(lengths[copy, row])
            start = int(ragged.starts[copy * size + row]) - copy * ragged.places
            own = slice(start, start + count)
            tokens[copy, own] = True
            for direction in range(2):
                half = slice(direction * width, (direction + 1) * width)
                exact = _lstm(given[direction, copy, own], weights[direction, copy], g[copy, own, half], direction)
                found = hidden[copy, own, half], before[copy, own, half], slopes[direction][copy, own]
                for one, other in zip(found, exact, strict=True):
                    torch.testing.assert_close(one.double(), other, atol=1e-5, rtol=1e-5)
    assert not hidden[~tokens].any() and not before[~tokens].any()
    assert not any(each[~tokens].any() for each in slopes)


def _lstm(gates, weight, g, behind):
    """(hidden states, those of the step before, gradient of the gates before their functions) of one row."""
    gates, g = (each.double().flip(0) if behind else each.double() for each in (gates, g))
    if not len(gates):
        return g, g, gates
    gates.requires_grad_()
    width = weight.shape[1]
    layer = torch.nn.LSTM(4 * width, width, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.eye(4 * width))
        layer.weight_hh_l0.copy_(weight)
    states = layer(gates[None])[0][0]
    (slopes,) = torch.autograd.grad(states, gates, g)
    states = states.detach()
    found = states, torch.cat([torch.zeros_like(states[:1]), states[:-1]]), slopes
    return [each.flip(0) if behind else each for each in found]
