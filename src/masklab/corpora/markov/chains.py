"""Random Markov chains over synsets, in the paper's reading and in the released code's (Chiang & Yogatama 2023).

Paper (appendix B): every synset is a node with two outward edges to two random synsets. Released code: 5000 hidden
nodes on a cycle that repeats one random order of the 1000 synsets five times; each has a main edge to the next node
and a second one up to 998 nodes ahead, so that over synsets the walk is a hidden Markov process.
"""

from dataclasses import dataclass

import numpy as np

from masklab.config.schema import Chains
from masklab.rng import generator


@dataclass(frozen=True)
class Chain:
    """N hidden nodes: targets [N, 2] int32, probabilities [2] of the two edges, synset [N] uint16 of each node.

    A walk starts at a node drawn uniformly; the two edges of a node may lead to the same one.
    """

    targets: np.ndarray
    probabilities: np.ndarray
    synset: np.ndarray

    def __len__(self):
        return len(self.synset)

    def matrix(self) -> np.ndarray:
        """Dense transition matrix over nodes, [N, N]; for small chains."""
        dense = np.zeros((len(self), len(self)))
        for edge, probability in enumerate(self.probabilities):
            np.add.at(dense, (np.arange(len(self)), self.targets[:, edge]), probability)
        return dense


def draw_chains(config: Chains, seed: int) -> list[Chain]:
    """The chains of an entry of `chains`, each from its own stream; equal settings and seeds give equal chains."""
    draw = {"paper": _two_random_edges, "released": _cycle_with_shortcuts}[config.edges]
    return [draw(config, generator(seed, "chains", config.seed, k)) for k in range(config.chains)]


def _two_random_edges(config, rng):
    n = config.synsets
    first = rng.integers(n, size=n)
    second = (first + rng.integers(1, n, size=n)) % n  # another node than the first
    return _chain(config, first, second, np.arange(n))


def _cycle_with_shortcuts(config, rng):
    n, nodes = config.synsets, config.synsets * config.copies
    order = rng.permutation(n)
    here = np.arange(nodes)
    return _chain(config, here + 1, here + rng.integers(n - 1, size=nodes), np.tile(order, config.copies))


def _chain(config, first, second, synset):
    targets = (np.stack([first, second], axis=1) % len(synset)).astype(np.int32)
    return Chain(targets, np.array([config.main, 1 - config.main]), synset.astype(np.uint16))


def walk(chain: Chain, count: int, length: int, rng) -> np.ndarray:
    """Synsets of `count` independent walks, [count, length] uint16."""
    targets, synsets = chain.targets.ravel(), np.empty((length, count), np.uint16)
    node = rng.integers(len(chain), size=count)
    for step in range(length):
        synsets[step] = chain.synset[node]
        node = targets[2 * node + (rng.random(count) >= chain.probabilities[0])]
    return np.ascontiguousarray(synsets.T)
