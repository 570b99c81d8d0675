"""Would the tests notice? `python tests/mutants.py`: small wrong changes to the numerical modules, and who sees them.

A mutant is one module with one operator, comparison, number or sign changed. The tests beside the module run on it; a
mutant that passes them all survived, and is shown with its line. Mutants are drawn at random under `--seed`, in equal
numbers from every module of `MODULES`; the checkout itself is never changed: each mutant lies in a copy.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS = 240  # a mutant that takes longer is noticed: it loops
# Module below src/masklab -> tests that should notice.
MODULES = {
    "intervals.py": ["test_statistics.py", "scores/test_estimate.py"],
    "spectrum.py": ["test_spectrum.py"],
    "masking.py": ["training/test_masking.py"],
    "optim/flat.py": ["training/test_optim.py", "models/test_direct.py"],
    "training/guard.py": ["training/test_guard.py"],
    "objectives/cross_entropy.py": ["objectives/test_cross_entropy.py"],
    "objectives/kd.py": ["objectives/test_terms.py"],
    "objectives/mlsm.py": ["objectives/test_terms.py"],
    "objectives/mae.py": ["training/test_autoencoder.py"],
    "scores/metrics.py": ["scores/test_metrics.py", "scores/test_items.py"],
    "scores/estimate.py": ["scores/test_estimate.py", "scores/test_correlations.py"],
    "claims/verdict.py": ["claims/test_verdict.py"],
    "sparse/lasso.py": ["sparse/test_lasso.py"],
    "sparse/dictionary.py": ["sparse/test_dictionary.py"],
    "corpora/markov/entropy.py": ["corpora/test_markov_law.py"],
    "corpora/hmm/law.py": ["corpora/test_hmm.py"],
    "corpora/pcfg/chart.py": ["corpora/test_pcfg_law.py"],
    "curvature/trace.py": ["curvature/test_trace.py"],
}
SWAPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
         ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Add, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
         ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
         ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}  # fmt: skip


def places(tree) -> list[tuple[str, ast.AST]]:
    """(kind of change, node) of everything in a tree that can be changed; what is outside of functions stays."""
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in (node for statement in function.body for node in ast.walk(statement)):
            if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
                found.append(("operator", node))
            elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
                found.append(("comparison", node))
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
                found.append(("sign", node))
            elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
                found.append(("number", node))
            elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
                found.append(("switch", node))
    return found


def mutated(source: str, number: int) -> tuple[str, int, str]:
    """(source with change `number`, its line, the line before)."""
    tree = ast.parse(source)
    kind, node = places(tree)[number]
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
    line = node.lineno
    return ast.unparse(ast.fix_missing_locations(tree)), line, source.splitlines()[line - 1].strip()


def survives(module: str, text: str, tests: list[str], place: Path) -> bool:
    """Whether the tests pass on a module with this text, in the copy of the checkout at `place`."""
    file = place / "src/masklab" / module
    sound = file.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    alone = {
        "PYTHONPATH": str(place / "src"),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "-x", "-q", *tests]
    try:
        how = {"cwd": place / "tests", "env": os.environ | alone, "timeout": SECONDS}
        done = subprocess.run(command, capture_output=True, **how)
    except subprocess.TimeoutExpired:
        return False
    finally:
        file.write_text(sound, encoding="utf-8")
    return done.returncode == 0


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=10, help="mutants of each module (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="modules whose name holds this")
    options = parser.parse_args(arguments)
    rng, tried, noticed = random.Random(options.seed), 0, 0
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        for name in ("src", "tests", "workflow", "pyproject.toml"):
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, place / name)
        for module, tests in MODULES.items():
            if options.only and options.only not in module:
                continue
            source = (place / "src/masklab" / module).read_text(encoding="utf-8")
            if not survives(module, ast.unparse(ast.parse(source)), tests, place):
                print(f"{module}: its tests fail without any change", flush=True)
                return 1
            numbers = list(range(len(places(ast.parse(source)))))
            for number in sorted(rng.sample(numbers, min(options.each, len(numbers)))):
                text, line, before = mutated(source, number)
                alive = survives(module, text, tests, place)
                tried, noticed = tried + 1, noticed + (not alive)
                if alive:
                    after = set(text.splitlines()) - set(ast.unparse(ast.parse(source)).splitlines())
                    print(f"{module}:{line}: {before}\n    -> {' '.join(part.strip() for part in after)}", flush=True)
    print(f"mutants: {tried}; noticed: {noticed} ({noticed / max(tried, 1):.0%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
