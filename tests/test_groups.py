"""Which replicates train side by side: no two groups of one recipe, which would leave what they make in one place."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow"))


class Job:
    def __init__(self, wildcards):
        self.wildcards = wildcards


def jobs(count):
    return [Job(SimpleNamespace(replicate=str(k))) for k in range(count, 0, -1)]


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
def test_one_group_of_several_per_recipe(cores, counts, together):
    from side_by_side import _groups

    recipes = {f"recipe-{number}": jobs(count) for number, count in enumerate(counts)}
    groups = _groups(recipes, cores)
    kept = {id(group): group for group in groups.values()}.values()
    assert [len(group) for group in kept] == together
    for group in kept:
        assert [int(job.wildcards.replicate) for job in group] == list(range(1, len(group) + 1))
        assert sum(group[0] in made for made in recipes.values()) == 1
