"""Which word does a causal model expect at the k-th place of a sentence, given the words before it?

For corpora that are drawn from a causal model what `hidden` and `nonterminals` are for theirs: the label is a function
of the sentence that the corpus's own law gives, here of its first k - 1 words. Liu et al. (2023) probe such models on
GLUE alone (section 2.2; see `restricted_labels`).
"""

import numpy as np
import pyarrow as pa
import torch

from masklab import symbols
from masklab.config.schema import NextWord
from masklab.corpora.causal.law import of_header
from masklab.corpora.causal.sample import sample
from masklab.errors import MaskLabError
from masklab.rng import torch_generator
from masklab.tasks import label_facts, majorities

CHUNK = 1024  # sentences drawn, and read, together
RARE = 1000  # draws for each sentence that is long enough, after which it is an error that there are none


def next_words(config: NextWord, name: str, seed: int, corpus):
    """Build a labels task; splits are Arrow tables of `symbols` and `label`, the number of the expected word.

    corpus: a Parquet file of the causal corpus, whose header holds its law. Sentences have at least `position` words
    and are drawn at (seed, `seed` of the task, split), no corpus from the same stream. Words that are nowhere the most
    probable one are no labels; that a sentence may end is none either. task.json has, per split, `majority`: the share
    of the most frequent label, and `chance`: the mean probability of the expected word.
    """
    header = symbols.read_header(corpus)
    law, names = of_header(header), header["names"]
    splits, expected, chance = {}, {}, {}
    for split, count in (("train", config.train), ("valid", config.valid), ("test", config.test)):
        rng = torch_generator(seed, "causal", "task", config.seed, split)
        words, lengths = _sentences(law.restricted, count, config.position, rng, f"tasks.{name}.position")
        expected[split], chance[split] = most_probable(law, words, config.position)
        kept = words[np.arange(words.shape[1]) < lengths[:, None]]
        splits[split] = pa.table({symbols.COLUMN: symbols.column(kept, lengths)})
    labels = np.unique(np.concatenate(list(expected.values())))
    for split, table in splits.items():
        column = np.searchsorted(labels, expected[split]).astype(np.int64)
        splits[split] = symbols.with_header(table.append_column("label", pa.array(column)), names)
    facts = label_facts(splits, [names[label] for label in labels], False, "accuracy")
    return splits, facts | {
        "majority": majorities(splits),
        "chance": {split: float(each.mean()) for split, each in chance.items()},
    }


@torch.inference_mode()
def most_probable(law, words, position: int) -> tuple[np.ndarray, np.ndarray]:
    """(argmax_w Pr(x_k = w | x_1 .. x_k-1) [N] int64, that probability [N]), k = `position` counted from 1.

    words: [N, T] int, T >= k - 1. Over the words alone: that the sentence ends before k is no outcome.
    """
    restricted, expected, chance = law.restricted, [], []
    for start in range(0, len(words), CHUNK):
        before = torch.from_numpy(words[start : start + CHUNK, : position - 1]).to(restricted.device)
        begin = torch.full((len(before), 1), law.rules.start, device=restricted.device)
        logits, _ = restricted(torch.cat([begin, restricted.ids[before]], 1))
        outcomes = restricted.log_probs(logits[:, -1:], position - 1)[:, 0, : law.symbols].double().softmax(-1)
        largest = outcomes.max(-1)
        expected.append(largest.indices.cpu().numpy())
        chance.append(largest.values.cpu().numpy())
    return np.concatenate(expected), np.concatenate(chance)


def _sentences(restricted, count, position, rng, where):
    """(words [count, length] int64, lengths [count]) of sentences of at least `position` words."""
    words, lengths, drawn, kept = [], [], 0, 0
    while kept < count:
        sentences, ends, _ = sample(restricted, CHUNK, rng)
        long = ends >= position
        words.append(sentences[long])
        lengths.append(ends[long])
        drawn, kept = drawn + CHUNK, kept + int(long.sum())
        if drawn > RARE * max(kept, 1):
            raise MaskLabError(f"{where}: {position}: of {drawn} sentences of the corpus {kept} have so many words")
    return np.concatenate(words)[:count], np.concatenate(lengths)[:count]
