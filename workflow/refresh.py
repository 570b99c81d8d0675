"""The pages of results after a run that asked for less than everything."""

import sys

from artifacts.pages import outdated
from masklab.errors import MaskLabError

SHOWN = {"figure", "table", "study_claims", "claims", "scores", "facts"}  # rules that make what the pages show


def refresh(dag, paths, options: str) -> None:
    """Write README.md and report.html anew if the jobs of a run made something that they show, and not they themselves.

    They are no output of such a run: whatever goes wrong here is said in one line, and the run stays a success.
    """
    rules = {job.rule.name for job in dag.jobs if dag.finished(job)}
    if "pages" in rules or not rules & SHOWN:
        return
    from masklab.pages.write import write

    try:
        write(paths.root, paths.settings("pages")["outline"], options, outdated(paths))
    except (MaskLabError, OSError) as error:
        print(f"masklab: warning: {paths.result('report.html')} was not written: {error}", file=sys.stderr)
