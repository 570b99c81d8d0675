"""The shipped studies with a part taken out: each is checked, or refused in lines that name it, whatever lacks."""

import copy

import pytest

from masklab.config import layered, load, plain
from masklab.errors import MaskLabError
from masklab.plan.graph import checkout_paths

RAW = plain(layered())


def reduced(name):
    """(what is done, the study) for a study without each of its probes and sets, and with empty ones."""
    study = RAW["studies"][name]
    for section in ("probes", "sets"):
        for entry in study.get(section, {}):
            changed = copy.deepcopy(study)
            del changed[section][entry]
            yield f"without {section}.{entry}", changed
        yield f"without {section}", study | {section: {}}
    for entry in study.get("sets", {}):
        yield f"with nothing in sets.{entry}", study | {"sets": study["sets"] | {entry: []}}


@pytest.mark.parametrize("name", RAW["studies"])
def test_a_study_without_a_part_is_checked_or_refused_in_lines(name):
    refused = {}
    for what, study in reduced(name):
        try:
            checkout_paths(load(RAW | {"studies": {name: study}})).check()
        except MaskLabError as error:
            refused[what] = str(error).split("\n")
    assert refused, "something of what was taken out is needed"
    for what, lines in refused.items():
        assert all(line.startswith(f"config: studies.{name}.") or "more" in line for line in lines), (what, lines)
    for line in (line for what, lines in refused.items() if what.startswith("with nothing") for line in lines):
        assert "is empty" in line or "no set" not in line, line
