"""The table of what the gap of ranks is made of."""

import pandas as pd

from masklab.claims.values import effect_estimate
from masklab.report.cells import filled, tidy
from masklab.scores.reading import leaves


def ranks(results, chosen) -> pd.DataFrame:
    """Heading -> row -> label -> effect, as cells: a row is over the replicates that all its effects have."""
    cells = []
    for heading, rows in chosen.items():
        for row, effects in rows.items():
            shared = results.shared(leaves(effects))
            for label, effect in effects.items():
                (reading, *_) = effect.readings() if hasattr(effect, "readings") else [effect]
                steps, n = results.rows(reading)["step"], results.items_behind(reading, shared)
                made, metric = effect_estimate(effect, results, replicates=shared), effect.unit(results.view)
                step = int(steps.max()) if len(steps) else 0  # a probe with `subspace: null` measures but a part of it
                cells.append(filled(made, heading, row, reading.recipe, label, metric, step, n))
    return tidy(cells)
