"""Fine-tuning one course at a time, for any goal; on a CPU with the encoder's gradient by hand (`stacked.by_hand`)."""

import numpy as np
import torch

from masklab.jobs.midway import Midway
from masklab.models.stacked import encoding_by_hand
from masklab.optim.flat import FlatParameters
from masklab.probes.goals import EVALUATION_TOKENS
from masklab.probes.recipe import EarlyStopping, Outcome
from masklab.rng import seed_default
from masklab.spectrum import Gram, ranks
from masklab.tasks.encoding import fitting, sorted_batches

AT = "at "  # how the names of snapshots begin in a state


class OneByOne:
    """Fine-tunes the courses of one task, each from the pre-trained weights; `pretrained` itself is changed.

    content: for `probe.rank`, which tokens of the test split count, [N, T] bool.
    """

    def __init__(self, pretrained, goal, probe, device="cpu", content=None):
        self.goal, self.probe, self.content = goal, probe, content
        self.model = goal.model(pretrained, probe).to(device)
        self.flat = FlatParameters(self.model.used_parameters().values())
        self.start = self.flat.values.clone()
        self.low, self.device = getattr(probe, "precision", "fp32") == "bf16", torch.device(device)
        encoding_by_hand(pretrained)

    def finetune(self, courses, train, valid, test):
        """The `Outcome` of each course; the last one's best weights are left in `flat`."""
        return [self.course(course, train, valid, test) for course in courses]

    def course(self, course, train, valid, test, midway=None, watched=()):
        """The `Outcome` of one course, whose best weights are left in `flat`.

        midway: who is told how far it is, and keeps its state. watched: numbers of updates after which the weights are
        kept in `snapshots`, number -> [n].
        """
        midway, self.snapshots = midway or Midway(), {}
        self.flat.restart(self.start)
        self.model.reset_head(course.head_generator())
        stopping = EarlyStopping(self.probe.patience, self.probe.threshold)
        best, best_step, best_predictions = self.flat.values.clone(), 0, None
        capped, first = True, 0

        def state():
            tensors = self.flat.state() | {"best": best} | {f"{AT}{at}": of for at, of in self.snapshots.items()}
            return tensors, {"best_step": best_step, "stopping": stopping.state()}

        if (found := midway.begun()) is not None:
            best.copy_(found.tensors["best"])
            first, best_step = found.facts["updates"], found.facts["best_step"]
            stopping.load(found.facts["stopping"])
            if best_step:
                self.flat.values.copy_(best)
                best_predictions = self._predictions(valid)
            self.flat.load(found.tensors)
            kept = [name for name in found.tensors if name.startswith(AT)]
            self.snapshots = {int(name.removeprefix(AT)): found.tensors[name].to(self.device) for name in kept}
        self.model.train()
        for step, rows in enumerate(course.batches(first), first):
            midway.after(step, course.steps, state)
            seed_default(course.dropout_seed(step), self.device)
            with self.autocast():
                loss = self.goal.loss(self.model, *train.batch(rows))
            loss.backward()
            clip, decay = self.probe.clip, self.probe.weight_decay
            self.flat.step(course.rate(step), decay, clip, betas=self.probe.betas, eps=self.probe.eps)
            if step + 1 in watched:
                self.snapshots[step + 1] = self.flat.values.clone()
            if course.is_evaluated_after(step + 1):
                predictions = self._predictions(valid)
                value = self.goal.value(valid, predictions, self.probe.select)
                improved, stop = stopping.update(value, course.counts_patience_after(step + 1))
                if improved:
                    best.copy_(self.flat.values)
                    best_step, best_predictions = step + 1, predictions
                if stop:
                    capped = step + 1 == course.steps
                    break
        self.flat.values.copy_(best)
        ranks = self._ranks(test) if getattr(self.probe, "rank", None) else None
        return Outcome(self._predictions(test), best_step, stopping.best, capped, best_predictions, ranks)

    def autocast(self):
        """Context of what is computed in the probe's precision."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.low)

    @torch.inference_mode()
    def _predictions(self, split):
        self.model.eval()  # walks over every module: done here and not at every step
        with self.autocast():
            predictions = self.goal.predict(self.model, split)
        self.model.train()
        return predictions

    @torch.inference_mode()
    def _ranks(self, split):
        """Effective ranks of the encoder's last layer on a split's content tokens, by name."""
        self.model.eval()
        gram = Gram()
        for rows in sorted_batches(split.lengths, fitting(EVALUATION_TOKENS, split.ids.device)):
            ids, lengths, _ = split.batch(rows)
            states = self.model.encoder.encode(ids, lengths).flatten(0, 1)
            wanted = torch.from_numpy(np.flatnonzero(self.content[rows, : ids.shape[1]]))
            gram.add(states[wanted.to(states.device)])
        self.model.train()
        return ranks(gram, self.probe.rank)
