"""Minimal pairs from BLiMP's json lines."""

import numpy as np
import pandas as pd

from masklab.config.sources import matched
from masklab.errors import MaskLabError
from masklab.lines import read_json_lines, stem_of
from masklab.rng import generator
from masklab.tasks import pair_facts

# BLiMP's paper and the BabyLM pipelines count 12 phenomena; two terms of the files are called otherwise there.
PHENOMENA = {"s-selection": "argument_structure", "filler_gap_dependency": "filler_gap"}


def pair_files(config, name, seed):
    """Build a pairs task from files with `sentence_good`, `sentence_bad` and perhaps `linguistics_term`, `UID`."""
    frames = []
    for index, file in enumerate(matched(config, f"tasks.{name}")):
        rows = [_pair(file, number, row, config.group_by) for number, row in read_json_lines(file)]
        if not rows:
            raise MaskLabError(f"{file}: no pairs")
        if config.limit and config.limit < len(rows):
            stream = generator(seed, name, "limit", config.seed, index)
            rows = [rows[at] for at in np.sort(stream.permutation(len(rows))[: config.limit])]
        frames += rows
    frame = pd.DataFrame(frames, columns=["phenomenon", "paradigm", "good", "bad"])
    return {"test": frame}, pair_facts(frame)


def _pair(file, number, row, group_by):
    good, bad = row.get("sentence_good"), row.get("sentence_bad")
    for key, text in (("sentence_good", good), ("sentence_bad", bad)):
        if not isinstance(text, str) or not text.strip():
            raise MaskLabError(f"{file}: line {number}: {key!r} is missing or empty; a pair needs both sentences")
    stem = stem_of(file)
    term = row.get("linguistics_term") or stem
    phenomenon = stem if group_by == "file" else PHENOMENA.get(term, term)
    return phenomenon, row.get("UID") or stem, good, bad
