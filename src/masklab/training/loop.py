"""The one pre-training loop: every objective, every study.

A training step is read in three files: `loop` (when it is saved, validated, stopped), `learner` (losses, gradients, the
update) and `step` (which tokens are hidden). On a GPU an update's numbers are read a few updates late (`numbers`), and
at once before anything is written.
"""

import contextlib
import math
from collections import deque

from masklab.config import checkpoints
from masklab.errors import MaskLabError, Passing
from masklab.jobs import state
from masklab.training import arithmetic
from masklab.training.distributed import Ranks, joined
from masklab.training.guard import Guard
from masklab.training.interruption import Interruption
from masklab.training.learner import Learner
from masklab.training.manifest import facts
from masklab.training.numbers import Numbers, lateness
from masklab.training.pace import Clock, Pace
from masklab.training.record import Record
from masklab.training.run import Run
from masklab.training.stack import learner_of
from masklab.training.validation import Validation


def train(run: Run) -> None:
    """Train to the last step, resuming from `run.state` if it belongs to this very run.

    Leaves `step-<n>/` folders, `metrics.parquet` and `manifest.json` in `run.output`. With `processes` above 1
    this is one of them (see `masklab.training.launch`).
    """
    with joined(run.model.processes, run.device) as ranks, contextlib.ExitStack() as stack:
        if ranks.main:
            stack.enter_context(state.locked(run.state))
        Trainer(run, ranks).run_all()


class Trainer:
    """One run from its first step, or the one it resumes at, to its last.

    learner: makes the updates; guard: judges their losses; validation: the loss on other sequences; record: the files,
    written by process 0 alone; interruption: signals to stop; late: how many updates may have been made whose rows,
    `unread`, have not been judged and reported.

    ranks: this process among those of the run; the default is a run in one process. learner: the default is what the
    recipe and the kind of device say (`stack.learner_of`).
    """

    def __init__(self, run: Run, ranks: Ranks | None = None, learner: Learner | None = None):
        self.run, self.config, self.ranks = run, run.model, ranks or Ranks()
        self.kept = checkpoints(self.config)
        self.learner = learner or learner_of(run, self.ranks)
        self.validation = Validation(self.learner)
        self.guard = Guard(self.config.optimiser.explosion, self.learner.uniform)
        sparse = [term.name for term in self.learner.terms.once]
        self.record = Record(run, sparse, self.learner.arithmetic["products"])
        self.interruption = Interruption(self.ranks, self.learner.device)
        self.pace, self.unread, self.late = Clock(), deque(), lateness(self.learner.device)

    # --- the whole run ---------------------------------------------------------

    def run_all(self) -> None:
        """Resume or begin, train to the last step, and write what a finished run leaves."""
        first = self.resume()
        with self.interruption, self.learner.ahead(first):
            self.learner.model.train()
            self.pace = Pace(self.run, first, self.record.seconds, silent=not self.ranks.main)
            if first == 0:
                self._start()
            for step in range(first, self.config.steps):
                self.update(step)
                self.interruption.watch_parent()
            self.catch_up()
        if self.ranks.main:
            self.record.finish(self.facts())

    def resume(self) -> int:
        """The step to go on with; process 0 reads the state, the others get it from there."""
        flat, guard, record = self.learner.flat, self.guard, self.record
        step = record.restore(flat, guard) if self.ranks.main else 0
        self.ranks.copy_(*flat.state().values())
        step, judged, record.saved = self.ranks.tell([step, guard.state(), record.saved])
        guard.load(judged)
        if self.ranks.main:
            arithmetic.keep(self.run, self.learner.arithmetic)
        return step

    def facts(self) -> dict:
        """What the manifest says of the run, once it is done."""
        learner = self.learner
        lengths = None if learner.plan is None else learner.plan.lengths[learner.plan.rows]
        of = learner.vocab_size, learner.flat.values.numel(), self.record.metrics.rows, lengths
        return facts(self.run, *of, self.validation.unigram_loss) | {"arithmetic": learner.arithmetic}

    # --- one step --------------------------------------------------------------

    def update(self, step: int) -> Numbers:
        """One update (0-based), its row; before it is made, the state may be saved and the run may stop.

        What is saved is the state before this update: its loss on this batch is known to be sound, and so is all that
        came before.
        """
        row = self.learner.gradients(step)
        # Of the processes the one that saves says when: the clocks of the others are never set back.
        self.interruption.agree(self.ranks.main and self.record.due)
        if self.interruption.everywhere or self.interruption.due or not self.late:
            self.catch_up()
            self.judge(row)
            due = self.interruption.everywhere or self.record.due
            if self.ranks.main and due and self.guard.calm(row["loss"]):
                self.record.save(step, self.learner.flat, self.guard)
        if self.interruption.everywhere:
            self._stop(step)
        self.apply(row)
        return row

    def apply(self, row: Numbers) -> None:
        """Make the update of `row`; read the rows that are due to be."""
        self.learner.apply(row)
        self.unread.append(row)
        self.catch_up(0 if self._validates(row["step"]) else self.late)

    def catch_up(self, left: int = 0) -> None:
        """Read, judge and report the rows of all updates but the last `left`; stop the run where one is at fault."""
        while len(self.unread) > left:
            row = self.unread.popleft().read()
            self.judge(row)
            self.guard.accept(row["loss"])
            self.check_gradient(row)
            self._report(row)

    def judge(self, row: dict) -> None:
        """Stop the run if the loss of `row` is not a number or has exploded (`guard`)."""
        fault = self.guard.fault(row["loss"], last=row["step"] == self.config.steps)
        if fault:
            self._fail(row["step"], fault, begun=row["step"] > 1)

    def check_gradient(self, row: dict) -> None:
        """Stop the run if the gradient of `row` was not finite."""
        if not math.isfinite(row["grad_norm"]):
            self._fail(row["step"], f"the gradient's norm is {row['grad_norm']}", begun=row["step"] > 1)

    # --- what is written -------------------------------------------------------

    def _start(self) -> None:
        """Validate and keep the weights before the first update, if the recipe wants them: nothing is trained."""
        if 0 in self.kept and self.ranks.main:
            self.record.metrics.append({"step": 0, "seconds": 0.0, "valid_loss": self.validation.loss()})
            self.record.checkpoint(self.learner.model, 0)

    def _report(self, row: dict) -> None:
        """After an update: the rows of metrics, the checkpoint and the line of progress that are due."""
        config, record, pace, done = self.config, self.record, self.pace, row["step"]
        pace.tick(row)
        record.seconds = pace.seconds
        record.means.add(row)
        keep, validate = done in self.kept, self._validates(done)
        if validate or done % config.log_every == 0 or done == 1:
            loss = self._validated(done) if validate else math.nan
            record.metrics.append(record.means.take() | {"seconds": record.seconds, "valid_loss": loss})
        if keep and self.ranks.main:
            record.checkpoint(self.learner.model, done)
            self.validation.warn(done, loss)
        if pace.show(row):
            record.metrics.flush()

    def _validates(self, done: int) -> bool:
        """Whether the weights after `done` updates are validated: whenever they are kept, too."""
        return done in self.kept or bool(self.config.validate_every and done % self.config.validate_every == 0)

    def _validated(self, done: int) -> float:
        """Validation loss, computed by process 0, which must be finite."""
        (loss,) = self.ranks.tell([self.validation.loss() if self.ranks.main else None])
        if not math.isfinite(loss):
            self._fail(done, f"the validation loss is {loss}")
        return loss

    # --- the ends that are none ------------------------------------------------

    def _stop(self, step: int) -> None:
        """Leave because a signal said so."""
        saved = self.record.saved
        saved = "nothing was saved" if saved is None else f"the state of step {saved} is saved"
        number = self.interruption.number or "sent to another process"
        self._quit(f"{self.run.name}: stopped by signal {number} at step {step}; {saved}, run again to resume", Passing)

    def _fail(self, done: int, fault: str, begun: bool = True) -> None:
        """Stop a run that must not go on. begun: whether an update was made before its fault."""
        message = None
        self.learner.stop_ahead()
        if self.ranks.main:
            rows = self.learner.plan.batch(done - 1).tolist() if done else []
            message = self.record.failed(done, fault, rows, begun)
        self._quit(message)

    def _quit(self, message: str | None, kind=MaskLabError) -> None:
        """Leave, in all processes at the same step; process 0 says why."""
        raise kind(message) if self.ranks.main else SystemExit(1)
