"""What targets are called and made by, as pages show it. Light, since the workflow asks while it is parsed."""

import re
import shlex
from pathlib import Path


def options(snakefile=None, configfiles=(), values=()) -> str:
    """What follows a target on the command line of a run: " --configfile my.yaml"; empty for the default run.

    Files are written relative to the current folder where they lie in it. snakefile: None where Snakemake finds it.
    """
    words = []
    if snakefile is not None and Path(snakefile).resolve() not in (Path.cwd() / "Snakefile", Path.cwd() / "snakefile"):
        words += ["--snakefile", _shown(snakefile)]
    words += ["--configfile", *map(_shown, configfiles)] if configfiles else []
    words += ["--config", *map(str, values)] if values else []
    return "".join(f" {shlex.quote(word)}" for word in words)


def _shown(file) -> str:
    path = Path(file).resolve()
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def command(target: str, more: str = "") -> str:
    """The command that makes a target; more: `options` of the run. An empty target is everything."""
    named = f" {shlex.quote(target)}" if target else ""
    return f"snakemake --cores all{named}{more}"


def title(name: str) -> str:
    """ "figure5_embedded" -> "Figure 5, embedded"; other names as words."""
    found = re.fullmatch(r"(figure|table)(\d+[a-z]?)(?:_(.+))?", name)
    if not found:
        return name.replace("_", " ").capitalize()
    rest = f", {found[3].replace('_', ' ')}" if found[3] else ""
    return f"{found[1].capitalize()} {found[2]}{rest}"
