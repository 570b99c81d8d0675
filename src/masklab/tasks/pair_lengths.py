"""Sentences of minimal pairs that are longer than a model reads: found before it is trained, not by a probe after that.

How long they are is known as soon as a task and a tokenizer are made, which is before any pre-training that waits for
the same tokenizer: jobs of tasks start first. Were tasks inputs of pre-training, a model would be trained again for
every change of a task. So the Snakemake that starts jobs leaves for them, in the environment, what will be measured on
each recipe (`leave`), and a job of pre-training looks at the tasks that are there (`check`). Sentences with fewer bytes
than the model has positions, which is nearly all of them, cost no more than a look.
"""

import base64
import json
import os
import time
import zlib
from contextlib import suppress
from pathlib import Path

from masklab.config.measured import study_pairs
from masklab.config.references import recipe_of_dictionary, split_reference
from masklab.config.replicates import dictionary_of
from masklab.errors import MaskLabError

VARIABLE = "MASKLAB_PAIRS"
SHOWN = 40  # characters of a sentence that is too long


def leave(config, anew=()) -> None:
    """Leave for the jobs of this Snakemake what `measured` finds. anew: tasks, as below tasks/, that it makes anew."""
    left = {"measured": measured(config), "anew": sorted(anew), "began": time.time()}
    os.environ[VARIABLE] = base64.b64encode(zlib.compress(json.dumps(left).encode(), 9)).decode()


def measured(config) -> dict[str, dict[str, list]]:
    """Recipe -> task of minimal pairs -> [positions, recipe, probe, encoder] of the model that reads the least of it.

    Of the recipe itself and of all that start from it, learn from it, or from a dictionary of its hidden states, as far
    as they have its tokenizer. Models without a network, and those made elsewhere, are not among them.
    """
    found: dict[str, dict[str, list]] = {}
    for probe, recipe in dict.fromkeys(pair for study in config.studies for pair in study_pairs(config, study)):
        model, entry = config.models[recipe], config.probes[probe]
        encoder = config.encoders[model.encoder]
        if entry.kind != "minimal_pairs" or not encoder.network or encoder.kind == "folder":
            continue
        for source in _behind(config, recipe):
            if config.models[source].tokenizer == model.tokenizer:
                tasks, own = found.setdefault(source, {}), [encoder.max_positions, recipe, probe, model.encoder]
                tasks |= {task: min(tasks.get(task, own), own, key=lambda each: each[0]) for task in entry.tasks}
    return found


def _behind(config, recipe: str) -> dict[str, None]:
    """A recipe and all whose models have to be there before its own."""
    found, waiting = {}, [recipe]
    while waiting:
        if (name := waiting.pop()) in found:
            continue
        found[name] = None
        model, dictionary = config.models[name], dictionary_of(config, name)
        waiting += [split_reference(each, name)[0] for each in (model.init, model.teacher) if each]
        waiting += [recipe_of_dictionary(config, dictionary)] if dictionary else []
    return found


def check(recipe: str, replicate: int, tokenizer, tasks) -> None:
    """No sentence of the minimal pairs that `leave` says are measured has more tokens than the model reads.

    tokenizer: its folder; tasks: the folder of all tasks, of which those that are not yet made are passed over.

    Raises:
        MaskLabError: naming the task, the row of the longest sentence, its tokens and how many the model reads.
    """
    if (packed := os.environ.get(VARIABLE)) is None:
        return
    left = json.loads(zlib.decompress(base64.b64decode(packed)))
    for task, (most, *of_model) in left["measured"].get(recipe, {}).items():
        for name in (f"{task}/r{replicate}", task):
            file, long = Path(tasks) / name / "test.parquet", []
            with suppress(OSError, ValueError):  # it is not there, or is just being made: the probe will say it
                if name not in left["anew"] or file.stat().st_mtime > left["began"]:
                    long = too_long(file, tokenizer, most)
            if long:
                raise MaskLabError(f"tasks.{task}: {_said(long, file, most, *of_model)}")


def too_long(file, tokenizer, most: int) -> list[tuple[int, int, str]]:
    """(tokens, row from 1, sentence) of each row with more than `most` tokens, [CLS] and [SEP] counted; longest first.

    file: Parquet with the columns `good` and `bad`; without these, as of a task of another kind, there are none.
    tokenizer: its folder.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if not {"good", "bad"} <= set(pq.read_schema(file).names):
        return []
    table, texts = pq.read_table(file, columns=["good", "bad"]), []
    for column in table.columns:
        # a token spells a byte at least, but for a mark before the first word
        rows = pc.indices_nonzero(pc.greater(pc.binary_length(column), most - 3)).to_pylist()
        texts += [(row + 1, column[row].as_py()) for row in rows]
    if not texts:
        return []
    from masklab.tasks.encoding import content_ids
    from masklab.tokenizers import load_tokenizer

    ids = content_ids(load_tokenizer(tokenizer), [text for _, text in texts])
    longest: dict[int, tuple[int, int, str]] = {}
    for (row, text), own in zip(texts, ids, strict=True):
        if (tokens := len(own) + 2) > max(most, longest.get(row, (0,))[0]):
            longest[row] = tokens, row, text
    return sorted(longest.values(), key=lambda each: (-each[0], each[1]))


def _said(long, file, most: int, model: str, probe: str, encoder: str) -> str:
    """The line about rows that are too long, of which there is one at least."""
    (tokens, row, text), count = long[0], len(long)
    shown = repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
    several = f"; so have {count - 1:,} more rows more than that" if count > 1 else ""
    return (
        f"row {row:,} of {file} has {tokens:,} tokens, [CLS] and [SEP] counted ({shown}), and {model!r}, which"
        f" probes.{probe} measures on it, reads {most:,} (encoders.{encoder}.max_positions){several}; raise that"
        " number, or leave such rows out"
    )
