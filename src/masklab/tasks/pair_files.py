"""Minimal pairs from json lines: BLiMP's, its supplement's, EWoK's, entity tracking's (`config.pair_rows`)."""

import logging

import numpy as np
import pandas as pd

from masklab.config.babylm import BLIMP_2025, BLIMP_2025_FILES, lines
from masklab.config.pair_rows import item_of
from masklab.config.sources import matched
from masklab.errors import MaskLabError
from masklab.lines import read_json_lines, read_lines, stem_of
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
    if equal := sum(item.good in item.bad for item in items):
        log.warning(
            "tasks.%s: %d of %d pairs have equal sentences; such a tie counts as right", name, equal, len(items)
        )
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
    files = list(dict.fromkeys(map(str, files)))
    if config.task == "blimp" and config.release == 2025:  # of which the sum alone is known
        found, wanted = (len(files), sum(map(_rows, files))), (BLIMP_2025_FILES, BLIMP_2025)
        if found != wanted:
            log.warning("tasks.%s: BLiMP has %d pairs in %d files; that of 2025 has %d in %d", name,
                        *reversed(found), *reversed(wanted))  # fmt: skip
        return found == wanted
    known = {file: lines(config.release, file) for file in files}
    other = {file: count for file in files if known[file] is not None and (count := _rows(file)) != known[file]}
    for file, count in other.items():
        log.warning("tasks.%s: %s has %d lines; that of %s has %d", name, file, count, config.release, known[file])
    if other:
        return False
    return None if None in known.values() else True


def _rows(file) -> int:
    """Lines of a file that are not blank."""
    return sum(1 for _, line in read_lines(file) if line.strip())
