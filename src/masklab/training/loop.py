"""The one pre-training loop: every objective, every study.

A step's batch, masks and dropout are functions of (seed, model name, step), so a
run killed at any moment and started again ends with the same weights, bit for
bit on the CPU.
"""

import logging
import math
import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file

from masklab.config import checkpoints
from masklab.config.schema import Dictionary, Encoder, Model, Objective
from masklab.errors import MaskLabError
from masklab.files import fingerprint, read_json, sha256, write_json, write_parquet
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.models.starting import place_embeddings, shuffle_weights
from masklab.objectives import Batch, losses
from masklab.objectives.teacher import Teacher
from masklab.progress import duration
from masklab.rng import generator, seed_at, torch_generator
from masklab.tokens import TokenStore
from masklab.training import optim, state
from masklab.training.batches import BatchPlan
from masklab.training.masking import mask_batch, maskable

log = logging.getLogger("masklab")
VALID_ROWS = 512


@dataclass(frozen=True)
class Run:
    """One pre-training run: its resolved configuration and where its files lie."""

    name: str
    seed: int
    model: Model
    encoder: Encoder
    objective: Objective
    tokens: Path  # folder of token arrays
    tokenizer: Path  # folder of the tokenizer, copied into every checkpoint
    output: Path  # results/models/<model>
    state: Path  # where the resumable state lies while it runs
    init: Path | None = None  # checkpoint to start from, and the teacher
    dictionary: Path | None = None  # folder of the dictionary
    dictionary_config: Dictionary | None = None
    codes: Path | None = None  # folder of the stored codes
    embeddings: Path | None = None  # folder of initial word embeddings
    device: str = "cpu"


def train(run: Run) -> None:
    """Train to the last step, resuming from `run.state` if it belongs to this very run.

    Leaves `step-<n>/` folders, `metrics.parquet` and `manifest.json` in `run.output`.
    """
    with state.locked(run.state):
        Trainer(run).run_all()


class Trainer:
    """One run in memory: model, optimiser, batches, teacher. `loss_of` is the step without the update."""

    def __init__(self, run: Run):
        self.run, self.config = run, run.model
        self.device = torch.device(run.device)
        self.train_store = TokenStore(run.tokens, "train")
        self.valid_store = TokenStore(run.tokens, "valid")
        self.vocab_size = read_json(run.tokens / "meta.json")["vocab_size"]
        self.address = (run.name, self.config.seed)
        atoms = run.dictionary_config.atoms if run.objective.mlsm else 0
        self.model = self._initial_model(atoms).to(self.device)
        self.forward = torch.compile(self.model) if self.config.compile else self.model
        self.teacher = self._teacher()
        self.flat = optim.FlatParameters(self.model.parameters())
        lengths = self.train_store.lengths
        self.plan = BatchPlan(
            lengths, self.config.batch_size, run.seed, *self.address, eligible=maskable(lengths, self.config.masking)
        )
        self.metrics: list[dict] = []
        self.pending: list[dict] = []  # updates since the last row of metrics
        self.seconds = 0.0

    def _initial_model(self, atoms):
        gen = torch_generator(self.run.seed, *self.address, "init")
        model = MaskedLM(self.run.encoder, self.vocab_size, latent=atoms, generator=gen)
        if self.run.init is not None:
            weights = load_checkpoint(self.run.init).state_dict()
            wanted = model.state_dict()
            model.load_state_dict({key: value for key, value in weights.items() if key in wanted}, strict=False)
        if self.config.shuffle:
            shuffle_weights(model, self.run.seed, *self.address)
        if self.run.embeddings is not None:
            place_embeddings(model, np.load(self.run.embeddings / "vectors.npy"))
        return model

    def _teacher(self):
        run = self.run
        needs_codes = run.objective.mlsm > 0
        stored = needs_codes and self.config.codes == "stored"
        store = dictionary = model = None
        if stored:
            from masklab.sparse.codes import CodeStore

            store = CodeStore(run.codes, "train")
        elif needs_codes:
            dictionary = load_file(run.dictionary / "dictionary.safetensors")["D"].to(self.device)
        if run.objective.kd or (needs_codes and not stored):
            model = load_checkpoint(run.init).to(self.device)
        made = run.dictionary_config
        coding = {} if made is None else {"layer": made.layer, "penalty": made.penalty, "solver": made.solver}
        return Teacher(model, run.objective.temperature, dictionary, store=store, **coding)

    # --- batches ---------------------------------------------------------------

    def batches(self, step: int) -> list[Batch]:
        """Micro-batches of `step`; masks are drawn for the whole batch."""
        rows = self.plan.batch(step)
        return self._mask(self.train_store, rows, generator(self.run.seed, *self.address, "mask", step))

    def _mask(self, store, rows, rng):
        ids, lengths = store.batch(rows)
        corrupted, row, column = mask_batch(ids.numpy(), lengths.numpy(), self.config.masking, self.vocab_size, rng)
        corrupted = torch.from_numpy(corrupted)
        positions = store.flat(rows, row, column)
        size = self.config.micro_batch or len(rows)
        micro = []
        for start in range(0, len(rows), size):
            stop = min(start + size, len(rows))
            inside = (row >= start) & (row < stop)
            width = int(lengths[start:stop].max())
            at = torch.from_numpy((row[inside] - start) * width + column[inside])
            original = ids[start:stop, :width]
            micro.append(
                Batch(
                    corrupted[start:stop, :width], original, lengths[start:stop], at,
                    original.reshape(-1)[at], positions[inside],
                ).to(self.device)
            )  # fmt: skip
        return micro

    def loss_of(self, batch: Batch):
        """Summed weighted loss and summed terms of one micro-batch (teacher signals included)."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bf16"):
            output = self.forward(batch.ids, batch.lengths, at=batch.at)
        return losses(self.run.objective, batch, output, self.teacher)

    # --- one update ------------------------------------------------------------

    def update(self, step: int) -> dict:
        """One optimiser step (0-based); mean loss and terms per masked token, gradient norm, lr, tokens."""
        config = self.config
        torch.manual_seed(seed_at(self.run.seed, *self.address, "dropout", step))
        micro = self.batches(step)
        masked = sum(len(batch.at) for batch in micro)
        row = {"step": step + 1, "loss": 0.0, "lr": optim.rate_at(step, config.steps, config.optimiser)}
        for batch in micro:
            total, parts = self.loss_of(batch)
            (total / masked).backward()
            row["loss"] += float(total.detach()) / masked
            for name, part in parts.items():
                row[name] = row.get(name, 0.0) + float(part) / masked
        row["tokens"] = sum(int(batch.lengths.sum()) for batch in micro)
        row["masked"] = masked
        if not math.isfinite(row["loss"]):
            raise MaskLabError(
                f"{self.run.name}: loss is {row['loss']} at step {step + 1} (batch of step {step}, rows"
                f" {self.plan.batch(step)[:4].tolist()}...); the last good state is kept: lower"
                " models.<model>.optimiser.lr or raise warmup, and run again"
            )
        how = config.optimiser
        norm = self.flat.step(row["lr"], how.weight_decay, how.clip, kind=how.kind, betas=how.betas, eps=how.eps)
        row["grad_norm"] = float(norm)
        return row

    @torch.no_grad()
    def validate(self) -> float:
        """Mean MLM loss in nats per masked token on up to `VALID_ROWS` fixed validation sequences."""
        lengths = self.valid_store.lengths
        rows = np.flatnonzero(maskable(lengths, self.config.masking))
        rows = rows[
            np.linspace(0, len(rows) - 1, min(len(rows), VALID_ROWS)).astype(int)
        ]  # all over: files come in order
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        self.model.eval()
        total = count = 0
        for start in range(0, len(rows), 64):
            rng = generator(self.run.seed, "valid", start)
            for batch in self._mask(self.valid_store, rows[start : start + 64], rng):
                logits = self.model(batch.ids, batch.lengths, at=batch.at).logits
                total += float(torch.nn.functional.cross_entropy(logits, batch.targets, reduction="sum"))
                count += len(batch.at)
        self.model.train()
        return total / max(count, 1)

    # --- the whole run ---------------------------------------------------------

    def run_all(self) -> None:
        self.resolved = {
            "seed": self.run.seed,
            "model": self.config.model_dump(mode="json"),
            "encoder": self.run.encoder.model_dump(mode="json"),
            "objective": self.run.objective.model_dump(mode="json"),
            "dictionary": self.run.dictionary_config and self.run.dictionary_config.model_dump(mode="json"),
        }
        self.mark = fingerprint([self.run.name, self.resolved, self._inputs()])
        self.state_file = self.run.state / "state.safetensors"
        step = self._resume()
        kept = checkpoints(self.config)
        self.stop_signal = None
        previous = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            self._loop(step, kept)
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
        self._finish(kept)

    def _inputs(self):
        """Checksums of what the run reads: a resumed state must not outlive its inputs."""
        found = {"tokens": fingerprint(read_json(self.run.tokens / "meta.json"))}
        if self.run.init is not None:
            found["init"] = sha256(self.run.init / "model.safetensors")
        if self.run.dictionary is not None:
            found["dictionary"] = sha256(self.run.dictionary / "dictionary.safetensors")
        if self.run.embeddings is not None:
            found["embeddings"] = sha256(self.run.embeddings / "vectors.npy")
        return found

    def _resume(self) -> int:
        facts = state.facts(self.state_file, self.mark)
        self.run.output.mkdir(parents=True, exist_ok=True)
        if facts is None:
            state.clear(self.run.state)
            for folder in self.run.output.glob("step-*"):
                shutil.rmtree(folder)
            log.info(
                "%s: starting, %s parameters", self.run.name, f"{sum(p.numel() for p in self.model.parameters()):,}"
            )
            return 0
        self.flat.load(load_file(self.state_file))
        self.seconds, self.metrics, self.pending = facts["seconds"], facts["metrics"], facts["pending"]
        log.info("%s: resuming at step %d of %d", self.run.name, facts["step"], self.config.steps)
        return facts["step"]

    def _loop(self, first, kept):
        config = self.config
        self.model.train()
        began = reported = saved = time.monotonic()
        earlier, window = self.seconds, {"tokens": 0, "since": began}
        if first == 0 and 0 in kept:  # a starting point: nothing is trained
            self.metrics.append({"step": 0, "seconds": self.seconds, "valid_mlm": self.validate()})
            self._checkpoint(0)
        for step in range(first, config.steps):
            row = self.update(step)
            now = time.monotonic()
            self.seconds = earlier + now - began
            window["tokens"] += row["tokens"]
            self.pending.append(row)
            done = step + 1
            keep = done in kept
            validate = keep or (config.validate_every and done % config.validate_every == 0)
            if validate or done % config.log_every == 0 or done == 1:
                valid = self.validate() if validate else math.nan
                self.metrics.append(_mean(self.pending) | {"seconds": self.seconds, "valid_mlm": valid})
                self.pending = []
            if keep:
                self._checkpoint(done)
            if now - reported >= 10 or done == config.steps:
                rate = window["tokens"] / max(now - window["since"], 1e-9)
                eta = (config.steps - done) * (now - began) / (done - first)
                self._report(done, row, rate, eta)
                reported, window = now, {"tokens": 0, "since": now}
            if self.stop_signal or now - saved >= 60 * config.save_minutes:
                self._save(done)
                saved = time.monotonic()
            if self.stop_signal:
                raise MaskLabError(
                    f"{self.run.name}: stopped by signal {self.stop_signal} at step {done}; the state is saved,"
                    " run the same command again to resume"
                )

    def _report(self, done, row, rate, eta):
        log.info(
            "%s step %d/%d loss %.4f %.0f tokens/s ETA %s",
            self.run.name,
            done,
            self.config.steps,
            row["loss"],
            rate,
            duration(eta),
        )
        write_parquet(pd.DataFrame(self.metrics), self.run.state / "metrics.parquet")
        status = {"name": self.run.name, "step": done, "steps": self.config.steps, "loss": row["loss"],
                  "tokens_per_second": rate, "eta_seconds": eta, "pid": os.getpid(), "time": time.time()}  # fmt: skip
        write_json(status, self.run.state / "status.json")

    def _on_signal(self, number, frame):
        self.stop_signal = number

    def _save(self, done):
        facts = {"fingerprint": self.mark, "step": done, "seconds": self.seconds, "metrics": self.metrics,
                 "pending": self.pending}  # fmt: skip
        state.save(self.state_file, self.flat.state(), **facts)

    def _checkpoint(self, done):
        metadata = {"model": self.run.name, "step": done, "config": self.resolved}
        save_checkpoint(self.model, self.run.output / f"step-{done}", tokenizer_folder=self.run.tokenizer,
                        metadata=metadata)  # fmt: skip

    def _finish(self, kept):
        write_parquet(pd.DataFrame(self.metrics), self.run.output / "metrics.parquet")
        hashes = {str(step): sha256(self.run.output / f"step-{step}" / "model.safetensors") for step in kept}
        manifest = {"model": self.run.name, "steps": hashes, "config": self.resolved}
        write_json(manifest, self.run.output / "manifest.json")
        state.clear(self.run.state)
        log.info("%s: done after %s", self.run.name, duration(self.seconds))


def _mean(updates: list[dict]) -> dict:
    """One row of metrics for several updates: losses per masked token, tokens summed, the rest as at the last."""
    last, masked = updates[-1], sum(row["masked"] for row in updates)
    losses = {
        key: sum(row[key] * row["masked"] for row in updates) / masked
        for key in last
        if key not in ("step", "lr", "tokens", "masked", "grad_norm")
    }
    return last | losses | {"tokens": sum(row["tokens"] for row in updates), "masked": masked}
