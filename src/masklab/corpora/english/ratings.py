"""How alike are two sentences of the English-like language, 0 to 5? (STS-B's kind)

Both tell who did what to whom, in the active or the passive voice; the rating grows with what they have in common.
"""

import itertools

import numpy as np
import pandas as pd

from masklab import rng
from masklab.corpora.english.templates import Templates
from masklab.errors import MaskLabError

VOICES = ("the {a} {v}=V(hum,past) the {b} .", "the {b} was {v}=V(hum,part) by the {a} .")
# Declares the words, so that no two persons and no two verbs are the same; not part of a sentence.
WORDS = "1=NL(sg,hum) 3=NL(sg,hum) 4=NL(sg,hum) 6=NL(sg,hum) 2=V(hum,past) 5=V(hum,past)"
SAME, OTHER = {"a": "1", "v": "2", "b": "3"}, {"a": "4", "v": "5", "b": "6"}
# Rating of a second sentence that keeps (who, what, to whom); with the roles exchanged 4, or 2 with another verb.
RATINGS = {
    (True, True, True): 5, (True, True, False): 3, (False, True, True): 3, (True, False, True): 3,
    (True, False, False): 1, (False, True, False): 1, (False, False, True): 1, (False, False, False): 0,
}  # fmt: skip
LEVELS = 6  # ratings, from 0


def rating_cases() -> list[tuple[int, tuple[str, ...]]]:
    """(rating, templates): the words, then the two sentences."""
    cases = []
    for first, second in itertools.product(VOICES, repeat=2):
        pairs = [
            (rating, {key: (SAME if keep else OTHER)[key] for key, keep in zip("avb", kept, strict=True)})
            for kept, rating in RATINGS.items()
        ]
        pairs += [(4 if verb == "2" else 2, {"a": "3", "v": verb, "b": "1"}) for verb in "25"]
        cases += [(rating, (WORDS, first.format(**SAME), second.format(**slots))) for rating, slots in pairs]
    return cases


def rating_task(sizes: dict[str, int], seed: int) -> dict[str, pd.DataFrame]:
    """{split: frame of text_a, text_b, label (float)}: ratings in equal numbers (within one), no pair twice.

    Of a split of fewer rows than there are ratings, the ratings lie as far apart as they can: of two rows, 0 and 5.
    """
    seen, frames = set(), {}
    for split, count in sizes.items():
        random, rows = rng.generator(seed, "english", "ratings", split), []
        for rating, wanted in enumerate(_counts(count)):
            drawers = [Templates(*texts) for each, texts in rating_cases() if each == rating]
            rows += _rows(drawers, rating, wanted, split, random, seen)
        order = rng.generator(seed, "english", "ratings", split, "order").permutation(count)
        frame = pd.DataFrame([rows[index] for index in order], columns=["text_a", "text_b", "label"])
        frames[split] = frame.astype({"label": np.float64})
    return frames


def _counts(rows: int) -> list[int]:
    """How many of so many rows have each rating."""
    if rows >= LEVELS:
        return [(rows + rating) // LEVELS for rating in range(LEVELS)]
    return np.bincount(np.linspace(0, LEVELS - 1, rows).round().astype(int), minlength=LEVELS).tolist()


def _rows(drawers, rating, count, split, random, seen):
    rows = []
    for _ in range(200):
        quota = -(-(count - len(rows)) // len(drawers))
        for drawer in drawers:
            for _, first, second in drawer.draw(quota, random)[:quota]:
                if len(rows) < count and (first, second) not in seen:
                    seen.add((first, second))
                    rows.append((first, second, rating))
        if len(rows) == count:
            return rows
    raise MaskLabError(f"{split}: too few distinct pairs for {count} rows of rating {rating}")
