"""What a run computes with: fp32 or bf16, and who makes its products. The same numbers come out again only by the same.

`precision: auto` is settled by processor and shape: bf16 on a GPU that has it, and on a CPU that has it (AVX-512 bf16
or AMX) for transformers of `NARROWEST` units or more; narrower ones spend little of their time in products.
A run that is resumed goes on with the precision that it began with, on whatever machine. Who makes its fp32
products depends on the machine that it goes on on; its record says where that is someone else (`Record.go_on`).
"""

import logging

import torch

from masklab.files import fingerprint, read_json, write_json
from masklab.jobs import saved
from masklab.models import products
from masklab.training.distributed import Ranks
from masklab.training.record import Record
from masklab.training.run import Run

log = logging.getLogger("masklab")

NARROWEST = 48  # five side by side take .74 of the time in it on a Zen 4 (benchmarks/replicates.py)
FILE = "arithmetic.json"  # in the run's state folder


def settle(run: Run, device: torch.device, ranks: Ranks | None = None) -> dict[str, str]:
    """`precision`, fp32 or bf16, that `run` began with, or begins with, and `products`: who makes fp32 ones here.

    What a run of another config, or of other inputs, had begun with is not asked. Of several processes (`ranks`) the
    first settles `auto` for all: they may stand on unlike hardware.
    """
    path, state, precision = run.state / FILE, run.state / "state.safetensors", None
    if path.is_file() and (state.is_file() or saved.previous(state).is_file()):
        kept = read_json(path)
        precision = kept["precision"] if kept.get("run") == _made_of(run) else None
    if precision is None:
        precision = products.precision(run.model.precision, run.encoder, device, NARROWEST)
    if ranks and run.model.precision == "auto":
        (precision,) = ranks.tell([precision])
    return {"precision": precision, "products": products.library() if device.type == "cpu" else "cuBLAS"}


def keep(run: Run, settled: dict[str, str]) -> None:
    """Write down what a run computes with, for its resumption, and say it where it was left to us."""
    write_json(settled | {"run": _made_of(run)}, run.state / FILE)
    if run.model.precision == "auto":
        log.info("%s: precision %s, fp32 products by %s", run.name, settled["precision"], settled["products"])


def _made_of(run: Run) -> str:
    """Fingerprint of what the weights of a run are made of."""
    return fingerprint(Record(run).what())
