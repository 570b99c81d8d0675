"""Text to tokens by array operations: each distinct word is encoded once, and looked up from then on.

Where a tokenizer's words end at spaces, the tokens of a text are those of its words, one after another. Hugging Face's
library encodes every running word anew, which takes several times as long.
"""

import json
import threading

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MARK = "\u2581"  # stands for a space in Unigram's and BPE's words
KNOWN = 1 << 19  # distinct words remembered; beyond it all are forgotten
WORDS = ("BertPreTokenizer", "WhitespaceSplit", "Metaspace")
TOGETHER = 256  # words
MODELS = ("Unigram", "BPE", "WordPiece", "WordLevel")


def applies(tokenizer) -> bool:
    """Whether nothing that the tokenizer does to a word depends on the words around it."""
    parts = json.loads(tokenizer.to_str())
    normaliser, splitter, model = (parts[key] or {} for key in ("normalizer", "pre_tokenizer", "model"))
    steps = normaliser.get("normalizers", [normaliser] if normaliser else [])
    metaspace = {"replacement": MARK, "prepend_scheme": "always", "split": True}
    return (
        parts["truncation"] is None
        and parts["padding"] is None
        and all(_keeps_words(step) for step in steps)
        and splitter.get("type") in WORDS
        and (splitter["type"] != "Metaspace" or metaspace.items() <= splitter.items())
        and model.get("type") in MODELS
        and not model.get("dropout")
        and all(" " not in token["content"] and not token["normalized"] for token in parts["added_tokens"])
        and _separator(tokenizer) is not None
    )


def _separator(tokenizer) -> tuple[str, int] | None:
    """An added token that takes in nothing around it and stands for nothing unknown: (token, id)."""
    model = json.loads(tokenizer.to_str())["model"]
    for number, token in tokenizer.get_added_tokens_decoder().items():
        unknown = token.content == model.get("unk_token") or number == model.get("unk_id")
        if not (token.lstrip or token.rstrip or token.single_word or unknown):
            return token.content, number
    return None


def _keeps_words(step):
    pattern = step.get("pattern", {}).get("String", " ")
    return step["type"] == "Lowercase" or (step["type"] == "Replace" and " " not in pattern + step["content"])


class Wordwise:
    """Encodes Arrow strings with a tokenizer for which `applies` holds; usable by several threads at once."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        # A word with one of these is encoded together with its whole text: a special token may take in the space
        # before it, and a word that begins with the mark gets no other.
        special = tokenizer.get_added_tokens_decoder()
        self.apart = [token.content for token in special.values()] + [MARK]
        self.between = _separator(tokenizer)
        self.lock = threading.Lock()
        self._forget()

    def _forget(self):
        self.slots: dict[str, int] = {}
        self.counts, self.starts, self.plain = (np.zeros(0, kind) for kind in (np.int32, np.int64, bool))
        self.ids = np.zeros(0, np.int32)

    def encode(self, texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Strings [n] -> (token ids of all of them end to end [sum] int32, tokens of each [n] int64), no [CLS]."""
        split = pc.split_pattern(texts, " ")
        offsets = split.offsets.to_numpy().astype(np.int64)
        words = split.values.slice(offsets[0], offsets[-1] - offsets[0]).dictionary_encode()
        offsets -= offsets[0]
        slots, tables = self._slots(words.dictionary.to_pylist())
        starts, counts, plain, ids = tables
        at = slots[words.indices.to_numpy()]
        # Spaces at the beginning of a text: the first of them is the mark of its first word.
        first = offsets[:-1][offsets[:-1] < offsets[1:]]
        lengths = counts[at].astype(np.int64)
        lengths[first[at[first] == slots[-1]]] = 0
        odd = np.zeros(0, np.int64)
        if not plain[slots].all():
            before = np.concatenate([[0], np.cumsum(~plain[at])])
            odd = np.flatnonzero(before[offsets[1:]] > before[offsets[:-1]])
            lengths[np.repeat(np.isin(np.arange(len(texts)), odd), np.diff(offsets))] = 0
        ends = np.concatenate([[0], np.cumsum(lengths)])
        each = ends[offsets[1:]] - ends[offsets[:-1]]
        found = ids[np.repeat(starts[at] - ends[:-1], lengths) + np.arange(ends[-1])]
        return self._with(odd, texts, found, each) if len(odd) else (found, each)

    def _slots(self, words):
        """Rows of the tables for words and, last, for the empty word; with the tables, which others only replace."""
        words.append("")
        with self.lock:
            if len(self.slots) > KNOWN:
                self._forget()
            slots = list(map(self.slots.get, words))
            if None in slots:
                self._learn([word for word, slot in zip(words, slots, strict=True) if slot is None])
                slots = list(map(self.slots.__getitem__, words))
            return np.array(slots), (self.starts, self.counts, self.plain, self.ids)

    def _learn(self, words):
        words = list(dict.fromkeys(words))
        plain, every = np.ones(len(words), bool), "\n".join(words)
        for part in self.apart:
            if part in every:
                plain &= np.array([part not in word for word in words])
        counts = np.zeros(len(words), np.int32)
        ids, counts[plain] = self._encoded([word or " " for word, alone in zip(words, plain, strict=True) if alone])
        ends = len(self.ids) + np.cumsum(counts, dtype=np.int64)
        self.slots.update(zip(words, range(len(self.slots), len(self.slots) + len(words)), strict=True))
        self.starts = np.concatenate([self.starts, ends - counts])
        self.counts = np.concatenate([self.counts, counts])
        self.plain = np.concatenate([self.plain, plain])
        self.ids = np.concatenate([self.ids, ids])

    def _encoded(self, words) -> tuple[np.ndarray, np.ndarray]:
        """Words, none with a special token -> (token ids end to end, tokens of each).

        Many together, between special tokens: what stands between two of them is encoded as if it stood alone, and a
        text of its own for each word takes twice as long.
        """
        mark, number = self.between
        lines = [mark.join([*words[at : at + TOGETHER], ""]) for at in range(0, len(words), TOGETHER)]
        found = np.concatenate([np.zeros(0, np.int32), *(np.array(row.ids, np.int32) for row in self._batch(lines))])
        ends = np.flatnonzero(found == number)
        return found[found != number], np.diff(ends, prepend=-1) - 1

    def _batch(self, texts):
        return self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)

    def _with(self, odd, texts, found, each):
        """Put in the tokens of the texts `odd`, which have none yet."""
        rows = [row.ids for row in self._batch(texts.take(pa.array(odd)).to_pylist())]
        each[odd] = [len(row) for row in rows]
        theirs = np.repeat(np.isin(np.arange(len(each)), odd), each)
        ids = np.empty(len(theirs), np.int32)
        ids[~theirs] = found
        ids[theirs] = [token for row in rows for token in row]
        return ids, each
