"""Fine-tuning on labels, ratings and answer spans: one loop for every task (BabyLM 2023's recipe).

A fresh head on [CLS] (Hugging Face's for the architecture) or on the mean of all tokens, AdamW, warm-up, linear
decay to 0, dropout on. The validation split is measured every `evaluate_every` steps and after the last; the best
model is kept and measured on the test split, or on each of its domains. The metric it is chosen by is `select`,
whatever the task reports; of ratings and spans it is the task's (`probes.goals`). A data set too small for one
evaluation keeps its final model. Unlike transformers' Trainer the last step is always evaluated.

`sizes` fine-tunes on the first rows of the training split too: sets of different sizes are nested. Fine-tuning
seed s draws its head, batches and dropout at (the replicate's seed, probe, task, s): equal for every recipe, so that
recipes are compared in pairs.

With a `grid` every combination of its values is run with every seed, and the rows are those of the combination with
the best median over seeds on the validation split; `chosen_lr` and the like say which. With `rank` the effective rank
of the last layer is measured on the test split: rows of that layer, as
the probe `rank` names them.

Words without a network are not fine-tuned: see `regression`.
"""

import itertools
import logging
import statistics
from dataclasses import replace
from pathlib import Path

import torch

from masklab.errors import MaskLabError
from masklab.files import fingerprint, sha256
from masklab.models import products
from masklab.models.checkpoint import load_checkpoint
from masklab.models.stacked import supports
from masklab.models.words import is_words
from masklab.probes import regression
from masklab.probes.goals import Classification, goal_of
from masklab.probes.outcomes import keep, kept
from masklab.probes.recipe import Course
from masklab.probes.single import OneByOne
from masklab.probes.task_tokens import restricted
from masklab.probes.windows import encode_windows
from masklab.tasks.encoding import encode_split
from masklab.tokenizers import SPECIALS, UNK, load_tokenizer

SPLITS = ("train", "valid", "test")
NARROWEST = 256  # units from which `precision: auto` is bf16 on a CPU: two thirds of the time, at 128 units no less
log = logging.getLogger("masklab")


def measure(context) -> list[dict]:
    """Rows of the task's metrics (test split, best model), their items, and of every task, size and seed `best_step`
    and `capped`: 1 of a run that ended since it had made all its updates, 0 of one that stopped for want of patience.

    Of labels: accuracy, mcc, f1, majority, majority_f1; of ratings: pearson, spearman; of spans: exact, f1 (see
    `answer_spans`). `split` is `test`; where the test split has a column `domain`, the metrics are measured per domain
    and `split` is the domain's name.
    """
    if is_words(context.checkpoint):
        return regression.measure(context)
    pretrained = load_checkpoint(context.checkpoint, context.device)
    context = settled(context, pretrained.config)
    probe = context.probe
    weights = context.identity
    searched = [replace(context, probe=probe.model_copy(update=values)) for values in combinations(probe.grid)]
    tasks = {name: [_Task(c, name, weights) for c in searched] for name in context.tasks}
    total = sum(len(runs[0].sizes) for runs in tasks.values()) * len(probe.seeds) * len(searched)
    rows, done = [], 0
    for name, runs in tasks.items():
        for size in runs[0].sizes:
            outcomes = []
            for task in runs:
                results = []
                for group in task.groups(size, pretrained):
                    results += task.results(size, group, pretrained)
                    done += len(group)
                    context.progress(done, total, name)
                outcomes.append(results)
                if len(runs) > 1:
                    task.unload()
            rows += chosen(outcomes, combinations(probe.grid))
        for task in runs:
            task.unload()
    return rows


def settled(context, encoder):
    """The context with what `precision: auto` comes to for this encoder on this device."""
    asked = context.probe.precision
    precision = products.precision(asked, encoder, torch.device(context.device), NARROWEST)
    if asked == "auto":
        log.info("%s: precision %s", context.name, precision)
    return replace(context, probe=context.probe.model_copy(update={"precision": precision}))


def combinations(grid: dict) -> list[dict]:
    """Every combination of a grid's values, the last key's changing fastest; one of no values without a grid."""
    whole = {"batch_size", "epochs"}
    values = [[int(value) if key in whole else value for value in listed] for key, listed in grid.items()]
    return [dict(zip(grid, combination, strict=True)) for combination in itertools.product(*values)]


def chosen(outcomes: list[list[dict]], values: list[dict]) -> list[dict]:
    """Score rows of the combination whose median validation value over seeds is best, the first of equals.

    outcomes: per combination, per seed, {"rows", "value"}; with more than one, its values are rows `chosen_<key>`.
    """
    medians = [statistics.median(result["value"] for result in results) for results in outcomes]
    best = medians.index(max(medians))
    rows = [row for result in outcomes[best] for row in result["rows"]]
    if len(outcomes) == 1:
        return rows
    shared = {"split": "valid", "n": len(outcomes[best])} | {k: rows[0][k] for k in ("task", "train_size")}
    return rows + [{**shared, "metric": f"chosen_{key}", "value": float(v)} for key, v in values[best].items()]


class _Task:
    """The fine-tunings of one checkpoint on one task."""

    def __init__(self, context, name, weights):
        self.context, self.name = context, name
        self.folder, self.facts = context.task(name, "labels", "ratings", "spans")
        self.goal = goal_of(self.facts, context.probe)
        self.sizes = context.training_sizes(name)
        self.identity = None
        if context.state_folder is not None:
            settings = context.probe.model_dump(exclude={"tasks", "seeds", "sizes", "steps", "split", "grid"})
            data = [sha256(self.folder / f"{split}.parquet") for split in SPLITS]
            self.identity = [settings, data, self.facts, weights, context.seed, context.name, name]
        self.unload()

    def groups(self, size, pretrained) -> list[list[int]]:
        """Seeds of the fine-tunings that run side by side."""
        seeds = self.context.probe.seeds
        if self._kept(size, seeds):
            return [seeds]
        self._load(pretrained)
        return [seeds[at : at + self.together] for at in range(0, len(seeds), self.together)]

    def results(self, size, seeds, pretrained) -> list[dict]:
        """{"rows": score rows, "value": best validation value} of each of a group's fine-tunings.

        A group with a missing record is run as a whole: beside others a run may differ from itself in the last bit.
        """
        if found := self._kept(size, seeds):
            return found
        self._load(pretrained)
        results = self._finetune(size, seeds)
        if self.identity is not None:
            for seed, result in zip(seeds, results, strict=True):
                keep(result, self._record(size, seed))
        return results

    def _kept(self, size, seeds) -> list[dict] | None:
        """The records of all these seeds, None if one is missing or broken."""
        found = [None if self.identity is None else kept(self._record(size, seed)) for seed in seeds]
        return None if None in found else found

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
        files = [self.folder / f"{split}.parquet" for split in SPLITS]
        if self.facts["kind"] == "spans":
            if tokenizer is None:
                raise MaskLabError(f"{context.checkpoint}: no tokenizer; the task {self.name!r} holds texts")
            shape = max_length, probe.stride, probe.max_question, context.device
            splits = [encode_windows(file, tokenizer, *shape) for file in files]
        else:
            known = context.device, pretrained.vocab_size
            splits = [encode_split(file, tokenizer, max_length, *known) for file in files]
        test = splits[-1].ids.cpu().numpy()
        content = (test >= len(SPECIALS)) | (test == UNK)
        model, self.splits = restricted(pretrained, splits)
        stacks = isinstance(self.goal, Classification) and probe.rank is None
        if stacks and context.device == "cpu" and supports(model.config):
            from masklab.probes.stacked import Together, stack_size  # numba, which they need, takes half a second

            self.trainer = Together(model, self.goal, probe)
            self.together = stack_size(model.config, probe.batch_size, int(splits[0].lengths.max()))
        else:
            self.trainer = OneByOne(model, self.goal, probe, context.device, content)
            self.together = 1

    def unload(self):
        """Let go of what was loaded."""
        self.splits = self.trainer = self.together = None

    def _finetune(self, size, seeds) -> list[dict]:
        context, (train, valid, test) = self.context, self.splits
        rows = train.rows(size)
        courses = [
            Course(context.probe, context.seed, context.name, self.name, rows, seed, train.lengths[:rows])
            for seed in seeds
        ]
        outcomes = self.trainer.finetune(courses, train, valid, test)
        return [
            {"rows": self._rows(size, seed, outcome), "value": outcome.best_value}
            for seed, outcome in zip(seeds, outcomes, strict=True)
        ]

    def _rows(self, size, seed, outcome) -> list[dict]:
        _, valid, test = self.splits
        shared = {"task": self.name, "train_size": size, "seed": seed}
        of_goal = self.goal.rows((test, outcome.predictions), (valid, outcome.validation))
        of_goal.append({"split": "test", "metric": "best_step", "value": float(outcome.best_step), "n": len(valid)})
        of_goal.append({"split": "test", "metric": "capped", "value": float(outcome.capped), "n": len(valid)})
        rows = [{**shared, **row} for row in of_goal]
        if outcome.ranks is not None:
            last = {"split": "test", "layer": self.trainer.model.encoder.config.layers, "n": len(test)}
            rows += [{**shared, **last, "metric": name, "value": value} for name, value in outcome.ranks.items()]
        return rows
