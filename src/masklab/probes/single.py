"""Fine-tuning one course at a time."""

import torch
import torch.nn.functional as F

from masklab.probes.classifier import Classifier
from masklab.probes.encoding import sorted_batches
from masklab.probes.metrics import confusion
from masklab.probes.recipe import EarlyStopping
from masklab.training.optim import FlatParameters

# Tokens per forward pass when measuring. On a CPU what stays in the cache is computed twice as fast: 400 sequences of
# 15 tokens by 2 layers x 128 take 55 ms in passes of 1024, 121 ms in one of 16384 (x 64: 21 and 38 ms).
EVALUATION_TOKENS = {"cpu": 1024, "cuda": 65536}


class OneByOne:
    """Fine-tunes the courses of one task, each from the pre-trained weights; `pretrained` itself is changed."""

    def __init__(self, pretrained, classes: int, probe, device="cpu"):
        self.classes, self.probe = classes, probe
        self.model = Classifier(pretrained, classes, probe.pooling).to(device)
        self.flat = FlatParameters(self.model.used_parameters().values())
        self.start = self.flat.values.clone()

    def finetune(self, courses, train, valid, test):
        """[(predictions [N] of the test split by the best model, updates the best model had made)] per course."""
        return [self._finetune(course, train, valid, test) for course in courses]

    def _finetune(self, course, train, valid, test):
        self.flat.restart(self.start)
        self.model.reset_head(course.head_generator())
        stopping = EarlyStopping(self.probe.patience, self.probe.threshold)
        best, best_step = self.flat.values.clone(), 0
        self.model.train()
        for step, rows in enumerate(course.batches()):
            torch.manual_seed(course.dropout_seed(step))
            ids, lengths, labels = train.batch(rows)
            F.cross_entropy(self.model(ids, lengths), labels).backward()
            self.flat.step(course.rate(step), self.probe.weight_decay, self.probe.clip)
            if course.is_evaluated_after(step + 1):
                counts = confusion(valid.labels, self._predictions(valid), self.classes)
                improved, stop = stopping.update(
                    course.selection_metric(counts), course.counts_patience_after(step + 1)
                )
                if improved:
                    best.copy_(self.flat.values)
                    best_step = step + 1
                if stop:
                    break
        self.flat.values.copy_(best)
        return self._predictions(test), best_step

    @torch.inference_mode()
    def _predictions(self, split):
        self.model.eval()  # walks over every module: done here and not at every step
        found = torch.empty(len(split), dtype=torch.int64)
        for rows in sorted_batches(split.lengths, EVALUATION_TOKENS[split.ids.device.type]):
            ids, lengths, _ = split.batch(rows)
            found[torch.from_numpy(rows)] = self.model(ids, lengths).argmax(-1).cpu()
        self.model.train()
        return found.numpy()
