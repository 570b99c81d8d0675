"""Fine-tuning several courses of one training-set size at once, from one checkpoint or several, on one task or several,
each as it would run alone.

On CPUs, for the encoders of `models.stacked.supports`. Milliseconds of CPU per update of one course, batches of 32
rows of 16 tokens (equal lengths, or sentences of 5 to 27), 2 layers, dropout 0.1, 1 thread of an AMD EPYC (Zen 5):

    hidden                     32           64           128          256
    lengths               5-27   16    5-27   16    5-27   16    5-27   16
    single                 4.3   3.2    6.2   4.2   13.5   9.5   34.9  25.0
    one at a time, here    1.6   1.5    2.4   2.3    6.2   5.9   19.4  18.2
    stacks of five, here   1.0    .8    2.2   1.9    5.8   5.2   19.5  18.5

Positions are absolute; disentangled ones take 6.6, 2.2 and 1.3 at width 32, 17.2, 8.1 and 6.9 at width 128 (5 to 27
tokens). The hand-written gradient always gains; a stack gains where operations are too short to be worth their calls.
Hence `stack_size`.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from masklab.jobs.midway import Midway
from masklab.models.stacked.dropout import keeps, mask, sites
from masklab.models.stacked.encoder import StackedEncoder
from masklab.models.stacked.parameters import StackedParameters
from masklab.models.stacked.products import affine, affine_gradients, input_gradient
from masklab.models.stacked.ragged import Ragged
from masklab.probes.classifier import activation_of
from masklab.probes.goals import EVALUATION_TOKENS, answers
from masklab.probes.recipe import EarlyStopping, Outcome
from masklab.tasks.encoding import Split, sorted_batches

STACK = 8  # courses side by side, at most
SHORT = 2**17  # numbers in a batch of hidden states that are worth stacking
FEWEST = 512  # tokens of each copy in a pass that measures: of fewer, calls cost more than caches gain


def stack_size(config, batch_size: int, longest: int) -> int:
    """How many courses to run side by side: batch rows x longest row x hidden decide (see above)."""
    return STACK if batch_size * longest * config.hidden <= SHORT else 1


class StackedClassifier:
    """`Classifier` of every copy, with a hand-written gradient."""

    def __init__(self, parameters, config, pooling: str, activation: str):
        self.parameters, self.config, self.first, self.tanh = parameters, config, pooling == "cls", activation == "tanh"
        self.encoder = StackedEncoder(parameters, config, self.first)

    def forward(self, ids, lengths, keep=None):
        """Logits [S, B, classes] of ids [S, B, T] and lengths [S, B]; keep: dropout of `self.sites`."""
        ragged = Ragged.of(lengths, ids.shape[2])
        states = self.encoder.forward(ids, ragged, keep and keep[:-1])
        self.kind, states = states.dtype, states.float()  # the head is fp32
        self.weights = None
        if not self.first:
            within = torch.arange(ids.shape[2], device=ids.device) < lengths[..., None]
            self.weights = (within / lengths[..., None]).to(states.dtype)[..., None]  # [S, B, T, 1]
            states = (states.view(*ids.shape, -1) * self.weights).sum(2)
        inner = affine(states, *self.parameters.pair("dense"))
        active = torch.tanh(inner) if self.tanh else F.gelu(inner)
        kept = None if keep is None else mask(keep[-1], (ids.shape[1], 1, self.config.hidden)).flatten(1, 2)
        pooled = active if kept is None else active * kept
        self.saved = states, inner, active, kept, pooled
        return affine(pooled, *self.parameters.pair("classifier"))

    def backward(self, g) -> None:
        """Write the gradients of all parameters, given that of the logits."""
        states, inner, active, kept, pooled = self.saved
        affine_gradients(g, pooled, *self.parameters.gradient_pair("classifier"))
        g = input_gradient(g, self.parameters["classifier.weight"])
        g = g if kept is None else g * kept
        g = torch.ops.aten.tanh_backward(g, active) if self.tanh else torch.ops.aten.gelu_backward(g, inner)
        affine_gradients(g, states, *self.parameters.gradient_pair("dense"))
        g = input_gradient(g, self.parameters["dense.weight"])
        g = g if self.first else (g[:, :, None] * self.weights).flatten(1, 2)
        self.encoder.backward(g.to(self.kind))

    def sites(self, size: int, length: int) -> list[tuple]:
        """Shapes of one copy's dropout for a batch of `size` rows of `length` tokens."""
        return [*sites(self.config, size, length, self.first), (size, 1, self.config.hidden)]


@dataclass(frozen=True)
class Start:
    """What a course begins with and what it is fine-tuned on.

    Those that run side by side have models of one shape and goals of as many classes.
    """

    pretrained: object
    goal: object
    train: Split
    valid: Split
    test: Split


class Together:
    """Fine-tunes courses side by side, each from its `Start`."""

    def __init__(self, probe):
        self.probe, self.low = probe, probe.precision == "bf16"

    def finetune(self, courses, starts, midway=None):
        """The `Outcome` of each course, which has the start of its place.

        The courses have one size, so they take the same number of updates and are evaluated at the same ones. Those of
        one task should be neighbours: then they are evaluated together. midway: who is told how far they are, and keeps
        their state.
        """
        pretrained = starts[0].pretrained
        self.config, self.classes = pretrained.config, starts[0].goal.classes
        self.activation = self.probe.activation or activation_of(pretrained)
        parameters = self._parameters(courses, starts)
        model = self._model(parameters)
        best, best_step = parameters.values.clone(), [0] * len(courses)
        stopping = [EarlyStopping(self.probe.patience, self.probe.threshold) for _ in courses]
        capped = [True] * len(courses)
        running, first, midway = list(range(len(courses))), 0, midway or Midway()

        def state():
            facts = {"running": running, "best_step": best_step, "capped": capped}
            return parameters.state() | {"best": best}, facts | {"stopping": [each.state() for each in stopping]}

        if (found := midway.begun()) is not None:
            best.copy_(found.tensors["best"])
            first, running, best_step, capped = map(found.facts.get, ("updates", "running", "best_step", "capped"))
            for each, said in zip(stopping, found.facts["stopping"], strict=True):
                each.load(said)
            parameters.keep(running)
            parameters.load(found.tensors, [*range(len(running))])
            parameters.refresh()
            model = self._model(parameters)
        batches = [course.batches(first) for course in courses]
        for step in range(first, courses[0].steps):
            midway.after(step, courses[0].steps, state)
            of_step = [(courses[run], starts[run].train, next(batches[run])) for run in running]
            self._update(model, step, *zip(*of_step, strict=True))
            if not courses[0].is_evaluated_after(step + 1):
                continue
            going, splits = [], [starts[run].valid for run in running]
            for at, (run, predicted) in enumerate(zip(running, self._predictions(model, splits), strict=True)):
                value = starts[run].goal.value(starts[run].valid, predicted, self.probe.select)
                counts_patience = courses[run].counts_patience_after(step + 1)
                improved, stop = stopping[run].update(value, counts_patience)
                if improved:
                    best[run].copy_(parameters.values[at])
                    best_step[run] = step + 1
                if not stop:
                    going.append(at)
                capped[run] = not stop or step + 1 == courses[0].steps
            if len(going) < len(running):
                running = [running[at] for at in going]
                if not running:
                    break
                parameters.keep(going)
                model = self._model(parameters)
        parameters = self._parameters(courses, starts)
        parameters.values.copy_(best)
        parameters.current = False
        parameters.refresh()
        predictions = self._predictions(self._model(parameters), [start.test for start in starts])
        values = [stopper.best for stopper in stopping]
        return [Outcome(*result) for result in zip(predictions, best_step, values, capped, strict=True)]

    def _model(self, parameters):
        return StackedClassifier(parameters, self.config, self.probe.pooling, self.activation)

    def _parameters(self, courses, starts):
        """Those that the courses begin with, heads drawn anew."""
        parameters = None
        for copy, (course, start) in enumerate(zip(courses, starts, strict=True)):
            classifier = start.goal.model(start.pretrained, self.probe)
            classifier.reset_head(course.head_generator())
            names = classifier.used_parameters()
            if parameters is None:
                parameters = StackedParameters(names, len(courses), table="encoder.embeddings.word")
            for name, own in names.items():
                parameters[name][copy] = own.detach()
        if self.low:
            parameters.lower()
        return parameters

    def _update(self, model, step, courses, splits, rows):
        size, counts = max(map(len, rows)), [len(chosen) for chosen in rows]
        # a copy whose batch is smaller repeats a row, which then has no weight
        table = np.stack([np.append(chosen, np.repeat(chosen[:1], size - len(chosen))) for chosen in rows])
        real = torch.arange(size) < torch.tensor(counts)[:, None]
        ids, lengths, labels = _batch(splits, table)
        keep = None
        if self.config.dropout:
            longest = [int(split.lengths[chosen].max()) for split, chosen in zip(splits, rows, strict=True)]
            shapes = [model.sites(*shape) for shape in zip(counts, longest, strict=True)]
            keep = keeps([course.dropout_seed(step) for course in courses], shapes, self.config.dropout)
        with torch.inference_mode():
            g = torch.softmax(model.forward(ids, lengths, keep), -1)
            g.scatter_add_(2, labels[..., None], g.new_full((), -1.0).expand(*labels.shape, 1))
            g.mul_((real / torch.tensor(counts)[:, None])[..., None])
            model.backward(g)
            clip, decay = self.probe.clip, self.probe.weight_decay
            model.parameters.step(courses[0].rate(step), decay, clip, betas=self.probe.betas, eps=self.probe.eps)

    def _predictions(self, model, splits) -> list:
        """Of every copy, on a split of its own."""
        found = []
        for split, start, stop in _alike(splits):
            whole = stop - start == len(splits)
            part = model if whole else self._model(model.parameters.part(start, stop))
            found += [*self._predicted(part, split)]
        return found

    @torch.inference_mode()
    def _predicted(self, model, split):
        """Of every copy on one split, [S, N]."""
        copies = len(model.parameters)
        logits = torch.empty(copies, len(split), self.classes)
        for rows in sorted_batches(split.lengths, max(FEWEST, EVALUATION_TOKENS["cpu"] // copies)):
            ids, lengths, _ = split.batch(rows)
            logits[:, torch.from_numpy(rows)] = model.forward(ids.expand(copies, -1, -1), lengths.expand(copies, -1))
        return answers(logits).numpy()


def _alike(splits):
    """(split, first, behind the last) of neighbours that have the same split."""
    start = 0
    for _, same in itertools.groupby(splits, id):
        stop = start + len(list(same))
        yield splits[start], start, stop
        start = stop


def _batch(splits, table):
    """Rows `table` [S, B] of each copy's split: ids [S, B, T], lengths [S, B], labels [S, B]."""
    parts = []
    for split, start, stop in _alike(splits):
        shape = stop - start, table.shape[1]
        ids, lengths, labels = split.batch(table[start:stop].ravel())
        parts.append((ids.view(*shape, -1), lengths.view(shape), labels.view(shape)))
    if len(parts) == 1:
        return parts[0]
    longest = max(ids.shape[2] for ids, _, _ in parts)
    parts = [(F.pad(ids, (0, longest - ids.shape[2])), *others) for ids, *others in parts]
    return [torch.cat(part) for part in zip(*parts, strict=True)]
