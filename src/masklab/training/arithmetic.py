"""What a run computes with: fp32 or bf16, and by which library. The same numbers come out again only by the same.

`precision: auto` is settled by processor and shape: bf16 on a GPU that has it, and on a CPU that has it (AVX-512 bf16
or AMX) for transformers of `NARROWEST` units or more; below that its products are no faster than the casts around them.
A run that is resumed goes on with what it began with, on whatever machine.
"""

import logging

import torch

from masklab.files import read_json, write_json
from masklab.models import products
from masklab.training.run import Run

log = logging.getLogger("masklab")

NARROWEST = 128
FILE = "arithmetic.json"  # in the run's state folder


def settle(run: Run, device: torch.device) -> dict[str, str]:
    """What `run` began with, or begins with: `precision`, fp32 or bf16, and `products`, the library of fp32 ones."""
    path = run.state / FILE
    if path.is_file() and (run.state / "state.safetensors").is_file():
        return read_json(path)
    precision = products.precision(run.model.precision, run.encoder, device, NARROWEST)
    return {"precision": precision, "products": products.library() if device.type == "cpu" else "cuBLAS"}


def keep(run: Run, settled: dict[str, str]) -> None:
    """Write down what a run computes with, for its resumption, and say it where it was left to us."""
    write_json(settled, run.state / FILE)
    if run.model.precision == "auto":
        log.info("%s: precision %s, fp32 products by %s", run.name, settled["precision"], settled["products"])
