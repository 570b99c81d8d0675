"""Probes: ways to measure one checkpoint. A new probe is one module and one line in `PROBES`.

A probe module has one function

    measure(context: Context) -> list[dict]

that returns score rows without the keys the caller knows (study, probe, model,
step): `task`, `metric`, `value` and `n` always, the other columns of
`masklab.scores` where they apply. It reads the checkpoint folder and the task
folders of the context, writes nothing outside `state_folder`, and draws random
numbers only at addresses below (`seed`, `name`), so that its rows depend on the
context alone.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import read_json

PROBES = {
    "minimal_pairs": "masklab.probes.minimal_pairs",
    "finetune": "masklab.probes.finetune",
    "prediction": "masklab.probes.prediction",
    "loss": "masklab.probes.loss",
    "curvature": "masklab.probes.curvature",
    "landscape": "masklab.probes.landscape",
    "linear_probe": "masklab.probes.linear_probe",
    "rank": "masklab.probes.rank",
    "cost": "masklab.probes.cost",
}


def _silent(done: int, total: int, note: str = "") -> None:
    pass


@dataclass(frozen=True)
class Context:
    """What a probe is given to measure one checkpoint.

    probe: entry of `config.probes`; checkpoint: Hugging Face folder; tasks: task name -> artifact folder.
    seed: the config's seed; name: the probe's name. Neither model nor step is in the address: every
    model is measured with the same batches and dropout, so that differences between models are paired.
    progress: called as `progress(done, total)`.
    state_folder: finished parts are kept there as JSON and not repeated after a kill; None: nothing is kept.
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


def run(context: Context) -> list[dict]:
    """Score rows of one checkpoint, by the module registered for `context.probe.kind`."""
    kind = context.probe.kind
    if kind not in PROBES:
        raise MaskLabError(f"probes.{context.name}.kind: {kind!r} is not a probe; known: {', '.join(PROBES)}")
    return importlib.import_module(PROBES[kind]).measure(context)
