"""The metrics that kinds of probes are said to give hold all that they have given, in every committed run."""

from pathlib import Path

import pandas as pd

from masklab.config import read
from masklab.config.probe_metrics import METRICS

ROOT = Path(__file__).parents[2]
CONFIGS = ("config.yaml", "presets/evening.yaml", "presets/babylm-mlsm.yaml", "presets/text.yaml")


def test_no_probe_of_a_committed_run_gave_another_metric():
    kinds = {}  # two configs may have two probes of one name
    for file in CONFIGS:
        for name, probe in read(ROOT / file).probes.items():
            kinds.setdefault(name, set()).add(probe.kind)
    tables = sorted(ROOT.glob("docs/results/**/scores.parquet"))
    scores = pd.concat([pd.read_parquet(table, columns=["probe", "metric"]) for table in tables]).drop_duplicates()
    seen, unknown = set(), []
    for probe, metric in scores.itertuples(index=False):
        if all(kind in METRICS for kind in kinds.get(probe, ["?"])):
            seen |= kinds[probe]
            if not any(metric in METRICS[kind] for kind in kinds[probe]):
                unknown.append((probe, metric))
    assert not unknown and len(tables) > 5 and len(seen) > 6, (unknown, seen)
