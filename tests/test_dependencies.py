"""What MaskLab stands on: the table, the versions that are allowed, the lock."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "envs"))

import lock  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GROUPS = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
ASKED = [Requirement(text) for texts in GROUPS.values() for text in texts]
UNUSED = {("backpack-for-pytorch", "torchvision")}  # asked for, and imported by nothing that is used here


def entries(*files):
    """Package -> (requirement, hashes) of files of the lock."""
    found = {}
    for file in files or lock.FILES:
        for entry in lock.entries((ROOT / "envs" / file).read_text()):
            asked = Requirement(entry.splitlines()[0].rstrip(" \\"))
            assert canonicalize_name(asked.name) not in found
            found[canonicalize_name(asked.name)] = asked, re.findall(r"--hash=sha256:([0-9a-f]{64})\b", entry)
    return found


def pinned(asked) -> str:
    (version,) = [each.version for each in asked.specifier if each.operator == "=="]
    return version


def test_the_table_holds_what_is_asked_for_and_nothing_else():
    text = (ROOT / "docs/dependencies.md").read_text().partition("\n## ")[0]
    tables = re.split(r"^\| package .*\n\| ---.*\n", text, flags=re.MULTILINE)[1:]
    for group, table in zip(GROUPS, tables, strict=True):
        rows = [row.strip("| ").split(" | ") for row in re.findall(r"^\| .*", table, re.MULTILINE)]
        assert sorted(row[0] for row in rows) == sorted(Requirement(text).name for text in GROUPS[group])
        assert all(len(row) == 4 and all(cell.strip() for cell in row) for row in rows)


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.name)
def test_the_versions_that_are_allowed_are_tested_ones(asked):
    """The locked version and what mends it; what runs here is one of them."""
    locked, _ = entries()[canonicalize_name(asked.name)]
    assert str(asked.specifier) == f"~={pinned(locked)}"
    if asked.name != "spams-bin" or find_spec("spams"):  # some machines have no build of it
        assert asked.specifier.contains(Version(distribution(asked.name).version).public)


def test_every_file_is_known_by_its_hash():
    for asked, hashes in entries().values():
        assert pinned(asked) and hashes and len(set(hashes)) == len(hashes)


def test_the_lock_holds_all_that_is_needed():
    """It is installed without looking for more: what each package asks for here is in it, and fits."""
    known, waiting = (
        entries("lock.txt", "lock-torch.txt", "lock-spams.txt", "lock-build.txt"),
        [canonicalize_name(asked.name) for asked in ASKED],
    )
    cuda, seen = entries("lock-cuda.txt"), {"setuptools"}
    extras = {canonicalize_name(asked.name): set(asked.extras) for asked in ASKED}
    while waiting:
        if (name := waiting.pop()) in seen:
            continue
        seen.add(name)
        if name == "spams-bin" and not find_spec("spams"):
            continue
        for text in distribution(name).requires or ():
            asked = Requirement(text)
            other = canonicalize_name(asked.name)
            wanted = [{"extra": extra} for extra in ("", *extras.get(name, ()))]
            if (asked.marker and not any(map(asked.marker.evaluate, wanted))) or (name, other) in UNUSED:
                continue
            if other not in cuda:
                assert other in known, f"{name} asks for {text}"
                assert asked.specifier.contains(pinned(known[other][0]), prereleases=True), f"{name} asks for {text}"
                extras.setdefault(other, set()).update(asked.extras)
                waiting.append(other)
    elsewhere = {name for name, (asked, _) in known.items() if asked.marker and not asked.marker.evaluate()}
    assert set(known) == seen | elsewhere, "and nothing that nobody asks for"


PYTHON = """#!/bin/sh
# Stands for Python: makes an environment of itself, and pip finds no build of SPAMS.
echo "$*" >> {log}
case "$*" in
*"-m venv"*) mkdir -p {venv}/bin && cp "$0" {venv}/bin/python ;;
*"pip download"*) mkdir -p {venv}/torch ;;
*lock-spams.txt*) echo "ERROR: No matching distribution found for spams-bin" >&2; exit 1 ;;
esac
"""


def test_set_up_goes_on_where_there_is_no_build_of_spams(tmp_path):
    """As for Linux on arm64 and for macOS 14: built from source it would need what the lock has not."""
    python, venv, log = tmp_path / "python", tmp_path / "venv", tmp_path / "log"
    python.write_text(PYTHON.format(venv=venv, log=log))
    python.chmod(0o755)
    command = ["make", "setup", f"PYTHON={python}", f"VENV={venv}", "TORCH_INDEX="]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and (venv / ".done").exists(), done.stderr
    asked = log.read_text().splitlines()
    (spams,) = [line for line in asked if "lock-spams.txt" in line]
    assert "--only-binary=:all:" in spams and "--require-hashes" in spams
    assert "masklab: SPAMS was not installed" in done.stdout and any("--editable ." in line for line in asked)


def test_an_entry_keeps_the_hashes_of_other_builds(tmp_path):
    wheel = tmp_path / "thing-1.0+cpu-py3-none-any.whl"
    wheel.write_bytes(b"built")
    entry = "thing==1.0 \\\n    --hash=sha256:" + "0" * 64
    grown = lock.with_hashes(entry, [wheel, tmp_path / "other-1.0-py3-none-any.whl"], {})
    assert grown.count("--hash") == 2 and lock.entries(grown) == [grown]
    assert lock.with_hashes(entry, [], {"thing==1.0": grown}) == grown
    assert lock.with_hashes(entry, [], {"thing==0.9": grown}) == entry
