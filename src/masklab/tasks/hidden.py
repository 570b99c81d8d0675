"""Task-k: which state is a hidden Markov model in at the k-th word of a sentence? (Liu et al. 2023, section 2.2, A.1)

The paper does not say whether the state is the one that was drawn or the most probable one given the words. Against
drawn states the best possible accuracy is far below 1 (`best` in task.json); the most probable one is a function of
the sentence.
"""

import numpy as np
import pyarrow as pa

from masklab import symbols
from masklab.config.schema import HmmTask
from masklab.corpora.hmm.law import Law
from masklab.corpora.hmm.model import draw_model
from masklab.errors import MaskLabError
from masklab.rng import generator
from masklab.tasks import label_facts, majorities

CHUNK = 8192  # sentences labelled together


def hidden_states(config: HmmTask, name: str, seed: int, law_seed: int | None = None):
    """Build a labels task; splits are Arrow tables of `symbols` and `label`, the number of the state.

    Sentences are drawn at (seed, `seed` of the model, `seed` of the task, split): tasks that differ in `position` or
    `label` alone hold the same ones, no corpus the same stream. task.json has, per split, `best`: the accuracy of the
    most probable state given the words (1 under `label: map`), and `majority`: that of the most frequent label.
    """
    if config.position > config.length:
        raise MaskLabError(f"tasks.{name}.position: {config.position} is after the last word ({config.length})")
    model = draw_model(config.hmm, seed if law_seed is None else law_seed)
    law, splits, best = Law(model), {}, {}
    for split, count in (("train", config.train), ("valid", config.valid), ("test", config.test)):
        rng = generator(seed, "hmm", config.hmm.seed, "task", config.seed, split)
        words, drawn = model.sample(count, config.length, rng)
        likely, chance = most_likely(law, words, config.position)
        labels = drawn[:, config.position - 1].astype(np.int64) if config.label == "sampled" else likely
        best[split] = float(chance.mean()) if config.label == "sampled" else 1.0
        table = pa.table({symbols.COLUMN: symbols.column(words, [config.length] * count), "label": labels})
        splits[split] = symbols.with_header(table, [f"w{symbol}" for symbol in range(model.symbols)])
    facts = label_facts(splits, list(range(model.states)), False, "accuracy")
    return splits, facts | {"best": best, "majority": majorities(splits)}


def most_likely(law, words, position: int) -> tuple[np.ndarray, np.ndarray]:
    """(argmax_s Pr(z_k = s | x) [N] int64, that probability [N]) for the k-th word, k = `position` counted from 1."""
    states, chances = [np.zeros(0, np.int64)], [np.zeros(0)]
    for start in range(0, len(words), CHUNK):
        posterior = law.hidden(words[start : start + CHUNK])[:, position - 1]
        states.append(posterior.argmax(1))
        chances.append(posterior.max(1))
    return np.concatenate(states), np.concatenate(chances)
