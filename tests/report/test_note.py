"""The small print of a figure lies on nothing."""

import itertools

import pytest

from masklab.report import style
from masklab.report.marks import write_note


@pytest.mark.parametrize("legend", [False, True])
def test_the_note_lies_on_nothing(legend):
    figure = style.new_figure(style.COLUMN, 2.0)
    axes = figure.subplots()
    (line,) = axes.plot([0, 1], [0, 1])
    axes.set_xlabel("Layer")
    if legend:
        style.legend_below(figure, [line, line], ["one", "the other"])
    write_note(figure, "mean of 3 replicates, 95 % interval over replicates")
    figure.draw_without_rendering()
    note = figure.legends[0].get_title() if legend else figure._supxlabel
    shown = [note, axes, *(text for each in figure.legends for text in each.get_texts())]
    assert "replicates" in note.get_text()
    for one, other in itertools.combinations([artist.get_tightbbox() for artist in shown], 2):
        assert not one.overlaps(other)
