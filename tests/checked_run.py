"""Probes run for tests: every row is one of the schema, and every row that has items is what they say."""

import pytest

from masklab import probes
from masklab.scores.items import KEY, records_to_table
from masklab.scores.items import NOT_APPLICABLE as DEFAULTS
from masklab.scores.schema import rows_to_table
from of_items import of_items

HEAD = {"recipe": "a", "replicate": 1, "step": 0, "probe": "p"}


def run(context) -> list[dict]:
    """Score rows of a probe, checked against its items."""
    return scores(probes.run(context))


def scores(rows) -> list[dict]:
    """The score rows among what a probe gives, checked against its items."""
    found = [row for row in rows if "predictions" not in row]
    rows_to_table([HEAD | row for row in found])
    places = {}
    for row in found:
        full = DEFAULTS | HEAD | row
        places[(*(full[name] for name in KEY), row["metric"])] = row["value"]
    for record in items(rows):
        for metric in record["metrics"]:
            value = places[(*(record[name] for name in KEY), metric)]
            again = of_items(metric, record["targets"], record["predictions"])
            assert again == pytest.approx(value, rel=1e-6, abs=1e-6), (record["task"], metric)
    return found


def items(rows) -> list[dict]:
    """The item records among what a probe gives, as they are read from a file."""
    return records_to_table([HEAD | row for row in rows if "predictions" in row]).to_pylist()
