"""The trace of the Hessian at saturation: by its definition, by the Fisher information, and by estimates of both.

At saturation the labels follow the model's own distribution. Here they do so by construction: the loss is the
expected cross-entropy under the distribution of the model itself, held fixed.
"""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from curvlinops import HessianLinearOperator, hutchinson_trace
from scipy.stats import chisquare
from torch.nn.attention import SDPBackend, sdpa_kernel

from masklab.config.schema import Encoder
from masklab.curvature import trace
from masklab.curvature.per_example import SquaredNorms, counted
from masklab.curvature.width import EXPONENTS, exponent
from masklab.errors import MaskLabError
from masklab.models.encoder import MaskedLM

V, T, B = 11, 6, 12
TINY = {"positions": "absolute", "layers": 1, "hidden": 8, "heads": 2, "intermediate": 8, "max_positions": T}
FORMS = {"pre": {"norm": "pre"}, "lstm": {"kind": "lstm", "norm": "pre"}}


def saturated(**switches):
    """(model, ids, lengths, at) in float64: the masked sentences are the whole population."""
    generator = torch.Generator().manual_seed(2)
    model = MaskedLM(Encoder(**(TINY | switches)), V, generator=generator).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64), alpha=0.4)
    lengths = torch.tensor([T, T - 1] * (B // 2))
    ids = torch.randint(5, V, (B, T), generator=generator).masked_fill(torch.arange(T) >= lengths[:, None], 0)
    columns = 1 + torch.arange(B) % 3
    ids, at = trace.hide(ids, columns)
    return model, ids, lengths, at


def fisher(model, ids, lengths, at):
    """Tr of the Fisher information by enumeration of every label of every sentence."""
    with SquaredNorms(model) as norms:
        p = torch.softmax(model(ids, lengths, at=at).logits.detach(), -1)
        scores = [torch.nn.functional.one_hot(torch.tensor(y), V).double() - p for y in range(V)]
        found = norms(ids, lengths, at, lambda logits: scores).sum(-1)  # [V, B]
    return float((found * p.T).sum(0).mean())


def hessian(model, ids, lengths, at):
    """The Hessian laid out, in the order of `counted(model)`."""
    names, values = zip(*counted(model).items(), strict=True)
    shapes = [value.shape for value in values]
    theta = torch.cat([value.detach().flatten() for value in values]).requires_grad_()
    parts = theta.split([shape.numel() for shape in shapes])
    weights = {name: part.view(shape) for name, part, shape in zip(names, parts, shapes, strict=True)}
    truth = torch.softmax(model(ids, lengths, at=at).logits.detach(), -1)
    with sdpa_kernel(SDPBackend.MATH):
        logits = torch.func.functional_call(model, weights, (ids, lengths), {"at": at}).logits
        loss = -(truth * logits.log_softmax(-1)).sum(-1).mean()
        (gradient,) = torch.autograd.grad(loss, theta, create_graph=True)
        assert gradient.abs().max() < 1e-12  # saturated
        return torch.autograd.grad(gradient, theta, torch.eye(len(theta)).double(), is_grads_batched=True)[0]


def estimates(model, ids, lengths, at, rounds):
    """Means over the population from `rounds` draws of signs, [rounds]."""
    signs = trace.random_signs(np.random.default_rng(5), rounds * B, V)
    rows = [part.repeat(rounds, *[1] * (part.dim() - 1)) for part in (ids, lengths, at)]
    rows[2] += torch.arange(rounds).repeat_interleave(B) * B * T
    return trace.squared_norms(model, [(*rows, signs)]).sum(-1).view(rounds, B).mean(1)


def test_places_are_uniform_over_sequences_and_their_tokens():
    """Of 30,000 draws, none of a sequence of nothing but [CLS] and [SEP]; chi-squared at 1 %."""
    rows, columns = trace.draw_places(np.array([2, 3, 6, 2, 5]), 30000, np.random.default_rng(1))
    counts = Counter(zip(rows.tolist(), columns.tolist(), strict=True))
    wanted = {(1, 1): 10000} | {(2, c): 2500 for c in range(1, 5)} | {(4, c): 30000 / 9 for c in range(1, 4)}
    assert counts.keys() == wanted.keys()
    assert chisquare([counts[at] for at in wanted], list(wanted.values())).pvalue > 0.01


def test_a_split_of_empty_sequences_has_no_place_to_hide():
    with pytest.raises(MaskLabError, match=r"^no sequence of the split has a token between"):
        trace.draw_places(np.array([2, 2]), 10, np.random.default_rng(1))


@pytest.mark.parametrize("switches", FORMS.values(), ids=FORMS)
def test_trace_equals_the_explicit_hessian(switches):
    """Enumerated, to 1e-6; estimated from random signs, within 4 standard errors that are below 2 %."""
    model, ids, lengths, at = saturated(**switches)
    matrix = hessian(model, ids, lengths, at)
    torch.testing.assert_close(matrix, matrix.T, rtol=1e-8, atol=1e-10)
    exact = float(matrix.trace())
    assert fisher(model, ids, lengths, at) == pytest.approx(exact, rel=1e-6)
    means = estimates(model, ids, lengths, at, 300)
    error = float(means.std()) / len(means) ** 0.5
    assert error < 0.02 * exact and abs(float(means.mean()) - exact) < 4 * error


@pytest.mark.parametrize("draw", ["signs", "labels"])
def test_summed_gradients_have_the_same_mean(draw):
    """One backward pass per batch of sentences, on a model with tables of distances that `per_example` leaves out."""
    model, ids, lengths, at = saturated(positions="disentangled")
    exact = float(hessian(model, ids, lengths, at).trace())
    rng, found = np.random.default_rng(6), []
    for _ in range(200):
        if draw == "signs":
            batch = (ids, lengths, at, trace.random_signs(rng, B, V))
            parts = trace.squared_norms(model, [batch])
            assert len(parts) == 2  # the sums of 8 and of 4 sentences
            found.append((parts.sum(-1) * torch.tensor([8, 4])).sum() / B)
        else:
            uniforms = torch.from_numpy(rng.random(B))
            found.append(trace.summed_norms(model, ids, lengths, at, uniforms, trace.label_scores).sum())
    found = torch.stack(found)
    error = float(found.std()) / len(found) ** 0.5
    assert error < 0.1 * exact and abs(float(found.mean()) - exact) < 4 * error


class Rows(torch.nn.Module):
    """Logits of some of the masked sentences, by their numbers."""

    def __init__(self, model, ids, lengths, at):
        super().__init__()
        self.model, self.batch = model, (ids, lengths, at)

    def forward(self, rows):
        return self.model(*self.batch).logits[rows]


def test_hutchinson_agrees():
    """The trace of the Hessian by random vectors in parameter space, by a library."""
    model, ids, lengths, at = saturated(norm="pre")
    truth = torch.softmax(model(ids, lengths, at=at).logits.detach(), -1)

    kept = list(counted(model).values())
    with sdpa_kernel(SDPBackend.MATH):
        data = [(torch.arange(B), truth)]
        operator = HessianLinearOperator(Rows(model, ids, lengths, at), torch.nn.CrossEntropyLoss(), kept, data)
        torch.manual_seed(4)
        theirs = torch.stack([hutchinson_trace(operator, 40) for _ in range(10)])
    ours = estimates(model, ids, lengths, at, 100)
    errors = [float(found.std()) / len(found) ** 0.5 for found in (ours, theirs)]
    assert max(errors) < 0.05 * float(ours.mean())
    assert abs(float(ours.mean() - theirs.mean())) < 4 * (errors[0] ** 2 + errors[1] ** 2) ** 0.5


def test_scores_have_the_covariance_of_a_label():
    """E v v' = diag p - p p' over all signs, and over a grid of uniforms; to 1e-12 and to the grid's step."""
    logits = torch.tensor([[0.3, -1.0, 2.0, 0.0, -0.5]], dtype=torch.float64)
    p = logits.softmax(-1)[0]
    wanted = p.diag() - torch.outer(p, p)
    signs = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=5)), dtype=torch.float64)
    v = trace.sign_scores(logits.expand(len(signs), -1), signs)
    torch.testing.assert_close(v.T @ v / len(v), wanted, rtol=0, atol=1e-12)
    v = trace.label_scores(logits.expand(100_000, -1), (torch.arange(100_000) + 0.5) / 100_000)
    torch.testing.assert_close(v.T @ v / len(v), wanted, rtol=0, atol=1e-4)
    last = trace.label_scores(logits, torch.ones(1))  # a uniform that rounding made 1 is of the last label
    torch.testing.assert_close(last[0], torch.tensor([0, 0, 0, 0, 1.0], dtype=torch.float64) - p)


def test_signs_are_fair_and_repeatable():
    signs = trace.random_signs(np.random.default_rng(1), 300, 77)
    assert signs.shape == (300, 77) and set(signs.unique().tolist()) == {-1.0, 1.0}
    assert abs(float(signs.mean())) < 4 / (300 * 77) ** 0.5
    assert torch.equal(signs, trace.random_signs(np.random.default_rng(1), 300, 77))


def test_summed_gradients_are_those_of_eight_sentences_at_a_time():
    """Laid out: gradients of J'v of sentences 0 to 7 and 8 to 11, by what a parameter is; and which is which."""
    model, ids, lengths, at = saturated(positions="disentangled")
    signs, parameters = trace.random_signs(np.random.default_rng(3), B, V), counted(model)
    found, columns = trace.squared_norms(model, [(ids, lengths, at, signs)]), at - torch.arange(B) * T
    wanted = torch.zeros(2, 3, dtype=torch.float64)
    for part, rows in enumerate((range(8), range(8, B))):
        total = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
        for row in rows:
            logits = model(ids[row : row + 1], lengths[row : row + 1], at=columns[row : row + 1]).logits
            p, s = logits.detach().softmax(1), signs[row : row + 1].double()
            v = p.sqrt() * s - p * (p.sqrt() * s).sum()
            for name, gradient in zip(total, torch.autograd.grad(logits, parameters.values(), v), strict=True):
                total[name] += gradient
        for name, gradient in total.items():
            place = EXPONENTS.index(exponent(name, gradient.dim(), model.config.tied_head))
            wanted[part, place] += gradient.square().sum() / len(rows)
    assert found.dtype == torch.float64 and (wanted > 0).all()
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=0)


@pytest.mark.parametrize(("count", "width"), [(1, 1), (1, 8), (3, 3), (5, 7), (4, 16)])
def test_signs_are_fair_bits_of_the_generator(count, width):
    size = -(-count * width // 8)
    bits = [int(bit) for byte in np.random.default_rng(1).bytes(size) for bit in f"{byte:08b}"]
    ours, theirs = np.random.default_rng(1), np.random.default_rng(1)
    found = trace.random_signs(ours, count, width)
    assert found.dtype == torch.float32 and found.flatten().tolist() == [2 * bit - 1 for bit in bits][: count * width]
    theirs.bytes(size)
    assert ours.integers(1 << 60) == theirs.integers(1 << 60)


def test_a_label_of_the_covariance_is_drawn_by_its_share():
    logits = torch.log(torch.tensor([[1.0, 2.0, 5.0], [4.0, 4.0, 0.0]]))
    p = torch.tensor([[0.125, 0.25, 0.625], [0.5, 0.5, 0.0]])
    for uniforms, labels in (([0.0, 0.49], [0, 0]), ([0.1249, 0.51], [0, 1]), ([0.1251, 0.99], [1, 1]),
                             ([0.374, 0.0], [1, 0]), ([0.376, 0.0], [2, 0]), ([0.999, 0.0], [2, 0])):  # fmt: skip
        wanted = torch.nn.functional.one_hot(torch.tensor(labels), 3) - p
        torch.testing.assert_close(trace.label_scores(logits, torch.tensor(uniforms)), wanted)


def test_hiding_is_of_one_token_and_fair_to_others():
    ids, at = trace.hide(torch.arange(12).view(3, 4) + 50, torch.tensor([0, 3, 2]))
    assert at.tolist() == [0, 7, 10] and (ids == trace.MASK).nonzero().tolist() == [[0, 0], [1, 3], [2, 2]]
    assert (ids != torch.arange(12).view(3, 4) + 50).sum() == 3


def test_summed_gradients_pass_over_what_is_not_touched():
    model, ids, lengths, at = saturated()
    signs = trace.random_signs(np.random.default_rng(3), B, V)
    before = trace.summed_norms(model, ids, lengths, at, signs)
    model.register_parameter("untouched", torch.nn.Parameter(torch.ones(3, 2, dtype=torch.float64)))
    assert torch.equal(trace.summed_norms(model, ids, lengths, at, signs), before) and before.shape == (1, 3)


def test_a_label_of_no_share_in_the_covariance_is_never_drawn():
    logits = torch.tensor([[-torch.inf, 0.0, 0.0], [0.0, -torch.inf, 0.0]])
    found = trace.label_scores(logits, torch.tensor([0.0, 0.5]))
    torch.testing.assert_close(found, torch.tensor([[0, 0.5, -0.5], [-0.5, 0, 0.5]]))
