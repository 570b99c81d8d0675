"""The picture of the ranks of a folder: every curve is one of its rows' measures, and all is in view."""

import numpy as np

from drawn import all_is_in_view, nothing_overlaps
from masklab.probes.rank import PLACES, SPLITS
from masklab.report.folder_ranks import PANELS, picture


def rows(with_places=True):
    rng = np.random.default_rng(1)
    cells = [(split, metric) for split in SPLITS for metric in list(PANELS)[:2]]
    cells += [(split, "outside") for split in PLACES] if with_places else []
    return [
        {"split": split, "layer": layer, "metric": metric, "value": float(rng.uniform(0.1, 20)), "n": 9}
        for split, metric in cells for layer in (2, 0, 1, 3)
    ]  # fmt: skip


def test_every_curve_is_that_of_its_split():
    given = rows()
    figure = picture(given)
    for axes, metric in zip(figure.axes, PANELS, strict=True):
        drawn = {tuple(line.get_ydata()) for line in axes.get_lines()}
        wanted = {
            tuple(row["value"] for row in sorted(given, key=lambda row: row["layer"])
                  if (row["split"], row["metric"]) == (split, metric))
            for split in {row["split"] for row in given if row["metric"] == metric}
        }  # fmt: skip
        assert drawn == wanted and axes.get_xlabel() == "Layer"
    nothing_overlaps(figure)
    all_is_in_view(figure)


def test_without_the_subspace_there_are_two_panels():
    assert len(picture(rows(with_places=False)).axes) == 2
