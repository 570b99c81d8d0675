"""YAML that remembers where it was written."""

import pytest
import yaml

from masklab.config.located import Place, find, overlay, parse, plain
from masklab.errors import MaskLabError

TEXT = """\
a: &a {x: 1, y: [1, 2]}
b:
  <<: *a
  y:
    - 3
    - {z: null}
on: 1e-3
010: "2"
? 1.50
: {c: !!str 5}
"""


def test_values_are_plain_and_keys_are_names():
    found = parse(TEXT, "f")
    assert plain(found) == {
        "a": {"x": 1, "y": [1, 2]}, "b": {"x": 1, "y": [3, {"z": None}]}, "on": "1e-3", "010": "2", "1.50": {"c": "5"},
    }  # fmt: skip
    assert type(plain(found)["b"]["y"][1]) is dict and list(found["b"]) == ["x", "y"]


@pytest.mark.parametrize(
    ("path", "line"),
    [(("a",), 1), (("b",), 2), (("b", "x"), 1), (("b", "y"), 4), (("b", "y", 0), 5), (("b", "y", 1, "z"), 6),
     (("b", "y", 7), 4), (("b", "none", "z"), 2), (("1.50", "c"), 10), ((), None)],
)  # fmt: skip
def test_every_key_and_item_has_a_line(path, line):
    place, _ = find(parse(TEXT, "f"), path)
    assert (place and place.line) == line


def test_the_same_values_as_yaml_reads_from_real_files():
    for text in ("a: 1\nb: [x, 'y', 1.5, true, ~, 2026-01-01]\n", "[]", "{}", "- 5\n- [{a: b}]\n"):
        assert plain(parse(text, "f")) == yaml.safe_load(text)
    assert parse("", "f") is None and parse("# nothing", "f") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "f:3: a: given twice (first in line 1)"),
        ("a: {b: {c: 1, c: 2}}", "f:1: a.b.c: given twice"),
        ("a: &a [*a]", "f:1: a: contains itself"),
        ("a: [1, 2", "f:1: not valid YAML"),
        ("a: 1\n---\nb: 2\n", "f:2: not valid YAML"),
        ("a: [1, 2026-13-01]", "f:1: a: not a valid date or number; text needs quotes"),
        ("a: !!bool maybe", "f:1: a: not a valid date or number; text needs quotes"),
    ],
)
def test_what_is_no_mapping_of_names_is_said(text, said):
    with pytest.raises(MaskLabError) as caught:
        parse(text, "f")
    assert str(caught.value).startswith(said)


def test_laid_over_each_other_the_upper_place_counts():
    low, top = parse("a: {b: 1, c: 2}\nd: [1]", "low"), parse("\na:\n  b: 3\nd: [2]", "top")
    laid = overlay(low, top)
    assert laid == {"a": {"b": 3, "c": 2}, "d": [2]} and low["a"]["b"] == 1
    assert find(laid, ("a", "b"))[0] == Place("top", 3) and find(laid, ("a", "c"))[0] == Place("low", 1)
    assert find(laid, ("a",))[0] == Place("top", 2)
    assert type(overlay({"a": 1}, {"b": 2})) is dict


def test_places_are_said_from_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(Place(str(tmp_path / "x/y.yaml"), 3)) == "x/y.yaml:3"
    assert str(Place("/elsewhere/y.yaml", 3)) == "/elsewhere/y.yaml:3" and str(Place("--config", None)) == "--config"
