"""The device that a plan takes for this machine, and what the table says of it."""

import os
from pathlib import Path

import pytest

from masklab.cli import main
from masklab.plan import here

PROGRAM = """#!/bin/sh
echo 'NVIDIA {name}'
echo 'NVIDIA T4'
"""
QUESTION = """models: {often: {like: strict-phase1, masking: {rate: 0.4}}}
studies:
  question:
    panels: {English: {often: often}}
    probes: {minimal-pairs: all}
    tables: [comparison]
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Makes this a machine with a GPU of a name, or without any; a config lies in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(QUESTION)

    def with_gpu(name):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        if name:
            (folder / "nvidia-smi").write_text(PROGRAM.format(name=name))
            (folder / "nvidia-smi").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/bin{os.pathsep}/usr/bin" if name else str(folder))
        here.gpu.cache_clear()

    yield with_gpu
    here.gpu.cache_clear()


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        ("", "On cpu, this machine (--device h100 or --device a100 plans for another)."),
        ("A100-SXM4-40GB", "On a100, this machine's NVIDIA A100-SXM4-40GB (--device h100 or --device cpu plans for"),
        ("L4", "On h100, in place of this machine's NVIDIA L4, which has no entry (--device"),
    ],
)
def test_a_plan_is_one_of_this_machine(gpu, said, machine, capsys):
    machine(gpu)
    assert main(["plan", "question", "--configfile", "my.yaml"]) == 0
    table = capsys.readouterr().out
    assert said in table
    assert ("elapsed" in table) == (not gpu), "on a CPU the cores are known"


def test_only_what_was_asked_for_is_planned_and_a_device_is_named_with_an_option(machine, capsys):
    machine("")
    assert main(["plan", "question", "--configfile", "my.yaml", "--device", "a100"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines if line.startswith("|")] == ["", "---", "question"]
    assert "On a100." in lines


def test_a_gpu_that_the_config_does_not_use_does_not_count(machine, capsys):
    machine("H100")
    assert main(["plan", "question", "--configfile", "my.yaml", "--config", "device=cpu"]) == 0
    assert "On cpu, this machine" in capsys.readouterr().out
