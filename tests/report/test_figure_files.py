"""Figures on disk."""

import resource

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from masklab.report.figure_files import write_figure


def test_a_disk_without_room_is_an_error_of_the_system_and_leaves_nothing(tmp_path):
    """In place of a full disk: no file may be longer than 9,000 bytes."""
    figure, axes = plt.subplots()
    axes.set_title("".join(map(chr, range(33, 127))))  # letters of a font that is longer
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (9000, before[1]))
        with pytest.raises(OSError):
            write_figure(figure, pd.DataFrame({"x": [0, 1]}), tmp_path / "f")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        plt.close(figure)
    assert not list(tmp_path.iterdir())
