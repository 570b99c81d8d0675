"""Take from the store what a run lacks, just before Snakemake builds its graph of jobs, and say which targets are none.

Only the Snakemake that a person starts takes from the store, under
three conditions: it runs jobs or (`-n`) says which it would run, nobody else works in the folder, and nothing is
forced. It has Snakemake's own metadata written for what it links, so that a later change of config or inputs is
noticed. Should a version of Snakemake lack what that needs (`inside_snakemake`), jobs still take from the store one by
one as they begin.
"""

import os
import sys
from collections import Counter
from pathlib import Path

import inside_snakemake
import left_lock
import leftovers
from masklab.errors import MaskLabError
from masklab.files import settle
from masklab.jobs import housekeeping, store
from masklab.plan.reuse import Reused, reuse
from refresh import SHOWN, write_pages
from targets import is_ours, no_target

PENDING = Path(".masklab/linking")  # files that were linked and whose metadata is not yet written, a line each


def install(workflow, paths, options: str) -> None:
    """Have `workflow` look in the store just before it builds its graph of jobs. options: for the pages of results."""
    if not inside_snakemake.able("take", workflow=workflow) or not workflow.is_main_process:
        return

    def look():
        left_lock.let_go(workflow)
        if runs := _runs(workflow):
            leftovers.look(paths, runs == "dry")
            if store.folder() is not None and (reused := _look(workflow, paths, runs == "dry")).files:
                shown = SHOWN & {job.rule for job in reused.taken}
                pages = (lambda: write_pages(paths, options)) if shown else None
                _register(workflow, {os.path.relpath(file) for file in reused.files}, pages)

    def otherwise():
        if message := no_target(workflow, paths):
            sys.exit(message)

    inside_snakemake.before_graph(workflow, look, otherwise)


def _runs(workflow) -> str:
    """How jobs are run: "dry", "really", or "" where none are, or not as the store could know."""
    settings = workflow.dag_settings
    if workflow.executor_plugin is None or workflow.touch:
        return ""
    if settings.forceall or settings.forcetargets or settings.forcerun:
        os.environ[store.ANEW] = "1"
        return ""
    if any(Path(workflow.persistence.path, "locks").glob("*.lock")):
        if workflow.dryrun and store.folder() is not None and os.path.isdir(store.folder()):
            print(
                "masklab: the store was not looked at, so that more jobs are listed than may have to run: another run"
                " holds this folder, or was killed and left its lock, which a run that is no dry one takes away",
                file=sys.stderr,
            )
        return ""
    return "dry" if workflow.dryrun else "really"


def _look(workflow, paths, dry) -> Reused:
    if not dry:
        _unlink_pending()
        if not os.environ.get(store.VARIABLE):
            housekeeping.tidy(store.folder())
    if not os.path.isdir(store.folder()):
        return Reused()
    try:
        found = reuse(paths, _files(workflow, paths), dry, _note)
    except (MaskLabError, OSError) as error:
        print(f"masklab: warning: nothing is taken from the store: {error}", file=sys.stderr)
        if not dry:
            _unlink_pending()
        return Reused()
    if not dry and not found.files:
        _forget_pending()  # what could not be taken is made by its job, and stays
    if found.taken:
        counts = Counter(job.rule for job in found.taken)
        kinds = ", ".join(f"{count} {rule}" for rule, count in counts.most_common())
        tense = "are in the store and will be linked, not made" if dry else "taken from the store"
        print(f"masklab: {len(found.taken)} artifacts {tense} ({kinds})", file=sys.stderr)
        if dry:
            print(f"masklab: that leaves {len(found.left)} of the jobs below", file=sys.stderr)
    return found


def _unlink_pending():
    """Take away what was linked and has no metadata: the store has it, or it is made anew."""
    try:
        files = PENDING.read_text().splitlines()
    except OSError:
        return
    for file in files:
        Path(file).unlink(missing_ok=True)
    _forget_pending()


def _forget_pending():
    if PENDING.exists():
        os.sync()  # once for all that was linked: till then a loss of power leaves them in `PENDING`
        PENDING.unlink(missing_ok=True)


def _note(files):
    PENDING.parent.mkdir(parents=True, exist_ok=True)
    with open(PENDING, "a") as file:
        file.writelines(f"{path}\n" for path in files)
    settle(PENDING, PENDING.parent)


def _files(workflow, paths) -> list[str]:
    """The files of the artifacts that are asked for."""
    asked = workflow.dag_settings.targets or [workflow.default_target]
    files = []
    for target in asked:
        if target in inside_snakemake.rules(workflow):
            rule = workflow.get_rule(target)
            listed = list(rule.output) or [file for file in rule.input if not callable(file)]
        else:
            listed = [os.path.relpath(target)]
        files += [str(file) for file in listed]
    return [file for file in files if is_ours(paths, file)]


def _register(workflow, linked, pages=None) -> None:
    """Have Snakemake note for files that were linked what it notes of jobs that it has run, before it decides.

    pages: writes the pages of results, where these show what was linked and are not themselves asked for.
    """

    def noted():
        _forget_pending()
        return decided

    def decided(jobs):
        if pages and not any(job.rule.name == "pages" for job in jobs):
            pages()

    inside_snakemake.before_deciding(workflow, linked, noted)
