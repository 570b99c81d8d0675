"""Which sequences of a corpus a probe hides tokens of."""

from pathlib import Path

import numpy as np

from masklab.errors import MaskLabError
from masklab.masking import maskable


def spread(context, store, masking, split: str) -> np.ndarray:
    """Up to `probe.sequences` rows of a `TokenStore` in which a token can be hidden, from all over it.

    Raises:
        MaskLabError: there is none, of which nothing could be measured.
    """
    eligible = np.flatnonzero(maskable(store.lengths, masking))
    if not len(eligible):
        raise MaskLabError(f"probes.{context.name}: {Path(context.tokens)}: no {split} sequence has a token to hide")
    return eligible[np.linspace(0, len(eligible) - 1, min(len(eligible), context.probe.sequences)).astype(int)]
