"""How fast this machine trains, as assumptions of `masklab plan`: `masklab speed > here.yaml`.

Updates of MLM are timed as jobs of the workflow compute them, on one thread in each of as many processes as the machine
has cores, since cores share memory and clocks: updates of two layers of three widths, of next to nothing, which is what
launching a layer costs, of other positions than absolute ones, and of replicates side by side.
"""

import dataclasses
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
from masklab.plan.costs import Device
from masklab.rng import replicate_seed
from masklab.tokenizers import SPECIALS
from masklab.training.learner import Learner
from masklab.training.run import Run
from masklab.training.stack import Stack, learner_of

WIDTHS, PRECISIONS = (64, 128, 256), ("fp32", "bf16")
LAYERS, VOCABULARY, BATCH, LENGTH = 2, 1000, 64, 24  # about as the default run has them
UPDATES, ENOUGH = 3, 1.0  # timed after a first one: so many, or for so many seconds if that is more
COPIES = 5  # replicates side by side
SEQUENCES = 640  # of the corpus that updates draw from


@dataclasses.dataclass(frozen=True)
class Timed:
    """What is timed: updates of `copies` models of this width, each on `size` sequences of `length` tokens."""

    width: int
    precision: str = "fp32"
    positions: str = "absolute"
    copies: int = 1
    size: int = BATCH
    length: int = LENGTH

    def encoder(self) -> Encoder:
        shape = {"layers": LAYERS, "hidden": self.width, "heads": max(1, self.width // 16)}
        return Encoder(positions=self.positions, max_positions=LENGTH, **shape)

    def model(self) -> Model:
        how = {"steps": 10**6, "batch_size": self.size, "precision": self.precision}
        return Model(corpus="c", tokenizer="t", encoder="e", objective="o", **how)

    def flops(self) -> float:
        """Of one copy's update."""
        shape = VOCABULARY, self.size, self.length
        return pretraining_flops(self.encoder(), Objective(mlm=1), self.model().masking, *shape)


NOTHING = Timed(16, size=1, length=9)  # of which nothing but its launching takes time


def measured(entry: dict, cores: int | None = None, widths=WIDTHS) -> dict:
    """Keys of an entry of the assumptions' `devices` as they are on this machine, but for the speed of a data sheet.

    cores: that are busy meanwhile; None: all. What is not training is not timed: it is taken to be as many times slower
    or faster as launching a layer is, and codes as the products of 128 columns are.
    """
    cores = cores or os.cpu_count() or 1
    alone = [Timed(width, precision) for precision in PRECISIONS for width in widths]
    others = [Timed(widths[0], positions=positions) for positions in entry["positions"]]
    beside = [Timed(width, copies=COPIES) for width in widths if width in entry["side_by_side"]]
    asked = [NOTHING, *alone, *others, *beside]
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        found = zip(*pool.map(_seconds, [asked] * cores), strict=True)
    taken = dict(zip(asked, map(statistics.mean, found), strict=True))
    layer = taken[NOTHING] / LAYERS
    slower = layer / entry["layer_seconds"]["training"]
    wider = {precision: {} for precision in PRECISIONS}
    for each in alone:
        rate = each.flops() / max(taken[each] - LAYERS * layer, 0.1 * taken[each])
        wider[each.precision][each.width] = _short(rate / entry["peak"][each.precision])
    here = Device("here", entry | {"wider": wider, "layer_seconds": {"training": layer}})

    def factor(each) -> float:
        """How many times as long an update of one copy takes as the plan has it without `positions` and `copies`."""
        return _short(taken[each] / each.copies / here.seconds(each.flops(), LAYERS, each.width))

    codes = wider["fp32"][widths[len(widths) // 2]] / entry["wider"]["fp32"][128]
    return {
        "wider": wider,
        "positions": {each.positions: factor(each) for each in others},
        "side_by_side": {each.width: factor(each) for each in beside},
        "layer_seconds": {what: _short(slower * each) for what, each in entry["layer_seconds"].items()},
        "codes_per_second": round(codes * entry["codes_per_second"]),
        **{key: _short(slower * entry[key]) for key in ("linear_seconds", "start_seconds")},
    }


def told(device: str, devices: dict) -> str:
    """`measured`, of an entry of `devices`, as YAML for `masklab plan --assume`."""
    return yaml.safe_dump({"devices": {device: measured(devices[device])}}, sort_keys=False, default_flow_style=None)


def _short(number: float) -> float:
    return float(f"{number:.3g}")


def _seconds(asked) -> list[float]:
    """Seconds of an update of each `Timed`."""
    keep_freed_memory()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        return [_update(Path(folder), each) for each in asked]


def _update(folder, timed) -> float:
    _write_tokens(folder, timed.length)
    run = Run("measured", 1, timed.model(), timed.encoder(), Objective(mlm=1), *[folder] * 4)
    learners, make = [], learner_of if timed.copies == 1 else Learner
    for number in range(1, timed.copies + 1):
        learners.append(make(dataclasses.replace(run, seed=replicate_seed(1, number), replicate=number)))
        learners[-1].model.train()
    stack = Stack(learners) if timed.copies > 1 else None

    def update(step):
        if stack is None:
            learners[0].update(step)
        else:
            stack.apply(stack.gradients(step))

    found = []
    update(0)  # asks for memory
    while len(found) < UPDATES or sum(found) < ENOUGH:
        start = time.perf_counter()
        update(1 + len(found))
        found.append(time.perf_counter() - start)
        if sum(found) > 2 * ENOUGH:
            break
    return statistics.median(found)


def _write_tokens(folder, length) -> None:
    """Tokens of sequences of one length."""
    ids = np.random.default_rng(1).integers(len(SPECIALS), VOCABULARY, SEQUENCES * (length - 2))
    for split in ("train", "valid"):
        np.save(folder / f"{split}.ids.npy", ids.astype(np.uint16))
        np.save(folder / f"{split}.offsets.npy", np.arange(SEQUENCES + 1) * (length - 2))
    write_json({"vocab_size": VOCABULARY, "max_length": length}, folder / "meta.json")
