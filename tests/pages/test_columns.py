"""docs/columns.md says what every column and every metric is."""

import re
from pathlib import Path

import synthetic
from masklab.config import layered, load, plain
from masklab.config.probe_metrics import METRICS as GIVEN
from masklab.pages.columns import FILES, METRICS, markdown

ROOT = Path(__file__).parents[2]


def test_it_is_up_to_date():
    assert (ROOT / "docs/columns.md").read_text() == markdown(), "run `masklab schema`"


def test_every_column_of_the_schemas_is_there_with_its_type():
    from masklab.claims.verdict import COLUMNS as CLAIMS
    from masklab.scores.schema import GATHERED

    assert [name for name, _, _ in FILES["scores.parquet"][1]] == list(GATHERED)
    assert [name for name, _, _ in FILES["claims.parquet"][1]] == list(CLAIMS)
    assert ("value", "number") in [row[:2] for row in FILES["scores.parquet"][1]]


def test_every_metric_that_a_probe_can_give_has_its_words():
    known = {name for names in METRICS for name in names.split(", ")}
    assert {metric for given in GIVEN.values() for metric in given} <= known


def test_every_metric_of_the_default_studies_is_there():
    known = {name for names in METRICS for name in names.split(", ")}
    config = load(plain(layered()))
    for study in config.studies:
        frame = synthetic.results(config, study).scores
        measured = set(frame.loc[~frame["split"].isin(["vocabulary", "atoms"]), "metric"])
        assert {name for name in measured if not re.fullmatch(r"word\d", name)} <= known
