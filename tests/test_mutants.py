"""The list of changes that no test can notice is of changes that can be made."""

import ast
from pathlib import Path

import pytest

from mutant_places import EQUIVALENT, MODULES
from mutants import changed, changes, mutated, places

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("module", EQUIVALENT)
def test_what_changes_nothing_is_a_mutant_and_has_a_reason(module):
    """A line that was rewritten since would hide nothing, and say so to nobody."""
    source = (ROOT / "src/masklab" / module).read_text(encoding="utf-8")
    made = list(changes(source))
    assert set(EQUIVALENT[module]) <= set(made) and all(EQUIVALENT[module].values())
    last = len(made) - 1
    assert made[last] == changed(source, mutated(source, last)[0]) and len(places(ast.parse(source))) == len(made)


def test_the_tests_beside_a_module_are_there():
    for module, tests in MODULES.items():
        assert (ROOT / "src/masklab" / module).is_file()
        files = [argument for argument in tests if argument.endswith(".py")]
        assert files and all((ROOT / "tests" / file).is_file() for file in files), module
