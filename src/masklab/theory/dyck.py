"""Section 5 of Liu et al. (2023): brackets in equal numbers, one hidden, and two networks that find it again.

A sentence is T signs that sum to zero. One of them, at t, is hidden; the input has the others as +-e_j and the hidden
one as +-e_{T + t} by a coin, in 2 T dimensions, and the label is the hidden sign. The network of one attention layer
and m neurons is f = c sum_i u_i relu(V_i h), where h is the mean of the tokens: attention is uniform, its gradients
vanish at queries and keys of zero.

Two constants are not the paper's: for the squared loss (f - y)^2 the trace of the Hessian at a minimiser is
2 E |grad f|^2 (lemma F.4 leaves the 2 out), and norms carry c^2, not c = 1 / m. Neither moves the minimisers. With
c = 1 the bound of lemma F.1 reads E |grad f|^2 >= 2 E |h| |y| = 2 / sqrt(T).
"""

import itertools
import math

import numpy as np

from masklab.rng import generator


def masked_inputs(length: int) -> tuple[np.ndarray, np.ndarray]:
    """All inputs of pre-training as means of their tokens, h [n, 2 T], and labels [n]; n = 2 T C(T, T / 2)."""
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=length)))
    signs = signs[signs.sum(1) == 0]
    inputs, labels = [], []
    for hidden in range(length):
        for coin in (-1.0, 1.0):
            tokens = np.hstack([signs, np.zeros_like(signs)])
            tokens[:, hidden], tokens[:, length + hidden] = 0, coin
            inputs.append(tokens / length)
            labels.append(signs[:, hidden])
    return np.concatenate(inputs), np.concatenate(labels)


def transferable(length: int) -> tuple[np.ndarray, np.ndarray]:
    """Solution 1: (V [2, 2 T], u [2]), two neurons that count brackets, as flat as any solution."""
    ones = np.concatenate([np.ones(length), np.zeros(length)])
    scale = length**0.75  # V_i h = |u_i| |h| for each active neuron
    return scale * np.stack([-ones, ones]), length / scale * np.array([1.0, -1.0])


def memorised(inputs, labels, rng: np.random.Generator, neurons: int | None = None):
    """Solution 2: (V [m, 2 T] of N(0, T) entries, u [m] the smallest weights that fit), m = 4 n if not said."""
    length = inputs.shape[1] // 2
    weights = rng.normal(0, math.sqrt(length), (neurons or 4 * len(inputs), 2 * length))
    return weights, np.linalg.lstsq(np.maximum(inputs @ weights.T, 0), labels, rcond=None)[0]


def squared_gradient(weights, head, inputs) -> np.ndarray:
    """E |grad f|^2 over `inputs` of each neuron: [m, 2], the parts of its u and of its V."""
    products = inputs @ weights.T
    lengths = np.square(inputs).sum(1)[:, None] * (products > 0)
    return np.stack([np.square(np.maximum(products, 0)).mean(0), np.square(head) * lengths.mean(0)], 1)


def balanced(parts) -> float:
    """The smallest sum of `squared_gradient` that rescaling neurons (V_i s, u_i / s) leads to."""
    return float(2 * np.sqrt(parts.prod(1)).sum())


def contributions(weights, head, inputs) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the positive and of the negative terms u_i relu(V_i h), each [n]; f is their sum."""
    terms = np.maximum(inputs @ weights.T, 0) * head
    return np.maximum(terms, 0).sum(1), np.minimum(terms, 0).sum(1)


def failure(samples: int, length: int) -> float:
    """Probability that the downstream head, fitted to so many uniform sentences, is not exact on all.

    The target, the surplus of one bracket, is read off two features, one for either sign: the head is exact if and
    only if both signs are among the samples. The target is zero with probability p0 = C(T, T / 2) / 2^T, and then
    teaches nothing; the paper's 2^-n counts a single sign as failure and no zeros.
    """
    zero = math.comb(length, length // 2) / 2**length if length % 2 == 0 else 0.0
    return 2 * ((1 + zero) / 2) ** samples - zero**samples


def failures(samples: int, length: int, runs: int, rng: np.random.Generator) -> int:
    """How many of `runs` heads, of least norm on solution 1's features, are not exact on all 2^T sentences."""
    weights, _ = transferable(length)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=length)))
    features, target = np.maximum(signs @ weights[:, :length].T / length, 0), -signs.sum(1)
    drawn = rng.integers(len(signs), size=(runs, samples))
    heads = np.linalg.pinv(features[drawn]) @ target[drawn][:, :, None]
    return int((np.abs(features @ heads[:, :, 0].T - target[:, None]).max(0) > 1e-9).sum())


def _solutions(length, seed):
    inputs, labels = masked_inputs(length)
    drawn = memorised(inputs, labels, generator(seed, "theory", "dyck", length))
    return inputs, labels, {1: transferable(length), 2: drawn}


def solution_rows(seed: int = 1, lengths=(6, 8)) -> list[dict]:
    """One row per sentence length and solution, with c = 1.

    loss; squared_gradient, E |grad f|^2 as it is; squared_gradient_balanced, after the best rescaling of neurons;
    bound, the least of any solution; trace = 2 squared_gradient; cancellation, E |f| / E sum_i |u_i relu(V_i h)|.
    """
    rows = []
    for length in lengths:
        inputs, labels, solutions = _solutions(length, seed)
        for number, (weights, head) in solutions.items():
            positive, negative = contributions(weights, head, inputs)
            parts = squared_gradient(weights, head, inputs)
            rows.append({
                "length": length, "solution": number, "neurons": len(head), "inputs": len(labels),
                "loss": float(np.square(positive + negative - labels).mean()),
                "squared_gradient": float(parts.sum()), "squared_gradient_balanced": balanced(parts),
                "bound": 2 / math.sqrt(length), "trace": 2 * float(parts.sum()),
                "cancellation": float(np.abs(positive + negative).mean() / (positive - negative).mean()),
            })  # fmt: skip
    return rows


def failure_rows(seed: int = 1, length: int = 6, samples=(2, 5, 10, 20), runs: int = 20_000) -> list[dict]:
    """Theorem 5.1: measured failure rate and its standard error, the `corrected` formula's and the `paper`'s."""
    rows = []
    for count in samples:
        share = failures(count, length, runs, generator(seed, "theory", "transfer", length, count)) / runs
        truth = failure(count, length)
        error = math.sqrt(truth * (1 - truth) / runs)
        row = {"measured": share, "error": error, "corrected": truth, "paper": 0.5**count}
        rows.append({"length": length, "samples": count, **row})
    return rows


def contribution_rows(length: int = 6, seed: int = 1) -> list[dict]:
    """Figure 6 in numbers: what positive and negative neurons of both solutions add to the output for every input."""
    inputs, labels, solutions = _solutions(length, seed)
    rows = []
    for number, solution in solutions.items():
        for index, (label, plus, minus) in enumerate(zip(labels, *contributions(*solution, inputs), strict=True)):
            rows.append({"solution": number, "input": index, "label": int(label), "output": float(plus + minus),
                         "positive": float(plus), "negative": float(minus)})  # fmt: skip
    return rows
