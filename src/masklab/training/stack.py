"""One update of several runs of one recipe at once: their models as one stacked model, gradients by hand.

Each run draws its own batches, masks, dropout and initial weights, at the addresses that it has alone. Its weights are,
to the last bit, those that it has alone, where it is a stack of one (`Alone`), and up to rounding those of the ordinary
loop: no operation sums over copies, and none that they share depends on how many they are. What is done once in a while
(validation, checkpoints, terms that are added once per update) goes through each run's own model, whose parameters are
a row of the stack.
"""

import itertools

import torch

from masklab.kernels.processor import faster_compiled
from masklab.models.encoder import Output
from masklab.models.stacked import WORD, supports_masked
from masklab.models.stacked.parameters import StackedParameters, neighbours
from masklab.optim.flat import rate_at
from masklab.rng import seed_at
from masklab.training.arithmetic import settle
from masklab.training.distributed import Ranks
from masklab.training.learner import Learner
from masklab.training.numbers import Numbers
from masklab.training.run import Run
from masklab.training.side_by_side import by_hand
from masklab.training.teachers import Teachers

CACHE = 2**19  # numbers in the hidden states of one pass: with more of them than a cache holds, it is slower


class Row:
    """The parameters of one run among those of a stack, as `FlatParameters` has them; the stack makes the updates.

    In memory they lie as the stack has them, its table first. What is saved of them lies in the order of the model's
    own parameters, as what `FlatParameters` saves does: a run that began on a CPU may go on on a GPU, where nothing is
    stacked, and the other way round.
    """

    def __init__(self, parameters: StackedParameters, row: int, model: torch.nn.Module):
        sizes = [shape.numel() for shape in parameters.shapes.values()]
        self.values, self.gradient, self.mean, self.square = (
            getattr(parameters, name)[row, : sum(sizes)] for name in ("values", "gradient", "mean", "square")
        )
        self.parameters, self.updates = parameters, parameters.updates
        ends = itertools.pairwise(itertools.accumulate(sizes, initial=0))
        places = {name: slice(*place) for name, place in zip(parameters.shapes, ends, strict=True)}
        self.places = [places[name] for name, _ in model.named_parameters()]

    def _vectors(self):
        return {"values": self.values, "mean": self.mean, "square": self.square}

    def state(self) -> dict[str, torch.Tensor]:
        """What a resumed run needs, by name, in the order of the model's parameters."""
        vectors = self._vectors().items()
        found = {name: torch.cat([vector[place] for place in self.places]) for name, vector in vectors}
        return found | {"updates": self.updates}

    def load(self, state: dict[str, torch.Tensor]) -> None:
        """Take over what `state` returned, or that of a `FlatParameters` of the same model."""
        sizes = [place.stop - place.start for place in self.places]
        for name, vector in self._vectors().items():
            for place, part in zip(self.places, state[name].split(sizes), strict=True):
                vector[place] = part
        self.updates.copy_(state["updates"])
        self.parameters.current = False


class Stack:
    """The learners of several runs of one recipe, in step."""

    def __init__(self, learners):
        self.learners = list(learners)
        models = [learner.model for learner in self.learners]
        self.parameters = StackedParameters.of(models, WORD)
        if self.learners[0].low_precision:
            self.parameters.lower()
            self.parameters.lend(models)
        self._begin()

    def _begin(self):
        for row, learner in enumerate(self.learners):
            learner.flat = Row(self.parameters, row, learner.model)
        self.models, self.scratch = {}, None
        self.teachers = Teachers.of([learner.teacher for learner in self.learners], self.parameters.low is not None)

    def keep(self, copies: list[int]) -> None:
        """Go on with these alone."""
        self.learners = [self.learners[copy] for copy in copies]
        self.parameters.keep(copies)
        self.parameters.lend([learner.model for learner in self.learners])
        self._begin()

    def gradients(self, step: int) -> list[Numbers]:
        """`Learner.gradients` of every run: the row of each."""
        self.parameters.refresh()
        whole = [learner.step(step) for learner in self.learners]
        sums, total = [0.0] * len(whole), None
        for number in range(len(whole[0].micro)):
            for copy, found in self._pass(whole, step, number):
                sums[copy] = sums[copy] + found
            if len(whole[0].micro) > 1:
                gradient = self.parameters.gradient
                total = gradient.clone() if total is None else total.add_(gradient)
        if total is not None:
            self.parameters.gradient.copy_(total)
        rows = []
        for learner, each, values in zip(self.learners, whole, sums, strict=True):
            means = dict(zip(["loss", *learner.terms.names], (values / each.divisor).tolist(), strict=True))
            rate = rate_at(step, learner.config.steps, learner.config.optimiser)
            row = {"step": step + 1, "lr": rate, "tokens": each.tokens, "masked": each.masked}
            once = {name: float(worth) for name, worth in learner._once(step).items()}
            rows.append(Numbers(row | means | once))
        return rows

    def _pass(self, whole, step: int, number: int):
        """Write the gradients of micro-batch `number` of every run; (which run, its summed losses) of each."""
        batches = [each.micro[number] for each in whole]
        for copies in self._parts(batches):
            given = [batches[copy] for copy in copies], [whole[copy].divisor for copy in copies]
            found = self._forward_and_backward(copies, *given, step, number)
            yield from zip(copies, found, strict=True)

    def _parts(self, batches) -> list[list[int]]:
        """Copies that go through one pass: not more of them than a cache holds.

        Where libraries make products, which sum in an order that shapes decide, only those whose distances are as many;
        and if several threads share out the work of one copy otherwise than that of many, each by itself.
        """
        config, every = self.learners[0].model.config, list(range(len(batches)))
        parts = {None: every}
        if not faster_compiled(torch.float32):
            if torch.get_num_threads() > 1:
                return [[copy] for copy in every]
            if config.positions == "disentangled":
                parts = {}
                for copy, batch in enumerate(batches):
                    parts.setdefault(batch.ids.shape[1], []).append(copy)
        largest = max(int(batch.lengths.sum()) for batch in batches) * config.hidden
        return [few for part in parts.values() for few in _evenly(part, largest)]

    def _forward_and_backward(self, copies, batches, divisors, step, number):
        """Write the gradients of some copies; their summed losses, total and terms, float64 each."""
        model, learners = self._model(copies), [self.learners[copy] for copy in copies]
        seeds = [seed_at(*learner.run.address, "dropout", step, number) for learner in learners]
        with torch.no_grad():
            logits, latent = model.forward(batches, seeds)
        if self.teachers is not None:
            self.teachers.expect(copies, batches)
        losses = _general if learners[0].terms.plain is None else _plain
        sums, for_logits, for_latent = losses(learners, batches, divisors, logits, latent)
        with torch.no_grad():
            model.backward(for_logits, for_latent)
            if not neighbours(copies):
                for copy, gradient in zip(copies, model.parameters.gradient, strict=True):
                    self.parameters.gradient[copy] = gradient
        return sums

    def _model(self, copies):
        """The model of some copies: on the memory of the stack, or with a copy of their weights."""
        beside = neighbours(copies)
        key = (copies[0] if beside else None, len(copies))
        if key not in self.models:
            start = copies[0] if beside else 0
            whole = self.parameters if beside else self._aside()
            self.models[key] = _stacked(self.learners[0], whole.part(start, start + len(copies)))
        model = self.models[key]
        if not beside:
            for values, copy in zip(model.parameters.values, copies, strict=True):
                values.copy_(self.parameters.values[copy])
        return model

    def _aside(self):
        """Room for the weights and gradients of copies that do not lie one after the other."""
        if self.scratch is None:
            self.scratch = self.parameters.like()
        return self.scratch

    def apply(self, rows: list[dict]) -> None:
        """`Learner.apply` of every run."""
        how = self.learners[0].config.optimiser
        settings = {"kind": how.kind, "betas": how.betas, "eps": how.eps, "momentum": how.momentum}
        norms = self.parameters.step(rows[0]["lr"], how.weight_decay, how.clip, **settings)
        for row, norm in zip(rows, norms.tolist(), strict=True):
            row["grad_norm"] = norm


class Alone(Learner):
    """A learner of a recipe that stacks, as a stack of one: the numbers of a run do not depend on who is beside it."""

    def __init__(self, run: Run, ranks: Ranks | None = None):
        super().__init__(run, ranks)
        self.stack = Stack([self])

    def gradients(self, step: int) -> Numbers:
        (row,) = self.stack.gradients(step)
        return row

    def apply(self, row: Numbers) -> None:
        self.stack.apply([row])


def learner_of(run: Run, ranks: Ranks | None = None) -> Learner:
    """What makes the updates of a run: its recipe and the kind of its device decide, and, of a run that was begun
    elsewhere, the precision that it began with."""
    hand_written = run.device == "cpu" and by_hand(run.model, run.encoder, run.objective)
    if hand_written and run.model.precision == "auto":
        hand_written = supports_masked(run.encoder, settle(run, torch.device("cpu"))["precision"])
    return Alone(run, ranks) if hand_written else Learner(run, ranks)


def _stacked(learner, parameters):
    """The model of one of the learners, and of all, with gradients by hand."""
    from masklab.models.stacked.masked import StackedMaskedLM
    from masklab.models.stacked.reconstructing import StackedAutoencoder  # numba takes half a second

    config, reader = learner.model.config, learner.terms.reader
    if config.decoder is None:
        return StackedMaskedLM(parameters, config)
    return StackedAutoencoder(parameters, config, reader.settings.aligned)


def _plain(learners, batches, divisors, logits, _):
    """Sums of losses of every run, [2] each, and the gradients of their means by the logits, without autograd."""
    from masklab.kernels.token_loss import loss_and_gradient_

    targets, weight = torch.full(logits.shape[:2], -1), learners[0].terms.plain
    for own, batch in zip(targets, batches, strict=True):
        own[: len(batch.targets)] = batch.targets
    known = sum(len(batch.targets) for batch in batches)
    if known and (int((targets >= 0).sum()) < known or int(targets.max()) >= logits.shape[2]):
        raise IndexError(f"targets must lie in 0 .. {logits.shape[2] - 1}")
    sums = loss_and_gradient_(logits, targets, torch.tensor([weight / divisor for divisor in divisors]))
    sums = sums.double()[:, None].expand(-1, 2).clone()
    sums[:, 0] *= weight
    return list(sums), logits, None


def _general(learners, batches, divisors, logits, latent):
    """The same of any objective; one sum more for each of its terms."""
    found = [None if part is None else torch.empty_like(part) for part in (logits, latent)]
    sums = []
    for copy, (learner, batch, divisor) in enumerate(zip(learners, batches, divisors, strict=True)):
        own = [None if part is None else part[copy, : len(batch.at)].requires_grad_() for part in (logits, latent)]
        total, parts = learner.terms.losses(batch, Output(*own), learner.teacher)
        read = [part for part in own if part is not None]
        gradients = iter(torch.autograd.grad(total / divisor, read, allow_unused=True))
        for part in found:
            gradient = None if part is None else next(gradients)
            count = 0 if gradient is None else len(gradient)
            if part is not None:
                part[copy, count:] = 0
            if count:
                part[copy, :count] = gradient
        sums.append(torch.stack([total.detach(), *(parts[name] for name in learner.terms.names)]).double())
    return sums, *found


def _evenly(copies: list[int], numbers: int) -> list[list[int]]:
    """Copies in as few passes as `CACHE` allows, which are about equally large; numbers: in a copy's hidden state."""
    passes = -(-len(copies) // max(1, CACHE // numbers))
    ends = [len(copies) * n // passes for n in range(passes + 1)]
    return [copies[start:end] for start, end in itertools.pairwise(ends)]
