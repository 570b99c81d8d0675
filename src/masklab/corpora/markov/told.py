"""The header of a Markov corpus as it is told: an entropy that is a bound under a name that says so.

The header holds the entropy of (chain, hidden walk, forms), which is that of the symbols where these tell all three.
"""

import numpy as np

from masklab.config.schema import Chains
from masklab.corpora.markov.chains import draw_chains
from masklab.corpora.markov.entropy import push
from masklab.corpora.markov.features import draw_features
from masklab.corpora.markov.law import form_shares

BOUND = "_at_most"


def told(header: dict) -> dict:
    """The header with `entropy` and `entropy_per_symbol`, or both with `_at_most` where they are upper bounds."""
    config, drawn = Chains(**header["config"]["chains"]), header["config"]
    chains, features = draw_chains(config, header["seed"]), draw_features(config, header["seed"])
    symbols = expected_symbols(chains, features, drawn["length"], drawn["distributional"])
    bound = "" if tells_all(config, drawn["distributional"]) else BOUND
    entropies = {f"entropy{bound}": header["entropy"], f"entropy_per_symbol{bound}": header["entropy"] / symbols}
    return {key: value for key, value in header.items() if not key.startswith("entropy")} | entropies


def tells_all(config: Chains, distributional: float) -> bool:
    """Whether symbols tell the chain (there is one, or its form does), the hidden walk and the forms."""
    chain = config.chains == 1 or (config.chains == 2 and distributional == 0)
    walk = config.edges == "paper" or config.copies == 1
    return chain and walk and (config.features == "single" or config.code == "prefix-free")


def expected_symbols(chains, features, length: int, distributional: float) -> float:
    """Mean number of symbols of a sequence of `length` synsets."""
    lengths, total = features.lengths.reshape(2, -1), 0.0  # [form, synset]
    for chain, shares in zip(chains, form_shares(len(chains), distributional), strict=True):
        weights, spelt = np.full(len(chain), 1 / len(chain)), (shares @ lengths)[chain.synset]
        for _ in range(length):
            total += weights @ spelt
            weights = push(chain, weights)
    return float(total) / len(chains)
