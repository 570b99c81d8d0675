"""What cannot grow is said before anything is trained."""

import pytest

from masklab.config import layered, load, overlay, plain
from masklab.errors import MaskLabError

DEFAULT = plain(layered())


def study(**keys):
    """The default config with a landscape probe of one model of `dh` (2 layers of width 48)."""
    probes = {"landscape": {"kind": "landscape", **keys}}
    return overlay(DEFAULT, {"probes": probes, "studies": {"dh": {"probes": {"landscape": ["dh-single-with"]}}}})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"width": 72}, "'dh-single-with' cannot grow: width: 72 is not a multiple of the encoder's 48"),
        ({"layers": 4}, "'dh-single-with' cannot grow: layers: norm: post normalises after each sum"),
        ({"width": 96, "layers": 1}, "layers: 1 must be an integer of at least the model's 2"),
    ],
)
def test_growth_that_is_impossible_stops_the_run(keys, said):
    with pytest.raises(MaskLabError, match=f"studies.dh.probes.landscape: .*{said}"):
        load(study(**keys))


def test_growth_that_is_possible_does_not():
    assert load(study(width=96)).probes["landscape"].width == 96
    assert load(study()).probes["landscape"].largest == 0.05
