"""Replicates of one recipe that train side by side, in one process and in step: killed together, resumed together.

The job of one replicate trains those of its siblings that the same run needs and that can begin. All that they leave
lies below `<state of the recipe>/together/` until each replicate's own job takes what it finds there as its own
(`take`): `r<k>/` as `results/models/<recipe>/r<k>/`, `r<k>.json` with the fingerprint that says whose it is. The
state of all is one file, so that no kill can part them; who is later asked for without the others goes on from its part
of it (`training.apart`). A replicate whose loss explodes leaves the others; its own job
trains it alone, and says so. What a replicate leaves does not depend on who trained beside it, to the last bit
(`training.stack`), and names nobody but itself.
"""

import contextlib
import logging
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from masklab.errors import MaskLabError, Passing
from masklab.files import read_json, write_json
from masklab.jobs import saved, stacks, state, store
from masklab.jobs.progress import STATUS, Progress, Rate
from masklab.training.apart import FILE, folder_of, forget, leave, lent, mark_of, put_aside
from masklab.training.distributed import Ranks
from masklab.training.interruption import Interruption
from masklab.training.learner import Learner
from masklab.training.loop import Trainer, train
from masklab.training.metrics_file import Means
from masklab.training.pace import Clock
from masklab.training.record import ROWS, Record
from masklab.training.run import Run, write_run
from masklab.training.stack import Stack

log = logging.getLogger("masklab")


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
    fits = of_now and said["fingerprint"] == mark_of(run) and state.made_by(folder) == state.made_by(run.state)
    if fits:
        for old in run.output.glob("step-*"):
            shutil.rmtree(old)
        files = [path.relative_to(place) for path in sorted(place.rglob("*")) if path.is_file()]
        for file in sorted(files, key=lambda file: file.name == "manifest.json"):
            store.share(place / file, run.output / file)
        log.info("%s: was trained side by side with r%s", run.name, ", r".join(map(str, said["with"])))
        if run.state.is_dir():
            state.done(run.state)  # what it had begun by itself, before it was trained beside others
    mark.unlink()
    shutil.rmtree(place, ignore_errors=True)
    return fits


def train_together(own: Run, others: list[Run]) -> None:
    """Train a run and, side by side with it, those of its siblings `others` that nobody trains and nobody has trained.

    Raises:
        MaskLabError: as `training.loop.train` does for `own`; it was stopped.
    """
    folder = folder_of(own)
    state.begin_as(folder, own.state)
    with contextlib.ExitStack() as locks:
        for held in (own.state, folder):
            locks.enter_context(state.locked(held))
        runs = [own]
        size = own.vocab_size
        for run in others:
            with contextlib.suppress(MaskLabError):
                if run.vocab_size != size:  # each has a tokenizer of its own, of its own corpus
                    log.info("%s: r%d has a vocabulary of another size and trains by itself", own.name, run.replicate)
                    continue
                state.begin_as(run.state, own.state)
                locks.enter_context(state.locked(run.state))
                runs.append(run)
        wanted = {run.replicate: run for run in runs if run is own or not _left(folder, run.replicate)}
        if not set(stacks.replicates(folder / FILE)) & set(wanted) and put_aside(folder, wanted):
            forget(folder)
        members, begun = _members(folder, wanted, own.replicate)
        if begun is not None:
            put_aside(folder, wanted)
        if len(members) > 1 or begun is not None:
            for k in members:
                write_run(wanted[k], wanted[k].state / "run.json")
            Together([lent(wanted[k], folder) for k in members], folder, begun).run_all()
    if not take(own):
        (folder / STATUS).unlink(missing_ok=True)  # of those that it has left
        leave(own)
        train(own)


def _left(folder, k) -> bool:
    """Whether a replicate has left what it was trained beside: it is done, or its part of the state is put aside."""
    return (folder / f"r{k}.json").exists() or stacks.aside(folder, k).exists()


def _members(folder, wanted, own) -> tuple[list[int], saved.Saved | None]:
    """Replicates to train side by side, and their state where there is one to go on from.

    A state decides by itself: whoever is not in it has left it, or has been asked for later.
    """
    marks = {str(k): mark_of(run) for k, run in wanted.items()}

    def known(facts):
        """Those of a state that can go on from it."""
        same = [k for k in facts["replicates"] if marks.get(str(k)) == facts["marks"][str(k)]]
        return [k for k in same if Record(lent(wanted[k], folder)).unusable(facts["runs"][str(k)]) is None]

    def usable(facts):
        return None if known(facts) else "it is of no replicate that is to be trained"

    begun = saved.load(folder / FILE, {}, usable)
    if begun is None:
        forget(folder)
        return sorted(wanted), None
    members = known(begun.facts)
    return (members, begun) if own in members else ([], None)


def _prepared(runs) -> Iterator[Trainer]:
    """Trainers of those runs that can begin: what is wrong with the sequences that one has drawn stops no other."""
    for run in runs:
        try:
            yield Trainer(run, learner=Learner(run))
        except MaskLabError as error:
            log.warning("r%d is left to its own job: %s", run.replicate, error)


class Together:
    """Several runs from their first step, or the one they resume at, to their last.

    begun: their state, None to begin. A run that must not go on is dropped (`_drop`). saved: step of the state on disk,
    which is that of all: whoever leaves them has none to go on from.
    """

    def __init__(self, runs: list[Run], folder: Path, begun: saved.Saved | None = None):
        self.file, self.begun, self.saved = folder / FILE, begun, None
        for run in runs:
            if begun is None:
                for place in (run.output, run.state):
                    shutil.rmtree(place, ignore_errors=True)
            for place in (run.output, run.state):
                place.mkdir(parents=True, exist_ok=True)
        self.trainers = list(_prepared(runs))
        self.stack = Stack([trainer.learner for trainer in self.trainers]) if self.trainers else None
        self.name, self.config = runs[0].name, runs[0].model
        self.replicates = [trainer.run.replicate for trainer in self.trainers]
        self.marks = {str(run.replicate): mark_of(run) for run in runs}
        self.interruption = Interruption(Ranks(), torch.device("cpu"))
        self.rate, self.clock = Rate(), time.monotonic()

    def run_all(self) -> None:
        """Resume or begin, train to the last step, and leave what each run leaves, for its own job to take."""
        if not self.trainers:
            return
        first = self._resume() if self.begun else 0
        said = ", ".join(f"r{k}" for k in self.replicates)
        log.info("%s: %s train side by side, from step %d of %d", self.name, said, first, self.config.steps)
        progress = Progress(self.name, "steps", start=first, folder=self.file.parent)
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

    def _resume(self) -> int:
        facts, tensors = self.begun.facts, self.begun.tensors
        rows = [facts["replicates"].index(k) for k in self.replicates]
        self.stack.parameters.load(tensors, rows)
        for trainer in self.trainers:
            name, record = str(trainer.run.replicate), trainer.record
            said = facts["runs"][name]
            record.metrics.fill({column: tensors[f"r{name}.{ROWS}{column}"] for column in said["columns"]})
            trainer.guard.load(said["guard"])
            record.seconds, record.kept = said["seconds"], said["checkpoints"]
            record.means = Means(*said["means"], record.means.sparse)
            record.go_on(said["ways"])
        self.begun, self.saved = None, facts["step"]  # memory for what comes next
        return self.saved

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
        runs, tensors = {}, dict(self.stack.parameters.state())
        for trainer in self.trainers:
            record, name = trainer.record, str(trainer.run.replicate)
            columns = record.metrics.columns()
            tensors |= {f"r{name}.{ROWS}{column}": values for column, values in columns.items()}
            runs[name] = {
                "columns": list(columns), "seconds": record.seconds, "guard": trainer.guard.state(),
                "means": [record.means.sums, record.means.last], "checkpoints": record.kept, "ways": record.ways,
            }  # fmt: skip
        facts = {"step": step, "replicates": self.replicates, "marks": self.marks, "runs": runs}
        if saved.attempt(self.file, tensors, {}, **facts):
            self.saved = step
        self.clock = time.monotonic()

    def _stop(self, step: int) -> None:
        kept = "nothing was saved" if self.saved is None else f"the state of step {self.saved} is saved"
        number = self.interruption.number
        raise Passing(f"{self.name}: stopped by signal {number} at step {step}; {kept}, run again to resume")

    def _finish(self) -> None:
        """Every run leaves what a finished run leaves; the state goes last."""
        for trainer in self.trainers:
            run = trainer.run
            others = [k for k in self.replicates if k != run.replicate]
            trainer.record.finish(trainer.facts())
            mark = {"fingerprint": self.marks[str(run.replicate)], "with": others, "run": stacks.run()}
            write_json(mark, run.output.with_name(f"{run.output.name}.json"))
        forget(self.file.parent)
        shutil.rmtree(self.file.parent / "states", ignore_errors=True)
