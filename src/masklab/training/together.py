"""Replicates of one recipe that train side by side, in one process and in step: killed together, resumed together.

The job of one replicate trains those of its siblings that the same run needs and that can begin. All that they leave
lies below `<state of the recipe>/together/` until each replicate's own job takes what it finds there as its own
(`take`): `r<k>/` as `results/models/<recipe>/r<k>/`, `r<k>.json` with the fingerprint that says whose it is. The
state of all is one file, so that no kill can part them. A replicate whose loss explodes leaves the others; its own job
trains it alone, and says so. What a replicate leaves does not depend on who trained beside it, to the last bit
(`training.stack`), and names nobody but itself.
"""

import contextlib
import dataclasses
import logging
import os
import shutil
import time
from pathlib import Path

from safetensors.torch import load_file

from masklab.errors import MaskLabError
from masklab.files import read_json, write_json
from masklab.jobs import stacks, state, store
from masklab.jobs.progress import Progress, Rate
from masklab.training.distributed import Ranks
from masklab.training.interruption import Interruption
from masklab.training.learner import Learner
from masklab.training.loop import Trainer, train
from masklab.training.metrics_file import Means
from masklab.training.record import Record
from masklab.training.run import Run
from masklab.training.stack import Stack

log = logging.getLogger("masklab")
FOLDER, FILE = "together", "state.safetensors"
KIND = "together"  # stands for a fingerprint in the state of several runs, which holds one of each


def folder_of(run: Run) -> Path:
    """Where the replicates of a run's recipe leave what they make side by side."""
    return run.state.parent / FOLDER


def take(run: Run) -> bool:
    """Put in its place what a sibling's job has made of a run; whether there was anything.

    What belongs to another config, other inputs or other code is forgotten.
    """
    folder = folder_of(run)
    place, mark = folder / f"r{run.replicate}", folder / f"r{run.replicate}.json"
    if not mark.is_file():
        return False
    said = read_json(mark)
    of_now = not os.environ.get(store.ANEW) or said["run"] == stacks.run()
    fits = of_now and said["fingerprint"] == Record(run).mark() and _code(folder) == _code(run.state)
    if fits:
        for old in run.output.glob("step-*"):
            shutil.rmtree(old)
        files = [path.relative_to(place) for path in sorted(place.rglob("*")) if path.is_file()]
        for file in sorted(files, key=lambda file: file.name == "manifest.json"):
            (run.output / file).parent.mkdir(parents=True, exist_ok=True)
            (run.output / file).unlink(missing_ok=True)
            os.link(place / file, run.output / file)
        log.info("%s: was trained side by side with r%s", run.name, ", r".join(map(str, said["with"])))
    mark.unlink()
    shutil.rmtree(place, ignore_errors=True)
    return fits


def _code(folder) -> str | None:
    file = folder / state.CODE
    return file.read_text() if file.is_file() else None


def train_together(own: Run, others: list[Run]) -> None:
    """Train a run and, side by side with it, those of its siblings `others` that nobody trains and nobody has trained.

    Raises:
        MaskLabError: as `training.loop.train` does for `own`; it was stopped.
    """
    folder = folder_of(own)
    if (own.state / state.CODE).is_file():
        state.begin(folder, _code(own.state))
    with contextlib.ExitStack() as locks:
        for held in (own.state, folder):
            locks.enter_context(state.locked(held))
        runs = [own]
        for run in others:
            with contextlib.suppress(MaskLabError):
                locks.enter_context(state.locked(run.state))
                runs.append(run)
        wanted = {run.replicate: run for run in runs if run is own or not (folder / f"r{run.replicate}.json").exists()}
        members, saved = _members(folder, wanted, own.replicate)
        if len(members) > 1 or saved is not None:
            Together([_lent(wanted[k], folder) for k in members], folder, saved).run_all()
    if not take(own):
        train(own)


def _members(folder, wanted, own) -> tuple[list[int], dict | None]:
    """Replicates to train side by side, and the facts of their state where there is one to go on from.

    A state decides by itself: whoever is not in it has left it, or has been asked for later.
    """
    saved = state.facts(folder / FILE, KIND)
    if saved is not None:
        known = [k for k in saved["replicates"] if k in wanted and saved["marks"][str(k)] == Record(wanted[k]).mark()]
        if known:
            return (known, saved) if own in known else ([], None)
        (folder / FILE).unlink()
    return sorted(wanted), None


def _lent(run, folder) -> Run:
    """A run whose files lie where its siblings' do until its own job takes them."""
    name = f"r{run.replicate}"
    return dataclasses.replace(run, output=folder / name, state=folder / "states" / name)


class Clock:
    """What a `Trainer` asks of a `Pace`, for one of several runs: time is shared out among them."""

    def __init__(self, seconds: float = 0.0):
        self.seconds, self.last = seconds, time.monotonic()

    def share(self, copies: int) -> None:
        """An update of so many has just been made."""
        now = time.monotonic()
        self.seconds, self.last = self.seconds + (now - self.last) / copies, now

    def tick(self, row) -> None:
        pass

    def show(self, row) -> bool:
        return False


class Together:
    """Several runs from their first step, or the one they resume at, to their last.

    saved: facts of their state, None to begin. A run that must not go on is dropped (`_drop`).
    """

    def __init__(self, runs: list[Run], folder: Path, saved: dict | None = None):
        self.file, self.saved = folder / FILE, saved
        for run in runs:
            if saved is None:
                for place in (run.output, run.state):
                    shutil.rmtree(place, ignore_errors=True)
            for place in (run.output, run.state):
                place.mkdir(parents=True, exist_ok=True)
        self.trainers = [Trainer(run, learner=Learner(run)) for run in runs]
        self.stack = Stack([trainer.learner for trainer in self.trainers])
        self.name, self.config = runs[0].name, runs[0].model
        self.replicates = [run.replicate for run in runs]
        self.interruption = Interruption(Ranks(), self.trainers[0].learner.device)
        self.rate, self.clock = Rate(), time.monotonic()

    def run_all(self) -> None:
        """Resume or begin, train to the last step, and leave what each run leaves, for its own job to take."""
        first = self._resume() if self.saved else self._begin()
        said = ", ".join(f"r{k}" for k in self.replicates)
        log.info("%s: %s train side by side, from step %d of %d", self.name, said, first, self.config.steps)
        progress = Progress(self.name, "steps", start=first, folder=folder_of(self.trainers[0].run))
        progress.begin(self.config.steps)
        with self.interruption:
            for trainer in self.trainers:
                trainer.learner.model.train()
                trainer.pace = Clock(trainer.record.seconds)
            if first == 0:
                self._each(lambda trainer, _: trainer._start(), self.trainers)
            for step in range(first, self.config.steps):
                rows = self.update(step)
                if not rows:
                    break
                self.rate.add(sum(row["tokens"] for row in rows), time.monotonic())
                loss = sum(row["loss"] for row in rows) / len(rows)
                progress(step + 1, self.config.steps, loss=loss, tokens_per_second=self.rate.value)
        self._finish()

    def _begin(self) -> int:
        for trainer in self.trainers:
            trainer.record.fingerprint = trainer.record.mark()
        return 0

    def _resume(self) -> int:
        facts, tensors = self.saved, load_file(self.file)
        rows = [facts["replicates"].index(k) for k in self.replicates]
        for name, tensor in self.stack.parameters.state().items():
            tensor.copy_(tensors[name][rows] if tensor.dim() else tensors[name])
        for trainer in self.trainers:
            said, record = facts["runs"][str(trainer.run.replicate)], trainer.record
            record.fingerprint = record.mark()
            record.metrics.load(facts["step"])
            if len(record.metrics) != said["rows"]:
                raise MaskLabError(f"{record.metrics.path}: rows are missing: remove {self.file.parent} to begin anew")
            trainer.guard.load(said["guard"])
            record.seconds, record.saved = said["seconds"], facts["step"]
            record.means = Means(*said["means"], record.means.sparse)
        return facts["step"]

    # --- one step --------------------------------------------------------------

    def update(self, step: int) -> list[dict]:
        """One update (0-based) of every run, as `Trainer.update`; the rows of those that go on."""
        rows = self.stack.gradients(step)
        self.interruption.agree()
        if len(well := self._each(Trainer.judge, rows)) < len(rows):
            rows = self.stack.gradients(step) if well else []
        due = self.interruption.everywhere or time.monotonic() - self.clock >= 60 * self.config.save_minutes
        if rows and due and all(map(lambda t, row: t.guard.calm(row["loss"]), self.trainers, rows)):
            self._save(step)
        if self.interruption.everywhere:
            self._stop(step)
        if not rows:
            return []
        for trainer, row in zip(self.trainers, rows, strict=True):
            trainer.guard.accept(row["loss"])
        self.stack.apply(rows)
        for trainer in self.trainers:
            trainer.pace.share(len(self.trainers))
        rows = self._each(Trainer.check_gradient, rows)
        return self._each(Trainer._report, rows)

    def _each(self, do, rows) -> list:
        """Have every run `do(trainer, row)`; the rows of those that can go on."""
        well = []
        for copy, (trainer, row) in enumerate(zip(self.trainers, rows, strict=True)):
            try:
                do(trainer, row)
                well.append(copy)
            except MaskLabError as error:
                log.warning("r%d leaves the others and is left to its own job: %s", trainer.run.replicate, error)
        if len(well) < len(rows):
            self._drop(well)
        return [rows[copy] for copy in well]

    def _drop(self, well) -> None:
        """Go on with these alone."""
        for copy, trainer in enumerate(self.trainers):
            if copy not in well:
                shutil.rmtree(trainer.run.output, ignore_errors=True)
        self.trainers = [self.trainers[copy] for copy in well]
        self.replicates = [self.replicates[copy] for copy in well]
        if well:
            self.stack.keep(well)

    # --- what is written -------------------------------------------------------

    def _save(self, step: int) -> None:
        """Keep the state of all runs after `step` updates."""
        runs = {}
        for trainer in self.trainers:
            record = trainer.record
            record.metrics.write()
            runs[str(trainer.run.replicate)] = {
                "rows": len(record.metrics), "seconds": record.seconds, "guard": trainer.guard.state(),
                "means": [record.means.sums, record.means.last],
            }  # fmt: skip
            record.saved = step
        marks = {str(trainer.run.replicate): trainer.record.fingerprint for trainer in self.trainers}
        facts = {"fingerprint": KIND, "step": step, "replicates": self.replicates, "marks": marks, "runs": runs}
        state.save(self.file, self.stack.parameters.state(), **facts)
        self.clock = time.monotonic()

    def _stop(self, step: int) -> None:
        saved = self.trainers[0].record.saved if self.trainers else None
        saved = "nothing was saved" if saved is None else f"the state of step {saved} is saved"
        number = self.interruption.number
        raise MaskLabError(f"{self.name}: stopped by signal {number} at step {step}; {saved}, run again to resume")

    def _finish(self) -> None:
        """Every run leaves what a finished run leaves; the state goes last."""
        for trainer in self.trainers:
            run = trainer.run
            others = [k for k in self.replicates if k != run.replicate]
            trainer.record.finish(trainer.facts())
            mark = {"fingerprint": trainer.record.fingerprint, "with": others, "run": stacks.run()}
            write_json(mark, run.output.with_name(f"{run.output.name}.json"))
        self.file.unlink(missing_ok=True)
        shutil.rmtree(self.file.parent / "states", ignore_errors=True)
