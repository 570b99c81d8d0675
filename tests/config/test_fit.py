"""Models that cannot fit: a note, and never one for what fits."""

from pathlib import Path

import pytest

from masklab.config import fit, read
from masklab.models.flops import count_parameters
from masklab.plan.graph import opened

HUGE = """encoders:
  huge: {like: tiny, layers: 2000, hidden: 65536}
models: {big: {like: strict-phase1, encoder: huge}}
"""


def test_an_encoder_that_no_machine_holds_is_noted_where_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(HUGE)
    (note,) = opened(["my.yaml"]).notices
    assert note.startswith("my.yaml:2: encoders.huge: training 'big' takes more than ") and " GB" in note


def test_what_is_counted_is_less_than_what_there_is():
    config = read()
    shapes = {name: encoder for name, encoder in config.encoders.items() if encoder.network}
    assert {encoder.kind for encoder in shapes.values()} == {"transformer", "lstm"}
    model = config.models["strict-phase1"]
    for encoder in shapes.values():
        assert 0 < fit.least(encoder, model) <= 16 * count_parameters(encoder, 10)


@pytest.mark.parametrize(("nodes", "noted"), [([1000], True), ([2_000_000_000], False), ([], True)])
def test_a_cluster_counts_where_there_is_one(nodes, noted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(HUGE)
    found = fit.too_large(read("my.yaml"), lambda: {f"p{size}": (size, 60.0) for size in nodes})
    assert bool(found) == noted and all(("cluster" in note) == bool(nodes) for note in found)


def test_the_presets_fit_a_machine_of_16_gb(monkeypatch):
    monkeypatch.setattr(fit, "_host", lambda: 16e9)
    for preset in Path(__file__).parents[2].glob("presets/*.yaml"):
        assert fit.too_large(read(preset)) == []


@pytest.mark.parametrize(
    ("program", "largest"),
    [
        ("printf '40960\\n81920\\n'", 81920 * 2**20),
        ("echo '[N/A]'", float("inf")),
        ("echo 'no driver'; exit 9", float("inf")),
        (None, 0),
    ],
)
def test_a_gpu_counts_as_far_as_its_driver_says(program, largest, tmp_path, monkeypatch):
    if program:
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert fit._gpu() == largest
