"""Fine-tuning on sequence classification: one loop for every task (BabyLM 2023's recipe).

A fresh head on [CLS] (Hugging Face's for the architecture) or on the mean of all tokens, AdamW, warm-up, linear
decay to 0, dropout on. The validation split is measured every `evaluate_every` steps and after the last; the best
model is kept and measured on the test split, or on each of its domains. The metric it is chosen by is `select`,
whatever the task reports. A data set too small for one evaluation keeps its final model. Unlike transformers'
Trainer the last step is always evaluated.

`sizes` fine-tunes on the first rows of the training split too: sets of different sizes are nested. Fine-tuning
seed s draws its head, batches and dropout at (config seed, probe, task, s): equal for every model, so that models
are compared in pairs.
"""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from masklab.errors import MaskLabError
from masklab.files import fingerprint, read_json, sha256, write_json
from masklab.models.checkpoint import load_checkpoint
from masklab.models.stacked import supports
from masklab.probes.encoding import encode_split
from masklab.probes.metrics import METRICS, confusion
from masklab.probes.recipe import Course
from masklab.probes.single import OneByOne
from masklab.probes.stacked import Together, stack_size
from masklab.probes.vocabulary import restricted
from masklab.tokenizers import load_tokenizer

SPLITS = ("train", "valid", "test")


def measure(context) -> list[dict]:
    """Rows accuracy, mcc, f1, majority (test split, best model) and best_step of every task, size and seed.

    `split` is `test`; where the test split has a column `domain`, the metrics are measured per domain and `split`
    is the domain's name. `mix` is the one in the task's task.json, if any.
    """
    probe = context.probe
    pretrained = load_checkpoint(context.checkpoint, context.device)
    weights = sha256(Path(context.checkpoint) / "model.safetensors")
    tasks = [_Task(context, name, weights) for name in context.tasks]
    rows, done, total = [], 0, sum(len(task.sizes) for task in tasks) * len(probe.seeds)
    for task in tasks:
        for size in task.sizes:
            for group in task.groups(size, pretrained):
                for result in task.results(size, group, pretrained):
                    rows += result
                done += len(group)
                context.progress(done, total, task.name)
        task.unload()
    return rows


class _Task:
    """The fine-tunings of one checkpoint on one task."""

    def __init__(self, context, name, weights):
        self.context, self.name = context, name
        self.folder, self.facts = context.task(name, "labels")
        self.sizes = self._sizes()
        self.identity = None
        if context.state_folder is not None:
            settings = context.probe.model_dump(exclude={"tasks", "seeds", "sizes", "steps", "split"})
            data = [sha256(self.folder / f"{split}.parquet") for split in SPLITS]
            self.identity = [settings, data, self.facts.get("mix"), weights, context.seed, context.name, name]
        self.unload()

    def _sizes(self):
        rows = pq.read_metadata(self.folder / "train.parquet").num_rows
        sizes = self.context.probe.sizes or [rows]
        if max(sizes) > rows:
            raise MaskLabError(
                f"probes.{self.context.name}.sizes: {max(sizes)} is more than the {rows} training rows of {self.name!r}"
            )
        return sizes

    def groups(self, size, pretrained) -> list[list[int]]:
        """Seeds of the fine-tunings that run side by side."""
        seeds = self.context.probe.seeds
        if all(self._is_kept(size, seed) for seed in seeds):
            return [seeds]
        self._load(pretrained)
        return [seeds[at : at + self.together] for at in range(0, len(seeds), self.together)]

    def results(self, size, seeds, pretrained) -> list[list[dict]]:
        """Score rows of each of a group's fine-tunings.

        A group with a missing record is run as a whole: beside others a run may differ from itself in the last bit.
        """
        if all(self._is_kept(size, seed) for seed in seeds):
            return [read_json(self._record(size, seed)) for seed in seeds]
        self._load(pretrained)
        found = self._finetune(size, seeds)
        if self.identity is not None:
            for seed, result in zip(seeds, found, strict=True):
                write_json(result, self._record(size, seed))
        return found

    def _is_kept(self, size, seed):
        return self.identity is not None and self._record(size, seed).exists()

    def _record(self, size, seed):
        """Where the result of one fine-tuning is kept: its name is the fingerprint of everything it depends on."""
        return Path(self.context.state_folder) / f"{fingerprint([*self.identity, size, seed])}.json"

    def _load(self, pretrained):
        """Encode the splits and lay out the model, unless that is done."""
        if self.trainer is not None:
            return
        context, probe = self.context, self.context.probe
        has_tokenizer = (Path(context.checkpoint) / "tokenizer.json").is_file()
        tokenizer = load_tokenizer(context.checkpoint) if has_tokenizer else None
        max_length = min(probe.max_length, pretrained.config.max_positions)
        splits = [
            encode_split(self.folder / f"{split}.parquet", tokenizer, max_length, context.device, pretrained.vocab_size)
            for split in SPLITS
        ]
        model, self.splits = restricted(pretrained, splits)
        if context.device == "cpu" and supports(model.config):
            self.trainer = Together(model, self.facts["labels"], probe)
            self.together = stack_size(model.config, probe.batch_size, int(splits[0].lengths.max()))
        else:
            self.trainer = OneByOne(model, self.facts["labels"], probe, context.device)
            self.together = 1

    def unload(self):
        """Let go of what was loaded."""
        self.splits = self.trainer = self.together = None

    def _finetune(self, size, seeds) -> list[list[dict]]:
        context, (train, valid, test) = self.context, self.splits
        courses = [
            Course(context.probe, context.seed, context.name, self.name, size, seed, train.lengths[:size])
            for seed in seeds
        ]
        found = self.trainer.finetune(courses, train, valid, test)
        return [self._rows(size, seed, *result) for seed, result in zip(seeds, found, strict=True)]

    def _rows(self, size, seed, predictions, best_step) -> list[dict]:
        _, valid, test = self.splits
        shared = {"task": self.name, "train_size": size, "seed": seed}
        if "mix" in self.facts:
            shared["mix"] = float(self.facts["mix"])
        rows = []
        for split, members in (test.domains or {"test": np.arange(len(test))}).items():
            counts = confusion(test.labels[members], predictions[members], self.facts["labels"])
            rows += [
                {**shared, "split": split, "metric": metric, "value": function(counts), "n": len(members)}
                for metric, function in METRICS.items()
            ]
        return [*rows, {**shared, "split": "test", "metric": "best_step", "value": float(best_step), "n": len(valid)}]
