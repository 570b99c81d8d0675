"""The scores behind Figures 2, 3, 5 and 7, and what ended fine-tunings."""

import pandas as pd

from masklab.report.rows import table_of
from masklab.studies.dh.figures import mix_words


def transfer(results, chosen) -> pd.DataFrame:
    """One row per test domain, training size and metric, one column per starting point, the bags and the majority."""
    several = len({spelling for spelling, _ in chosen}) > 1
    by_panel = {}
    for (spelling, _), starts in chosen.items():
        (task,) = next(iter(next(iter(starts.values())).values())).tasks
        mix = mix_words(results.view.tasks[task]["mix"])
        rows = by_panel.setdefault(f"{spelling} vocabulary, {mix}" if several else mix, {})
        for start, curves in starts.items():
            for domain, curve in curves.items():
                for size in results.values(curve).x if results.values(curve).replicates else ():
                    for metric, said in (("accuracy", ""), ("mcc", ", MCC")):
                        number = curve.of(curve.recipe, over=None, sizes=int(size), metric=metric)
                        rows.setdefault(f"{domain}, {int(size):,} examples{said}", {})[start] = number
    return table_of(results, by_panel)


def stopping(results, chosen) -> pd.DataFrame:
    """Share of each starting point's fine-tunings that ended at their last update, and the update that was kept."""
    by_panel = {}
    for (spelling, _), starts in chosen.items():
        for start, reading in starts.items():
            rows = by_panel.setdefault(spelling, {})
            (task,) = reading.tasks
            mix = mix_words(results.view.tasks[task]["mix"])
            rows.setdefault(f"capped, {mix}", {})[start] = reading
            rows.setdefault(f"best update, {mix}", {})[start] = reading.of(reading.recipe, metric="best_step")
    return table_of(results, by_panel)
