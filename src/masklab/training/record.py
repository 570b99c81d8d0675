"""What a run leaves on disk: its state while it goes, its checkpoints, metrics and manifest."""

import logging
import shutil
import time

from safetensors.torch import load_file

from masklab.config import checkpoints
from masklab.errors import MaskLabError
from masklab.files import fingerprint, read_json, sha256, write_json
from masklab.jobs import state
from masklab.jobs.progress import duration
from masklab.models.checkpoint import save_checkpoint
from masklab.training.metrics_file import Means, MetricsFile
from masklab.training.run import Run, write_run

log = logging.getLogger("masklab")


class Record:
    """The files of one run.

    In the run's state folder, removed on success: the state, the rows of metrics so far, `status.json` (for `masklab
    status`), `run.json` (for `python -m masklab.training`), and `stopped.json` of a run that failed.

    means: updates since the last row of metrics; seconds: time spent training; saved: step of the state on disk.
    sparse: names of terms that not every update has a value of.
    """

    def __init__(self, run: Run, sparse=()):
        self.run, self.resolved = run, run.resolved()
        self.file = run.state / "state.safetensors"
        self.metrics = MetricsFile(run.state / "metrics.parquet")
        self.means, self.seconds, self.saved = Means(sparse=sparse), 0.0, None
        self.clock = time.monotonic()  # when the state was last saved, or the run began

    def mark(self) -> str:
        """Fingerprint of the configuration and of what the run reads: a state must not outlive either."""
        inputs = {"tokens": fingerprint(read_json(self.run.tokens / "meta.json"))}
        if self.run.init is not None:
            inputs["init"] = sha256(self.run.init / "model.safetensors")
        if self.run.dictionary is not None:
            inputs["dictionary"] = sha256(self.run.dictionary / "dictionary.safetensors")
        if self.run.embeddings is not None:
            inputs["embeddings"] = sha256(self.run.embeddings / "vectors.npy")
        inputs["tasks"] = {name: sha256(folder / "train.parquet") for name, folder in self.run.tasks.items()}
        return fingerprint([self.resolved, inputs])

    def restore(self, flat, guard) -> int:
        """Load the state into `flat` and `guard` and return its step; if none fits, clear all files and return 0."""
        run, self.fingerprint, self.clock = self.run, self.mark(), time.monotonic()
        facts = state.facts(self.file, self.fingerprint)
        for folder in (run.state, run.output):
            folder.mkdir(parents=True, exist_ok=True)
        if facts is None:
            state.clear(run.state)
            write_run(run, run.state / "run.json")
            for folder in run.output.glob("step-*"):
                shutil.rmtree(folder)
            log.info("%s: starting, %s parameters", run.name, f"{flat.values.numel():,}")
            return 0
        self.metrics.load(facts["step"])
        if len(self.metrics) != facts["rows"]:
            raise MaskLabError(
                f"{self.metrics.path}: {len(self.metrics)} rows up to step {facts['step']}, expected {facts['rows']}:"
                f" remove {run.state} to begin anew"
            )
        flat.load(load_file(self.file))
        guard.load(facts["guard"])
        self.seconds, self.saved, self.means = (
            facts["seconds"],
            facts["step"],
            Means(*facts["means"], self.means.sparse),
        )
        log.info("%s: resuming at step %d of %d", run.name, facts["step"], run.model.steps)
        return facts["step"]

    @property
    def due(self) -> bool:
        """Whether the state is to be saved again: `save_minutes` have passed."""
        return time.monotonic() - self.clock >= 60 * self.run.model.save_minutes

    def save(self, step: int, flat, guard) -> None:
        """Keep the state after `step` updates. Metrics go first: a resumed run drops rows beyond its state."""
        self.metrics.write()
        facts = {"fingerprint": self.fingerprint, "step": step, "seconds": self.seconds, "rows": len(self.metrics),
                 "means": [self.means.sums, self.means.last], "guard": guard.state()}  # fmt: skip
        state.save(self.file, flat.state(), **facts)
        self.saved, self.clock = step, time.monotonic()

    def checkpoint(self, model, step: int) -> None:
        """Write `step-<step>/`."""
        metadata = {"model": self.run.name, "step": step, "config": self.resolved}
        kept = {"tokenizer_folder": self.run.tokenizer, "keep_decoder": self.run.model.keep_decoder}
        save_checkpoint(model, self.run.output / f"step-{step}", metadata=metadata, **kept)

    def failed(self, step: int, fault: str, rows: list[int]) -> str:
        """Write down why and on which batch a run stopped at update `step` (1-based); returns the line for the user."""
        report = self.run.state / "stopped.json"
        write_json({"step": step, "fault": fault, "rows": rows, "last_good_step": self.saved}, report)
        self.metrics.write()
        good = "that before the first update" if self.saved is None else f"of step {self.saved}, kept in {self.file}"
        batch = f" (batch of step {step - 1}: rows {str(rows[:4])[1:-1]}, ..., all in {report})" if rows else ""
        return (
            f"{self.run.name}: {fault} at step {step}{batch}; the last good state is {good}; run the same command"
            " again to resume from it, or lower models.<model>.optimiser.lr, raise warmup or set optimiser.explosion,"
            " and run again to begin anew"
        )

    def finish(self, facts: dict) -> None:
        """Write metrics and the manifest with its `facts`, which says that the run is complete; forget its state."""
        run = self.run
        self.metrics.write(run.output / "metrics.parquet")
        folders = {str(step): run.output / f"step-{step}" for step in checkpoints(run.model)}
        hashes = {step: sha256(folder / "model.safetensors") for step, folder in folders.items()}
        manifest = {"model": run.name, "steps": hashes, "facts": facts, "config": self.resolved}
        write_json(manifest, run.output / "manifest.json")
        state.done(run.state)
        log.info("%s: done after %s", run.name, duration(self.seconds))
