"""Score rows of the `dh` study with known curves, for tests of figures, tables and claims."""

import numpy as np

from masklab.config.schema import Study
from masklab.scores.schema import rows_to_frame

LABELS = ("w/ DH", "w/o DH", "CBOW", "scratch", "shuffled")
PANELS = {
    panel: {label: f"{panel}-{i}" for i, label in enumerate(LABELS)} for panel in ("single", "shared", "separate")
}
SETS = {f"{panel}-{percent}": [f"{panel}-patterns-{percent}"] for panel in PANELS for percent in (0, 10, 50)}
STUDY = Study(panels=PANELS, probes={"transfer": "all"}, sets=SETS, claims="all")
MAJORITY = {"A-D1": 0.52, "B-D1": 0.52, "A-D2": 0.55, "B-D2": 0.55}


def dh_scores(accuracy, sizes=(100, 300, 1000), seeds=5, sets=SETS, noise=0.01):
    """Frame of scores: accuracy(set, label, domain, size) plus noise drawn per seed and cell (clipped to [0, 1])."""
    rng = np.random.default_rng(7)
    rows = []
    for name, (task,) in sets.items():
        panel, percent = name.rsplit("-", 1)
        for label, model in PANELS[panel].items():
            for domain, majority in MAJORITY.items():
                shared = {"study": "dh", "model": model, "step": 10, "probe": "transfer", "task": task, "split": domain}
                for size in sizes:
                    for seed in range(1, seeds + 1):
                        at = shared | {"train_size": size, "mix": int(percent) / 100, "seed": seed, "n": 500}
                        value = accuracy(name, label, domain, size) + noise * rng.normal()
                        rows.append(at | {"metric": "accuracy", "value": float(np.clip(value, 0, 1))})
                        rows.append(at | {"metric": "majority", "value": majority})
    return rows_to_frame(rows)


def plausible(name, label, domain, size):
    """Curves of about the paper's shape."""
    base = {"w/ DH": 0.3, "w/o DH": 0.2, "CBOW": 0.15, "scratch": 0.1, "shuffled": 0.1}[label]
    cost = {"A-D1": 0.0, "B-D1": 0.08, "A-D2": 0.12, "B-D2": 0.04}[domain]
    if label != "w/ DH" and domain.startswith("B") and not name.endswith("50"):
        return 0.5
    return 0.5 + base * (1 - np.exp(-size / 400)) * 1.3 - cost
