"""One update of several runs of one recipe at once: their models as one stacked model, gradients by hand.

Each run draws its own batches, masks, dropout and initial weights, at the addresses that it has alone, so its weights
are those of the run alone up to rounding. What is done once in a while (validation, checkpoints, terms that are added
once per update) goes through each run's own model, whose parameters are a row of the stack.
"""

import torch

from masklab.models.encoder import Output
from masklab.models.stacked.masked import WORD, StackedMaskedLM
from masklab.models.stacked.parameters import StackedParameters
from masklab.optim.flat import rate_at
from masklab.rng import seed_at
from masklab.training.numbers import Numbers

CALLS = 2**14  # numbers in a hidden state whose layers take as long as the calls of one pass


class Row:
    """The parameters of one run among those of a stack; what of `FlatParameters` is asked for besides updates."""

    def __init__(self, model):
        self.values = torch.empty(sum(parameter.numel() for parameter in model.parameters()), device="meta")


class Stack:
    """The learners of several runs of one recipe, in step."""

    def __init__(self, learners):
        self.learners = list(learners)
        models = [learner.model for learner in self.learners]
        self.parameters = StackedParameters.of(models, WORD)
        for learner in self.learners:
            learner.flat = Row(learner.model)
        self.models = {}

    def keep(self, copies: list[int]) -> None:
        """Go on with these alone."""
        self.learners = [self.learners[copy] for copy in copies]
        self.parameters.keep(copies)
        self.parameters.lend([learner.model for learner in self.learners])
        self.models = {}

    def gradients(self, step: int) -> list[Numbers]:
        """`Learner.gradients` of every run: the row of each."""
        whole = [learner.step(step) for learner in self.learners]
        sums = []
        for start, stop in self._parts([each.micro[0].ids.shape for each in whole]):
            sums += self._forward_and_backward(start, stop, whole[start:stop], step)
        rows = []
        for learner, each, values in zip(self.learners, whole, sums, strict=True):
            means = dict(zip(["loss", *learner.terms.names], (values / each.masked).tolist(), strict=True))
            rate = rate_at(step, learner.config.steps, learner.config.optimiser)
            row = {"step": step + 1, "lr": rate, "tokens": each.tokens, "masked": each.masked}
            once = {name: float(worth) for name, worth in learner._once(step).items()}
            rows.append(Numbers(row | means | once))
        return rows

    def _parts(self, shapes):
        """Copies that go through one pass, (start, stop) of each: what calls and padded places cost is least so.

        A pass costs its calls and the places of its batches, which are padded to the longest of its copies. shapes: of
        each copy's batch.
        """
        calls, best = CALLS / self.learners[0].model.config.hidden, [(0.0, [])]  # of the first 0, 1, ... copies
        for stop in range(1, len(shapes) + 1):
            ways = []
            for start, (cost, parts) in enumerate(best):
                rows, longest = map(max, zip(*shapes[start:stop], strict=True))
                ways.append((cost + calls + (stop - start) * rows * longest, [*parts, (start, stop)]))
            best.append(min(ways))
        return best[-1][1]

    def _forward_and_backward(self, start, stop, whole, step):
        """Write the gradients of some copies; their summed losses, total and terms, float64 each."""
        model, learners = self._model(start, stop), self.learners[start:stop]
        batches = [each.micro[0] for each in whole]
        seeds = [seed_at(*learner.run.address, "dropout", step, 0) for learner in learners]
        with torch.no_grad():
            logits, latent = model.forward(batches, seeds)
        for_logits, for_latent = (None if part is None else torch.zeros_like(part) for part in (logits, latent))
        sums = []
        for copy, (learner, each, batch) in enumerate(zip(learners, whole, batches, strict=True)):
            own = [None if part is None else part[copy, : len(batch.at)].requires_grad_() for part in (logits, latent)]
            total, parts = learner.terms.losses(batch, Output(*own), learner.teacher)
            read = [part for part in own if part is not None]
            found = torch.autograd.grad(total / each.masked, read, allow_unused=True)
            for part, gradient in zip((for_logits, for_latent), found, strict=False):
                if gradient is not None:
                    part[copy, : len(gradient)] = gradient
            sums.append(torch.stack([total.detach(), *(parts[name] for name in learner.terms.names)]).double())
        with torch.no_grad():
            model.backward(for_logits, for_latent)
        return sums

    def _model(self, start, stop):
        if (start, stop) not in self.models:
            parameters = self.parameters.part(start, stop)
            self.models[start, stop] = StackedMaskedLM(parameters, self.learners[0].model.config)
        return self.models[start, stop]

    def apply(self, rows: list[dict]) -> None:
        """`Learner.apply` of every run."""
        how = self.learners[0].config.optimiser
        settings = {"kind": how.kind, "betas": how.betas, "eps": how.eps, "momentum": how.momentum}
        norms = self.parameters.step(rows[0]["lr"], how.weight_decay, how.clip, **settings)
        for row, norm in zip(rows, norms[:, 0].tolist(), strict=True):
            row["grad_norm"] = norm
