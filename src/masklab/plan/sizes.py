"""Sequence lengths, vocabularies and numbers of rows, from artifacts where they exist, else estimated.

What each replicate has drawn for itself is taken to be as large as replicate 1's.
"""

import functools
import json
import math
from pathlib import Path

import numpy as np

from masklab.config.references import OF_CORPUS, law_entry, named_law, stated_sequences, words_of
from masklab.config.schema import BabylmLabels, GlueTask, LabelFiles, PairFiles, RestrictedLabels, SquadTask
from masklab.plan.text_sizes import benchmark_sizes, corpus_size, pairs, task_size

# Tokens of a line (specials counted) at every twentieth quantile of 290,000 lines of Simple English Wikipedia,
# children's books, speech to children and telephone speech: benchmarks/pretraining_throughput.py.
LINES = (6, 8, 9, 10, 11, 13, 14, 16, 20, 25, 32, 39, 49, 58, 70, 83, 98, 117, 143, 190, 1721)
LINES_TOKENS_PER_WORD = 1.3  # of the tokenizer that counted them
PAIRED = ("entailment", "paraphrase")  # recipes of generated labels whose examples are two sentences


def _read(path):
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def count_of(entry, key: str) -> int | None:
    """A key of an entry that is a number of things; None of anything else that a user's kind calls so."""
    value = getattr(entry, key, None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def published(entry) -> str | None:
    """The name by which `task_rows` has the size of a task of a benchmark, whatever its entry is called."""
    if isinstance(entry, SquadTask):
        return "squad"
    whole = isinstance(entry, GlueTask) or (isinstance(entry, BabylmLabels) and entry.release == 2023)
    return entry.task if whole else None


class Sizes:
    """Sizes under one configuration. assumptions: what stands in for what the config does not say."""

    def __init__(self, paths, assumptions: dict):
        self.paths, self.config, self.assumed = paths, paths.config, assumptions
        self.guessed = set()  # corpora of text whose files say nothing yet
        self._text = functools.cache(lambda corpus: corpus_size(self.config.corpora[corpus]))
        self.length = functools.cache(self._length)

    def _counts(self, corpus, tokenizer):
        return _read(self.paths.tokens(corpus, tokenizer, 1)).get("splits", {}).get("train")

    def sequences(self, corpus: str, tokenizer: str) -> float:
        """Training sequences."""
        counts = self._counts(corpus, tokenizer)
        if counts:
            return counts["sequences"]
        entry = self.config.corpora[corpus]
        if (stated := stated_sequences(self.config, entry)) is not None:
            return stated
        if entry.kind == "text" and (found := self._text(corpus)):
            return max(1.0, found[0] - entry.valid - entry.test)
        self.guessed.add(corpus)
        lines = self.assumed["text_sequences"]
        lines = lines.get(corpus, lines["default"])
        if entry.kind == "text" and entry.max_words is not None:
            mean = entry.packed_words if entry.unit == "packed" else sum(LINES) / len(LINES) / LINES_TOKENS_PER_WORD
            lines = min(lines, entry.max_words / mean)
        return lines

    def _length(self, corpus: str, tokenizer: str) -> float:
        """Mean tokens of a training sequence, [CLS] and [SEP] counted, cut to the tokenizer's maximum."""
        longest = self.config.tokenizers[tokenizer].max_length
        counts = self._counts(corpus, tokenizer)
        if counts:
            return min(longest, counts["tokens"] / counts["sequences"] + 2)
        entry = self.config.corpora[corpus]
        if (length := count_of(entry, "length")) is not None:
            return min(longest, length * self._spelling(entry) + 2)
        if entry.kind == "english":
            return min(longest, self.assumed["english_tokens"])
        if entry.kind == "text" and (found := self._text(corpus)):
            each = self.tokens_per_word(tokenizer)
            return sum(min(longest, words * each + 2) for words in found[1]) / len(found[1])
        if entry.kind == "text" and entry.unit == "line":
            return sum(min(longest, line) for line in LINES) / len(LINES)
        return longest

    def tokens_per_word(self, tokenizer: str) -> float:
        """Tokens of a word of English text, between those that are assumed for sizes of vocabularies."""
        sizes, ratios = zip(*sorted(self.assumed["tokens_per_word"].items()), strict=True)
        return float(np.interp(math.log(self.vocabulary(tokenizer)), [math.log(size) for size in sizes], ratios))

    def _chains(self, entry):
        key, _ = named_law(entry) or (None, None)
        return law_entry(self.config, entry) if key == "chains" else None

    def _spelling(self, entry):
        """Mean tokens of a symbol."""
        chains = self._chains(entry)
        return (1 + chains.longest) / 2 if chains is not None and chains.features == "multi" else 1

    def vocabulary(self, tokenizer: str) -> int:
        """Tokens of a vocabulary, specials counted."""
        entry = self.config.tokenizers[tokenizer]
        if (size := getattr(entry, "vocab_size", None)) is not None:
            return size
        files = [self.paths.tokenizer(tokenizer, 1), *getattr(entry, "files", [])[:1]]
        for vocabulary in (_read(file).get("model", {}).get("vocab") for file in files):
            if vocabulary:
                return len(vocabulary)
        if entry.kind == "folder":
            return self.assumed["folder_vocabulary"]
        corpus = self.config.corpora[entry.corpus]
        words = words_of(law_entry(self.config, corpus)) if named_law(corpus) else getattr(corpus, "vocabulary", 0)
        return 5 + (words or self.assumed["symbols"])

    def rows(self, task: str) -> tuple[float, float, float]:
        """Training, validation and test rows of a labelled task; the domains of a test counted together."""
        counts = _read(self.paths.task(task, 1)).get("rows")
        entry = self.config.tasks[task]
        if counts:
            train, valid, test = counts["train"], counts["valid"], counts["test"]
        elif isinstance(entry, RestrictedLabels):
            train, valid, test = self.rows(entry.task)
        elif isinstance(entry, GlueTask | SquadTask) and (found := benchmark_sizes(entry)):
            train, valid, test = found
        elif isinstance(entry, LabelFiles) and (found := task_size(entry, "train")):
            train, valid, test = found[0], *(self._held_out(entry, split, found[0]) for split in ("valid", "test"))
        elif (train := count_of(entry, "train")) is not None:
            domains = 4 if entry.kind == "patterns" else 1
            valid, test = (count_of(entry, split) or train / 10 for split in ("valid", "test"))
            test *= domains
        else:
            assumed = self.assumed["task_rows"]
            train, valid = assumed.get(task) or assumed.get(published(entry)) or assumed["default"]
            test = valid
            if isinstance(entry, GlueTask) and entry.task == "mnli":  # tested on both development sets
                test += assumed["mnli-mm"][1]
        limits = [count_of(entry, key) or math.inf for key in ("limit", "limit_held_out", "limit_held_out")]
        return tuple(map(min, (train, valid, test), limits))

    def _held_out(self, entry, split, train):
        """Rows of a held-out split of label files; validation doubles as test."""
        found = task_size(entry, split) or task_size(entry, "valid")
        return found[0] if found else train / 10

    def task_length(self, task: str, longest: int, tokenizer: str | None = None) -> float:
        """Mean tokens of an example. tokenizer: that of the model that reads it."""
        entry = self.config.tasks[task]
        if tokenizer and isinstance(entry, LabelFiles) and (found := task_size(entry, "train")):
            frame = 2 if entry.text_b is None else 3
            return min(longest, found[1] * self.tokens_per_word(tokenizer) + frame)
        if entry.kind in OF_CORPUS:
            return min(longest, (count_of(entry, "length") or self.config.corpora[entry.corpus].length) + 2)
        if (length := count_of(entry, "length")) is not None:
            return min(longest, length * self._spelling(entry) + 2)
        if isinstance(entry, SquadTask):
            return min(longest, self.assumed["squad_tokens"])
        if entry.kind == "english-labels":
            sentences = 2 if entry.recipe in PAIRED else 1
            return min(longest, sentences * self.assumed["english_tokens"])
        return min(longest, self.assumed["task_tokens"])

    def pairs(self, task: str) -> float:
        """Minimal pairs of a task."""
        counts = _read(self.paths.task(task, 1)).get("phenomena")
        if counts:
            return sum(counts.values())
        if isinstance(self.config.tasks[task], PairFiles) and (found := pairs(self.config.tasks[task])):
            return found
        per_phenomenon = count_of(self.config.tasks[task], "pairs")
        return per_phenomenon * self.assumed["phenomena"] if per_phenomenon else self.assumed["pairs"]
