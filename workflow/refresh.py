"""The pages of results after a run that asked for less than everything."""

import sys

from artifacts.pages import outdated
from masklab.errors import MaskLabError

SHOWN = {"figure", "table", "study_claims", "claims", "scores", "facts"}  # rules that make what the pages show


def refresh(dag, paths, options: str) -> None:
    """Write README.md and report.html anew if jobs of a run made what they show, and they were not asked for."""
    rules = {job.rule.name for job in dag.jobs if dag.finished(job)}
    if "pages" not in rules and rules & SHOWN:
        write_pages(paths, options)


def write_pages(paths, options: str) -> None:
    """They are no output of such a run: whatever goes wrong here is said in one line, and the run stays a success."""
    from masklab.pages.write import write

    try:
        write(paths.root, paths.settings("pages")["outline"], options, outdated(paths))
    except (MaskLabError, OSError) as error:
        print(f"masklab: warning: {paths.result('report.html')} was not written: {error}", file=sys.stderr)
