"""Which replicates train side by side: no two groups of one recipe, which would leave what they make in one place."""

import errno
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from masklab.jobs import saved, stacks

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow"))


class Job:
    def __init__(self, replicate, state):
        self.wildcards, self.params = SimpleNamespace(replicate=str(replicate)), SimpleNamespace(state=str(state))


class Sibling:
    """A job that is ready, as the scheduler sees it."""

    def __init__(self, replicate):
        self.wildcards = SimpleNamespace(recipe="m", replicate=str(replicate))
        self.params, self.input, self.ended = SimpleNamespace(config={}, state=f"state/r{replicate}"), {}, False
        self.output = SimpleNamespace(manifest=f"models/m/r{replicate}/manifest.json")


def jobs(count, folder):
    return [Job(k, folder / f"r{k}") for k in range(count, 0, -1)]


@pytest.mark.parametrize(
    ("cores", "counts", "together"),
    [
        (1, [3], [3]),
        (2, [4], [2]),  # the others alone: with a second group of two it would be faster, and fail
        (2, [3, 3], [3, 3]),
        (8, [5, 5, 5], [3, 3, 3]),
        (8, [2], []),
        (4, [1, 5], [3]),
    ],
)
def test_one_group_of_several_per_recipe(cores, counts, together, tmp_path):
    from side_by_side import _groups

    recipes = {f"recipe-{n}": jobs(count, tmp_path / str(n)) for n, count in enumerate(counts)}
    groups = _groups(recipes, cores)
    kept = {id(group): group for group in groups.values()}.values()
    assert [len(group) for group in kept] == together
    for group in kept:
        assert [int(job.wildcards.replicate) for job in group] == list(range(1, len(group) + 1))
        assert sum(group[0] in made for made in recipes.values()) == 1


def test_what_was_stopped_goes_on_as_it_began_on_any_number_of_cores(tmp_path):
    """Otherwise those that are grouped in another way would begin anew."""
    from side_by_side import _groups

    def grouped(recipe, cores):
        groups = _groups({recipe: jobs(5, tmp_path / recipe)}, cores)
        return sorted(int(job.wildcards.replicate) for job in groups)

    several = tmp_path / "several" / "together" / stacks.STATE
    saved.save(several, {"values": torch.zeros(2)}, {}, replicates=[1, 2, 4])
    assert [grouped("several", cores) for cores in (1, 2, 8)] == [[1, 2, 4]] * 3
    for replicate in (1, 3):
        saved.save(tmp_path / "alone" / f"r{replicate}" / stacks.STATE, {"values": torch.zeros(2)}, {})
    assert [grouped("alone", cores) for cores in (1, 4, 8)] == [[2, 4, 5], [2, 4], []]
    saved.save(stacks.aside(several.parent, 2), {"values": torch.zeros(1)}, {}, replicates=[2])
    assert grouped("several", 1) == [1, 4]  # the second goes on by itself
    several.write_bytes(b"cut short")
    stacks.aside(several.parent, 2).unlink()
    assert grouped("several", 1) == [1, 2, 3, 4, 5]


def test_where_a_job_cannot_be_told_of_its_siblings_each_trains_alone(tmp_path, monkeypatch, capsys):
    """The folder of temporary files is full: the run, with all of its jobs, had ended in a traceback."""
    from side_by_side import Selector

    group = [Sibling(k) for k in (1, 2, 3)]
    workflow = SimpleNamespace(cores=1, dag=SimpleNamespace(finished=lambda job: job.ended))
    scheduler = SimpleNamespace(running=[], failed=[])
    selector = Selector(workflow, scheduler, dict.fromkeys(group, group), {"m": 1}, lambda jobs: jobs[:1])
    monkeypatch.setenv(stacks.VARIABLE, str(tmp_path / "folder"))
    assert list(selector.select(group)) == group[:1]
    assert [each["replicate"] for each in stacks.siblings("m", 1)] == [2, 3]

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(stacks, "write_json", full)
    assert list(selector.select(group)) == group[:1] and stacks.siblings("m", 1) == [], "what was told is out of date"
    group[0].ended = True
    assert list(selector.select(group[1:])) == group[1:2] and stacks.siblings("m", 2) == []
    said = "masklab: warning: the folder of temporary files cannot be written to (No space left on device): replicates"
    assert capsys.readouterr().err == f"{said} train one by one\n"
