"""Figures 6 to 8 of `implicit-bias`: the two solutions on brackets, and what lies in the corpora that are given."""

import numpy as np
import pyarrow as pa
import pytest

from masklab import symbols
from masklab.config.schema import Config
from masklab.corpora import generate
from masklab.corpora.pcfg.law import of_header, rules_of
from masklab.errors import MaskLabError
from masklab.files import write_table
from masklab.studies.implicit_bias.flatness import figure6, figure_drift
from masklab.studies.implicit_bias.samples import TREES, figure7, figure8, nodes

GRAMMAR = {"levels": [3, 3, 3], "words": 12, "emissions": 5, "rules": 4, "stop": 0.2}


@pytest.fixture(scope="module")
def pcfg(tmp_path_factory):
    corpus = {"kind": "pcfg", "grammar": GRAMMAR, "sentences": 5, "valid": 1, "test": 1, "min_length": 2}
    table = generate(Config(corpora={"c": corpus}).corpora["c"], "c", 3)["train"]
    path = tmp_path_factory.mktemp("figure7") / "train.parquet"
    write_table(table, path)
    return path


def test_places_of_a_tree():
    rows = {row["name"]: row for row in nodes(("S", ("A", "a"), ("B", ("C", "c"), ("D", "d"))))}
    assert [rows[name]["x"] for name in ("a", "c", "d", "B", "S")] == [0, 1, 2, 1.5, 0.75]
    assert (rows["S"]["parent"], rows["D"]["depth"], rows["d"]["depth"]) == (-1, 2, 3)
    assert rows["d"]["parent"] == rows["D"]["node"] and rows["d"]["word"] and not rows["D"]["word"]


def test_trees_are_of_the_grammar_of_the_corpus(pcfg):
    figure, data = figure7(None, (), corpora=[pcfg])
    rules = rules_of(symbols.read_header(pcfg))
    known = {(rules.names[a], rules.names[b], rules.names[c]) for a, b, c in rules.binary}
    spelt = {(rules.names[a], rules.words[w]) for a, w in rules.lexical}
    assert data["tree"].nunique() == len(figure.axes) == TREES
    for axes, (_, tree) in zip(figure.axes, data.groupby("tree"), strict=True):
        assert [text.get_text() for text in axes.texts] == tree["name"].tolist()
        at = tree.set_index("node")
        for number, children in tree[tree["parent"] >= 0].groupby("parent"):
            used = (at.loc[number, "name"], *children["name"])
            assert used in (spelt if children["word"].all() else known)
        roots = [rules.names[k] for k in range(len(rules)) if rules.start[k] > 0]
        assert at.loc[0, "name"] in roots and at["word"].sum() >= 2
    assert of_header(symbols.read_header(pcfg)).symbols == 12


def test_sentences_are_the_examples_of_the_corpus(pcfg, tmp_path):
    examples = ["a $small$ dog .", "cats " * 60]
    table = symbols.with_header(
        pa.table({"symbols": symbols.column([0], [1])}), ["w"], kind="causal", examples=examples
    )
    write_table(table, tmp_path / "train.parquet")
    figure, data = figure8(None, (), corpora=[tmp_path / "train.parquet"])
    assert data["text"].tolist() == examples
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert shown[:2] == ["1", examples[0]] and shown[3].split() == ["cats"] * 60 and shown[3].count("\n") == 3
    with pytest.raises(MaskLabError, match=r"train.parquet: the figure needs one causal corpus"):
        figure8(None, (), corpora=[pcfg])


def test_figure6_in_numbers():
    figure, data = figure6(None, ())
    terms = data[data["part"] == "contributions"]
    first, second = (terms[terms["solution"] == number] for number in (1, 2))
    assert (
        np.allclose(first["positive"] * first["negative"], 0) and (second["positive"] * -second["negative"] > 1).all()
    )
    flat = data[data["part"] == "solutions"].set_index(["length", "solution"])
    for length in (6, 8):
        found = flat.squared_gradient_balanced[length, 1], flat.squared_gradient_balanced[length, 2]
        assert found[0] == pytest.approx(2 / np.sqrt(length), abs=1e-6) and found[1] > 4 * found[0]
    transfer = data[data["part"] == "transfer"]
    assert (abs(transfer["measured"] - transfer["corrected"]) < 4 * transfer["error"]).all()
    assert len(figure.axes) == 4


def test_the_drift_of_sgd_collapses_on_the_theorem():
    """Both batch sizes on one curve of k lr^2 / B, within 3 %; the figure shows the smaller and the larger rate."""
    figure, data = figure_drift(None, ())
    slow = data[data["lr"] <= 0.1]
    assert set(slow["batch"]) == {1, 4}
    assert np.allclose(slow["measured"], np.exp(-0.21 * slow["collapsed"]), rtol=0.03)
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert sorted(labels) == sorted([f"B = {b}, lr = {lr}" for b in (1, 4) for lr in (0.05, 0.2)] + ["theorem 3.3"])
