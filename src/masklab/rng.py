"""Random streams with an address.

Every stream is derived from the config's seed and a path of names (entity,
purpose, step, ...), never from global state, so that a resumed run and an
uninterrupted one draw the same numbers and no two streams share a seed.
"""

import hashlib


def seed_at(seed: int, *address: str | int) -> int:
    """63-bit seed of the stream at `address`, e.g. `seed_at(1, "strict-mlm", "dropout", 17)`.

    Distinct addresses give independent seeds (SHA-256 of the whole address). NumPy's generators keep all bits, torch's
    on a CPU the lowest 32: of n torch streams two are alike with a chance of about n ** 2 / 2 ** 33. What has to be
    independent in a long run, order and masks, is NumPy's; torch's are initial weights and dropout.
    """
    text = "\x1f".join([str(seed), *map(str, address)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def replicate_seed(root: int, replicate: int) -> int:
    """Seed of everything that replicate 1, 2, ... draws for itself."""
    return seed_at(root, "replicate", replicate)


def generator(seed: int, *address: str | int):
    """NumPy generator of the stream at `address`."""
    import numpy as np

    return np.random.default_rng(seed_at(seed, *address))


def torch_generator(seed: int, *address: str | int):
    """torch generator, on the CPU, of the stream at `address`."""
    import torch

    return torch.Generator("cpu").manual_seed(seed_at(seed, *address))


def seed_default(seed: int, device) -> None:
    """Seed torch's own generator of a kind of device, from which dropout is drawn."""
    import torch

    if torch.device(device).type == "cpu":  # torch.manual_seed writes down a stack trace for every kind of GPU
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)
