"""A copy of the checkout whose code a test may edit."""

import os
import re
import shutil
import subprocess
import sys

import yaml
from running import ROOT


class Checkout:
    """A copy of what runs, and a folder that it runs in."""

    def __init__(self, path):
        self.path, self.folder = path / "checkout", path / "run"
        self.folder.mkdir()
        for name in ("src", "workflow", "profiles"):
            shutil.copytree(ROOT / name, self.path / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("Snakefile", "config.yaml"):
            shutil.copy(ROOT / name, self.path / name)

    def _run(self, command):
        environment = os.environ | {"PYTHONPATH": str(self.path / "src")}
        done = subprocess.run(
            [sys.executable, "-m", *command], capture_output=True, text=True, cwd=self.folder, env=environment
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def snakemake(self, config: dict, *arguments) -> str:
        (self.folder / "config.yaml").write_text(yaml.safe_dump({"extends": []} | config))
        return self._run(
            ["snakemake", *arguments, "--snakefile", str(self.path / "Snakefile"), "--cores", "2",
             "--directory", str(self.folder), "--configfile", str(self.folder / "config.yaml")]
        )  # fmt: skip

    def why(self, artifact: str) -> str:
        return self._run(["masklab.cli", "why", artifact, "--configfile", str(self.folder / "config.yaml")])

    def edit(self, file: str, pattern: str, replacement: str) -> None:
        """Replace a pattern, which must be there, in a file of the copy."""
        path = self.path / file
        text, count = re.subn(pattern, replacement, path.read_text(), flags=re.M)
        assert count, f"{file}: no {pattern}"
        path.write_text(text)

    def restore(self, file: str) -> None:
        shutil.copy(ROOT / file, self.path / file)
