"""What a run leaves on disk: its state while it goes, its checkpoints, metrics and manifest."""

import contextlib
import logging
import shutil
import time

from masklab.config import checkpoints, kinds
from masklab.config.sources import existing
from masklab.files import fingerprint, read_json, settle, sha256, write_json
from masklab.jobs import saved, state
from masklab.jobs.progress import duration
from masklab.jobs.store import CHANGED
from masklab.models.checkpoint import save_checkpoint
from masklab.training.metrics_file import Means, MetricsFile
from masklab.training.run import Run, write_run

log = logging.getLogger("masklab")
WAY = ("processes", "nodes", "save_minutes", "log_every", "validate_every")  # keys of a model that may change under way
ROUNDING = ("processes", "nodes", "device", "products")  # what changes in which order sums are taken: the last bits
ROWS = "metrics."  # names of the tensors of a state that are columns of metrics


class Record:
    """The files of one run.

    In the run's state folder, removed on success: the state, which has the rows of metrics so far, these as a file for
    whoever looks, `status.json` (for `masklab status`), `run.json` (for `python -m masklab.training`), and
    `stopped.json` of a run that failed.

    means: updates since the last row of metrics; seconds: time spent training; saved: step of the state on disk; kept:
    checkpoint's step -> fingerprint of its folder; ways: how the run went, one entry if nothing changed under way.
    sparse: names of terms that not every update has a value of. products: who makes fp32 products here, part of
    the way in which the run goes; None for a record that nothing is trained by.
    """

    def __init__(self, run: Run, sparse=(), products: str | None = None):
        self.run, self.resolved = run, run.resolved()
        self.file = run.state / "state.safetensors"
        self.metrics = MetricsFile(run.state / "metrics.parquet")
        self.means, self.seconds, self.saved = Means(sparse=sparse), 0.0, None
        self.clock = time.monotonic()  # when the state was last saved, or the run began
        self.kept, self.made_of = {}, {}
        self.ways = [{key: getattr(run.model, key) for key in WAY} | {"device": run.device, "products": products}]

    def what(self) -> dict:
        """What the weights are made of, JSON-able: the configuration and what the run reads. The code: `state.begin`.

        `micro_batch` is the number of sequences that follows from it and `processes`: dropout is drawn for each one.
        """
        run, model = self.run, {key: value for key, value in self.resolved["model"].items() if key not in WAY}
        inputs = {"tokens": fingerprint(read_json(run.tokens / "meta.json"))}
        files = {"tokenizer": (run.tokenizer, "tokenizer.json"), "init": (run.init, "model.safetensors")}
        files |= {"teacher": (run.teacher, "model.safetensors")}
        parts = ("decoder", "latent")  # of the model that phase 2 begins with
        files |= {f"init.{part}": (run.init, f"{part}.safetensors") for part in parts}
        files |= {"dictionary": (run.dictionary, "dictionary.safetensors"), "codes": (run.codes, "codes.json")}
        files |= {"embeddings": (run.embeddings, "vectors.npy")}
        files |= {f"tasks.{name}": (folder, "train.parquet") for name, folder in run.tasks.items()}
        for name, (folder, file) in files.items():
            if folder is not None and (folder / file).is_file():
                inputs[name] = sha256(folder / file)
        for name, term in run.objective.terms.items():  # one of a user's kind may read files of theirs
            if read := existing(term):
                inputs[f"objective.{name}"] = {file: sha256(file) for file in read}
        return {"config": self.resolved | {"model": model | {"micro_batch": run.model.micro}}, "inputs": inputs}

    def restore(self, flat, guard) -> int:
        """Load the state into `flat` and `guard` and return its step; if none fits, clear all files and return 0."""
        run, self.made_of, self.clock = self.run, self.what(), time.monotonic()
        for folder in (run.state, run.output):
            folder.mkdir(parents=True, exist_ok=True)
        found = saved.load(self.file, self.made_of, self.unusable)
        if found is None:
            state.clear(run.state)
            write_run(run, run.state / "run.json")
            for folder in run.output.glob("step-*"):
                shutil.rmtree(folder)
            log.info("%s: starting, %s parameters", run.name, f"{flat.values.numel():,}")
            return 0
        facts, tensors = found.facts, found.tensors
        self.metrics.fill({name: tensors[ROWS + name] for name in facts["columns"]})
        flat.load(tensors)
        guard.load(facts["guard"])
        self.seconds, self.saved, self.kept = facts["seconds"], facts["step"], facts["checkpoints"]
        self.means = Means(*facts["means"], self.means.sparse)
        log.info("%s: resuming at step %d of %d", run.name, facts["step"], run.model.steps)
        self.go_on(facts["ways"])
        return facts["step"]

    def unusable(self, facts) -> str | None:
        """Why a run cannot go on from a state with these facts: a checkpoint from before is no longer there, whole."""
        for step, mark in facts["checkpoints"].items():
            folder = self.run.output / f"step-{step}"
            if not folder.is_dir() or _contents(folder) != mark:
                return f"{folder} is not what the run had written"
        return None

    def go_on(self, ways):
        """Say what of the way in which the run goes has changed; the manifest will say it too."""
        if changed := saved.difference(ways[-1], self.ways[-1]):
            last_bits = any(ways[-1].get(key) != self.ways[-1][key] for key in ROUNDING)
            effect = "weights may differ in their last bits from" if last_bits else "weights are"
            log.warning("%s: %s; %s those of a run without the change", self.run.name, changed, effect)
        self.ways = [*ways, *self.ways] if changed else ways

    @property
    def due(self) -> bool:
        """Whether the state is to be saved again: `save_minutes` have passed."""
        return time.monotonic() - self.clock >= 60 * self.run.model.save_minutes

    def save(self, step: int, flat, guard) -> None:
        """Keep the state after `step` updates. That it cannot be written (a full disk) is a warning."""
        facts = {"step": step, "seconds": self.seconds, "means": [self.means.sums, self.means.last],
                 "guard": guard.state(), "checkpoints": self.kept, "ways": self.ways}  # fmt: skip
        columns = self.metrics.columns()
        facts["columns"], rows = list(columns), {ROWS + name: column for name, column in columns.items()}
        if saved.attempt(self.file, flat.state() | rows, self.made_of, **facts):
            self.saved = step
            with contextlib.suppress(OSError):
                self.metrics.write()
        self.clock = time.monotonic()

    def checkpoint(self, model, step: int) -> None:
        """Write `step-<step>/`."""
        metadata = {"model": self.run.name, "step": step, "config": self.resolved}
        tokenizer, folder = self.run.tokenizer, self.run.output / f"step-{step}"
        save_checkpoint(model, folder, metadata=metadata, tokenizer_folder=tokenizer,
                        keep_decoder=self.run.model.keep_decoder)  # fmt: skip
        self.kept[str(step)] = _contents(folder)

    def failed(self, step: int, fault: str, rows: list[int], begun: bool = True) -> str:
        """Write down why and on which batch a run stopped at update `step` (1-based); returns the line for the user.

        begun: whether updates had been made; without any no learning rate is at fault.
        """
        report = self.run.state / "stopped.json"
        write_json({"step": step, "fault": fault, "rows": rows, "last_good_step": self.saved}, report, lasting=False)
        self.metrics.write()
        again = "the same command begins anew"
        if self.saved is not None:
            again = f"the same command goes on from the last good state, of step {self.saved}, kept in {self.file}"
        batch = f" (batch of step {step - 1}: rows {str(rows[:4])[1:-1]}, ..., all in {report})" if rows else ""
        name, terms = self.run.name, ", ".join(map(kinds.term_with_file, self.run.objective.terms))
        advice = f"lower models.{name}.optimiser.lr, or raise warmup or explosion beside it"
        if not begun:
            advice = f"no update was made before it, so look at what it begins with and at its objective ({terms})"
        return (
            f"{name}: {fault} at step {step}{batch}; the same settings lead there again: {advice}; if the machine was"
            f" at fault, {again}"
        )

    def finish(self, facts: dict) -> None:
        """Write metrics and the manifest with its `facts`, which says that the run is complete; forget its state."""
        run = self.run
        self.metrics.write(run.output / "metrics.parquet")
        folders = {str(step): run.output / f"step-{step}" for step in checkpoints(run.model)}
        hashes = {step: sha256(folder / "model.safetensors") for step, folder in folders.items()}
        manifest = {"model": run.name, "steps": hashes, "facts": facts, "config": self.resolved}
        if len(self.ways) > 1:
            manifest[CHANGED] = self.ways
        settle(run.output / "metrics.parquet")
        write_json(manifest, run.output / "manifest.json")
        state.done(run.state)
        log.info("%s: done after %s", run.name, duration(self.seconds))


def _contents(folder) -> str:
    """Fingerprint of the files of a checkpoint but for hidden ones: macOS leaves some where one looks into a folder."""
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    return fingerprint({path.name: sha256(path) for path in files})
