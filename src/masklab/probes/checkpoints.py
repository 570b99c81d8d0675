"""One probe on the checkpoints of one replicate of a recipe -> a file of score rows and one of items."""

from pathlib import Path

import torch

from masklab.config import kinds
from masklab.config.located import shown
from masklab.files import sha256, write_table
from masklab.jobs import state
from masklab.jobs.progress import Progress
from masklab.probes import Context, run_all
from masklab.scores.items import items_path, records_to_table
from masklab.scores.schema import rows_to_table


def measure_checkpoints(
    *,
    recipe: str,
    replicate: int,
    name: str,
    probe,
    checkpoints,
    tasks,
    output,
    seed: int = 1,
    device: str = "auto",
    threads: int | None = None,
    state_folder=None,
    codes=None,
    tokens=None,
    conditionals=None,
):
    """Measure `checkpoints` [(step, folder), ...] of a replicate with the probe `name` and write `output`.

    probe: config entry (`masklab.config.schema`); tasks: task name -> folder; seed: the replicate's; device: auto,
    cpu or cuda; threads: CPU threads, None leaves torch's. Returns the table of scores. Beside `output` lies the file
    of items (`scores.items.items_path`), always: empty where the probe keeps none. With `state_folder` a killed run
    goes on where it was; the folder is locked meanwhile and emptied on success.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"

    def rows():
        contexts = (
            Context(
                probe=probe,
                checkpoint=Path(folder),
                tasks=tasks,
                seed=seed,
                name=name,
                device=device,
                progress=Progress(f"{name} {recipe}/r{replicate}@{step}", "parts", folder=state_folder),
                state_folder=state_folder,
                codes=codes,
                tokens=tokens,
                conditionals=conditionals,
            )
            for step, folder in checkpoints
        )
        for (step, _), found in zip(checkpoints, run_all(probe, contexts), strict=True):
            for row in found:
                yield {"recipe": recipe, "replicate": replicate, "step": step, "probe": name, **row}

    file = kinds.find("probes", probe.kind).file
    where = f"{shown(file)}: probe {name}" if file else f"probe {name}"
    if state_folder is None:
        return _write(rows(), output, where)
    with state.locked(state_folder) as folder:
        table = _write(rows(), output, where)
        state.done(folder)
    return table


def _sum(file) -> bytes:
    return sha256(file).encode()


def _write(rows, output, where):
    rows = list(rows)
    items = records_to_table([row for row in rows if "predictions" in row], f"{where}: items")
    table = rows_to_table([row for row in rows if "predictions" not in row], f"{where}: scores")
    write_table(items, items_path(output))
    # what reads both files has the scores as its input: other items are to make it again
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), b"masklab.items": _sum(items_path(output))})
    write_table(table, output)
    return table
