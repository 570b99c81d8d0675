"""Entropies of the chains in closed form, in nats."""

import numpy as np


def edge_entropy(chain) -> np.ndarray:
    """Entropy of the next node given the node, [N]; 0 where both edges lead to the same node."""
    p = chain.probabilities[chain.probabilities > 0]
    same = chain.targets[:, 0] == chain.targets[:, 1]
    return np.where(same, 0.0, -(p * np.log(p)).sum())


def push(chain, weights) -> np.ndarray:
    """Distribution over nodes after one step of the one before, [N] -> [N]."""
    moved = [
        np.bincount(chain.targets[:, edge], weights * probability, minlength=len(chain))
        for edge, probability in enumerate(chain.probabilities)
    ]
    return moved[0] + moved[1]


def sequence_entropy(chains, length: int, distributional: float) -> float:
    """Entropy of (chain, hidden walk, forms) of one sequence of `length` synsets, a share of whose forms is mixed.

    Exactly that of the symbols where these tell chain and walk (paper's edges: a node is a synset; the chain shows
    in a few steps), else an upper bound of it; `Law.log_probability` gives the exact one of a given sequence.
    """
    other = distributional / 2  # probability of the form that is not the chain's
    form = -sum(p * np.log(p) for p in (other, 1 - other) if p > 0)
    total = np.log(len(chains)) + length * form
    for chain in chains:
        weights, edges = np.full(len(chain), 1 / len(chain)), edge_entropy(chain)
        walked = np.log(len(chain))
        for _ in range(length - 1):
            walked += weights @ edges
            weights = push(chain, weights)
        total += walked / len(chains)
    return float(total)
