"""Probes: ways to measure one checkpoint. A kind is a function, registered in `masklab.config.kinds`.

It is a function

    measure(context: Context) -> list[dict]

that returns score rows without the keys the caller knows (recipe, replicate, step,
probe): `task`, `metric`, `value` and `n` always, the other columns of
`masklab.scores.schema` where they apply. Where the value of a row comes from items
answered one by one, a row with the key `predictions` is their record
(`masklab.scores.items`; `outcomes` makes both). It reads the checkpoint folder and
the task folders of the context, writes nothing outside `state_folder`, and draws
random numbers only at addresses below (`seed`, `name`), so that its rows depend on
the context alone. Beside it a module of ours may have `measure_all(contexts)`, which
measures several checkpoints of one replicate at once and returns the rows of each.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from masklab.config import kinds
from masklab.errors import MaskLabError
from masklab.files import fingerprint, read_json, sha256
from masklab.models.lookup import FACTS
from masklab.models.words import FILE as WORDS
from masklab.scores.schema import SLACK

# What a checkpoint is; other files in its folder say nothing that a probe reads.
PARTS = (
    "model.safetensors",
    "latent.safetensors",
    "decoder.safetensors",
    FACTS,
    WORDS,
    "config.json",
    "tokenizer.json",
)
KNOWN = ("recipe", "replicate", "step", "probe")  # columns of scores that the caller adds
LEVELS = ("majority", "majority_f1")  # metrics that stand beside others: what always giving one answer scores


def _silent(done: int, total: int, note: str = "") -> None:
    pass


@dataclass(frozen=True)
class Context:
    """What a probe is given to measure one checkpoint.

    probe: entry of `config.probes`; checkpoint: Hugging Face folder; tasks: task name -> artifact folder.
    seed: the replicate's seed; name: the probe's name. Neither recipe nor step is in the address: all recipes
    of a replicate are measured with the same batches and dropout, so that differences between them are paired.
    progress: called as `progress(done, total)`.
    state_folder: finished parts are kept there and not repeated after a kill; None: nothing is kept.
    codes, tokens: codes folder of the model's dictionary and token folder of its corpus, for naming atoms.
    conditionals: folder of the exact conditionals of that corpus (`masklab.conditionals`), for the loss.
    """

    probe: object
    checkpoint: Path
    tasks: Mapping[str, Path] = field(default_factory=dict)
    seed: int = 1
    name: str = "probe"
    device: str = "cpu"
    progress: Callable = _silent
    state_folder: Path | None = None
    codes: Path | None = None
    tokens: Path | None = None
    conditionals: Path | None = None

    @property
    def corpus(self) -> str:
        """Name of the corpus: token folders are `<corpus>[/r<k>]/<tokenizer>[/r<k>]`, and no name is `r<k>`."""
        names = [part for part in Path(self.tokens).parts if not re.fullmatch(r"r\d+", part)]
        return names[-2]

    @property
    def identity(self) -> str:
        """Hash of what the checkpoint is: weights or what it has in their place, config and tokenizer."""
        folder = Path(self.checkpoint)
        return fingerprint([[name, sha256(folder / name)] for name in PARTS if (folder / name).is_file()])

    def training_sizes(self, task: str) -> list[int]:
        """Sizes of training sets: so many first rows of the training split are trained on, for each in turn."""
        import pyarrow.parquet as pq

        rows = pq.read_metadata(Path(self.tasks[task]) / "train.parquet").num_rows
        sizes = self.probe.sizes or [rows]
        if max(sizes) > rows:
            raise MaskLabError(
                f"probes.{self.name}.sizes: {max(sizes)} is more than the {rows} training rows of {task!r}"
            )
        return sizes

    def task(self, name: str, *kinds: str) -> tuple[Path, dict]:
        """Folder and task.json of task `name`, which must hold one of `kinds` (labels, ratings, spans, pairs)."""
        folder = Path(self.tasks[name])
        info = read_json(folder / "task.json")
        if info["kind"] not in kinds:
            raise MaskLabError(
                f"probes.{self.name}.tasks: {name!r} holds {info['kind']}; a {self.probe.kind} probe needs"
                f" {' or '.join(kinds)}"
            )
        return folder, info


def run_all(probe, contexts: Iterable[Context]) -> list[list[dict]]:
    """`run` of several checkpoints of one replicate of a recipe, in turn or, where the kind has a `measure_all`, as it
    does it. contexts: of this probe, each taken when its turn comes."""
    kind = kinds.find("probes", probe.kind)
    module = None if kind.file else sys.modules[kind.function().__module__]
    if hasattr(module, "measure_all"):
        return module.measure_all(contexts)
    from masklab.probes.outcomes import checkpoint_kept

    return [checkpoint_kept(context, partial(run, context)) for context in contexts]


def run(context: Context) -> list[dict]:
    """Score rows and item records of one checkpoint, by the module registered for `context.probe.kind`."""
    kind = kinds.find("probes", context.probe.kind)
    made = kind.function()(context)
    if not kind.file:
        return made
    wanted = "a list of rows, each a dictionary of task, split, metric, value, n, ..."
    if not isinstance(made, Iterable) or isinstance(made, str | Mapping):
        raise kind.refused(wanted, made)
    rows, ranges = list(made), getattr(context.probe, "ranges", {})
    for row in rows:
        if not isinstance(row, dict):
            raise kind.refused(wanted, row, "a row")
        if taken := [key for key in KNOWN if key in row]:
            raise kind.refused(f"rows without the keys {', '.join(KNOWN)}, which are added to them", taken, "keys")
        metric, value = row.get("metric"), row.get("value")
        if ranges and isinstance(metric, str) and metric not in ranges and metric not in LEVELS:
            raise kind.refused(f"metrics that the `ranges` of its settings name, {', '.join(ranges)}", metric, "metric")
        if metric not in ranges or not isinstance(value, int | float):  # which the schema of scores judges
            continue
        least, most = ranges[metric]
        if not least - SLACK <= value <= most + SLACK:
            raise kind.refused(f"{metric} of {least:g} to {most:g}, as its settings say", value, "value")
    return rows
