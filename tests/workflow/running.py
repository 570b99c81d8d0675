"""Starting the real workflow in a folder, and reading what it says it will do."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

from masklab.config import layered, plain
from masklab.config.expand import expanded
from masklab.config.inherit import lay
from masklab.config.located import Mapping

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]


def default_config(*studies: str, preset: str | None = None) -> dict:
    """The default config with these of its studies alone: every entry by its own name, for a file that stands alone.

    preset: that of presets/ over it.
    """
    config = plain(layered([str(ROOT / f"presets/{preset}.yaml")] if preset else ()))
    return config | {"studies": {name: config["studies"][name] for name in studies}}


def laid(config: dict, top: dict) -> dict:
    """A config with another, families and all, laid over it as a file over a file."""
    return plain(lay(Mapping(config), expanded(top)))


def unlearned(config: dict) -> dict:
    """A config whose recipes keep the weights that they start with, at a learning rate that changes none."""
    models = {
        name: model | {"optimiser": (model.get("optimiser") or {}) | {"lr": 1e-30}} if model.get("steps") else model
        for name, model in config["models"].items()
    }
    return config | {"models": models}


def snakemake(folder, config: dict, *arguments, check=True):
    """Run the workflow on `config` in `folder`; its output, or with `check` false the finished process."""
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({"extends": []} | config))
    command = [*COMMAND, *arguments, "--directory", str(folder), "--configfile", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr if check else done


def dry_run_of_preset(preset: str, *targets: str) -> str:
    """Output of a dry run of `targets` at the scale of presets/<preset>.yaml."""
    command = [*COMMAND, "--dry-run", *targets, "--configfile", f"presets/{preset}.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_drawn(results: Path, study: str, declared: dict) -> None:
    """Every figure and table of a study is there, with its data, and none is empty."""
    kinds = {"figures": ("pdf", "png", "parquet", "csv"), "tables": ("parquet", "csv", "md")}
    files = [f"{kind}/{study}/{name}.{end}" for kind in kinds for name in declared[kind] for end in kinds[kind]]
    assert files and not [file for file in files if not (results / file).stat().st_size]


def jobs(output: str) -> dict[str, int]:
    """Jobs per rule of a dry run's first table."""
    table = re.search(r"^job +count\n-[- ]+\n(.*?)\n\n", output, re.S | re.M)
    counts = dict(re.findall(r"^(\S+) +(\d+)$", table[1], re.M)) if table else {}
    return {rule: int(count) for rule, count in counts.items() if rule not in ("all", "total")}


def messages(output: str) -> set[str]:
    """Job messages of a dry run, e.g. `pre-training dh`."""
    return set(re.findall(r"Job \d+: (.+)$", output, re.M))
