import pytest

from masklab.config.schema import EnglishLabels, EnglishPairs
from masklab.corpora.english.labelled_tasks import RECIPES
from masklab.errors import MaskLabError
from masklab.tasks import build, write_task


def test_generated_pairs(tmp_path):
    config = EnglishPairs(kind="english-pairs", pairs=5)
    splits, facts = build(config, "blimp", 1)
    frame = splits["test"]
    assert list(splits) == ["test"] and list(frame.columns) == ["phenomenon", "paradigm", "good", "bad"]
    assert facts["kind"] == "pairs" and sum(facts["phenomena"].values()) == len(frame)
    assert set(facts["phenomena"].values()) == {5}
    assert (frame["good"] != frame["bad"]).all()
    assert build(config, "blimp", 1)[0]["test"].equals(frame)
    assert not build(config.model_copy(update={"seed": 2}), "blimp", 1)[0]["test"].equals(frame)
    one = next(iter(facts["phenomena"]))
    some, _ = build(config.model_copy(update={"phenomena": [one]}), "blimp", 1)
    assert set(some["test"]["phenomenon"]) == {one}
    write_task(tmp_path, splits, facts)


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_generated_labels(tmp_path, recipe):
    config = EnglishLabels(kind="english-labels", recipe=recipe, train=40, valid=20, test=20)
    splits, facts = build(config, "task", 1)
    assert (
        facts["rows"]
        == {split: len(frame) for split, frame in splits.items()}
        == {"train": 40, "valid": 20, "test": 20}
    )
    assert facts["labels"] == RECIPES[recipe].labels and facts["pair"] == RECIPES[recipe].pair
    for frame in splits.values():
        assert list(frame.columns) == ["text_a", "text_b", "label"]
        assert frame["label"].between(0, facts["labels"] - 1).all()
        assert frame["text_b"].notna().all() == facts["pair"]
    write_task(tmp_path, splits, facts)


ACCEPTABLE = EnglishLabels(kind="english-labels", recipe="acceptability", train=82_300)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (EnglishPairs(kind="english-pairs", pairs=6860, phenomena=["anaphor_agreement"]), "pairs: paradigm anaphor_ge"),
        (ACCEPTABLE, "train: recipe acceptability has too few distinct sentences for the 83100 rows of all splits"),
    ],
)
def test_more_rows_than_the_language_has_sentences(config, message):
    """The message begins with the key that asks for them."""
    with pytest.raises(MaskLabError, match=rf"^tasks\.many\.{message}"):
        build(config, "many", 1)
