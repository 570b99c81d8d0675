"""Would the tests notice? `python tests/mutants.py`: small wrong changes to the numerical modules, and who sees them.

A mutant is one module with one operator, comparison, number or sign changed. The tests beside the module run on it; a
mutant that passes them all survived, and is shown with its line. Mutants are drawn at random under `--seed`, in equal
numbers from every module of `mutant_places.MODULES`; the checkout itself is never changed: each mutant lies in a copy.
Those that cannot change a result are named in `mutant_places.EQUIVALENT`, with the reason, and counted apart.

Each mutant is tried in a fork of one process that has imported the libraries (not MaskLab), so that it costs its tests.
"""

import argparse
import ast
import functools
import gc
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from mutant_places import EQUIVALENT, MODULES

ROOT = Path(__file__).parents[1]
SWAPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
         ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Add, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
         ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
         ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}  # fmt: skip


def places(tree) -> list[tuple[str, ast.AST]]:
    """(kind of change, node) of everything in a tree that can be changed; what is outside of functions stays."""
    found = []
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    # zip's `strict` is a check of our own: no input changes what it lets through
    checks = {id(word.value) for word in ast.walk(tree) if isinstance(word, ast.keyword) and word.arg == "strict"}
    inner = {id(node) for function in functions for node in ast.walk(function) if node is not function}
    for function in functions:
        if id(function) in inner:
            continue  # comes with the function around it
        for node in (node for statement in function.body for node in ast.walk(statement)):
            if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
                found.append(("operator", node))
            elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
                found.append(("comparison", node))
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
                found.append(("sign", node))
            elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
                found.append(("number", node))
            elif isinstance(node, ast.Constant) and isinstance(node.value, bool) and id(node) not in checks:
                found.append(("switch", node))
    return found


def mutated(source: str, number: int) -> tuple[str, int, str]:
    """(source with change `number`, its line, the line before)."""
    tree = ast.parse(source)
    kind, node = places(tree)[number]
    _change(kind, node)
    line = node.lineno
    return ast.unparse(ast.fix_missing_locations(tree)), line, source.splitlines()[line - 1].strip()


def _change(kind: str, node: ast.AST) -> None:
    if kind == "operator":
        node.op = SWAPS[type(node.op)]()
    elif kind == "comparison":
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif kind == "sign":
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif kind == "number":
        node.value = node.value + 1
    else:
        node.value = not node.value


def changes(source: str):
    """What `changed` says of every mutant, one after the other: made in one tree, and of the statement around alone."""
    tree = ast.parse(source)
    around = {id(node): statement for statement in tree.body for node in ast.walk(statement)}
    for kind, node in places(tree):
        before = {name: list(value) if isinstance(value, list) else value for name, value in vars(node).items()}
        _change(kind, node)
        yield changed(source, ast.unparse(ast.fix_missing_locations(around[id(node)])))
        vars(node).update(before)


def changed(source: str, text: str) -> str:
    """The lines of a mutant that its module lacks."""
    sound = _lines(source)
    return " ".join(line.strip() for line in text.splitlines() if line not in sound)


@functools.cache
def _lines(source: str) -> frozenset[str]:
    return frozenset(ast.unparse(ast.parse(source)).splitlines())


def survives(module: str, text: str, tests: list[str], place: Path, seconds: float) -> bool:
    """Whether the tests pass within `seconds` on a module with this text, in the copy of the checkout at `place`."""
    file = place / "src/masklab" / module
    sound = file.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    child = os.fork()
    if child == 0:
        try:
            os._exit(run_tests(tests, place))
        finally:
            os._exit(99)
    end, done = time.monotonic() + seconds, 0
    try:
        while not done and time.monotonic() < end:
            time.sleep(0.02)
            done, status = os.waitpid(child, os.WNOHANG)
        return bool(done) and os.waitstatus_to_exitcode(status) == 0
    finally:
        if not done:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        file.write_text(sound, encoding="utf-8")


def run_tests(tests: list[str], place: Path) -> int:
    """Pytest's exit status, in the fork."""
    import pytest

    os.setsid()
    os.chdir(place / "tests")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    sys.path[:0] = [str(place / "src")]
    return int(pytest.main(["-p", "no:xdist", "-p", "no:cacheprovider", "--assert=plain", "-x", "-q", *tests]))


def prepare(place: Path) -> None:
    """Copy the checkout to `place`; import what the tests need beside MaskLab."""
    for name in ("src", "tests", "workflow", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, place / name)
    os.environ |= {"PYTHONPATH": str(place / "src"), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() not in (ROOT / "src", ROOT / "tests")]
    for name in ("pytest", "torch", "scipy.stats", "scipy.optimize", "pandas", "sklearn.metrics",
                 "sklearn.linear_model",
                 "safetensors.torch", "pydantic", "pyarrow.parquet", "transformers", "torch.func",
                 "hypothesis"):  # fmt: skip
        __import__(name)
    gc.freeze()


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=10, help="mutants of each module (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="modules whose name holds this")
    options = parser.parse_args(arguments)
    tried = noticed = equivalent = 0
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        prepare(place)
        for module, tests in MODULES.items():
            if options.only and options.only not in module:
                continue
            source = (place / "src/masklab" / module).read_text(encoding="utf-8")
            began = time.monotonic()
            if not survives(module, ast.unparse(ast.parse(source)), tests, place, 600):
                print(f"{module}: its tests fail without any change", flush=True)
                return 1
            seconds = time.monotonic() - began
            numbers = list(range(len(places(ast.parse(source)))))
            drawn = random.Random(f"{options.seed} {module}").sample(numbers, min(options.each, len(numbers)))
            here = [0, 0, 0]
            for number in sorted(drawn):
                text, line, before = mutated(source, number)
                after = changed(source, text)
                here[0] += 1
                if after in EQUIVALENT.get(module, {}):
                    here[2] += 1
                elif survives(module, text, tests, place, 20 + 4 * seconds):  # a mutant that takes longer loops
                    print(f"{module}:{line}: {before}\n    -> {after}", flush=True)
                else:
                    here[1] += 1
            tried, noticed, equivalent = tried + here[0], noticed + here[1], equivalent + here[2]
            print(f"{module}: {here[0]} mutants, {here[1]} noticed, {here[2]} equivalent; "
                  f"tests {seconds:.0f} s, all {time.monotonic() - began:.0f} s", flush=True)  # fmt: skip
    share = noticed / max(tried - equivalent, 1)
    print(f"mutants: {tried}; noticed: {noticed}; equivalent: {equivalent}; share of the others noticed: {share:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
