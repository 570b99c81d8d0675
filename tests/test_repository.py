"""Files that others' tools read: the citation, the workflow catalogue's entry, forms of issues, tables of documents."""

import re
from pathlib import Path

import pytest
import yaml

import masklab

ROOT = Path(__file__).parents[1]
FORMS = sorted(path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
DOCUMENTS = sorted(path.relative_to(ROOT) for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PEOPLE = ({"name"}, {"family-names", "given-names"})


def read(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_the_citation_is_one():
    """What the format (1.2.0) requires, and the keys that it knows of those that stand there."""
    cited = read("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert set(cited) <= {"cff-version", "message", "title", "type", "authors", "version", "license", "abstract",
                          "keywords", "references"}  # fmt: skip
    assert (cited["cff-version"], cited["type"]) == ("1.2.0", "software")
    assert str(cited["version"]) == masklab.__version__
    for work in (cited, *cited["references"]):
        assert work["title"] and all(set(person) in PEOPLE for person in work["authors"])
    for work in cited["references"]:
        assert set(work) == {"type", "title", "authors", "year", "notes"} and work["type"] == "conference-paper"
    assert cited["license"] == "MIT" and (ROOT / "LICENSE").read_text().startswith("MIT License")


def test_the_catalogue_is_told_what_it_asks_for():
    usage = read(".snakemake-workflow-catalog.yml")["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"} and usage["report"] is True
    assert set(usage["mandatory-flags"]) == {"desc", "flags"}
    deployment = usage["software-stack-deployment"]
    assert set(deployment) == {"conda", "singularity", "singularity+conda"}
    assert all(isinstance(value, bool) for value in deployment.values())


def test_a_job_tries_the_newest_versions_every_week():
    (path,) = (ROOT / ".github/workflows").glob("*.yml")
    workflow = yaml.safe_load(path.read_text())
    assert "schedule" in workflow[True] and workflow["permissions"] == {"contents": "read"}  # YAML's `on` is true
    (command,) = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    target = command.split()[1]
    assert command.startswith("make ") and f"\n{target}:" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_of_an_issue_is_one(path):
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "body"} <= set(form) and form["name"] and form["body"]
    names = [part["id"] for part in form["body"]]
    assert len(set(names)) == len(names)
    for part in form["body"]:
        assert part["type"] in ("textarea", "input", "dropdown", "checkboxes") and part["attributes"]["label"]


def test_the_readme_is_short_and_the_changelog_begins_with_what_is_new():
    words = (ROOT / "README.md").read_text().split()
    assert len(words) < 600
    text = (ROOT / "CHANGELOG.md").read_text()
    sections = [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]
    assert "\n## Unreleased\n" in text and set(sections) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=str)
def test_every_row_of_a_table_has_the_cells_of_its_head(path):
    """Else it is read as running text, or loses its last cells."""
    text = re.sub(r"^```.*?^```", "", (ROOT / path).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    lines = [re.sub(r"`[^`]*`|\\\|", "", line) for line in text.splitlines()]
    cells = [line.count("|") if line.startswith("|") else 0 for line in lines]
    for before, count, line, below in zip([0, *cells], cells, lines, [*lines[1:], ""], strict=False):
        assert not before or not count or before == count, line
        assert before or not count or re.fullmatch(r"\|(\s*:?-+:?\s*\|)+", below), line
