"""The pages of results: README.md and report.html, of all that a run makes."""

import json

from artifacts import Artifact
from masklab.errors import MaskLabError
from masklab.files import read_json, sha256
from masklab.pages import TEMPLATES
from masklab.pages.outline import outline


class Pages(Artifact):
    place, script = "report", "pages.py"

    @classmethod
    def pattern(cls):
        return r"report\.html|README\.md"

    def inputs(self):
        """All that is shown, and the pages of tables and claims: a run of a version that made none makes them."""
        studies = self.config.studies
        tables = [
            self.paths.result("tables", study, f"{name}.html") for study in studies for name in studies[study].tables
        ]
        claims = [self.paths.result("claims", f"{study}.html") for study in studies if studies[study].claims]
        return {"shown": self.paths.shown(), "pages": tables + claims}

    def settings(self):
        """What the pages are about, and how they look, which is no code."""
        looks = {file.name: sha256(file) for file in sorted(TEMPLATES.iterdir())}
        return {"outline": outline(self.config), "templates": looks}


def outdated(paths) -> list[str]:
    """Targets whose figure, table or claims were made from another configuration, or by other code, than today's."""
    found = []
    for study, declared in paths.config.studies.items():
        jobs = {name: ("figure", {"study": study, "figure": name}) for name in declared.figures}
        jobs |= {name: ("table", {"study": study, "table": name}) for name in declared.tables}
        jobs |= {"claims": ("study_claims", {"study": study})} if declared.claims else {}
        found += [f"{study}_{name}" for name, (rule, names) in jobs.items() if _is_outdated(paths, rule, names)]
    return found


def _is_outdated(paths, rule, names):
    try:
        record = read_json(paths.record(rule, **names))
    except MaskLabError:
        return False  # never made, or nobody knows
    record = record.get("vouched", record)
    now = {"config": paths.settings(rule, **names), "code": paths.code(rule, **names).modules}
    return any(record.get(key) != value for key, value in json.loads(json.dumps(now)).items())
