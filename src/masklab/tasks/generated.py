"""Tasks generated from the English-like grammar."""

import contextlib

from masklab.config.schema import EnglishLabels, EnglishPairs
from masklab.corpora.english import labelled_tasks, pairs
from masklab.corpora.english.ratings import rating_task
from masklab.errors import MaskLabError
from masklab.rng import seed_at
from masklab.tasks import label_facts, pair_facts


@contextlib.contextmanager
def asked_of(name: str):
    """What the grammar says of a number of rows (`train: ...`) becomes what is said of the key of task `name`."""
    try:
        yield
    except MaskLabError as error:
        raise MaskLabError(f"tasks.{name}.{error}") from None


def english_pairs(config: EnglishPairs, name, seed):
    """Build a pairs task from the grammar."""
    stream = seed_at(seed, name, "pairs", config.seed)
    with asked_of(name):
        frame = pairs.minimal_pairs(config.pairs, stream, phenomena=tuple(config.phenomena))
    return {"test": frame}, pair_facts(frame)


def english_labels(config: EnglishLabels, name, seed):
    """Build a labels task from the grammar; `config.recipe` is one of `labelled_tasks.RECIPES`."""
    recipe = labelled_tasks.RECIPES[config.recipe]
    sizes = {"train": config.train, "valid": config.valid, "test": config.test}
    with asked_of(name):
        splits = labelled_tasks.labelled(config.recipe, sizes, seed_at(seed, name, "labels", config.seed))
    return splits, label_facts(splits, list(range(recipe.labels)), recipe.pair, config.metric)


def english_ratings(config, name, seed):
    """Build a task of ratings from the grammar."""
    sizes = {"train": config.train, "valid": config.valid, "test": config.test}
    with asked_of(name):
        splits = rating_task(sizes, seed_at(seed, name, "ratings", config.seed))
    facts = {"kind": "ratings", "low": 0.0, "high": 5.0, "pair": True, "metric": config.metric, "rows": sizes}
    return splits, facts
