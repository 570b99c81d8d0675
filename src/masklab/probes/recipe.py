"""The course of one fine-tuning: how many updates, which rows make up each, when it is measured, when it stops."""

import math
from dataclasses import dataclass

import numpy as np

from masklab.optim.flat import rate_at, warm_updates
from masklab.rng import generator, seed_at, torch_generator
from masklab.tasks.encoding import shuffled_batches

WINDOW = 8  # batches whose rows are sorted by length together


@dataclass(frozen=True)
class Course:
    """One fine-tuning. Everything in it depends on these fields alone.

    probe: a `config.schema.FinetuneProbe`; root: the config's seed; name, task: of the probe and the task.
    size: rows of the training split that are used, the first ones; lengths [size]: their tokens.
    seed: the fine-tuning's own. The size is in no address: for one seed, courses of different sizes begin with
    the same head and meet the same dropout, so that their differences are paired.
    """

    probe: object
    root: int
    name: str
    task: str
    size: int
    seed: int
    lengths: np.ndarray

    @property
    def epoch(self) -> int:
        """Updates in one pass over the training rows."""
        return math.ceil(self.size / self.probe.batch_size)

    @property
    def steps(self) -> int:
        """Updates in all, if it is not stopped."""
        return self.probe.max_steps or self.probe.epochs * self.epoch

    def batches(self, first: int = 0):
        """Rows of each update's batch, in order, from update `first` on (0-based)."""
        window = 1 if self.probe.batches == "random" else WINDOW
        for step in range(first - first % self.epoch, self.steps, self.epoch):
            rng = generator(self.root, self.name, self.task, self.seed, "order", step // self.epoch)
            batches = shuffled_batches(self.lengths, self.probe.batch_size, rng, window)
            yield from batches[max(first - step, 0) : self.steps - step]

    def rate(self, step: int) -> float:
        """Learning rate of update `step` (0-based)."""
        return rate_at(step, self.steps, self.probe)

    def head_generator(self):
        """Generator of the head's initial weights."""
        return torch_generator(self.root, self.name, self.task, self.seed, "head")

    def dropout_seed(self, step: int) -> int:
        """Seed of the dropout of update `step` (0-based)."""
        return seed_at(self.root, self.name, self.task, self.seed, "dropout", step)

    def is_evaluated_after(self, updates: int) -> bool:
        """Whether the validation split is measured after so many updates; after the last one always."""
        every = self.epoch if self.probe.evaluate_every == "epoch" else self.probe.evaluate_every
        return updates % every == 0 or updates == self.steps

    def counts_patience_after(self, updates: int) -> bool:
        """Whether an evaluation after so many updates may count against patience.

        With `stop_after_peak` not before one update was made at the peak learning rate: a small training set's
        patience of some epochs can otherwise end before warm-up does.
        """
        return not self.probe.stop_after_peak or updates > warm_updates(self.steps, self.probe)


@dataclass(frozen=True)
class Outcome:
    """What a course gave.

    predictions: of the test split by the best model; best_step: updates it had made; best_value: what it was chosen
    by; capped: whether it made all the updates it could, and did not stop before; validation: its predictions of the
    validation split, or None; ranks: its effective ranks by name, or None.
    """

    predictions: object
    best_step: int
    best_value: float
    capped: bool
    validation: object = None
    ranks: dict | None = None


class EarlyStopping:
    """When to stop and which evaluation is best, as transformers' Trainer with EarlyStoppingCallback.

    Any higher value is the new best; only one more than `threshold` above the best so far resets the patience.
    """

    def __init__(self, patience: int, threshold: float):
        self.patience, self.threshold = patience, threshold
        self.best, self.waited = None, 0

    def state(self) -> list:
        """What a resumed course needs, JSON-able."""
        return [self.best if self.best is None else float(self.best), self.waited]

    def load(self, state: list) -> None:
        """Take over what `state` returned."""
        self.best, self.waited = state

    def update(self, value: float, counts_patience: bool = True) -> tuple[bool, bool]:
        """(is the new best, should stop) after an evaluation that gave `value`."""
        gained = self.best is None or value - self.best > self.threshold
        self.waited = 0 if gained or not counts_patience else self.waited + 1
        improved = self.best is None or value > self.best
        if improved:
            self.best = value
        return improved, self.waited >= self.patience
