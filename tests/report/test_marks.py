"""Axes of figures."""

import pytest
from matplotlib.figure import Figure

from masklab.report.marks import examples_axis, size_axis

SIZES = [4300, 16200, 27900, 61100]


@pytest.mark.parametrize(
    ("marked", "shown"), [(None, [4300, 27900, 61100]), (16200, [4300, 16200, 61100]), (27900, [4300, 27900, 61100])]
)
def test_ticks_lie_apart_and_a_marked_size_has_one(marked, shown):
    axes = Figure().add_subplot()
    size_axis(axes, SIZES, marked=marked)
    assert axes.get_xticks().tolist() == shown


def test_the_largest_size_has_a_tick_even_beside_a_marked_one():
    axes = Figure().add_subplot()
    size_axis(axes, [1000, 50000, 60000], marked=50000)
    assert axes.get_xticks().tolist() == [1000, 60000]


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ([100, 200, 400], ["100", "200", "400"]),
        ([500, 4000], ["500", "4,000"]),
        ([500, 4000, 64_000], ["500", "4k", "64k"]),
    ],
)
def test_numbers_of_examples_are_written_alike(sizes, told):
    axes = Figure().add_subplot()
    axes.plot(sizes, sizes)
    examples_axis(axes, sizes)
    axes.figure.draw_without_rendering()
    assert [tick.get_text() for tick in axes.get_xticklabels()] == told
