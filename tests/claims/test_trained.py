"""Claims that ask for trained models: how much of a language every recipe must have learned."""

import pytest

from masklab.claims.claim import Claim
from masklab.claims.effects import difference
from masklab.claims.verdict import tested as judged
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View

FACTS = {"steps": 400, "corpus": "c"}
EFFECT = difference(Reading("a", "rank_entropy", layers=1), Reading("b", "rank_entropy", layers=1))


def found(losses, gaps=None, steps=400, masking=None, masks="one"):
    """The row of a claim that a's rank is above b's, which it is by 5.

    losses: recipe -> its validation loss by replicate, of words of 4 nats; gaps: recipe -> its gap to a floor of 1 nat,
    masks: what the probe hides; masking: facts of b's.
    """
    probes = {"r": {"kind": "rank", "tasks": [], "recipes": ["a", "b"]}}
    probes |= {"l": {"kind": "loss", "masks": masks, "tasks": [], "recipes": ["a", "b"]}} if gaps else {}
    recipes = {"a": FACTS, "b": FACTS | {"steps": steps} | (masking or {})}
    view = View("s", panels={"p": {"A": "a", "B": "b"}}, recipes=recipes, replicates={"a": 3, "b": 3}, probes=probes)
    rows = [
        {"recipe": recipe, "replicate": r, "step": 400, "task": "c", "split": "test", "n": 9} | cell
        for recipe, rank in (("a", 9.0), ("b", 4.0))
        for r in (1, 2, 3)
        for cell in (
            {"probe": "r", "layer": 1, "metric": "rank_entropy", "value": rank + 0.01 * r},
            *({"probe": "l", "metric": m, "value": v} for m, v in (("gap", (gaps or {}).get(recipe)), ("floor", 1.0))
              if gaps),
        )
    ]  # fmt: skip
    models = {
        (recipe, r): {"unigram_loss": 4.0, "valid_loss": {"200": 3.9, "400": loss}}
        for recipe, own in losses.items() for r, loss in enumerate(own, 1)
    }  # fmt: skip
    claim = Claim("c", "1", "1", "a is above b", EFFECT, trained=True)
    assert (("l", "a") in claim.needs(view)) == bool(gaps)
    return judged(claim, Results(view, rows_to_frame(rows), models=models))


def test_every_recipe_must_have_learned_a_fifth_of_the_entropy_of_words():
    """That is 3.2 of 4 nats; where one replicate of one recipe has not, nothing is decided, and it is named."""
    assert found({"a": [3.1] * 3, "b": [3.1] * 3})["verdict"] == "supported"
    row = found({"a": [3.1] * 3, "b": [3.1, 3.3, 3.1]})
    assert row["verdict"] == "untested"
    assert row["why"] == "B has learned too little: 18% of the entropy of single words, of which 20% count"


def test_of_a_law_that_is_known_they_must_have_learned_half_of_what_can_be_learned():
    """Between a floor of 1 and words of 4 nats that is a gap of 1.5, whatever the validation loss says."""
    losses = {"a": [3.9] * 3, "b": [3.9] * 3}
    assert found(losses, {"a": 1.4, "b": 1.4})["verdict"] == "supported"
    row = found(losses, {"a": 1.4, "b": 1.6})
    assert (row["verdict"], row["why"].split(":")[0]) == ("untested", "B has learned too little")
    assert "47% of what can be learned, of which 50% count" in row["why"]


def test_a_null_need_not_have_learned():
    assert found({"a": [3.1] * 3, "b": [4.1] * 3}, steps=0)["verdict"] == "supported"


@pytest.mark.parametrize("losses", [{}, {"a": [3.1] * 3}])
def test_what_no_manifest_says_is_not_held_against_a_recipe(losses):
    assert found(losses)["verdict"] == "supported"


SECOND = {"init": "a@400"}


def test_what_a_second_phase_forgets_it_had_learned():
    """That a model has forgotten its language is a finding; that it never learned it, or from other text, is none."""
    losses = {"a": [3.1] * 3, "b": [3.9] * 3}
    assert found(losses)["verdict"] == "untested"
    assert found(losses, masking=SECOND)["verdict"] == "supported"
    for more in ({"corpus": "d"}, {"shuffle": True}, {"init": "elsewhere@400"}):
        assert found(losses, masking=SECOND | more)["why"].startswith("B has learned too little: 3% "), more
    assert found({"a": [3.1, 3.3, 3.1], "b": [3.9] * 3}, masking=SECOND)["why"].startswith("A has")
    assert found({"b": [3.9] * 3}, masking=SECOND)["why"].startswith("B has"), "of its first phase nothing is known"


def test_a_claim_reads_what_the_first_phase_has_learned():
    probes = {"r": {"kind": "rank", "tasks": [], "recipes": ["b"]}}
    probes |= {"l": {"kind": "loss", "tasks": [], "recipes": ["a", "b"]}}
    view = View("s", recipes={"a": FACTS, "b": FACTS | SECOND}, probes=probes)
    effect = Reading("b", "rank_entropy", layers=1)
    asking, other = (Claim("c", "1", "1", "b has ranks", effect, trained=trained) for trained in (True, False))
    assert asking.learners(view) == ["b", "a"] and asking.needs(view) == [("r", "b"), ("l", "b"), ("l", "a")]
    assert other.learners(view) == [] and other.needs(view) == [("r", "b")]


CORRUPTED = {"masking.mask": 0.8, "masking.random": 0.1}


def test_words_that_are_seen_do_not_count_as_learned():
    """3.1 nats a word of 80/10/10, a tenth of them copied for nothing, may be 3.44 of each that is hidden."""
    losses = {"a": [3.1] * 3, "b": [3.1] * 3}
    row = found(losses, masking=CORRUPTED)
    assert (row["verdict"], row["why"].split(":")[0]) == ("untested", "B has learned too little")
    assert "14% of the entropy of single words" in row["why"]
    assert found(losses, masking={"masking.mask": 0.0, "masking.random": 1.0})["verdict"] == "supported"
    assert found({"a": [3.1] * 3, "b": [2.8] * 3}, masking=CORRUPTED)["verdict"] == "supported"


def test_a_gap_that_is_measured_on_masks_alone_is_a_premise_of_any_recipe():
    losses, gaps = {"a": [3.9] * 3, "b": [3.9] * 3}, {"a": 1.4, "b": 1.4}
    assert found(losses, gaps, masking=CORRUPTED)["verdict"] == "supported"
    row = found(losses, gaps, masking=CORRUPTED, masks="training")
    assert (row["verdict"], row["why"].split(":")[0]) == ("untested", "B has learned too little")
