"""Sequence lengths, vocabularies and numbers of rows, from artifacts where they exist, else estimated.

What each replicate has drawn for itself is taken to be as large as replicate 1's.
"""

import json
from pathlib import Path

# Tokens of a line (specials counted) at every twentieth quantile of 290,000 lines of Simple English Wikipedia,
# children's books, speech to children and telephone speech: benchmarks/pretraining_throughput.py.
LINES = (6, 8, 9, 10, 11, 13, 14, 16, 20, 25, 32, 39, 49, 58, 70, 83, 98, 117, 143, 190, 1721)


def _read(path):
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


class Sizes:
    """Sizes under one configuration. assumptions: what stands in for what the config does not say."""

    def __init__(self, paths, assumptions: dict):
        self.paths, self.config, self.assumed = paths, paths.config, assumptions

    def _counts(self, corpus, tokenizer):
        return _read(self.paths.tokens(corpus, tokenizer, 1)).get("splits", {}).get("train")

    def sequences(self, corpus: str, tokenizer: str) -> float:
        """Training sequences."""
        counts = self._counts(corpus, tokenizer)
        if counts:
            return counts["sequences"]
        entry = self.config.corpora[corpus]
        if (stated := getattr(entry, "sentences", None)) is not None:
            return stated
        if (stated := getattr(entry, "sequences", None)) is not None:
            chains = self._chains(entry)
            return stated * (chains.chains if chains else 1)
        lines = self.assumed["text_sequences"]
        return lines.get(corpus, lines["default"])

    def length(self, corpus: str, tokenizer: str) -> float:
        """Mean tokens of a training sequence, [CLS] and [SEP] counted, cut to the tokenizer's maximum."""
        longest = self.config.tokenizers[tokenizer].max_length
        counts = self._counts(corpus, tokenizer)
        if counts:
            return min(longest, counts["tokens"] / counts["sequences"] + 2)
        entry = self.config.corpora[corpus]
        if (length := getattr(entry, "length", None)) is not None:
            return min(longest, length * self._spelling(entry) + 2)
        if entry.kind == "english":
            return min(longest, self.assumed["english_tokens"])
        if entry.kind == "text" and entry.unit == "line":
            return sum(min(longest, line) for line in LINES) / len(LINES)
        return longest

    def _chains(self, entry):
        named = getattr(entry, "chains", None)
        return self.config.chains[named] if isinstance(named, str) else named

    def _spelling(self, entry):
        """Mean tokens of a symbol."""
        chains = self._chains(entry)
        return (1 + chains.longest) / 2 if chains is not None and chains.features == "multi" else 1

    def vocabulary(self, tokenizer: str) -> int:
        """Tokens of a vocabulary, specials counted."""
        entry = self.config.tokenizers[tokenizer]
        if (size := getattr(entry, "vocab_size", None)) is not None:
            return size
        vocabulary = _read(self.paths.tokenizer(tokenizer, 1)).get("model", {}).get("vocab")
        if vocabulary:
            return len(vocabulary)
        chains = self._chains(self.config.corpora[entry.corpus])
        return 5 + 2 * (chains.alphabet or chains.synsets) if chains is not None else self.assumed["symbols"]

    def rows(self, task: str) -> tuple[float, float, float]:
        """Training, validation and test rows of a labelled task; the domains of a test counted together."""
        counts = _read(self.paths.task(task, 1)).get("rows")
        entry = self.config.tasks[task]
        if counts:
            train, valid, test = counts["train"], counts["valid"], counts["test"]
        elif getattr(entry, "train", None) is not None and not isinstance(entry.train, str):
            domains = 4 if entry.kind == "patterns" else 1
            train, valid, test = entry.train, entry.valid, entry.test * domains
        else:
            train, valid = self.assumed["task_rows"].get(task, self.assumed["task_rows"]["default"])
            test = valid
        limit = getattr(entry, "limit", None)
        return (min(train, limit) if limit else train), valid, test

    def task_length(self, task: str, longest: int) -> float:
        """Mean tokens of an example."""
        entry = self.config.tasks[task]
        if (length := getattr(entry, "length", None)) is not None:
            return min(longest, length * self._spelling(entry) + 2)
        return min(longest, self.assumed["task_tokens"])

    def pairs(self, task: str) -> float:
        """Minimal pairs of a task."""
        counts = _read(self.paths.task(task, 1)).get("phenomena")
        if counts:
            return sum(counts.values())
        per_phenomenon = getattr(self.config.tasks[task], "pairs", None)
        return per_phenomenon * self.assumed["phenomena"] if per_phenomenon else self.assumed["pairs"]
