"""Score rows together with the items that they are made of, and how both are kept between kills.

Functions return score rows (key `value`) and item records (key `predictions`); what further columns they have is
given as keywords.
"""

import base64
import json
import logging
import time
from pathlib import Path

import numpy as np

from masklab.config.sources import existing
from masklab.files import fingerprint, sha256
from masklab.jobs import saved
from masklab.jobs.provenance import input_mark
from masklab.scores.items import OUTCOME, class_metrics
from masklab.scores.metrics import CLASSES, pearson, spearman, tally

log = logging.getLogger("masklab")
LONG = 20.0  # seconds in which a checkpoint is measured from which on its rows are kept until all are


def of_classes(labels, predictions, classes: int, **columns) -> list[dict]:
    """Rows accuracy, mcc, f1, majority and majority_f1 of answers [n] to a task of so many classes."""
    counts, n = tally(labels, predictions, classes), len(labels)
    rows = [{**columns, "metric": m, "value": float(function(counts)), "n": n} for m, function in CLASSES.items()]
    return [*rows, _record(class_metrics(classes, labels, predictions), labels, predictions, columns)]


def of_ratings(labels, predictions, **columns) -> list[dict]:
    """Rows pearson and spearman of predicted numbers [n]."""
    values = {"pearson": pearson(labels, predictions), "spearman": spearman(labels, predictions)}
    rows = [{**columns, "metric": metric, "value": value, "n": len(labels)} for metric, value in values.items()]
    return [*rows, _record([*values], labels, predictions, columns)]


def of_items(values, *metrics: str, n: int | None = None, **columns) -> list[dict]:
    """One row per metric, the mean of values [items]; n: what the rows say it counts, None: the items."""
    values = np.asarray(values, float)
    shared = {**columns, "value": float(values.mean()), "n": len(values) if n is None else n}
    rows = [{**shared, "metric": metric} for metric in metrics]
    return [*rows, _record([*metrics], np.full(len(values), OUTCOME), values, columns)]


def _record(metrics, targets, predictions, columns):
    numbers = {"targets": np.asarray(targets, np.float32), "predictions": np.asarray(predictions, np.float32)}
    return {**columns, "metrics": metrics, **numbers}


# --- between kills ---------------------------------------------------------------


def keep(value, path) -> None:
    """Write rows and records, in whatever lists and dicts; `kept` reads them as they were. A full disk is a warning."""
    try:
        saved.keep(json.dumps(value, default=_packed), path)
    except OSError as error:
        log.warning("%s: could not be written (%s); the work goes on", path, error)


def kept(path):
    """What `keep` wrote; None if there is nothing, or with a warning if it is broken."""
    text = saved.kept(path)
    return None if text is None else json.loads(text, object_hook=_unpacked)


def seed_kept(context, name, facts, seed, measure, marks=()):
    """The rows of one seed of a task: those that were kept before a kill, or those that `measure()` gives.

    marks: what else is read. States of fine-tunings, kept for the time until the rows are there, are then forgotten.
    """
    if context.state_folder is None:
        return measure()
    record = record_of(context, name, facts, seed, *marks).with_suffix(".json")
    rows = kept(record)
    if rows is None:
        rows = measure()
        keep(rows, record)
    for file in Path(context.state_folder).glob("*.safetensors"):
        file.unlink()
    return rows


def checkpoint_kept(context, measure):
    """The rows of one checkpoint: those that were kept before a kill, or those that `measure()` gives; these are kept
    if they took long, until all checkpoints of the job are measured."""
    folder = context.state_folder
    if folder is None:
        return measure()
    before = [*Path(folder).glob("checkpoint-*.json")]  # none in a job that was not killed: then nothing is read
    if before and (record := _checkpoint_record(context)) in before and (rows := kept(record)) is not None:
        return rows
    began = time.monotonic()
    rows = measure()
    if time.monotonic() - began >= LONG:
        keep(rows, _checkpoint_record(context))
    return rows


def _checkpoint_record(context) -> Path:
    """Named by all that the rows of a checkpoint depend on; the code is that which began the folder."""
    folders = [*context.tasks.values(), context.tokens, context.codes, context.conditionals]
    files = [file for folder in folders if folder is not None for file in sorted(Path(folder).iterdir())]
    marks = [[str(file), input_mark(file)] for file in [*files, *map(Path, existing(context.probe))] if file.is_file()]
    settings = context.probe.model_dump(mode="json", exclude={"steps", "split"})
    name = fingerprint([settings, context.identity, context.seed, context.name, marks])
    return Path(context.state_folder) / f"checkpoint-{name}.json"


def record_of(context, name, facts, seed, *more) -> Path:
    """Where what was found of one seed of a task is kept, named by all that it depends on: the probe, the task (its
    folder and facts), the checkpoint, the seeds, and what more there is."""
    settings = context.probe.model_dump(exclude={"tasks", "seeds", "steps", "split"})
    data = [sha256(context.tasks[name] / f"{part}.parquet") for part in ("train", "valid", "test")]
    address = [settings, *more, data, facts, context.identity, context.seed, context.name, name, seed]
    return Path(context.state_folder) / fingerprint(address)


def _packed(array):
    if isinstance(array, np.generic):
        return array.item()
    return {"float32": base64.b64encode(np.ascontiguousarray(array, "<f4").tobytes()).decode()}


def _unpacked(stored):
    return np.frombuffer(base64.b64decode(stored["float32"]), "<f4") if set(stored) == {"float32"} else stored
