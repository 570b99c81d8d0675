"""What laws are asked about: sequences of symbols, and their lengths.

Apart from `laws`, which knows every law: a corpus counts as made by what this file says, not by what other laws are.
"""

import numpy as np

from masklab.errors import MaskLabError


def checked(sequences, lengths, symbols: int, longest: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(sequences [N, T], lengths [N]) as int64; lengths: None: all are T long.

    MaskLabError for what is not one of `symbols` symbols, or a length that is not 1 to T, `longest` at most.
    """
    sequences = np.asarray(sequences, np.int64)
    lengths = np.full(len(sequences), sequences.shape[1]) if lengths is None else np.asarray(lengths, np.int64)
    if sequences.size and not 0 <= sequences.min() <= sequences.max() < symbols:
        raise MaskLabError(
            f"symbols of a sequence: must be 0 to {symbols - 1} (got {sequences.min()} to {sequences.max()})"
        )
    longest = sequences.shape[1] if longest is None else min(sequences.shape[1], longest)
    if len(lengths) and not 1 <= lengths.min() <= lengths.max() <= longest:
        raise MaskLabError(f"lengths of sequences: must be 1 to {longest}")
    return sequences, lengths
