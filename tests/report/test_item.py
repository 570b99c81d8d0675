"""What a figure or a table chooses, and what is said of one that chooses otherwise from the part that it shows."""

import re
from pathlib import Path

import pytest

from masklab import own
from masklab.errors import MaskLabError
from masklab.report.item import Item
from masklab.scores.reading import Reading
from masklab.scores.view import View

ROOT = Path(__file__).parents[2]
RECIPES = ("a", "b", "c", "late")
FACTS = {"steps": 9, "corpus": "c"}
TWICE = View(
    "s",
    panels={"x": {"MLM": "a", "MAE": "c", "late": "late"}, "y": {"MLM": "b", "again": "a"}},
    recipes=dict.fromkeys(RECIPES, FACTS),
    replicates=dict.fromkeys(RECIPES, 1),
    probes={"p": {"kind": "fill", "tasks": [], "recipes": [*RECIPES], "steps": "last"}},
)


def chosen(view, recipes):
    return {name: Reading(name, "filled", probe="fill") for name in recipes}


def test_a_figure_that_chooses_otherwise_from_its_part_names_what_differs():
    """The first recipe of the study is left out: of the part, which lacks it, another one is the first."""
    with pytest.raises(
        MaskLabError, match=r"other readings .*: only from the whole study it chooses MAE: filled, in x$"
    ):
        Item("", lambda view: chosen(view, view.members[1:])).part(TWICE)
    with pytest.raises(MaskLabError, match=r": only from that part it chooses late: filled, in x$"):
        Item("", lambda view: chosen(view, ["a"] if "c" in view.members else ["a", "late"])).part(TWICE)
    with pytest.raises(MaskLabError, match=r": the same in another order$"):
        Item("", lambda view: chosen(view, sorted("ab", reverse="c" in view.members))).part(TWICE)


def test_recipes_that_two_panels_call_alike_are_told_apart():
    assert TWICE.labelled() == {"MLM (x)": "a", "MAE": "c", "late": "late", "MLM (y)": "b"}


def test_the_figure_of_the_page_shows_every_recipe():
    """By label alone, the second of two recipes that panels call alike took the place of the first."""
    page = (ROOT / "docs/your-own-study.md").read_text()
    scope = {"own": own}
    exec(re.search(r"^def filled.*?\n\n", page, re.S | re.M)[0], scope)
    assert [reading.recipe for reading in scope["filled"](TWICE).values()] == ["a", "c", "late", "b"]
