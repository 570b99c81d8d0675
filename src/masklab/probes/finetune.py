"""Fine-tuning on sequence classification: one loop for every task (BabyLM 2023's recipe).

A fresh head on [CLS] (Hugging Face's for the architecture), AdamW, linear decay
to 0, dropout on. The validation split is measured every `evaluate_every` steps
and after the last; the best model is kept and measured on the test split. The
metric it is chosen by is F1 of class 1 for two classes, else accuracy, whatever
the task reports (as published). A data set too small for one evaluation keeps
its final model. Unlike transformers' Trainer the last step is always evaluated.

Fine-tuning seed s draws its head, batches and dropout at (config seed, probe,
task, s): equal for every model, so that models are compared in pairs.
"""

import copy
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from masklab.files import fingerprint, read_json, sha256, write_json
from masklab.models.checkpoint import load_checkpoint
from masklab.models.dropout import dropout
from masklab.probes.encoding import encode_split, shuffled_batches, sorted_batches
from masklab.probes.metrics import METRICS, accuracy, confusion, f1
from masklab.rng import generator, seed_at, torch_generator
from masklab.tokenizers import load_tokenizer
from masklab.training.optim import FlatParameters, rate_at

EVALUATION_TOKENS = 16384  # tokens per forward pass when measuring


class Classifier(nn.Module):
    """Encoder and classification head on [CLS], as DebertaForSequenceClassification / BertForSequenceClassification.

    Absolute positions (BERT): dense-tanh pooler; disentangled (DeBERTa): dense-gelu. Then dropout, linear.
    """

    def __init__(self, encoder, classes: int):
        super().__init__()
        width = encoder.config.hidden
        self.encoder = encoder
        self.dense = nn.Linear(width, width)
        self.classifier = nn.Linear(width, classes)
        self.activation = torch.tanh if encoder.config.positions == "absolute" else F.gelu

    def used_parameters(self) -> list:
        """Every parameter but those of the encoder's language-model heads."""
        unused = ("encoder.head.", "encoder.latent.")
        return [parameter for name, parameter in self.named_parameters() if not name.startswith(unused)]

    def reset_head(self, generator) -> None:
        """Draw the head anew: weights normal(0, init_range), biases 0."""
        with torch.no_grad():
            for layer in (self.dense, self.classifier):
                drawn = torch.empty(layer.weight.shape).normal_(0, self.encoder.config.init_range, generator=generator)
                layer.weight.copy_(drawn)
                layer.bias.zero_()

    def forward(self, ids, lengths):
        """Logits [B, classes] of padded ids [B, T]."""
        first = torch.arange(ids.shape[0], device=ids.device) * ids.shape[1]
        pooled = self.activation(self.dense(self.encoder.encode(ids, lengths, at=first)))
        return self.classifier(dropout(pooled, self.encoder.config.dropout, self.training))


class EarlyStopping:
    """When to stop and which evaluation is best, as transformers' Trainer with EarlyStoppingCallback.

    Any higher value is the new best; only one more than `threshold` above the best so far resets the patience.
    """

    def __init__(self, patience: int, threshold: float):
        self.patience, self.threshold = patience, threshold
        self.best, self.waited = None, 0

    def update(self, value: float) -> tuple[bool, bool]:
        """(is the new best, should stop) after an evaluation that gave `value`."""
        counts = self.best is None or value - self.best > self.threshold
        self.waited = 0 if counts else self.waited + 1
        improved = self.best is None or value > self.best
        if improved:
            self.best = value
        return improved, self.waited >= self.patience


def measure(context) -> list[dict]:
    """Rows accuracy, mcc, f1 (test split, best model) and best_step of every task and seed."""
    probe = context.probe
    tokenizer = load_tokenizer(context.checkpoint)
    pretrained = load_checkpoint(context.checkpoint, context.device)
    weights = sha256(Path(context.checkpoint) / "model.safetensors")
    rows, done, total = [], 0, len(context.tasks) * len(probe.seeds)
    for name in context.tasks:
        folder, info = context.task(name, "labels")
        runs = None
        for seed in probe.seeds:
            kept = _kept(context, folder, weights, name, seed)
            if kept is None or not kept.exists():
                runs = runs or _Runs(context, pretrained, tokenizer, folder, info)
                result = runs.finetune(name, seed)
                if kept is not None:
                    write_json(result, kept)
            else:
                result = read_json(kept)
            rows += result
            done += 1
            context.progress(done, total, name)
    return rows


def _kept(context, folder, weights, task, seed):
    """Where the result of one fine-tuning is kept: its name is the fingerprint of everything it depends on."""
    if context.state_folder is None:
        return None
    settings = context.probe.model_dump(exclude={"tasks", "seeds", "steps", "split"})
    data = [sha256(folder / f"{split}.parquet") for split in ("train", "valid", "test")]
    key = fingerprint([settings, data, weights, context.seed, context.name, task, seed])
    return Path(context.state_folder) / f"{key}.json"


class _Runs:
    """Fine-tunings of one checkpoint on one task; the task is encoded and the model laid out once."""

    def __init__(self, context, pretrained, tokenizer, folder, info):
        self.context, self.classes = context, info["labels"]
        max_length = min(context.probe.max_length, pretrained.config.max_positions)
        self.train, self.valid, self.test = (
            encode_split(folder / f"{split}.parquet", tokenizer, max_length, context.device)
            for split in ("train", "valid", "test")
        )
        self.model = Classifier(copy.deepcopy(pretrained), self.classes).to(context.device)
        self.flat = FlatParameters(self.model.used_parameters())
        self.start = self.flat.values.clone()

    def finetune(self, task: str, seed: int) -> list[dict]:
        """Score rows of one fine-tuning, from the pre-trained weights."""
        probe = self.context.probe
        address = (self.context.name, task, seed)
        self.flat.restart(self.start)
        self.model.reset_head(torch_generator(self.context.seed, *address, "head"))
        steps = probe.epochs * math.ceil(len(self.train) / probe.batch_size)
        stopping = EarlyStopping(probe.patience, probe.threshold)
        best, best_step, stop = self.flat.values.clone(), 0, False
        self.model.train()
        for step, rows in enumerate(self._batches(address)):
            torch.manual_seed(seed_at(self.context.seed, *address, "dropout", step))
            ids, lengths, labels = self.train.batch(rows)
            F.cross_entropy(self.model(ids, lengths), labels).backward()
            self.flat.step(rate_at(step, steps, probe), probe.weight_decay, probe.clip)
            if (step + 1) % probe.evaluate_every == 0 or step + 1 == steps:
                improved, stop = stopping.update(self._selection_metric())
                if improved:
                    best.copy_(self.flat.values)
                    best_step = step + 1
            if stop:
                break
        self.flat.values.copy_(best)
        counts = self._confusion(self.test)
        shared = {"task": task, "split": "test", "train_size": len(self.train), "seed": seed}
        rows = [
            {**shared, "metric": metric, "value": function(counts), "n": len(self.test)}
            for metric, function in METRICS.items()
        ]
        return [*rows, {**shared, "metric": "best_step", "value": float(best_step), "n": len(self.valid)}]

    def _batches(self, address):
        for epoch in range(self.context.probe.epochs):
            rng = generator(self.context.seed, *address, "order", epoch)
            yield from shuffled_batches(self.train.lengths, self.context.probe.batch_size, rng)

    def _selection_metric(self):
        counts = self._confusion(self.valid)
        return f1(counts) if self.classes == 2 else accuracy(counts)

    @torch.inference_mode()
    def _confusion(self, split):
        self.model.eval()  # walks over every module: done here and not at every step
        counts = 0
        for rows in sorted_batches(split.lengths, EVALUATION_TOKENS):
            ids, lengths, _ = split.batch(rows)
            predictions = self.model(ids, lengths).argmax(-1).cpu()
            counts = counts + confusion(split.labels[rows], predictions, self.classes)
        self.model.train()
        return counts
