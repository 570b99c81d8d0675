"""Which of the targets that somebody asks Snakemake for are none, and what may have been meant."""

import os
from pathlib import Path

import inside_snakemake
from masklab.config.inherit import meant
from masklab.errors import MaskLabError
from masklab.jobs.store import FOLDERS


def no_target(workflow, paths) -> str:
    """What is said of the first target that is neither a rule nor a file that anything makes; "": none is."""
    rules = inside_snakemake.rules(workflow)
    for target in map(str, workflow.dag_settings.targets or ()):
        if not (target in rules or Path(target).exists() or is_ours(paths, os.path.relpath(target))):
            return f"masklab: {target}: no such target; {_instead(target, rules, paths)}"
    return ""


def _instead(target, rules, paths) -> str:
    """What to write in place of it."""
    studies = sorted(paths.config.studies, key=len, reverse=True)
    if study := next((name for name in studies if target.startswith(f"{name}_")), None):
        items = list(paths.items(study))
        close = meant(target.removeprefix(f"{study}_"), items).replace("mean '", f"mean '{study}_")
        return close.removeprefix("; ") or f"study {study!r} has {', '.join(f'{study}_{item}' for item in items)}"
    if beside := _declared(paths, os.path.relpath(target)):
        return f"ask for {beside[0]}, which is made with all that lies beside it"
    one_of_many = [rule for rule, kind in paths.rules.items() if "{" in kind.place]  # their files are targets alone
    if close := meant(target, [*(rule for rule in rules if rule not in one_of_many), *paths.everything()]):
        return close.removeprefix("; ")
    if "/" in target or "." in target:
        return f"no job of this config makes that file; its results lie below {paths.root}/"
    return (
        f"studies of this config: {', '.join(paths.config.studies) or 'none'}; a figure or table of one is"
        " <study>_<name>; docs/targets.md lists all targets"
    )


def is_ours(paths, file) -> bool:
    """Whether a job of this config makes a file, and its rule says so: what else lies in a folder is no target."""
    return file in _declared(paths, file)


def _declared(paths, file) -> list[str]:
    """What is declared by the rule whose job makes a file or the folder that it lies in; none: no job does."""
    try:
        rule, names = paths.job_of(file)
        paths.inputs(rule, **names)
    except (MaskLabError, KeyError, TypeError):
        return []
    folder = paths.result(paths.rules[rule].place.format(**names))
    return [f"{folder}/{name}" for name in FOLDERS[rule]] if rule in FOLDERS else [file]
