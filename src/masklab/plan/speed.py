"""How fast this machine trains, as assumptions of `masklab plan`: `masklab speed > here.yaml`.

Updates of MLM are timed as jobs of the workflow compute them, on one thread in each of as many processes as the machine
has cores, since cores share memory and clocks: updates of two layers of three widths, and of next to nothing, which is
what launching a layer costs.
"""

import multiprocessing
import os
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
import yaml

from masklab.config.schema import Encoder, Model, Objective
from masklab.files import write_json
from masklab.inside_libc import keep_freed_memory
from masklab.models.flops import pretraining_flops
from masklab.tokenizers import SPECIALS
from masklab.training.learner import Learner
from masklab.training.run import Run

WIDTHS, PRECISIONS = (64, 128, 256), ("fp32", "bf16")
LAYERS, VOCABULARY, BATCH, LENGTH = 2, 1000, 64, 24  # about as the default run has them
NOTHING = ("fp32", 16, 1, 9)  # an update of which nothing but its launching takes time
UPDATES, ENOUGH = 3, 1.0  # timed after a first one: so many, or for so many seconds if that is more


def measured(entry: dict, cores: int | None = None, widths=WIDTHS) -> dict:
    """Keys of an entry of the assumptions' `devices` as they are on this machine, but for the speed of a data sheet.

    cores: that are busy meanwhile; None: all. What is not training is not timed: it is taken to be as many times slower
    or faster as launching a layer is, and codes as the products of 128 columns are.
    """
    cores = cores or os.cpu_count() or 1
    asked = [(precision, width, BATCH, LENGTH) for precision in PRECISIONS for width in widths]
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        found = zip(*pool.map(_seconds, [[NOTHING, *asked]] * cores), strict=True)
    layer, *seconds = map(statistics.mean, found)
    slower = (layer := layer / LAYERS) / entry["layer_seconds"]["training"]
    wider = {precision: {} for precision in PRECISIONS}
    for (precision, width, *size), taken in zip(asked, seconds, strict=True):
        computing = max(taken - LAYERS * layer, 0.1 * taken)
        wider[precision][width] = _short(_flops(width, *size) / computing / entry["peak"][precision])
    codes = wider["fp32"][widths[len(widths) // 2]] / entry["wider"]["fp32"][128]
    return {
        "wider": wider,
        "layer_seconds": {what: _short(slower * each) for what, each in entry["layer_seconds"].items()},
        "codes_per_second": round(codes * entry["codes_per_second"]),
        **{key: _short(slower * entry[key]) for key in ("linear_seconds", "start_seconds")},
    }


def told(device: str, devices: dict) -> str:
    """`measured`, of an entry of `devices`, as YAML for `masklab plan --assume`."""
    return yaml.safe_dump({"devices": {device: measured(devices[device])}}, sort_keys=False, default_flow_style=None)


def _short(number: float) -> float:
    return float(f"{number:.3g}")


def _encoder(width):
    return Encoder(layers=LAYERS, hidden=width, heads=2, intermediate=4 * width, max_positions=LENGTH)


def _model(size, precision="fp32"):
    how = {"steps": 10**6, "batch_size": size, "precision": precision}
    return Model(corpus="c", tokenizer="t", encoder="e", objective="o", **how)


def _flops(width, size, length) -> int:
    return pretraining_flops(_encoder(width), Objective(mlm=1), _model(size).masking, VOCABULARY, size, length)


def _seconds(asked) -> list[float]:
    """Seconds of an update for each (precision, width, sequences, tokens of a sequence, specials counted)."""
    keep_freed_memory()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        return [_update(Path(folder), *each) for each in asked]


def _update(folder, precision, width, size, length) -> float:
    _write_tokens(folder, length)
    run = Run("measured", 1, _model(size, precision), _encoder(width), Objective(mlm=1), *[folder] * 4)
    learner = Learner(run)
    learner.model.train()
    found = []
    learner.update(0)  # asks for memory
    while len(found) < UPDATES or sum(found) < ENOUGH:
        start = time.perf_counter()
        learner.update(1 + len(found))
        found.append(time.perf_counter() - start)
        if sum(found) > 2 * ENOUGH:
            break
    return statistics.median(found)


def _write_tokens(folder, length, sequences=640) -> None:
    """Tokens of sequences of one length."""
    ids = np.random.default_rng(1).integers(len(SPECIALS), VOCABULARY, sequences * (length - 2))
    for split in ("train", "valid"):
        np.save(folder / f"{split}.ids.npy", ids.astype(np.uint16))
        np.save(folder / f"{split}.offsets.npy", np.arange(sequences + 1) * (length - 2))
    write_json({"vocab_size": VOCABULARY, "max_length": length}, folder / "meta.json")
