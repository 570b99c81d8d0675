"""Tables 1 to 3: every phenomenon or task, each recipe after its last update, and unweighted means."""

import pandas as pd

from masklab.report.rows import table_of
from masklab.studies.mlsm.figures import row_names, split_up


def table(results, chosen) -> pd.DataFrame:
    """A row per phenomenon or task of any average, then the averages; nulls beside the recipes."""
    by_panel = {}
    for panel, averages in chosen.items():
        singles = {}
        for readings in averages.values():
            for label, reading in readings.items():
                for task in split_up(results, reading):
                    singles.setdefault(task, {})[label] = reading.of(reading.recipe, tasks=(task,))
        names = row_names(results.view, singles)
        by_panel[panel] = {names[task]: readings for task, readings in singles.items()} | averages
    return table_of(results, by_panel)
