"""Sparse coding against SPAMS, the toolbox the paper used: vectors coded per second, one thread each.

    python benchmarks/sparse_coding.py [--d 768 --atoms 2500 --vectors 8000] [--learn]

Both solve the same vectors under the same dictionary, in turns, in this process; the objectives are compared. With
`--learn`, whole runs of dictionary learning are timed instead, and their objectives on held-out vectors compared.
Our time includes the Gram matrix, but not compilation (seconds, cached on disk). The last line is ours / SPAMS.
"""

import argparse
import os
import statistics
import time

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
import torch

from masklab.sparse import spams_backend
from masklab.sparse.dictionary import learn
from masklab.sparse.lasso import Dictionary, lasso, objective, unit_rows


def state_like(n: int, d: int, seed: int, types: int = 3000) -> torch.Tensor:
    """Unit vectors like hidden states [n, d]: a common mean, a decaying spectrum, Zipfian types, contexts, noise."""
    rng = np.random.default_rng(seed)
    spread = np.arange(1, d + 1) ** -0.5
    kinds, contexts = rng.standard_normal((types, d)) * spread, rng.standard_normal((200, d)) * spread
    share = 1 / np.arange(1, types + 1)
    x = 0.5 * rng.standard_normal(d) * np.sqrt(np.mean(spread**2)) + kinds[rng.choice(types, n, p=share / share.sum())]
    for _ in range(4):
        x += 0.4 * rng.gamma(1, 1, (n, 1)) * contexts[rng.integers(0, 200, n)]
    x += 0.25 * rng.standard_normal((n, d)) * spread
    return unit_rows(torch.from_numpy(x).float())


def timed(action):
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def compare_coding(x, dictionary, penalty, rounds):
    lasso(x[:16], dictionary, penalty)  # compiles, or loads what was compiled
    ours, theirs = [], []
    for _ in range(rounds):
        # a fresh Dictionary: the Gram matrix is part of our time, as it is of SPAMS's
        codes, seconds = timed(lambda: lasso(x, Dictionary(dictionary), penalty))
        ours.append(seconds)
        reference, seconds = timed(lambda: spams_backend.lasso(x, dictionary, penalty))
        theirs.append(seconds)
    value, expected = (objective(x, dictionary, result, penalty) for result in (codes, reference))
    worst = ((value - expected) / expected).max().item()
    print(f"entries per code: ours {len(codes.values) / len(x):.1f}, SPAMS {len(reference.values) / len(x):.1f}")
    print(
        f"mean objective: ours {value.mean():.6f}, SPAMS {expected.mean():.6f}; ours above SPAMS by at most {worst:.1e}"
    )
    if worst > 1e-4:
        raise SystemExit("failed: an objective is more than 1e-4 above that of SPAMS")
    return ours, theirs, len(x)


def compare_learning(x, atoms, penalty, rounds, iterations, batch_size):
    train, held_out = x[:-1000], x[-1000:]
    lasso(held_out[:16], train[:16].T.contiguous(), penalty)
    times, values = {"torch": [], "spams": []}, {}
    for _ in range(rounds):
        for backend in times:
            found, seconds = timed(lambda b=backend: learn(train, atoms, penalty, iterations, batch_size, 1, b))
            times[backend].append(seconds)
            values[backend] = objective(held_out, found, lasso(held_out, found, penalty), penalty).mean().item()
    print(f"iterations {iterations}, batch size {batch_size}")
    print(f"held-out objective: ours {values['torch']:.6f}, SPAMS {values['spams']:.6f}")
    if values["torch"] > 1.01 * values["spams"]:
        raise SystemExit("failed: the held-out objective is more than 1 % above that of SPAMS")
    return times["torch"], times["spams"], iterations * batch_size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--d", type=int, default=768, help="dimensions (default: %(default)s)")
    parser.add_argument("--atoms", type=int, default=2500, help="atoms k (default: %(default)s)")
    parser.add_argument("--vectors", type=int, default=8000, help="vectors n (default: %(default)s)")
    parser.add_argument("--penalty", type=float, default=0.05, help="lambda (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="timings of each, median taken (default: %(default)s)")
    parser.add_argument("--learn", action="store_true", help="time dictionary learning")
    parser.add_argument("--iterations", type=int, default=20, help="mini-batches of learning (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=400, help="vectors a mini-batch (default: %(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    what = "dictionary learning" if args.learn else "non-negative lasso"
    print(f"{what}: n {args.vectors}, d {args.d}, k {args.atoms}, lambda {args.penalty}, 1 thread, float32")
    x = state_like(args.vectors + 1000, args.d, seed=1)
    if args.learn:
        result = compare_learning(x, args.atoms, args.penalty, args.rounds, args.iterations, args.batch_size)
    else:
        dictionary = learn(x, args.atoms, args.penalty, args.iterations, args.batch_size, seed=1)
        result = compare_coding(x[: args.vectors], dictionary, args.penalty, args.rounds)
    ours, theirs, count = result
    for name, seconds in (("ours", ours), ("SPAMS", theirs)):
        rounds = ", ".join(f"{s:.2f} s" for s in seconds)
        print(f"{name}: {count / statistics.median(seconds):,.0f} vectors/s (rounds: {rounds})")
    print(f"ratio: {statistics.median(theirs) / statistics.median(ours):.2f}")


if __name__ == "__main__":
    main()
