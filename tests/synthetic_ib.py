"""Score rows of the `implicit-bias` study with known values, for tests of figures, tables and claims."""

import numpy as np

from masklab.config.schema import Study
from masklab.scores.schema import rows_to_frame

SIZES = {"xs": 1e3, "s": 1e4, "m": 1e5, "l": 1e6}
PANELS = {corpus: {name: f"{corpus}-{name}" for name in SIZES} for corpus in ("pcfg", "hmm", "causal", "pcfg-15")} | {
    "pcfg-sgd": {"l": "pcfg-sgd-l"},
    "hmm-sgd": {"l": "hmm-sgd-l"},
    "pcfg-algorithms": {"AdamW": "pcfg-l", "adversarial": "pcfg-adversarial", "lookup table": "pcfg-lookup"},
}
TASKS = {"pcfg": ("a", "b", "c"), "hmm": ("6", "10"), "causal": ("qnli", "sst2")}
SETS = {f"{corpus}-{task}": [f"{corpus}-{task}"] for corpus, tasks in TASKS.items() for task in tasks}
STUDY = Study(
    panels=PANELS, probes={"loss": "all", "linear": "all", "trace": "all"}, sets=SETS, claims="all", margin=0.02
)
STEPS = (100, 200, 400, 800, 1600)
FLOOR = {"pcfg": 3.2, "hmm": 3.8, "causal": 1.9}
WORDS = {"xs": 0, "s": 1, "m": 2, "l": 3}


def gap(model, step):
    """Over the entropy, as a share of it: xs never gets there; the rest converge by step 400."""
    size = 3 if model in ("pcfg-adversarial", "pcfg-sgd-l", "hmm-sgd-l") else WORDS.get(model.rsplit("-", 1)[-1], 3)
    if model == "pcfg-lookup":
        return 0.0
    start = 0.0 if "sgd" in model else 0.2 * np.exp(-step / 60)
    return start + (0.05 if size == 0 else 0.004 - 0.001 * size)


def accuracy(model, step, task):
    """Rises with size and with the logarithm of steps; the adversarial model is .1 lower, the table lowest."""
    if model == "pcfg-lookup":
        return 0.3
    size = WORDS.get(model.rsplit("-", 1)[-1], 3)
    return 0.4 + 0.04 * size + 0.03 * np.log2(step / 100) - (0.1 if "adversarial" in model else 0)


def trace(model, step):
    """Falls as accuracy rises; three times larger for the adversarial model."""
    size = WORDS.get(model.rsplit("-", 1)[-1], 3)
    return (40 - 4 * size - 3 * np.log2(step / 100)) * (3 if "adversarial" in model else 1)


def ib_scores(gap=gap, accuracy=accuracy, trace=trace, seeds=5, noise=0.002, models=None, steps=STEPS, repeats=5):
    """Frame of scores of all models: losses, accuracies plus noise drawn per seed, traces in repeats."""
    rng, rows = np.random.default_rng(7), []
    for model in models or dict.fromkeys(name for panel in PANELS.values() for name in panel.values()):
        corpus = model.split("-")[0]
        own = [0] if model == "pcfg-lookup" else steps
        for step in own:
            base = {"study": "implicit-bias", "model": model, "step": step, "split": "test"}
            loss = base | {"probe": "loss", "task": corpus, "n": 1000}
            over = gap(model, step) * FLOOR[corpus]
            values = {"loss": FLOOR[corpus] + over, "floor": FLOOR[corpus], "gap": over}
            rows += [loss | {"metric": metric, "value": float(value)} for metric, value in values.items()]
            rows += [loss | {"metric": f"{metric}_se", "value": 0.001} for metric in values]
            rows.append(loss | {"metric": "loss_std", "value": 0.002})
            size = SIZES.get(model.rsplit("-", 1)[-1], 1e6)
            rows.append(loss | {"metric": "parameters", "value": 0.0 if "lookup" in model else size})
            for task in TASKS[corpus]:
                for seed in range(1, seeds + 1):
                    at = base | {
                        "probe": "linear",
                        "task": f"{corpus}-{task}",
                        "seed": seed,
                        "n": 500,
                        "train_size": 1000,
                    }
                    value = accuracy(model, step, task) + noise * rng.normal()
                    rows.append(at | {"metric": "accuracy", "value": float(np.clip(value, 0, 1))})
                    rows.append(at | {"metric": "majority", "value": 0.2})
            if "lookup" not in model:
                for repeat in range(1, repeats + 1):
                    at = base | {"probe": "trace", "task": corpus, "seed": repeat, "n": 1000}
                    value = trace(model, step) * (1 + 0.01 * rng.normal())
                    rows.append(at | {"metric": "trace", "value": float(value)})
                    rows.append(at | {"metric": "trace_se", "value": float(trace(model, step) * 0.02)})
    return rows_to_frame(rows)
