"""What the pages of a config are about, as plain data. Light, since the workflow asks while it is parsed."""

import re
import shlex
from pathlib import Path

from masklab.studies import caption


def outline(config) -> dict:
    """`run`, and of every study what it asks, how large it is, its figures and tables with captions, has it claims.

    JSON-able: it is part of the params of the job that writes the pages.
    """
    return {"run": config.run, "studies": [_study(config, name) for name in config.studies]}


def _study(config, name):
    study = config.studies[name]
    return {
        "name": name,
        "title": study.title,
        "question": study.question,
        "scale": study.scale or config.scale,
        "figures": {item: caption(name, study, "figures", item) for item in study.figures},
        "tables": {item: caption(name, study, "tables", item) for item in study.tables},
        "claims": bool(study.claims),
    }


def options(snakefile=None, configfiles=(), values=()) -> str:
    """What follows a target on the command line of a run: " --configfile my.yaml"; empty for the default run.

    Files are written relative to the current folder where they lie in it. snakefile: None where Snakemake finds it.
    """
    words = []
    if snakefile is not None and Path(snakefile).resolve().parent != Path.cwd():
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
