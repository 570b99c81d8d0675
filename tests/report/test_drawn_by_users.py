"""What figures and tables of a user's file return is checked before it is written."""

from types import SimpleNamespace

import pandas as pd
import pytest
from matplotlib.figure import Figure

from masklab import own
from masklab.config import kinds
from masklab.errors import MaskLabError
from masklab.report.cells import tidy
from masklab.report.figure_files import write_figure
from masklab.report.item import Item

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


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (pd.DataFrame({"a": [1, "x"]}), "Could not convert 'x' with type str"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "Duplicate column names found: ['a', 'a']"),
        (pd.DataFrame({"a": [1]}), r"\frac ^ ParseSyntaxException"),
    ],
)
def test_what_cannot_be_written_is_said_of_the_figure(made, tmp_path, data, said):
    """Of a formula that is none, or columns of no one type, libraries tell when it is written."""
    figure = Figure()
    if "frac" in said:
        figure.text(0, 0, r"$\frac$")
    item = made("figures", (figure, data))
    with pytest.raises(MaskLabError) as caught, item.written("figures"):
        write_figure(*item.draw(SimpleNamespace(view=None)), tmp_path / "f")
    assert str(caught.value).startswith("mine.py: 'f' of figures returned what cannot be written: ")
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_an_error_that_is_not_of_the_data_stays_what_it_is(made):
    with pytest.raises(OSError, match="full"), made("figures", None).written("figures"):
        raise OSError("full")
    with pytest.raises(KeyError), Item("", lambda view: ()).written("tables"):  # ours: a bug
        raise KeyError("x")
