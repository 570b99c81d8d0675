"""What cannot grow is said before anything is trained."""

import pytest

from masklab.config import layered, load, overlay, plain
from masklab.errors import MaskLabError

DEFAULT = plain(layered())


def study(**keys):
    """The default config with a landscape probe of one model of `dh` (BERT, 2 layers of width 32)."""
    probes = {"landscape": {"kind": "landscape", **keys}}
    return overlay(DEFAULT, {"probes": probes, "studies": {"dh": {"probes": {"landscape": ["dh-single-with"]}}}})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"width": 48}, "'dh-single-with' cannot grow: width: 48 is not a multiple of the encoder's 32"),
        ({"layers": 4}, "'dh-single-with' cannot grow: layers: norm: post normalises after each sum"),
        ({"width": 64, "layers": 1}, "layers: 1 must be an integer of at least the model's 2"),
    ],
)
def test_growth_that_is_impossible_stops_the_run(keys, said):
    with pytest.raises(MaskLabError, match=f"studies.dh.probes.landscape: .*{said}"):
        load(study(**keys))


def test_growth_that_is_possible_does_not():
    assert load(study(width=64)).probes["landscape"].width == 64
    assert load(study()).probes["landscape"].largest == 0.05
