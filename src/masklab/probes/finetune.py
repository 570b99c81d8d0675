"""Fine-tuning on labels, ratings and answer spans (BabyLM 2023's recipe).

Two loops do the same: `single` for whatever a task asks, one course after the other; `stacked` for labels on a CPU,
courses of narrow models side by side.

A fresh head on [CLS] (Hugging Face's for the architecture) or on the mean of all tokens, AdamW, warm-up, linear
decay to 0, dropout on. The validation split is measured every `evaluate_every` steps and after the last; the best
model is kept and measured on the test split, or on each of its domains. The metric it is chosen by is `select`,
whatever the task reports; of ratings and spans it is the task's (`probes.goals`). A data set too small for one
evaluation keeps its final model. Unlike transformers' Trainer the last step is always evaluated.

`sizes` fine-tunes on the first rows of the training split too: sets of different sizes are nested. Fine-tuning
seed s draws its head, batches and dropout at (the replicate's seed, probe, task, s): equal for every recipe, so that
recipes are compared in pairs.

Checkpoints of one replicate of a recipe are measured at once (`measure_all`): small models are fine-tuned side by side
(`stacked`), whichever of these checkpoints they begin with and, where a probe has one size and no grid, whichever of
its tasks with as many rows they learn. Beside another task a fine-tuning may differ from itself in the last bit: the
norm of its gradient is a sum over the tokens of both.

With a `grid` every combination of its values is run with every seed, and the rows are those of the combination with
the best median over seeds on the validation split; `chosen_lr` and the like say which. With `rank` the effective rank
of the last layer is measured on the test split: rows of that layer, as
the probe `rank` names them.

Words without a network are not fine-tuned: see `regression`.
"""

import itertools
import logging
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from masklab.errors import MaskLabError
from masklab.files import fingerprint, sha256
from masklab.jobs.midway import Midway
from masklab.models import products
from masklab.models.checkpoint import load_checkpoint
from masklab.models.stacked import WIDEST, supports
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
NARROWEST = 64  # units from which `precision: auto` is bf16 on a CPU: .7 of the time on a Zen 4, at 128 units as well
log = logging.getLogger("masklab")


def measure(context) -> list[dict]:
    """Rows of the task's metrics (test split, best model), their items, and of every task, size and seed `best_step`
    and `capped`: 1 of a run that ended since it had made all its updates, 0 of one that stopped for want of patience.

    Of labels: accuracy, mcc, f1, majority, majority_f1; of ratings: pearson, spearman; of spans: exact, f1 (see
    `answer_spans`). `split` is `test`; where the test split has a column `domain`, the metrics are measured per domain
    and `split` is the domain's name.
    """
    (rows,) = measure_all([context])
    return rows


def measure_all(contexts) -> list[list[dict]]:
    """`measure` of each of several checkpoints of one replicate of a recipe: of all at once where models are narrow."""
    contexts, found = iter(contexts), []
    for context in contexts:
        found += [regression.measure(context)] if is_words(context.checkpoint) else _measured(context, contexts)
    return found


def _measured(first, others) -> list[list[dict]]:
    """Rows of the first checkpoint, and of all others that are taken."""
    contexts, models = [first], [load_checkpoint(first.checkpoint, first.device)]
    if supports(models[0].config) and models[0].config.hidden <= WIDEST:
        contexts += others
        models += [load_checkpoint(context.checkpoint, context.device) for context in contexts[1:]]
    context = settled(contexts[0], models[0].config)
    contexts = [replace(each, probe=context.probe) for each in contexts]
    grid = [context.probe.model_copy(update=values) for values in combinations(context.probe.grid)]
    tasks = [_Task(context, name) for name in context.tasks]
    total = sum(len(task.sizes) for task in tasks) * len(context.probe.seeds) * len(grid) * len(models)
    weights = [None if each.state_folder is None else each.identity for each in contexts]
    work = _Work(context.progress, total)
    for task in sorted(tasks, key=lambda task: task.sizes):  # those of one size are neighbours
        splits, content = task.encoded(context, models[0])
        of_task = [
            _FineTuning(replace(each, probe=probe), number, combination, model, identity, task, splits, size, seed)
            for number, (each, model, identity) in enumerate(zip(contexts, models, weights, strict=True))
            for combination, probe in enumerate(grid)
            for size in task.sizes
            for seed in probe.seeds
        ]
        if task.stacks(context, models[0]):
            for one in sorted(of_task, key=lambda one: (one.size, one.combination)):
                work.side_by_side(one)
        else:
            for _, ones in itertools.groupby(of_task, lambda one: (one.number, one.combination)):
                work.one_by_one([*ones], content)
    work.stack()
    rows = [[] for _ in models]
    for number, task in itertools.product(range(len(models)), tasks):
        for size in task.sizes:
            places = [[(number, at, task.name, size, seed) for seed in context.probe.seeds] for at in range(len(grid))]
            tried = [[work.found[place] for place in each] for each in places]
            rows[number] += chosen(tried, combinations(context.probe.grid))
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
    """A task of the probe, as the checkpoints of one recipe read it."""

    def __init__(self, context, name):
        self.name = name
        self.folder, self.facts = context.task(name, "labels", "ratings", "spans")
        self.goal = goal_of(self.facts, context.probe)
        self.sizes = context.training_sizes(name)
        self.files = [self.folder / f"{split}.parquet" for split in SPLITS]
        self.data = None if context.state_folder is None else [sha256(file) for file in self.files]

    def stacks(self, context, model) -> bool:
        """Whether its fine-tunings run side by side."""
        plain = isinstance(self.goal, Classification) and context.probe.rank is None
        return plain and context.device == "cpu" and supports(model.config, context.probe.precision)

    def encoded(self, context, model):
        """Its splits, and which tokens of the test split count in ranks."""
        probe = context.probe
        has_tokenizer = (Path(context.checkpoint) / "tokenizer.json").is_file()
        tokenizer = load_tokenizer(context.checkpoint) if has_tokenizer else None
        max_length = min(probe.max_length, model.config.max_positions)
        if self.facts["kind"] == "spans":
            if tokenizer is None:
                raise MaskLabError(f"{context.checkpoint}: no tokenizer; the task {self.name!r} holds texts")
            shape = max_length, probe.stride, probe.max_question, context.device
            splits = [encode_windows(file, tokenizer, *shape) for file in self.files]
        else:
            known = context.device, model.vocab_size
            splits = [encode_split(file, tokenizer, max_length, *known) for file in self.files]
        test = splits[-1].ids.cpu().numpy()
        return splits, (test >= len(SPECIALS)) | (test == UNK)


@dataclass(frozen=True)
class _FineTuning:
    """One fine-tuning. number: of the checkpoint; identity: what that is; combination: number of the grid's values that
    the probe of its own context has."""

    context: object
    number: int
    combination: int
    model: object
    identity: str | None
    task: _Task
    splits: list
    size: int
    seed: int

    @property
    def place(self):
        return self.number, self.combination, self.task.name, self.size, self.seed

    @property
    def course(self):
        context, train = self.context, self.splits[0]
        rows = train.rows(self.size)
        return Course(context.probe, context.seed, context.name, self.task.name, rows, self.seed, train.lengths[:rows])

    @property
    def record(self) -> Path | None:
        """Where its result is kept: the name is the fingerprint of everything it depends on."""
        context, task = self.context, self.task
        if context.state_folder is None:
            return None
        settings = context.probe.model_dump(exclude={"tasks", "seeds", "sizes", "steps", "split", "grid"})
        address = [settings, task.data, task.facts, self.identity, context.seed, context.name, task.name]
        return Path(context.state_folder) / f"{fingerprint([*address, self.size, self.seed])}.json"

    def rows(self, outcome) -> list[dict]:
        """Its score rows and items."""
        _, valid, test = self.splits
        shared = {"task": self.task.name, "train_size": self.size, "seed": self.seed}
        of_goal = self.task.goal.rows((test, outcome.predictions), (valid, outcome.validation))
        of_goal.append({"split": "test", "metric": "best_step", "value": float(outcome.best_step), "n": len(valid)})
        of_goal.append({"split": "test", "metric": "capped", "value": float(outcome.capped), "n": len(valid)})
        rows = [{**shared, **row} for row in of_goal]
        if outcome.ranks is not None:
            last = {"split": "test", "layer": self.model.config.layers, "n": len(test)}
            rows += [{**shared, **last, "metric": name, "value": value} for name, value in outcome.ranks.items()]
        return rows


class _Work:
    """Fine-tunings as they are done. found: {"rows": score rows, "value": best validation value} of each, by place."""

    def __init__(self, progress, total):
        self.progress, self.total = progress, total
        self.found, self.waiting, self.of = {}, [], None

    def side_by_side(self, one) -> None:
        """Have it run in a stack with others that take the same updates."""
        from masklab.probes.stacked import stack_size  # numba, which it needs, takes half a second

        probe = one.context.probe
        most = stack_size(one.model.config, probe.batch_size, int(one.splits[0].lengths.max()))
        of = one.combination, one.size, one.task.goal.classes, most
        if of != self.of:
            self.stack()
        self.of = of
        self.waiting.append(one)
        if len(self.waiting) == most:
            self.stack()

    def stack(self) -> None:
        """Run those that wait, as one stack.

        A stack with a missing record is run as a whole: beside others a run may differ from itself in the last bit.
        """
        ones, self.waiting = self.waiting, []
        if not ones or self._kept(ones):
            return
        from masklab.probes.stacked import Start, Together

        # of each task and of each checkpoint once, whoever asks for them
        tasks, models = {id(one.splits): one.splits for one in ones}, {id(one.model): one.model for one in ones}
        few, restricted_splits = restricted(models.values(), [split for splits in tasks.values() for split in splits])
        models = dict(zip(models, few, strict=True))
        parts = zip(*[iter(restricted_splits)] * len(SPLITS), strict=True)
        tasks = dict(zip(tasks, parts, strict=True))
        starts = [Start(models[id(one.model)], one.task.goal, *tasks[id(one.splits)]) for one in ones]
        midway = self._midway(ones)
        outcomes = Together(ones[0].context.probe).finetune([one.course for one in ones], starts, midway)
        self._done(ones, outcomes, midway)

    def one_by_one(self, ones, content) -> None:
        """Run those of one checkpoint and one task in turn."""
        trainer = None
        for one in ones:
            if self._kept([one]):
                continue
            if trainer is None:
                (model,), splits = restricted([one.model], one.splits)
                trainer = OneByOne(model, one.task.goal, one.context.probe, one.context.device, content)
            midway = self._midway([one])
            self._done([one], [trainer.course(one.course, *splits, midway)], midway)

    def _kept(self, ones) -> bool:
        """Whether the records of all of them are there, and whole; then these are what was found."""
        records = [one.record for one in ones]
        results = [None if record is None else kept(record) for record in records]
        if None in results:
            return False
        self._found(ones, results)
        return True

    def _midway(self, ones) -> Midway:
        """Who is told how far these are, and keeps their state if their results are kept."""
        done, name, file = len(self.found), ones[-1].task.name, None
        if None not in (records := [one.record for one in ones]):
            file = records[0].with_name(f"{fingerprint([record.stem for record in records])}.safetensors")

        def told(share):
            self.progress(done + share * len(ones), self.total, name)

        return Midway(f"fine-tuning on {name}", told, file)

    def _done(self, ones, outcomes, midway) -> None:
        results = [
            {"rows": one.rows(outcome), "value": outcome.best_value}
            for one, outcome in zip(ones, outcomes, strict=True)
        ]
        for one, result in zip(ones, results, strict=True):
            if one.record is not None:
                keep(result, one.record)
        midway.over()
        self._found(ones, results)

    def _found(self, ones, results) -> None:
        self.found |= {one.place: result for one, result in zip(ones, results, strict=True)}
        self.progress(len(self.found), self.total, ones[-1].task.name)
