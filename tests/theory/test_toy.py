"""Theorem 3.3 on the closed-form toy."""

import numpy as np
import pytest
import torch

from masklab.rng import generator
from masklab.theory import toy


def test_sgd_decays_as_the_theorem_says():
    """Within 3 % of exp(-F k lr^2 / B) at two batch sizes, and closer the smaller the step."""
    rows = toy.decay_rows()
    last = {(row["batch"], row["lr"]): row for row in rows if row["time"] == 2.0}
    assert last[1, 0.05]["predicted"] == pytest.approx(np.exp(-0.42)) and {batch for batch, _ in last} == {1, 4}
    for row in rows:
        assert row["error"] < 0.004
        if row["lr"] <= 0.1:
            assert row["measured"] == pytest.approx(row["predicted"], rel=0.03)
    for batch in (1, 4):
        off = [abs(last[batch, lr]["measured"] - last[batch, lr]["predicted"]) for lr in (0.2, 0.05)]
        assert off[1] < off[0] + 3 * last[batch, 0.05]["error"]


def test_a_batch_of_one_decays_four_times_as_fast_as_of_four():
    one, _ = toy.simulate(0.1, 1, [2.0], 4000, generator(1, "one"))
    four, _ = toy.simulate(0.1, 4, [2.0], 4000, generator(1, "four"))
    assert np.log(one[0]) / np.log(four[0]) == pytest.approx(4, rel=0.1)


def test_trace_is_the_hessians():
    a, b, p = 1.6, float(np.log(0.3 / 0.7)) / 1.6, 0.3
    point = torch.tensor([a, b], dtype=torch.float64)

    def loss(point):
        logit = point[0] * point[1]
        return torch.nn.functional.binary_cross_entropy_with_logits(logit, torch.tensor(p, dtype=torch.float64))

    hessian = torch.autograd.functional.hessian(loss, point)
    assert float(hessian.trace()) == pytest.approx(p * (1 - p) * (a**2 + b**2), rel=1e-12)
    assert float(torch.autograd.functional.jacobian(loss, point).abs().max()) < 1e-12
