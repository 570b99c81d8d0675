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


def test_a_trace_in_another_width_needs_embeddings_that_are_normalised():
    """With a tied head; else no model of that width computes the same, and the number would be of nothing."""

    def made(width, **encoder):
        probes = {"trace": {"kind": "curvature", "width": width}}
        given = {"probes": probes, "studies": {"dh": {"probes": {"trace": ["dh-single-with"]}}}}
        name = load(DEFAULT).models["dh-single-with"].encoder
        return overlay(DEFAULT, given | {"encoders": {name: encoder}})

    with pytest.raises(MaskLabError, match=r"probes.trace: 'dh-single-with' is not known in width 96: a tied head"):
        load(made(96, embedding_norm=False))
    bare = {"embedding_norm": False}
    for width, encoder in ((48, bare), (96, bare | {"tied_head": False}), (96, {})):
        assert load(made(width, **encoder)).probes["trace"].width == width


def test_growth_that_is_possible_does_not():
    assert load(study(width=96)).probes["landscape"].width == 96
    assert load(study()).probes["landscape"].largest == 0.05
