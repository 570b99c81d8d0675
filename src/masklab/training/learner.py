"""One update: the batch of a step, its losses and gradients, and the optimiser's move.

A step's batch and masks are functions of (seed, phase, step), its dropout of (seed, phase, step, micro-batch), so a
run killed at any moment and started again ends with the same weights, bit for bit on the CPU. No name of a recipe is
part of them: two recipes of one phase that differ in their objective alone see the same batches and masks. In one
process or in several (`distributed`), the same micro-batches give the same losses and gradients, dropout included, up
to the rounding of their sum.
"""

import contextlib

import torch

from masklab.batches import BatchPlan
from masklab.objectives import Setup
from masklab.objectives.batch import Batch
from masklab.objectives.returned import maskable_by, output_of, worth_of
from masklab.objectives.terms import Terms
from masklab.optim import flat as optim
from masklab.rng import generator, seed_at, seed_default
from masklab.tokens import TokenStore
from masklab.training.ahead import Ahead, pays
from masklab.training.arithmetic import settle
from masklab.training.compiled import compiled
from masklab.training.distributed import Ranks
from masklab.training.numbers import Numbers
from masklab.training.run import Run
from masklab.training.start import initial_model, teacher
from masklab.training.step import Step, masked_step


class Learner:
    """A model and what an update of it takes: batches, terms, teacher, optimiser. It writes no file.

    ranks: this process among those of the run; the default is a run in one process.

    model: the `MaskedLM`, on `device`; flat: its parameters, their gradients and the optimiser's state; plan: which
    sequences each step reads, None for a run of 0 steps; uniform: loss of uniform guesses, in nats per masked token;
    arithmetic: what is computed with (`arithmetic.settle`).
    """

    def __init__(self, run: Run, ranks: Ranks | None = None):
        self.run, self.config, self.ranks = run, run.model, ranks or Ranks()
        several = self.ranks.size > 1 and run.device == "cuda"
        self.device = torch.device(f"cuda:{self.ranks.local}" if several else run.device)
        self.arithmetic = settle(run, self.device, self.ranks)
        self.train_store = TokenStore(run.tokens, "train")
        self.vocab_size = run.vocab_size
        files = {"tokens": run.tokens, "tokenizer": run.tokenizer, "tasks": run.tasks}
        self.terms = Terms(run.objective, Setup(run.encoder, self.vocab_size, **files, device=self.device))
        self.model = initial_model(run, self.vocab_size, run.atoms).to(self.device)
        self.trained = compiled(self.model) if self.config.compile else self.model
        self.teacher = teacher(run, self.vocab_size, self.device)
        if self.teacher is not None:
            self.teacher.low = self.device.type != "cpu" and self.low_precision
        low = self.device.type == "cpu" and self.low_precision and not self.config.compile
        self.flat = optim.FlatParameters(self.model.parameters(), direct=True, low=low)
        self.plan = self._plan() if self.config.steps else None
        self.uniform = self.terms.uniform(self.vocab_size, run.atoms)
        self._ahead = None

    def _plan(self):
        lengths = self.train_store.lengths
        eligible = maskable_by(self.terms.reader, lengths, self.config.masking)
        size, whose = self.config.batch_size, {"eligible": eligible, "name": self.run.name}
        return BatchPlan(lengths, size, *self.run.address, **whose)

    # --- batches ---------------------------------------------------------------

    def step(self, step: int) -> Step:
        """The micro-batches of `step` that this process works on, on the CPU."""
        return self.draw(step) if self._ahead is None else self._ahead.take(step)

    def draw(self, step: int) -> Step:
        """`step`, drawn now. Its micro-batches are the same in any number of processes."""
        rng = generator(*self.run.address, "mask", step)
        rows = self.plan.batch(step)
        how = self.config.masking, self.vocab_size, self.config.micro, self.terms.reader
        drawn = masked_step(self.train_store, rows, rng, *how, share=self.ranks.part)
        for batch in drawn.micro if self.teacher is not None else ():
            self.teacher.look_up(batch)
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):  # a thread begins with the first GPU, whichever is this process's
                drawn.micro = [batch.pinned() for batch in drawn.micro]
        return drawn

    @contextlib.contextmanager
    def ahead(self, first: int):
        """Meanwhile the steps from `first` on, which must be taken in turn, are drawn by a thread if that pays."""
        if pays(self.device):
            self._ahead = Ahead(self.draw, first, self.config.steps)
        try:
            yield
        finally:
            self.stop_ahead()

    def stop_ahead(self) -> None:
        """From now on each step is drawn when it is asked for."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.close()

    def batches(self, step: int) -> list[Batch]:
        """The micro-batches of `step` that this process works on, on its device."""
        return [batch.to(self.device) for batch in self.step(step).micro]

    # --- losses and gradients --------------------------------------------------

    @property
    def low_precision(self) -> bool:
        return self.arithmetic["precision"] == "bf16"

    def _autocast(self):
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.low_precision)

    def _seed(self, *address) -> None:
        """Seed what dropout is drawn from."""
        seed_default(seed_at(*self.run.address, *address), self.device)

    def loss_of(self, batch: Batch):
        """Summed weighted loss and summed terms of one micro-batch (teacher signals included)."""
        with self._autocast():
            output = output_of(self.terms.reader, self.trained, batch)
        return self.terms.losses(batch, output, self.teacher)

    def gradients(self, step: int) -> Numbers:
        """Forward and backward of `step` (0-based); `flat.gradient` is then that of the mean loss, in all processes.

        The mean is over all masked tokens of the batch, in all micro-batches of all processes. Returns the row of the
        update: its number (1-based), learning rate, tokens, masked tokens, mean loss and terms per masked token.
        """
        whole, names = self.step(step), self.terms.names
        rate = optim.rate_at(step, self.config.steps, self.config.optimiser)
        row = Numbers(step=step + 1, lr=rate, tokens=whole.tokens, masked=whole.masked)
        self.flat.refresh()
        sums = torch.zeros(1 + len(names), dtype=torch.float64, device=self.device)
        for number, batch in zip(whole.numbers, whole.micro, strict=True):
            self._seed("dropout", step, number)
            total, parts = self.loss_of(batch.to(self.device))
            (total / whole.divisor).backward()
            sums += torch.stack([total.detach(), *(parts[name] for name in names)])
        once = self._once(step)
        self.ranks.sum_(self.flat.gradient, sums)
        row.expect(["loss", *names], sums / whole.divisor)
        for name, worth in once.items():
            row.expect([name], worth)
        return row

    def _once(self, step: int) -> dict[str, torch.Tensor]:
        """Add the gradients of terms that are added once per update; name -> what each is worth at `step`, [1].

        Process 0 does it for all. The row's `loss` is without them: that of the tokens must stay low.
        """
        worths = {}
        for term in self.terms.once if self.ranks.main else ():
            address = (*self.run.address, term.name, step)
            self._seed(term.name, step)
            with contextlib.nullcontext() if term.full_precision else self._autocast():
                worth = worth_of(term, self.model, step, generator(*address))
            if worth is not None:
                sign = -1 if term.maximised else 1
                (sign * term.settings.weight * worth).backward()
                worths[term.name] = worth.detach().reshape(1)
        return worths

    # --- the optimiser ---------------------------------------------------------

    def apply(self, row: Numbers) -> None:
        """Make the update of `gradients`, at the learning rate of its `row`, which gets the gradient's norm."""
        how = self.config.optimiser
        norm = self.flat.step(
            row["lr"], how.weight_decay, how.clip, kind=how.kind, betas=how.betas, eps=how.eps, momentum=how.momentum
        )
        row.expect(["grad_norm"], norm[None])

    def update(self, step: int) -> Numbers:
        """One whole update (0-based), whatever its loss is: `gradients` and `apply`; returns its row."""
        row = self.gradients(step)
        self.apply(row)
        return row
