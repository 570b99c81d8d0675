"""The table and the figures of any study, on the scores of one under a name of its own."""

import copy

import numpy as np
import pytest

import synthetic
from drawn import all_is_in_view, nothing_overlaps
from masklab.config import layered, load, overlay, plain
from masklab.report.cells import TIDY
from masklab.studies import find, items

RAW = plain(layered())


@pytest.fixture(scope="module")
def config():
    raw = overlay(copy.deepcopy(RAW), {"extends": []})
    study = raw["studies"]["mlsm"] | {"figures": ["bars", "curves"], "tables": ["comparison"], "claims": []}
    return load(raw | {"studies": {"平滑": study}})


@pytest.fixture(scope="module")
def results(config):
    return synthetic.results(config, "平滑")


def test_a_study_without_a_wing_has_the_generic_items():
    assert set(items("figures", None)) == {"bars", "curves"} and set(items("tables", None)) == {"comparison"}


@pytest.mark.parametrize("name", ("bars", "curves"))
def test_figures(name, config, results):
    figure, data = find("平滑", config.studies["平滑"], "figures", name).draw(results)
    assert np.isfinite(data[["value", "low", "high", "null"]]).all(axis=None) and (data["replicates"] == 3).all()
    assert set(data["panel"]) == {"strict", "strict-small"}
    values = np.round(data["value"], 9)
    for axes in figure.axes:
        bars = [bar.get_height() for bar in axes.patches]
        lines = [line.get_ydata() for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
        assert bars or lines
        for drawn in (bars, *lines):
            assert np.isin(np.round(drawn, 9), values).all()
    nothing_overlaps(figure)
    all_is_in_view(figure)


def test_comparison(config, results):
    item = find("平滑", config.studies["平滑"], "tables", "comparison")
    table = item.function()(results, item.choose(results.view))
    assert list(table.columns) == TIDY and np.isfinite(table["value"]).all()
    cells = table[table["label"] == "MLM"].set_index(["panel", "row"])["value"]
    assert cells["strict", "mean of glue"] == pytest.approx(cells["strict"][["acceptability", "sentiment"]].mean())
    assert "null: untrained" in set(table["label"])
