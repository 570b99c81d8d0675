"""The code that an artifact is made by: a script and what it imports, found by reading. Light: used at parse time."""

import ast
import functools
import os
import re
from pathlib import Path

HERE = Path(__file__).parent
LIBRARY = HERE.parent / "src"
MODULE = re.compile(r"masklab(\.\w+)+")


@functools.cache
def code(script: str, *modules: str) -> list[str]:
    """The script and every masklab module it (or one of `modules`) imports, directly or not, as Snakemake inputs.

    Snakemake compares inputs under 1 MB by content, so an edited module re-runs
    what was made with it, and a fresh checkout of the same code nothing.
    """
    start = HERE / "scripts" / script
    found = {start, *(file for module in modules for file in _files(module))}
    waiting = list(found)
    while waiting:
        for module in _imports(waiting.pop()):
            for target in _files(module):
                if target not in found:
                    found.add(target)
                    waiting.append(target)
    return sorted(os.path.relpath(path) for path in found)


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and MODULE.fullmatch(node.value):
            yield node.value  # registries name modules that are imported on use


def _files(module):
    if module == "_job":
        return [HERE / "scripts" / "_job.py"]
    if not module.startswith("masklab"):
        return []
    base = LIBRARY / Path(*module.split("."))
    return [path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()]
