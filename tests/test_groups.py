"""Which replicates train side by side: no two groups of one recipe, which would leave what they make in one place."""

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
