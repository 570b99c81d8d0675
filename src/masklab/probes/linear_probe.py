"""Linear probing: how well a linear classifier does on frozen representations (Liu et al. 2023, section 2.1, A.4).

The last hidden states of a sequence's tokens are put side by side, up to the longest sequence of the task, with zeros
where a sequence has ended; a random Gaussian projection makes them `projection` numbers; a linear classifier is
trained on them by AdamW. The encoder is in eval mode throughout (the released code leaves its dropout on), so its
states are computed once for all seeds, sizes and epochs. Of a lookup table the representation of a token is its exact
conditional distribution; of words without a network it is the token itself, in its place or counted (`bags`), whatever
`pooling` says.

Seed s draws projection, head, batches and, by `examples: drawn`, the rows that it is trained on at (the replicate's
seed, probe, task, s): equal for recipes of one width. All seeds of a size are trained side by side.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from masklab.errors import MaskLabError
from masklab.files import fingerprint, sha256
from masklab.models.checkpoint import load_checkpoint
from masklab.models.lookup import is_lookup, load_lookup
from masklab.models.stacked import encoding_by_hand
from masklab.models.words import Words, is_words, load_words
from masklab.probes.bags import word_tables
from masklab.probes.goals import domains
from masklab.probes.heads import Heads, standardised, train_heads
from masklab.probes.outcomes import keep, kept, of_classes
from masklab.probes.representations import EncoderSource, LookupSource, first_rows, projected, projections
from masklab.rng import generator, torch_generator
from masklab.symbols import FIRST
from masklab.tasks.encoding import encode_split
from masklab.tokenizers import load_tokenizer

SPLITS = ("train", "valid", "test")
FEW = 2000  # rows whose orders are kept: 64 MiB of them at most


def measure(context) -> list[dict]:
    """Rows of a classification (test split, or each of its domains), their items, and best_step per task and size.

    One of each per seed, as in `finetune`; `best_step` counts the updates that the classifier measured has made.
    """
    rows, done = [], 0
    source, vocab_size, limit = _source(context)
    tasks = [_Task(context, name) for name in context.tasks]
    total = sum(len(task.sizes) for task in tasks)
    for task in tasks:
        for size in task.sizes:
            rows += task.result(size, source, vocab_size, limit)
            done += 1
            context.progress(done, total, task.name)
        task.features = None
    return rows


def _source(context):
    """(source of features, or `Words`; vocabulary size; longest sequence with specials) of a checkpoint."""
    pooling = context.probe.pooling
    if is_words(context.checkpoint):
        words = load_words(context.checkpoint)
        return words, words.vocab_size, min(context.probe.max_length, words.max_positions)
    if is_lookup(context.checkpoint):
        if pooling == "cls":
            raise MaskLabError(f"probes.{context.name}.pooling: a lookup table has no [CLS]; use concat or mean")
        law = load_lookup(context.checkpoint)
        return LookupSource(law, pooling), law.symbols + FIRST, context.probe.max_length
    model = encoding_by_hand(load_checkpoint(context.checkpoint, context.device))
    return EncoderSource(model, pooling), model.vocab_size, min(context.probe.max_length, model.config.max_positions)


def _order(size, *address):
    """In which order an epoch reads `size` rows."""
    return generator(*address).permutation(size)


_kept_order = lru_cache(1 << 12)(_order)  # one checkpoint after the other asks for the same


class _Task:
    """The probes of one checkpoint on one task."""

    def __init__(self, context, name):
        self.context, self.name, self.features = context, name, None
        self.folder, self.facts = context.task(name, "labels")
        self.sizes = context.training_sizes(name)

    def result(self, size, source, vocab_size, limit) -> list[dict]:
        """Score rows of all seeds of one size; kept in the state folder, named by all that they depend on."""
        context = self.context
        if context.state_folder is None:
            return self._measure(size, source, vocab_size, limit)
        settings = context.probe.model_dump(exclude={"tasks", "sizes", "steps", "split"})
        data = [sha256(self.folder / f"{split}.parquet") for split in SPLITS]
        identity = [settings, data, self.facts, context.identity, context.seed]
        path = Path(context.state_folder) / f"{fingerprint([*identity, context.name, self.name, size])}.json"
        if (rows := kept(path)) is None:
            rows = self._measure(size, source, vocab_size, limit)
            keep(rows, path)
        return rows

    def _load(self, source, vocab_size, limit):
        context, probe = self.context, self.context.probe
        tokenizer = None
        if (Path(context.checkpoint) / "tokenizer.json").is_file():
            tokenizer = load_tokenizer(context.checkpoint)
        self.splits = [
            encode_split(self.folder / f"{split}.parquet", tokenizer, limit, context.device, vocab_size)
            for split in SPLITS
        ]
        longest = max(int(split.lengths.max(initial=2)) for split in self.splits) - 2
        train = None if probe.examples == "drawn" else max(self.sizes)
        used = {"train": train or len(self.splits[0]), "valid": len(self.splits[1]) if probe.select == "valid" else 0}
        splits = [
            first_rows(split, used.get(name, len(split))) for name, split in zip(SPLITS, self.splits, strict=True)
        ]
        generators = [self._torch(seed, "projection") for seed in probe.seeds]
        if isinstance(source, Words):
            where = f"probes.{context.name}.projection"
            self.features = word_tables(splits, source.order, probe.projection, generators, where, context.device)
            return
        matrices = None
        if probe.projection is not None:
            matrices = projections(source.size(longest), probe.projection, generators, context.device)
        self.features = [projected(source, split, longest, matrices) for split in splits]

    def _torch(self, seed, purpose):
        return torch_generator(*self._address(seed, purpose))

    def _training(self, size):
        """(features [size, S or 1, P], labels [S or 1, size]) of the rows that each seed is trained on."""
        features, labels = self.features[0], self.splits[0].labels
        if self.context.probe.examples == "first":
            return features[:size], labels[None, :size]
        of_each, own = [], features.shape[1] > 1  # a projection for every seed
        for seed in self.context.probe.seeds:
            rows = generator(*self._address(seed, "examples")).permutation(len(labels))[:size]
            of_each.append((features[torch.from_numpy(rows), len(of_each) if own else 0], labels[rows]))
        features, labels = zip(*of_each, strict=True)
        return torch.stack(features, 1), np.stack(labels)

    def _address(self, seed, purpose):
        return self.context.seed, self.context.name, self.name, seed, purpose

    def _measure(self, size, source, vocab_size, limit):
        if self.features is None:
            self._load(source, vocab_size, limit)
        context, probe, classes = self.context, self.context.probe, self.facts["labels"]
        _, valid, test = self.splits
        trained, labels = self._training(size)
        features = [trained, *self.features[1:]]
        if probe.standardise:
            features = standardised(*features)
        heads = Heads(
            features[0].shape[2], classes, [self._torch(seed, "head") for seed in probe.seeds], context.device
        )
        addresses = [self._address(seed, "order") for seed in probe.seeds]
        order = _kept_order if size <= FEW else _order
        orders = [lambda epoch, at=at: order(size, *at, epoch) for at in addresses]

        def validate(heads):
            return [(predicted == valid.labels).mean() for predicted in heads.predictions(features[1])]

        best_steps = train_heads(
            heads, features[0], labels, orders, probe, validate if probe.select == "valid" else None
        )
        predicted = heads.predictions(features[2])
        rows = []
        for seed, predictions, steps in zip(probe.seeds, predicted, best_steps, strict=True):
            rows += self._rows(size, seed, predictions, test, steps, len(valid))
        return rows

    def _rows(self, size, seed, predictions, test, steps, valid):
        shared = {"task": self.name, "train_size": size, "seed": seed}
        rows = []
        for split, members in domains(test).items():
            answers = test.labels[members], predictions[members]
            rows += of_classes(*answers, self.facts["labels"], **shared, split=split)
        return [*rows, {**shared, "split": "test", "metric": "best_step", "value": float(steps), "n": valid}]
