"""Theorem 3.3 of Liu et al. (2023) where everything is known: a logistic model with the logit a b.

The label is 1 with probability p. The minimisers of the loss are the curve a b = logit p, on which the trace of the
Hessian is F (a^2 + b^2), F = p (1 - p), and SGD drifts along it towards the flattest point, a = b: by the theorem
D = a^2 - b^2 decays as exp(-F k lr^2 / B) after k updates of batches of B fresh labels.
"""

import math

import numpy as np

from masklab.rng import generator

P, START = 0.3, 1.6  # probability of a 1; a at the beginning, b = logit p / a


def predicted(time, batch: int):
    """D / D(0) at time = k lr^2."""
    return np.exp(-P * (1 - P) * np.asarray(time) / batch)


def simulate(lr: float, batch: int, times, runs: int, rng: np.random.Generator):
    """D / D(0) of SGD from a minimiser, at `times` (k lr^2, ascending): mean [n] and standard error [n] over runs."""
    a = np.full(runs, START)
    b = math.log(P / (1 - P)) / a
    first = a[0] ** 2 - b[0] ** 2
    wanted = [round(time / lr**2) for time in times]
    distances = []
    for update in range(1, wanted[-1] + 1):
        gradient = lr * (1 / (1 + np.exp(-a * b)) - rng.binomial(batch, P, runs) / batch)
        a, b = a - gradient * b, b - gradient * a
        if update in wanted:
            distances.append((np.square(a) - np.square(b)) / first)
    distances = np.stack(distances)
    return distances.mean(1), distances.std(1, ddof=1) / math.sqrt(runs)


def decay_rows(seed: int = 1, batches=(1, 4), rates=(0.2, 0.1, 0.05), runs: int = 4000) -> list[dict]:
    """Rows of batch, lr, time, measured, error, predicted: at eight times up to 2."""
    times, rows = np.arange(1, 9) / 4, []
    for batch in batches:
        for lr in rates:
            measured = simulate(lr, batch, times, runs, generator(seed, "theory", "toy", batch, str(lr)))
            columns = zip(times, *measured, predicted(times, batch), strict=True)
            names = ("time", "measured", "error", "predicted")
            rows += [{"batch": batch, "lr": lr, **dict(zip(names, map(float, row), strict=True))} for row in columns]
    return rows
