"""Minimal pairs of the English-like language, under BLiMP's phenomenon names."""

import pandas as pd

from masklab import rng
from masklab.corpora.english.paradigms import PARADIGMS
from masklab.corpora.english.templates import Templates
from masklab.errors import MaskLabError

PHENOMENA = tuple(PARADIGMS)


def minimal_pairs(pairs_per_phenomenon: int, seed: int, phenomena=()) -> pd.DataFrame:
    """Distinct pairs of a sentence in the language and one that is not, made from the same words.

    `phenomena`: subset of `PHENOMENA`; empty: all. Paradigms of a phenomenon get equal shares
    (within one pair). Columns: phenomenon, paradigm, good, bad.
    """
    for name in phenomena:
        if name not in PARADIGMS:
            raise MaskLabError(f"phenomena: unknown phenomenon '{name}'; allowed: {', '.join(PHENOMENA)}")
    rows = []
    for phenomenon in phenomena or PHENOMENA:
        paradigms = PARADIGMS[phenomenon]
        seen: set[str] = set()
        for index, (paradigm, templates) in enumerate(paradigms.items()):
            share = (pairs_per_phenomenon + len(paradigms) - 1 - index) // len(paradigms)
            drawn = _draw(paradigm, [Templates(*pair) for pair in templates], share, seed, seen)
            rows += [(phenomenon, paradigm, good, bad) for good, bad in drawn]
    return pd.DataFrame(rows, columns=["phenomenon", "paradigm", "good", "bad"])


def _draw(paradigm: str, templates: list[Templates], count: int, seed: int, seen: set[str]) -> list[tuple[str, str]]:
    """`count` pairs of one paradigm, its templates in equal shares; `seen`: sentences not to use again."""
    random = rng.generator(seed, "english", "pairs", paradigm)
    pairs: list[tuple[str, str]] = []
    for attempt in range(200):
        for index, template in enumerate(templates):
            quota = count * (index + 1) // len(templates) if attempt == 0 else count
            for good, bad in template.draw(max(quota - len(pairs), 0), random):
                if len(pairs) < quota and good not in seen and bad not in seen:
                    seen |= {good, bad}
                    pairs.append((good, bad))
        if len(pairs) == count:
            return pairs
    raise MaskLabError(f"pairs: paradigm {paradigm} has only about {len(pairs)} distinct pairs, {count} asked")
