"""Compares what two runs of one config left, file by file: tables, weights and figures, all but measured seconds.

    PYTHONPATH=src python tests/same.py results ../other/results

Prints how many files of each kind are the same, and each that is not; exits with 1 if there is one.
"""

import re
import sys
from pathlib import Path

import pandas as pd
import torch
from safetensors.torch import load_file

SECONDS = "seconds"  # a metric, a column, and the last word of the claims about it
KINDS = ("*.parquet", "*.safetensors", "*.png")


def table(path):
    """A table without what was measured with a clock: columns of seconds, rows of them and of claims about them."""
    found = pd.read_parquet(path)
    for name in found.columns.intersection(["metric", "claim"]):
        found = found[~found[name].astype(str).str.fullmatch(rf"(.*-)?{SECONDS}")]
    return found.drop(columns=[SECONDS], errors="ignore")


def same(one, other) -> bool:
    if one.suffix == ".parquet":
        return table(one).equals(table(other))
    if one.suffix == ".safetensors":
        first, second = load_file(one), load_file(other)
        return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
    drawn = [path.with_suffix(".parquet") for path in (one, other)]  # a figure of seconds differs as its data do
    timed = all(path.is_file() for path in drawn) and not pd.read_parquet(drawn[0]).equals(pd.read_parquet(drawn[1]))
    return (timed and same(*drawn)) or one.read_bytes() == other.read_bytes()


def compare(folders) -> dict:
    """Kind of file -> (how many are the same, the paths of those that are not or lie in one folder alone)."""
    found = {}
    for kind in KINDS:
        listed = [{path.relative_to(folder) for path in made(folder, kind)} for folder in folders]
        differ = {path for path in listed[0] & listed[1] if not same(*(folder / path for folder in folders))}
        found[kind] = len(listed[0] & listed[1]) - len(differ), sorted(differ | listed[0] ^ listed[1])
    return found


def made(folder, kind):
    """Files of a kind below a folder but for logs and states, which tell of the way and not of the end."""
    return (path for path in Path(folder).rglob(kind) if not re.match("(logs|state)/", str(path.relative_to(folder))))


if __name__ == "__main__":
    found = compare([Path(folder) for folder in sys.argv[1:3]])
    for kind, (count, others) in found.items():
        print(f"{kind}: {count} the same, {len(others)} not")
        print("".join(f"  {path}\n" for path in others), end="")
    sys.exit(any(others for _, others in found.values()))
