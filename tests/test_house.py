"""The rooms of the house stand one above the other: no package imports one above it, and none in a circle."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"


def floors() -> list[list[str]]:
    """Rooms of the table in ARCHITECTURE.md, a row a floor, from the ground up; none imports one of its row."""
    rows = []
    for line in (SOURCE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines():
        if cell := re.match(r"\| ((?:`[^`]+`(?:, )?)+) \|", line):
            places = [place.removeprefix("src/masklab/") for place in re.findall("`([^`]+)`", cell[1])]
            rows.append([Path(place).stem for place in places if (SOURCE / "masklab" / place).exists()])
    return [row for row in reversed(rows) if row]


HEIGHT = {room: height for height, rooms in enumerate(floors()) for room in rooms}


def modules():
    for path in sorted((SOURCE / "masklab").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imported(path):
    """Modules that a file imports, anywhere in it, and those that it names as "masklab.module:function"."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "masklab":
            yield from (f"masklab.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def room(module):
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize(("module", "path"), list(modules()), ids=lambda value: value if isinstance(value, str) else "")
def test_imports_go_down(module, path):
    own = room(module)
    if own in ("", "__init__"):
        return
    assert own in HEIGHT, f"{own}: give the room its row in ARCHITECTURE.md"
    for other in {room(name) for name in imported(path) if name.startswith("masklab.")} - {own}:
        assert HEIGHT[other] < HEIGHT[own], f"{module} imports {other}, which is not below {own}"


def test_the_engine_names_no_study():
    """Nothing below `studies` names a paper's study or wing, but for its kinds of corpora and tasks and its models."""
    wings = ("masklab.studies",)
    for module, path in modules():
        if HEIGHT.get(room(module), 99) < HEIGHT["studies"]:
            text = path.read_text(encoding="utf-8")
            assert not any(wing in text for wing in wings), module


# Rooms that mirror each other, file by file: what a file of such a name does is known from its twin.
MIRRORS = [
    r"corpora/\w+/",  # the kinds of corpora: their laws, their samplers
    r"studies/\w+/",  # the wings
    r"models/(stacked/)?",  # a model, and many of them side by side
]


def test_a_module_name_says_which_file_is_meant():
    """No two modules have one name, but in rooms that mirror each other; `config/schema/` mirrors the whole house."""
    places = {}
    for _, path in modules():
        folder = path.relative_to(SOURCE / "masklab").parent.as_posix() + "/"
        if path.name != "__init__.py" and folder != "config/schema/":
            room = next((mirror for mirror in MIRRORS if re.fullmatch(mirror, folder)), folder)
            places.setdefault(path.name, set()).add(room)
    assert not {name: rooms for name, rooms in places.items() if len(rooms) > 1}
