"""Words without a network: what a measure says where nothing was learned but how often each token occurs.

The representation of a token is its one-hot vector; those of a sequence are kept in order (one-hot) or counted (a bag
of words), or what they spell is counted, where the task says it (a bag of units). The prediction for a masked token is
the unigram distribution of the training tokens, whatever stands around it. The folder holds that distribution, which of
these it is, and the tokenizer.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from masklab.errors import MaskLabError
from masklab.files import atomic_folder
from masklab.models.companions import write_companions

FILE = "words.safetensors"


@dataclass(frozen=True)
class Words:
    """probabilities: [V] float64, of each token, 0 of those that are never masked; order: kept, or only counted;
    max_positions: longer sequences are cut to so many tokens, specials counted; units: what tokens spell is counted."""

    probabilities: np.ndarray
    order: bool
    max_positions: int
    units: bool = False

    @property
    def vocab_size(self) -> int:
        return len(self.probabilities)

    @property
    def logs(self) -> np.ndarray:
        """Natural logarithms of the probabilities, [V], minus infinity where they are 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities)


def is_words(checkpoint) -> bool:
    """Whether a checkpoint folder holds words without a network."""
    return (Path(checkpoint) / FILE).is_file()


def save_words(folder, words: Words, tokenizer_folder=None, metadata: dict | None = None) -> None:
    """Write the folder, atomically."""
    with atomic_folder(folder) as temporary:
        # one entry of metadata: safetensors writes several in any order, and equal words would differ in their bytes
        settings = {"order": words.order, "max_positions": words.max_positions, "units": words.units}
        save_file({"probabilities": words.probabilities}, temporary / FILE, {"words": json.dumps(settings)})
        write_companions(temporary, metadata, tokenizer_folder)


def load_words(folder) -> Words:
    """Read a folder written by `save_words`; MaskLabError if its file is missing or none of ours."""
    path = Path(folder) / FILE
    try:
        with safe_open(path, "np") as file:
            return Words(file.get_tensor("probabilities"), **json.loads((file.metadata() or {})["words"]))
    except FileNotFoundError:
        raise MaskLabError(f"{path}: no such file") from None
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise MaskLabError(f"{path}: not the words of a corpus ({error})") from None
