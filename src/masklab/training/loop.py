"""The one pre-training loop: every objective, every study.

A step's batch and masks are functions of (seed, phase, step), its dropout of (seed, phase, step, micro-batch), so a
run killed at any moment and started again ends with the same weights, bit for bit on the CPU. No name of a recipe is
part of them: two recipes of one phase that differ in their objective alone see the same batches and masks. In one
process or in several (`distributed`), the same micro-batches give the same losses and gradients, dropout included, up
to the rounding of their sum.
"""

import contextlib
import functools
import logging
import math
import os
import signal
import time

import numpy as np
import torch
from safetensors.torch import load_file

from masklab.batches import BatchPlan
from masklab.config import checkpoints
from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.jobs import state
from masklab.jobs.progress import Progress, Rate
from masklab.models.checkpoint import load_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.models.starting import place_embeddings, shuffle_weights
from masklab.objectives import Setup
from masklab.objectives.batch import Batch
from masklab.objectives.terms import Terms
from masklab.optim import flat as optim
from masklab.rng import generator, seed_at, torch_generator
from masklab.tokens import TokenStore
from masklab.training.compiled import Compiled
from masklab.training.distributed import Ranks, joined
from masklab.training.guard import Guard
from masklab.training.manifest import facts, unigram_loss
from masklab.training.record import Record
from masklab.training.run import Run
from masklab.training.step import Step, masked_step, valid_batches

log = logging.getLogger("masklab")


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
    """One run in memory: model, optimiser, batches, teacher. `loss_of` is the step without the update.

    ranks: this process among those of the run; the default is a run in one process.
    """

    def __init__(self, run: Run, ranks: Ranks | None = None):
        self.run, self.config, self.ranks = run, run.model, ranks or Ranks()
        several = self.ranks.size > 1 and run.device == "cuda"
        self.device = torch.device(f"cuda:{self.ranks.local}" if several else run.device)
        self.train_store = TokenStore(run.tokens, "train")
        self.vocab_size = read_json(run.tokens / "meta.json")["vocab_size"]
        files = {"tokens": run.tokens, "tokenizer": run.tokenizer, "tasks": run.tasks}
        self.terms = Terms(run.objective, Setup(run.encoder, self.vocab_size, **files, device=self.device))
        atoms = run.dictionary_config.atoms if run.objective.needs("codes") else 0
        self.model = self._initial_model(atoms).to(self.device)
        self.trained = Compiled(self.model) if self.config.compile else self.model
        self.teacher = self._teacher()
        self.flat = optim.FlatParameters(self.model.parameters(), direct=True)
        self.plan = self._plan() if self.config.steps else None
        self.guard = Guard(self.config.optimiser.explosion, self.terms.uniform(self.vocab_size, atoms))
        self.record = Record(run, sparse=[term.name for term in self.terms.once])
        self.stop_signal, self.stopping = 0, False  # of this process; of all

    def _initial_model(self, atoms):
        gen = torch_generator(*self.run.address, "init")
        model = MaskedLM(self.run.encoder, self.vocab_size, latent=atoms, generator=gen)
        if self.run.init is not None:
            weights = load_checkpoint(self.run.init).state_dict()
            wanted = model.state_dict()
            model.load_state_dict({key: value for key, value in weights.items() if key in wanted}, strict=False)
        if self.config.shuffle:
            shuffle_weights(model, *self.run.address)
        if self.run.embeddings is not None:
            place_embeddings(model, np.load(self.run.embeddings / "vectors.npy"))
        return model

    def _plan(self):
        lengths = self.train_store.lengths
        eligible = self.terms.reader.maskable(lengths, self.config.masking)
        size, whose = self.config.batch_size, {"eligible": eligible, "name": self.run.name}
        return BatchPlan(lengths, size, *self.run.address, **whose)

    def _teacher(self):
        run, needs_codes = self.run, self.run.objective.needs("codes")
        if not needs_codes and not run.objective.needs("teacher"):
            return None
        from masklab.objectives.teacher import Teacher

        stored = needs_codes and self.config.codes == "stored"
        store = dictionary = model = None
        if stored:
            from masklab.sparse.codes import CodeStore

            store = CodeStore(run.codes, "train")
        elif needs_codes:
            dictionary = load_file(run.dictionary / "dictionary.safetensors")["D"].to(self.device)
        if run.objective.needs("teacher") or (needs_codes and not stored):
            model = load_checkpoint(run.init).to(self.device)
        made = run.dictionary_config
        coding = {} if made is None else {"layer": made.layer, "penalty": made.penalty, "solver": made.solver}
        return Teacher(model, dictionary, store=store, **coding)

    # --- batches ---------------------------------------------------------------

    def step(self, step: int) -> Step:
        """The micro-batches of `step`, on the CPU: the same in every process."""
        rng = generator(*self.run.address, "mask", step)
        rows = self.plan.batch(step)
        how = self.config.masking, self.vocab_size, self.config.micro, self.terms.reader
        return masked_step(self.train_store, rows, rng, *how)

    def batches(self, step: int) -> list[Batch]:
        """Those micro-batches of `step` that this process works on, on its device."""
        return [batch.to(self.device) for batch in self.ranks.share(self.step(step).micro)]

    def loss_of(self, batch: Batch):
        """Summed weighted loss and summed terms of one micro-batch (teacher signals included)."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bf16"):
            output = self.terms.reader.forward(self.trained, batch)
        return self.terms.losses(batch, output, self.teacher)

    # --- one update ------------------------------------------------------------

    def gradients(self, step: int) -> dict:
        """Forward and backward of `step` (0-based); `flat.gradient` is then that of the mean loss.

        The mean is over all masked tokens of the batch, in all micro-batches of all processes. Returns mean
        loss and terms per masked token, lr, tokens; sets `stopping` in all processes if one got a signal.
        """
        config, whole, names = self.config, self.step(step), self.terms.names
        sums = torch.zeros(1 + len(names), dtype=torch.float64, device=self.device)
        for number, batch in self.ranks.share(list(enumerate(whole.micro))):
            torch.manual_seed(seed_at(*self.run.address, "dropout", step, number))
            total, parts = self.loss_of(batch.to(self.device))
            (total / whole.masked).backward()
            sums += torch.stack([total.detach(), *(parts[name] for name in names)])
        once = self._once(step)
        signals = torch.tensor(self.stop_signal, device=self.device)
        self.ranks.sum_(self.flat.gradient, sums, signals)
        self.stopping = bool(signals)
        means = dict(zip(["loss", *names], (sums / whole.masked).tolist(), strict=True))
        rate = optim.rate_at(step, config.steps, config.optimiser)
        return {"step": step + 1, "lr": rate, "tokens": whole.tokens, "masked": whole.masked} | means | once

    def _once(self, step: int) -> dict:
        """Add the gradients of terms that are added once per update; name -> what each is worth at `step`.

        Process 0 does it for all. The loss that `judge` sees is without them: that of the tokens must stay low.
        """
        found = {}
        for term in self.terms.once if self.ranks.main else ():
            address = (*self.run.address, term.name, step)
            torch.manual_seed(seed_at(*address))
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bf16"):
                worth = term.per_update(self.model, step, generator(*address))
            if worth is not None:
                sign = -1 if term.maximised else 1
                (sign * term.settings.weight * worth).backward()
                found[term.name] = float(worth.detach())
        return found

    def judge(self, row: dict) -> None:
        """Stop the run if the loss of `row` is not a number or has exploded (`guard`)."""
        fault = self.guard.fault(row["loss"], last=row["step"] == self.config.steps)
        if fault:
            self._fail(row["step"], fault)

    def apply(self, row: dict) -> dict:
        """Make the update of `gradients`; `row` gets the gradient's norm."""
        self.guard.accept(row["loss"])
        how = self.config.optimiser
        norm = self.flat.step(
            row["lr"], how.weight_decay, how.clip, kind=how.kind, betas=how.betas, eps=how.eps, momentum=how.momentum
        )
        row["grad_norm"] = float(norm)
        if not math.isfinite(row["grad_norm"]):
            self._fail(row["step"], f"the gradient's norm is {row['grad_norm']}")
        return row

    def update(self, step: int) -> dict:
        """One whole update (0-based): `gradients`, `judge`, `apply`."""
        row = self.gradients(step)
        self.judge(row)
        return self.apply(row)

    def valid_batches(self):
        """What `validate` reads, on the CPU."""
        return valid_batches(self.run, self.vocab_size, self.terms.reader)

    @torch.no_grad()
    def validate(self) -> float:
        """Mean cross-entropy in nats per token to predict on fixed validation sequences, read as in training.

        Of a masked autoencoder it is the decoder's.
        """
        self.model.eval()
        total = count = 0
        for batch in self.valid_batches():
            batch = batch.to(self.device)
            logits = self.terms.reader.forward(self.model, batch).logits
            total += float(torch.nn.functional.cross_entropy(logits, batch.targets, reduction="sum"))
            count += len(batch.at)
        self.model.train()
        return total / max(count, 1)

    @functools.cached_property
    def unigram_loss(self) -> float | None:
        """What `validate` would say of a model that knows how often each token occurs, and nothing else."""
        targets = [batch.targets.numpy() for batch in self.valid_batches()]
        return unigram_loss(self.train_store, self.vocab_size, np.concatenate([np.empty(0, np.int64), *targets]))

    def facts(self) -> dict:
        """What the manifest says of the run, once it is done."""
        parameters, rows = self.flat.values.numel(), self.record.metrics.rows
        lengths = None if self.plan is None else self.plan.lengths[self.plan.rows]
        return facts(self.run, self.vocab_size, parameters, rows, lengths, self.unigram_loss)

    # --- the whole run ---------------------------------------------------------

    def run_all(self) -> None:
        """Resume or begin, train to the last step, and write what a finished run leaves."""
        step = self._resume()
        kept = checkpoints(self.config)
        previous = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            self._loop(step, kept)
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
        if self.ranks.main:
            self.record.finish(self.facts())

    def _resume(self) -> int:
        """The step to go on with; process 0 reads the state, the others get it from there."""
        step = self.record.restore(self.flat, self.guard) if self.ranks.main else 0
        self.ranks.copy_(*self.flat.state().values())
        step, guard, self.record.saved = self.ranks.tell([step, self.guard.state(), self.record.saved])
        self.guard.load(guard)
        return step

    def _loop(self, first, kept):
        config, record, main, parent = self.config, self.record, self.ranks.main, os.getppid()
        self.model.train()
        began = saved = time.monotonic()
        earlier, rate = record.seconds, Rate()
        progress = Progress(self.run.name, "steps", start=first, folder=self.run.state, silent=not main)
        progress.begin(config.steps)
        if first == 0 and 0 in kept and main:  # a starting point: nothing is trained
            record.metrics.append({"step": 0, "seconds": 0.0, "valid_loss": self.validate()})
            record.checkpoint(self.model, 0)
        for step in range(first, config.steps):
            row = self.gradients(step)
            self.judge(row)
            # What is saved is the state before this update: its loss on this batch is known to be sound.
            due = self.stopping or time.monotonic() - saved >= 60 * config.save_minutes
            if main and due and self.guard.calm(row["loss"]):
                record.save(step, self.flat, self.guard)
                saved = time.monotonic()
            if self.stopping:
                self._stop(step)
            self.apply(row)
            now = time.monotonic()
            record.seconds = earlier + now - began
            rate.add(row["tokens"], now)
            record.means.add(row)
            done = step + 1
            keep = done in kept
            validate = keep or (config.validate_every and done % config.validate_every == 0)
            if validate or done % config.log_every == 0 or done == 1:
                valid = self._validated(done) if validate else math.nan
                record.metrics.append(record.means.take() | {"seconds": record.seconds, "valid_loss": valid})
            if keep and main:
                record.checkpoint(self.model, done)
                self._warn(done, valid)
            if progress(done, config.steps, loss=row["loss"], tokens_per_second=rate.value):
                record.metrics.flush()
            if self.ranks.size > 1 and os.getppid() != parent:
                self.stop_signal = signal.SIGHUP  # torchrun was killed, and with it who waits for this run

    def _validated(self, done) -> float:
        """Validation loss, computed by process 0, which must be finite."""
        (loss,) = self.ranks.tell([self.validate() if self.ranks.main else None])
        if not math.isfinite(loss):
            self._fail(done, f"the validation loss is {loss}")
        return loss

    def _warn(self, done, loss):
        """Say so where a run that is half done predicts no better than the frequencies of words do."""
        if 2 * done > self.config.steps and self.unigram_loss is not None and loss >= self.unigram_loss:
            log.warning(
                "%s: at step %d the validation loss, %.4f, is not below that of word frequencies alone, %.4f",
                *(self.run.name, done, loss, self.unigram_loss),
            )

    def _on_signal(self, number, frame):
        self.stop_signal = number

    def _stop(self, step):
        saved = self.record.saved
        saved = "nothing was saved" if saved is None else f"the state of step {saved} is saved"
        number = self.stop_signal or "sent to another process"
        self._quit(f"{self.run.name}: stopped by signal {number} at step {step}; {saved}, run again to resume")

    def _fail(self, done, fault):
        """Stop a run that must not go on."""
        message = None
        if self.ranks.main:
            rows = self.plan.batch(done - 1).tolist() if done else []
            message = self.record.failed(done, fault, rows)
        self._quit(message)

    def _quit(self, message):
        """Leave, in all processes at the same step; process 0 says why."""
        raise MaskLabError(message) if self.ranks.main else SystemExit(1)
