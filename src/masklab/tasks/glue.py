"""GLUE's eight tasks (Wang et al. 2018) from its own TSV files, or by name through the package `datasets`.

Measured on the development set, as everybody without access to GLUE's server does: it serves as validation and as test
split. MNLI's test split holds both development sets as domains `matched` and `mismatched`; validation is `matched`.
"""

import logging
from dataclasses import dataclass

import numpy as np
import pandas as pd

from masklab.errors import MaskLabError
from masklab.rng import generator
from masklab.tasks import label_facts
from masklab.tasks.hub import hub_split
from masklab.tasks.label_files import one_column, read_rows

log = logging.getLogger("masklab")
HUB = "nyu-mll/glue"


@dataclass(frozen=True)
class Form:
    """Columns of a task's TSV files and of its splits on the hub: sentence(s), then label."""

    files: tuple[str, ...]
    hub: tuple[str, ...]
    labels: tuple[str, ...] = ("0", "1")  # as the files spell them, in the hub's order
    metric: str = "accuracy"
    header: tuple[str, ...] | None = None  # of files without one


FORMS = {
    "cola": Form(
        ("sentence", "label"), ("sentence", "label"), metric="mcc", header=("source", "label", "mark", "sentence")
    ),
    "sst2": Form(("sentence", "label"), ("sentence", "label")),
    "mrpc": Form(("#1 String", "#2 String", "Quality"), ("sentence1", "sentence2", "label")),
    "stsb": Form(("sentence1", "sentence2", "score"), ("sentence1", "sentence2", "label"), metric="spearman"),
    "qqp": Form(("question1", "question2", "is_duplicate"), ("question1", "question2", "label")),
    "mnli": Form(
        ("sentence1", "sentence2", "gold_label"),
        ("premise", "hypothesis", "label"),
        ("entailment", "neutral", "contradiction"),
    ),
    "qnli": Form(
        ("question", "sentence", "label"), ("question", "sentence", "label"), ("entailment", "not_entailment")
    ),
    "rte": Form(
        ("sentence1", "sentence2", "label"), ("sentence1", "sentence2", "label"), ("entailment", "not_entailment")
    ),
}
HUB_DEV = {"mnli": ("validation_matched", "validation_mismatched")}


def glue(config, name, seed):
    """Build one of GLUE's tasks: labels, or ratings 0 to 5 for STS-B."""
    form = FORMS[config.task]
    if config.folder is None:
        dev = HUB_DEV.get(config.task, ("validation",))
        train, *held_out = [
            _from_hub(hub_split(HUB, config.task, split, f"tasks.{name}"), form) for split in ("train", *dev)
        ]
    else:
        train, *held_out = [_from_file(file, form) for file in config.files]
    if config.limit and config.limit < len(train):
        order = generator(seed, name, "limit", config.seed).permutation(len(train))
        train = train.iloc[np.sort(order[: config.limit])].reset_index(drop=True)
    test = held_out[0]
    if len(held_out) == 2:
        parts = zip(("matched", "mismatched"), held_out, strict=True)
        test = pd.concat([part.assign(domain=domain) for domain, part in parts], ignore_index=True)
    splits = {"train": train, "valid": held_out[0], "test": test}
    pair = len(form.files) == 3
    if config.task == "stsb":
        rows = {split: len(frame) for split, frame in splits.items()}
        facts = {"kind": "ratings", "low": 0.0, "high": 5.0, "pair": pair, "metric": form.metric, "rows": rows}
        return splits, facts
    return splits, label_facts(splits, list(form.labels), pair, form.metric)


def _from_file(file, form: Form) -> pd.DataFrame:
    rows = read_rows(file, form.header)
    rows.columns = [str(column).strip().removeprefix("\ufeff") for column in rows.columns]
    whole = pd.DataFrame({column: one_column(rows, column, file) for column in form.files})
    # QQP's file has some lines that were cut short
    kept = whole.notna().all(axis=1) & (whole != "").all(axis=1)
    if not kept.all():
        log.warning("%s: %d of %d rows are incomplete and left out", file, (~kept).sum(), len(kept))
    if not kept.any():
        raise MaskLabError(f"{file}: no rows" if kept.empty else f"{file}: none of its {len(kept)} rows is complete")
    return _frame(whole[kept], form, file)


def _from_hub(rows, form: Form) -> pd.DataFrame:
    frame = rows[list(form.hub)].set_axis(list(form.files), axis=1)
    if form.metric != "spearman":
        names = frame[form.files[-1]].map(lambda label: dict(enumerate(form.labels)).get(label, label))  # -1: withheld
        frame = frame.assign(**{form.files[-1]: names})
    return _frame(frame, form, HUB)


def _frame(rows, form: Form, where) -> pd.DataFrame:
    """Texts and labels of rows, whose index is their place in the file."""
    *texts, label = form.files
    frame = pd.DataFrame({"text_a": rows[texts[0]], "text_b": rows[texts[1]] if len(texts) == 2 else None})
    frame = frame.astype("string").apply(lambda texts: texts.str.strip())  # as `label_files.fill` does
    if form.metric == "spearman":
        values = pd.to_numeric(rows[label], errors="coerce").astype(np.float64)
        bad = np.flatnonzero(~values.between(0, 5))
    else:
        numbers = {name: number for number, name in enumerate(form.labels)}
        values = rows[label].map(numbers)
        bad = np.flatnonzero(values.isna())
    if len(bad):
        allowed = "0 to 5" if form.metric == "spearman" else ", ".join(form.labels)
        number = rows.index[bad[0]] + 1
        raise MaskLabError(f"{where}: row {number}: label {rows[label].iloc[bad[0]]!r}; allowed: {allowed}")
    if form.metric == "spearman" and values.nunique() < 2:  # of which no correlation is defined
        raise MaskLabError(f"{where}: every row has the {label} {values.iloc[0]:g}; ratings need at least two")
    frame = frame.assign(label=values if form.metric == "spearman" else values.astype(np.int64))
    return frame.reset_index(drop=True)
