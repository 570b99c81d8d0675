"""One probe on the checkpoints of one model -> one file of score rows."""

from pathlib import Path

import pyarrow as pa
import torch

from masklab.files import write_table
from masklab.jobs import state
from masklab.jobs.progress import Progress
from masklab.probes import Context, run
from masklab.scores.schema import rows_to_table


def measure_checkpoints(
    *,
    name: str,
    probe,
    checkpoints,
    recipe: str | None = None,
    replicate: int = 1,
    study: str = "-",
    model: str | None = None,
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
    """Measure `checkpoints` [(step, folder), ...] of `model` with the probe `name` and write `output`.

    probe: config entry (`masklab.config.schema`); tasks: task name -> folder; device: auto, cpu or cuda;
    threads: CPU threads, None leaves torch's. Returns the table written. With `state_folder` a killed run
    goes on where it was; the folder is locked meanwhile and emptied on success.
    """
    model = recipe or model
    if recipe is not None:  # until items are written: none
        write_table(pa.table({"recipe": pa.array([], pa.string())}), Path(output).with_suffix(".items.parquet"))
    if threads is not None:
        torch.set_num_threads(threads)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"

    def rows():
        for step, folder in checkpoints:
            context = Context(
                probe=probe,
                checkpoint=Path(folder),
                tasks=tasks,
                seed=seed,
                name=name,
                device=device,
                progress=Progress(f"{name} {model}@{step}", "parts", folder=state_folder),
                state_folder=state_folder,
                codes=codes,
                tokens=tokens,
                conditionals=conditionals,
            )
            for row in run(context):
                yield {"study": study, "probe": name, "model": model, "step": step, **row}

    if state_folder is None:
        return _write(rows(), output)
    with state.locked(state_folder) as folder:
        table = _write(rows(), output)
        state.clear(folder)
    return table


def _write(rows, output):
    table = rows_to_table(list(rows))
    write_table(table, output)
    return table
