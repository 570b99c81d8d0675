"""The numbers behind Figures 2, 3, 5 and 7, and the pre-training losses beside their floors."""

import numpy as np
import pandas as pd

from masklab.report.cells import NULL, TYPES, cell, tidy
from masklab.studies.dh.figures import frames, mix_words
from masklab.studies.dh.select import BAG


def transfer(results, chosen) -> pd.DataFrame:
    """One row per test domain and training size, one column per starting point, the bag of words and the majority."""
    data = frames(results, chosen)
    several = len({spelling for spelling, _ in chosen}) > 1
    data["panel"] = [
        f"{spelling} vocabulary, {mix_words(mix)}" if several else mix_words(mix)
        for spelling, mix in zip(data["spelling"], data["mix"], strict=True)
    ]
    data["row"] = [f"{d}, {int(size):,} examples" for d, size in zip(data["domain"], data["x"], strict=True)]
    data["label"] = np.where(data["start"] == BAG, f"{NULL}bag of words", data["start"])
    steps = {recipe: results.view.fact(recipe, "steps") or 0 for recipe in data["recipe"].unique()}
    data["step"] = data["recipe"].map(steps)
    majority = data.dropna(subset=["majority"]).drop_duplicates(["panel", "row"])
    majority = majority.assign(label=f"{NULL}majority", recipe="", value=majority["majority"], low=np.nan, high=np.nan)
    rows = pd.concat([data, majority], ignore_index=True).assign(metric="accuracy")
    return tidy(rows.to_dict("records")).astype(TYPES)


def losses(results, chosen) -> pd.DataFrame:
    """Masked-token cross-entropy of each pre-trained recipe in nats, the law's floor, and the gap between them."""
    return tidy(
        [
            cell(results, reading, panel, metric, label, metric)
            for panel, members in chosen.items()
            for label, readings in members.items()
            for metric, reading in readings.items()
        ]
    )
