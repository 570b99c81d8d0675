"""Section 5: both solutions solve the task, the first as flat as can be; how often few samples suffice."""

import math

import numpy as np
import pytest
import torch

from masklab.rng import generator
from masklab.theory import dyck


def test_inputs_are_as_many_and_as_independent_as_lemma_f5_says():
    for length, count in ((6, 240), (8, 1120)):
        inputs, labels = dyck.masked_inputs(length)
        assert inputs.shape == (count, 2 * length) and count == 2 * length * math.comb(length, length // 2)
        assert len(np.unique(inputs, axis=0)) == count and np.linalg.matrix_rank(inputs) == 2 * length
        assert np.allclose(np.square(inputs).sum(1), 1 / length) and labels.sum() == 0
        assert np.allclose(inputs[:, :length].sum(1) * length, -labels)  # what is missing is what was hidden


def test_the_first_solution_meets_the_bound_and_the_second_does_not():
    for row in dyck.solution_rows():
        assert row["loss"] < 1e-12 and row["trace"] == 2 * row["squared_gradient"]
        if row["solution"] == 1:
            assert row["squared_gradient"] == pytest.approx(row["bound"], abs=1e-6)
            assert row["squared_gradient_balanced"] == pytest.approx(row["bound"], abs=1e-6)
            assert row["cancellation"] == pytest.approx(1, abs=1e-12)
        else:
            assert row["squared_gradient"] > row["squared_gradient_balanced"] > 4 * row["bound"]
            assert row["cancellation"] < 0.3
    assert dyck.solution_rows(lengths=(6,))[0]["bound"] == pytest.approx(0.8165, abs=1e-4)


class Network(torch.nn.Module):
    """The paper's layer with its attention written out: output of the first token."""

    def __init__(self, weights, head):
        super().__init__()
        width = weights.shape[1]
        self.query, self.key = (torch.nn.Parameter(torch.zeros(3, width, dtype=torch.float64)) for _ in range(2))
        self.weights, self.head = (torch.nn.Parameter(torch.from_numpy(x)) for x in (weights, head))

    def forward(self, tokens):  # [n, T, 2 T]
        scores = (tokens[:, :1] @ self.query.T) @ (tokens @ self.key.T).mT
        return torch.relu((scores.softmax(-1) @ tokens)[:, 0] @ self.weights.T) @ self.head


@pytest.mark.parametrize("solution", [1, 2])
def test_squared_gradients_and_trace_are_those_of_the_whole_network(solution):
    """Autograd through attention too, whose gradients vanish; the Hessian's trace is twice the squared gradient."""
    length = 4
    inputs, labels = dyck.masked_inputs(length)
    pair = dyck.transferable(length) if solution == 1 else dyck.memorised(inputs, labels, generator(1, "x"), 60)
    network = Network(*pair)
    # tokens of each input: the T rows whose mean it is
    flat = torch.from_numpy(inputs * length)
    tokens = torch.stack([flat * torch.eye(2 * length)[j] + flat * torch.eye(2 * length)[length + j]
                          for j in range(length)], 1)  # fmt: skip
    outputs, names = network(tokens), dict(network.named_parameters())
    assert torch.allclose(outputs, torch.from_numpy(labels), atol=1e-9)
    squares = {name: 0.0 for name in names}
    for output in outputs:
        for name, gradient in zip(names, torch.autograd.grad(output, names.values(), retain_graph=True), strict=True):
            squares[name] += float(gradient.square().sum()) / len(labels)
    parts = dyck.squared_gradient(*pair, inputs).sum(0)
    assert squares["query"] == squares["key"] == 0
    assert [squares["head"], squares["weights"]] == pytest.approx(parts.tolist(), rel=1e-10)
    loss = (network(tokens) - torch.from_numpy(labels)).square().mean()
    gradients = torch.autograd.grad(loss, [network.weights, network.head], create_graph=True)
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    trace, at = 0.0, 0
    for parameter in (network.weights, network.head):
        for index in range(parameter.numel()):
            row = torch.autograd.grad(flat[at + index], parameter, retain_graph=True)[0]
            trace += float(row.flatten()[index])
        at += parameter.numel()
    assert trace == pytest.approx(2 * parts.sum(), rel=1e-6)


def test_rescaling_reaches_the_balanced_sum():
    inputs, labels = dyck.masked_inputs(4)
    weights, head = dyck.memorised(inputs, labels, generator(1, "y"), 50)
    parts = dyck.squared_gradient(weights, head, inputs)
    best = dyck.balanced(parts)
    scale = (parts[:, 1] / np.maximum(parts[:, 0], 1e-300)) ** 0.25
    scale[parts.prod(1) == 0] = 1  # a neuron that is never active has no part in either
    reached = dyck.squared_gradient(weights * scale[:, None], head / scale, inputs)
    assert reached.sum() == pytest.approx(best, rel=1e-9)
    other = dyck.squared_gradient(weights * 1.1 * scale[:, None], head / (1.1 * scale), inputs)
    assert other.sum() > best


def test_failure_rates_are_the_corrected_formulas():
    rows = dyck.failure_rows()
    for row in rows:
        assert abs(row["measured"] - row["corrected"]) < 4 * row["error"] + 1e-12
    five = next(row for row in rows if row["samples"] == 5)
    assert five["corrected"] == pytest.approx(0.240, abs=1e-3) and five["paper"] == 0.03125
    assert five["measured"] - five["paper"] > 10 * five["error"]
    assert dyck.failure(7, 5) == 2**-6  # odd lengths have no zeros


def test_contributions_add_up_to_the_output():
    rows = dyck.contribution_rows()
    assert len(rows) == 2 * 240
    for row in rows:
        assert row["output"] == pytest.approx(row["positive"] + row["negative"]) == pytest.approx(row["label"])
        if row["solution"] == 1:
            assert min(row["positive"], -row["negative"]) == 0
