"""How recipes are called where two panels use the same words."""

from masklab.scores.view import View


def test_recipes_of_one_label_have_their_panel_behind_it():
    view = View("s", panels={"p": {"A": "one", "B": "two"}, "q": {"A": "three"}})
    assert view.labelled() == {"A (p)": "one", "B": "two", "A (q)": "three"}


def test_no_recipe_is_lost_to_a_label_that_reads_like_a_panel():
    view = View("s", panels={"p": {"A": "one", "A (q)": "two"}, "q": {"A": "three"}})
    assert view.labelled() == {"A (p)": "one", "A (q)": "two", "A (q) (three)": "three"}
