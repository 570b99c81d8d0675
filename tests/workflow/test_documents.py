"""Every command of README and docs starts: those of Snakemake as dry runs, those of `masklab` that need no results."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from running import ROOT
from small_data import TEXT, lay_down

pytestmark = pytest.mark.workflow
PAGES = ("README.md", "docs/cluster.md", "docs/real-text.md", "docs/made-again.md")


def blocks(page: str, language: str) -> list[str]:
    """Fenced blocks of a page in a language; "" is no language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), flags=re.S | re.M)


def commands(page: str, program: str) -> list[str]:
    """Lines of a page's blocks that call a program, without their comments."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", (ROOT / page).read_text(), flags=re.S | re.M)
    lines = [line.partition("  #")[0].strip() for block in fenced for line in block.splitlines()]
    return [line for line in lines if line.startswith(f"{program} ")]


DRY = sorted({command for page in PAGES for command in commands(page, "snakemake") if "--touch" not in command})
CHECKED = sorted({command for page in PAGES for command in commands(page, "masklab") if command.split()[1] == "check"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that the pages speak of: configs as printed, and a few lines of text under data/."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "data" / "text").mkdir(parents=True)
    (folder / "data" / "text" / "lines.txt").write_text(TEXT * 50)
    (folder / "mine.yaml").write_text(lay_down(blocks("docs/real-text.md", "yaml")[0], folder))
    (folder / "my.yaml").write_text(blocks("docs/config.md", "yaml")[0])
    return folder


def run(command: str, folder: Path, *more: str) -> str:
    """Run a command of a page at the root of the checkout, its own configs being those of `folder`."""
    program, *arguments = shlex.split(command)
    arguments = [str(folder / word) if word in ("my.yaml", "mine.yaml") else word for word in arguments]
    module = {"snakemake": "snakemake", "masklab": "masklab.cli"}[program]
    done = subprocess.run([sys.executable, "-m", module, *arguments, *more], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout + done.stderr


def test_the_pages_have_commands():
    assert len(DRY) >= 10 and CHECKED


@pytest.mark.parametrize("command", DRY)
def test_a_command_of_snakemake_would_run(command, folder):
    text = run(command, folder, "--dry-run", "--quiet", "rules", "--directory", str(folder))
    assert "Building DAG of jobs" in text and "dry-run" in text


@pytest.mark.parametrize("command", CHECKED)
def test_a_config_is_checked(command, folder):
    assert "study" in run(command, folder)
