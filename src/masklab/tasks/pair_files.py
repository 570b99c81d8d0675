"""Minimal pairs from json lines: BLiMP's, its supplement's, EWoK's, entity tracking's (`config.pair_rows`)."""

import logging

import numpy as np
import pandas as pd

from masklab.config.babylm import BLIMP_2025, lines
from masklab.config.pair_rows import item_of
from masklab.config.sources import matched
from masklab.errors import MaskLabError
from masklab.lines import read_json_lines, stem_of
from masklab.rng import generator
from masklab.tasks import pair_facts

log = logging.getLogger("masklab")


def pair_files(config, name, seed):
    """Build a pairs task; `item` and `given` where items have several bad sentences, or text that is not scored."""
    items = []
    for index, file in enumerate(matched(config, f"tasks.{name}")):
        stem = stem_of(file)
        found = [item_of(file, number, row, stem, config.group_by) for number, row in read_json_lines(file)]
        if not found:
            raise MaskLabError(f"{file}: no pairs")
        if config.limit and config.limit < len(found):
            stream = generator(seed, name, "limit", config.seed, index)
            found = [found[at] for at in np.sort(stream.permutation(len(found))[: config.limit])]
        items += found
    rows = [
        (item.phenomenon, item.paradigm, item.good, bad, number, item.given)
        for number, item in enumerate(items)
        for bad in item.bad
    ]
    frame = pd.DataFrame(rows, columns=["phenomenon", "paradigm", "good", "bad", "item", "given"])
    plain = len(rows) == len(items) and not any(item.given for item in items)
    facts = pair_facts(frame.drop_duplicates("item"))
    return {"test": frame.drop(columns=["item", "given"]) if plain else frame}, facts


def babylm_pairs(config, name, seed):
    """Pairs of a BabyLM release; `as_released` in task.json: whether all files have the lines that the release has."""
    splits, facts = pair_files(config, name, seed)
    return splits, facts | {"as_released": as_released(config, matched(config, f"tasks.{name}"), name)}


def as_released(config, files, name) -> bool | None:
    """Whether files have as many lines as in the release; None: not known of one of them. A difference is logged."""
    counts = {file: sum(1 for _ in read_json_lines(file)) for file in dict.fromkeys(map(str, files))}
    known = {file: lines(config.release, file) for file in counts}
    for file, count in counts.items():
        if known[file] not in (None, count):
            log.warning("tasks.%s: %s has %d lines; that of %s has %d", name, file, count, config.release, known[file])
    if config.task == "blimp" and config.release == 2025:
        return len(counts) == 67 and sum(counts.values()) == BLIMP_2025
    if any(known[file] not in (None, count) for file, count in counts.items()):
        return False
    return None if None in known.values() else True
