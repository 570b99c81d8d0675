"""What figures and tables of a user's file return is checked before it is written."""

from types import SimpleNamespace

import pandas as pd
import pytest
from matplotlib.figure import Figure

from masklab import own
from masklab.config import kinds
from masklab.errors import MaskLabError
from masklab.report.cells import tidy

DRAWN = "(figure, data): a Figure of matplotlib, and the pandas frame of what it shows (got "


@pytest.fixture
def made(monkeypatch):
    """made(section, returned): the item that a user's function of that section is, which returns that."""
    monkeypatch.setattr(kinds, "_yours", {section: {} for section in kinds.SECTIONS})
    monkeypatch.setattr(kinds, "_reading", "mine.py")

    def register(section, returned):
        {"figures": own.figure, "tables": own.table}[section]("f", lambda view: ())(lambda results, chosen: returned)
        monkeypatch.setitem(kinds._yours[section], "f", kinds._read["mine.py"][-1])
        return kinds.find(section, "f").make

    monkeypatch.setitem(kinds._read, "mine.py", [])
    return register


@pytest.mark.parametrize(
    ("returned", "got"),
    [
        (None, "None)"),
        ((Figure(),), "(<Figure size 640x480 with 0 Axes>,))"),
        ((Figure().add_subplot(), pd.DataFrame()), "figure: <Axes: >)"),
        ((Figure(), {"x": 1}), "data: {'x': 1})"),
    ],
)
def test_a_figure_that_is_none_is_refused(made, returned, got):
    with pytest.raises(MaskLabError) as caught:
        made("figures", returned).draw(SimpleNamespace(view=None))
    assert str(caught.value) == f"mine.py: 'f' of figures must return {DRAWN}{got}"


@pytest.mark.parametrize(("returned", "got"), [([1], "[1])"), (pd.DataFrame({"a": [1]}), "a frame without: 'panel')")])
def test_a_table_without_the_columns_is_refused(made, returned, got):
    with pytest.raises(MaskLabError) as caught:
        made("tables", returned).tabulate(SimpleNamespace(view=None))
    said = str(caught.value)
    assert said.startswith("mine.py: 'f' of tables must return a frame with the columns panel, row, ") and got in said


def test_what_is_one_is_let_through(made):
    drawn, frame = (Figure(), pd.DataFrame()), tidy([])
    assert made("figures", drawn).draw(SimpleNamespace(view=None)) is drawn
    assert made("tables", frame).tabulate(SimpleNamespace(view=None)) is frame
