"""Labelled tasks of the English-like language: GLUE's kinds and MSGS's kinds."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from masklab import rng
from masklab.corpora.english.pairs import minimal_pairs
from masklab.corpora.english.recipes import GLUE, Case, msgs_cases
from masklab.corpora.english.templates import Templates
from masklab.errors import MaskLabError


@dataclass(frozen=True)
class Recipe:
    """A labelled task: number of labels, whether rows are sentence pairs, and which suite it is like.

    `cases(split)` are the kinds of rows of a split (None for `acceptability`, made from minimal pairs).
    """

    labels: int
    pair: bool
    group: str
    description: str
    cases: Callable[[str], list[Case]] | None = None


def _glue(name: str, pair: bool, description: str) -> Recipe:
    return Recipe(2, pair, "glue", description, lambda split: GLUE[name])


def _control(linguistic: str, surface: str, label: str, description: str) -> Recipe:
    cases = msgs_cases(linguistic, surface, label, crossed=None)
    return Recipe(2, False, "msgs-control", description, lambda split: cases)


def _ambiguous(linguistic: str, surface: str) -> Recipe:
    """Features coincide in train and valid and are crossed in test, where the linguistic one is right."""
    agreeing, crossed = (msgs_cases(linguistic, surface, "linguistic", c) for c in (False, True))
    words = f"{linguistic.replace('_', ' ')} or {surface.replace('_', ' ')}"
    return Recipe(
        2,
        False,
        "msgs-ambiguous",
        f"{words}? Both fit the training data; in test only the first is right.",
        lambda split: crossed if split == "test" else agreeing,
    )


_LINGUISTIC = ("main_verb", "control_raising", "syntactic_category")
_SURFACE = ("lexical_content", "relative_position")

RECIPES: dict[str, Recipe] = {
    "acceptability": Recipe(
        2, False, "glue", "Is the sentence in the language (1) or the bad member of a minimal pair (0)?"
    ),
    "sentiment": _glue("sentiment", False, "Is the opinion positive? Negation reverses it."),
    "entailment": _glue("entailment", True, "Does the second sentence follow from the first?"),
    "paraphrase": _glue("paraphrase", True, "Do both sentences say the same?"),
    "control_main_verb": _control("main_verb", "relative_position", "linguistic", "Is the main verb in -ing?"),
    "control_control_raising": _control(
        "control_raising",
        "relative_position",
        "linguistic",
        "Is it a control predicate (1) or a raising predicate (0)?",
    ),
    "control_syntactic_category": _control(
        "syntactic_category", "relative_position", "linguistic", "Is the predicate an adjective?"
    ),
    "control_lexical_content": _control("main_verb", "lexical_content", "surface", "Does the word `the` occur?"),
    "control_relative_position": _control("main_verb", "relative_position", "surface", "Does `the` precede `a`?"),
    **{
        f"{linguistic}_{surface}": _ambiguous(linguistic, surface) for linguistic in _LINGUISTIC for surface in _SURFACE
    },
}


def labelled(recipe: str, sizes: dict[str, int], seed: int) -> dict[str, pd.DataFrame]:
    """{split: frame of text_a, text_b (None for single sentences), label (int64)}.

    Every split has equally many rows of each label (within one); no sentence occurs twice, in one split or in two.
    """
    if recipe not in RECIPES:
        raise MaskLabError(f"recipe: unknown recipe '{recipe}'; allowed: {', '.join(RECIPES)}")
    seen: set[str] = set()
    if RECIPES[recipe].cases is None:
        rows = _acceptability(sizes, seed, seen)
    else:
        rows = {
            split: _rows(recipe, split, count, rng.generator(seed, "english", recipe, split), seen)
            for split, count in sizes.items()
        }
    frames = {}
    for split, listed in rows.items():
        order = rng.generator(seed, "english", recipe, split, "order").permutation(len(listed))
        frame = pd.DataFrame([listed[index] for index in order], columns=["text_a", "text_b", "label"])
        frames[split] = frame.astype({"text_a": object, "text_b": object, "label": np.int64})
    return frames


def _rows(recipe: str, split: str, count: int, random: np.random.Generator, seen: set[str]) -> list[tuple]:
    """`count` rows, labels in equal numbers, the cases of a label in about equal numbers."""
    cases = RECIPES[recipe].cases(split)
    rows: list[tuple] = []
    for label in (0, 1):
        drawers = [
            Templates(*(text for text in (case.text_a, case.text_b) if text)) for case in cases if case.label == label
        ]
        wanted = (count + label) // 2
        taken = 0
        for attempt in range(200):
            for turn, index in enumerate(random.permutation(len(drawers))):
                quota = wanted * (turn + 1) // len(drawers) if attempt == 0 else wanted
                for texts in drawers[index].draw(quota - taken, random):
                    if taken < quota and seen.isdisjoint(texts):
                        seen.update(texts)
                        rows.append((*texts, *[None] * (2 - len(texts)), label))
                        taken += 1
            if taken == wanted:
                break
        else:
            raise MaskLabError(f"{split}: recipe {recipe} has too few distinct sentences for {count} rows")
    return rows


def _acceptability(sizes: dict[str, int], seed: int, seen: set[str]) -> dict[str, list[tuple]]:
    """Members of minimal pairs, of each pair only one."""
    total = sum(sizes.values())
    few = "recipe acceptability has too few distinct sentences for"
    try:
        phenomena = minimal_pairs(total // 12 + 1, rng.seed_at(seed, "english", "acceptability"))
    except MaskLabError as error:  # of its own key, `pairs`
        largest, why = max(sizes, key=sizes.get), str(error).removeprefix("pairs: ")
        raise MaskLabError(f"{largest}: {few} the {total} rows of all splits ({why})") from None
    order = rng.generator(seed, "english", "acceptability").permutation(len(phenomena))
    pairs = iter(zip(phenomena["good"].to_numpy()[order], phenomena["bad"].to_numpy()[order], strict=True))
    rows: dict[str, list[tuple]] = {}
    for split, count in sizes.items():
        rows[split] = []
        while len(rows[split]) < count:
            label = len(rows[split]) % 2
            if (pair := next(pairs, None)) is None:
                raise MaskLabError(f"{split}: {few} {count} rows")
            text = pair[0 if label else 1]
            if text not in seen:
                seen.add(text)
                rows[split].append((text, None, label))
    return rows
