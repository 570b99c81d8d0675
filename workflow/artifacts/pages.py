"""The pages of results: README.md and report.html, of all that a run makes."""

import functools
import json
from pathlib import Path

from artifacts import Artifact
from masklab.errors import MaskLabError
from masklab.files import read_json, sha256
from masklab.jobs.provenance import input_mark
from masklab.pages import TEMPLATES
from masklab.pages.outline import outline


class Pages(Artifact):
    place, script = "report", "pages.py"

    @classmethod
    def pattern(cls):
        return r"report\.html|README\.md"

    def outputs(self):
        return [self.paths.result("report.html"), self.paths.result("README.md")]

    def inputs(self):
        return {"shown": self.paths.shown()}

    def settings(self):
        """What the pages are about, and how they look, which is no code."""
        looks = {file.name: sha256(file) for file in sorted(TEMPLATES.iterdir())}
        return {"outline": outline(self.config), "templates": looks}


def outdated(paths) -> list[str]:
    """Targets whose figure, table or claims were made from another configuration, or by other code, than today's.

    So were those whose scores have been made again since, for another figure: a seed is no part of what a figure shows.
    """
    found, mark = [], functools.cache(input_mark)
    for study, declared in paths.config.studies.items():
        jobs = {name: ("figure", {"study": study, "figure": name}) for name in declared.figures}
        jobs |= {name: ("table", {"study": study, "table": name}) for name in declared.tables}
        jobs |= {"claims": ("study_claims", {"study": study})} if declared.claims else {}
        found += [f"{study}_{name}" for name, (rule, names) in jobs.items() if _is_outdated(paths, rule, names, mark)]
    return found


def _is_outdated(paths, rule, names, mark):
    try:
        record = read_json(paths.record(rule, **names))
    except MaskLabError:
        return False  # never made, or nobody knows
    record = record.get("vouched", record)
    now = {"config": paths.settings(rule, **names), "code": paths.code(rule, **names).modules}
    if any(record.get(key) != value for key, value in json.loads(json.dumps(now)).items()):
        return True
    return any(Path(file).exists() and mark(file) != then for file, then in record.get("inputs", {}).items())
