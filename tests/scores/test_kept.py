"""Tables of a run that two configs share: what one of them does not declare stays."""

import pandas as pd
import pytest

from masklab.files import write_parquet
from masklab.scores.facts import COLUMNS, rows
from masklab.scores.kept import held, kept_claims, with_kept_facts, with_kept_scores
from masklab.scores.schema import rows_to_frame


def scores(study, recipe, value=0.5):
    asked = {"replicate": 1, "step": 5, "probe": f"p-{study}", "task": f"t-{study}/part", "split": "test"}
    return rows_to_frame([asked | {"recipe": recipe, "metric": "accuracy", "value": value, "n": 10}], study)


def facts(**recipes):
    """Recipe -> its corpus; with facts of the corpora, a task and a probe of the study of the same name."""
    found = []
    for recipe, corpus in recipes.items():
        found += rows("recipe", recipe, {"corpus": corpus, "steps": 5}) + rows("recipe", recipe, {"flops": 2.0}, 1)
        found += rows("corpus", corpus, {"kind": "text"})
        found += rows("task", f"t-{recipe}", {"metric": "mcc"}) + rows("probe", f"p-{recipe}", {"seeds": 1})
    return pd.DataFrame(found, columns=COLUMNS)


def names(frame):
    return set(zip(frame["noun"], frame["name"], strict=True))


def test_scores_of_a_study_stay_when_another_config_is_gathered(tmp_path):
    one, two = scores("one", "m"), scores("two", "n")
    pd.testing.assert_frame_equal(with_kept_scores(one, tmp_path, ["one"]), one)
    both = with_kept_scores(two, tmp_path, ["two"])
    pd.testing.assert_frame_equal(both, pd.concat([two, one], ignore_index=True))
    assert held(tmp_path, ["two"]) == ["one"] and held(tmp_path, ["one", "two"]) == []
    changed = scores("one", "m", 0.75)
    again = with_kept_scores(changed, tmp_path, ["one"])
    assert again["value"].tolist() == [0.75, 0.5], "a declared study is as it is now"
    (tmp_path / "studies/two.parquet").unlink()
    assert with_kept_scores(changed, tmp_path, ["one"])["study"].tolist() == ["one"]


def test_a_table_of_another_version_is_not_kept(tmp_path):
    write_parquet(pd.DataFrame({"study": ["old"]}), tmp_path / "studies/old.parquet")
    assert with_kept_scores(scores("one", "m"), tmp_path, ["one"])["study"].tolist() == ["one"]


@pytest.mark.parametrize("content", [b"no table", None])
def test_facts_are_gathered_beside_a_table_that_is_none(content, tmp_path):
    with_kept_facts(facts(one="c"), tmp_path, ["one"])
    file = tmp_path / "studies/old.parquet"
    if content is None:
        write_parquet(pd.DataFrame({"study": ["old"]}), file)
    else:
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
    assert names(with_kept_facts(facts(two="e"), tmp_path, ["two"])) == names(facts(two="e"))


def test_facts_of_every_corpus_of_what_is_kept_stay(tmp_path):
    """That of a tokenizer or a dictionary, too, as where a config declares them."""
    with_kept_scores(scores("one", "one"), tmp_path, ["one"])
    before = [*rows("recipe", "one", {"corpus": "c", "tokenizer.corpus": "d", "teacher.corpus": None})]
    before += [row for corpus in "cde" for row in rows("corpus", corpus, {"kind": "text", "corpus": ["x"]})]
    with_kept_facts(pd.DataFrame(before, columns=COLUMNS), tmp_path, ["one"])
    after = with_kept_facts(facts(two="two"), tmp_path, ["two"])
    assert names(after) - names(facts(two="two")) == {("recipe", "one"), ("corpus", "c"), ("corpus", "d")}


def test_facts_of_recipes_that_a_kept_one_starts_from_stay(tmp_path):
    """And of those that these start from; a text with an @ that names no recipe is a text."""
    with_kept_scores(scores("one", "third"), tmp_path, ["one"])
    before = [*rows("recipe", "third", {"init": "second@20", "title": "me@home"})]
    before += [*rows("recipe", "second", {"init": None, "dictionary.model": "first@10"}), *rows("task", "me", {"n": 1})]
    before += [row for name in ("first", "other") for row in rows("recipe", name, {"corpus": f"of-{name}"})]
    before += [row for name in ("of-first", "of-other") for row in rows("corpus", name, {"kind": "text"})]
    with_kept_facts(pd.DataFrame(before, columns=COLUMNS), tmp_path, ["one"])
    after = names(with_kept_facts(facts(two="two"), tmp_path, ["two"])) - names(facts(two="two"))
    assert after == {("recipe", name) for name in ("first", "second", "third")} | {("corpus", "of-first")}


def test_facts_of_what_is_kept_stay_and_no_others(tmp_path):
    with_kept_scores(scores("one", "one"), tmp_path, ["one"])
    before = facts(one="c", dropped="d")
    pd.testing.assert_frame_equal(with_kept_facts(before, tmp_path, ["one"]), before)
    with_kept_scores(scores("two", "two"), tmp_path, ["two"])
    after = with_kept_facts(facts(two="e"), tmp_path, ["two"])
    kinds = {("recipe", "{}"), ("task", "t-{}"), ("probe", "p-{}")}
    expected = {(noun, name.format(recipe)) for noun, name in kinds for recipe in ("one", "two")}
    assert names(after) == expected | {("corpus", "c"), ("corpus", "e")}
    assert after[(after["noun"] == "recipe") & (after["name"] == "one")]["replicate"].tolist() == [0, 0, 1]
    assert not after.duplicated().any()
    assert names(with_kept_facts(facts(two="e"), tmp_path, ["two", "one"])) == names(facts(two="e"))


def test_claims_of_what_is_kept_stay(tmp_path):
    """Whether or not their scores were ever gathered."""
    for study in ("one", "two"):
        write_parquet(pd.DataFrame({"study": [study], "claim": ["a"]}), tmp_path / f"claims/{study}.parquet")
    columns = ["study", "claim"]
    assert kept_claims(tmp_path / "claims", ["two"], columns) == [tmp_path / "claims/one.parquet"]
    assert kept_claims(tmp_path / "claims", ["two"], ["study"]) == []
    assert kept_claims(tmp_path / "elsewhere", ["two"], columns) == []
