"""Models that cannot fit the memory of this machine, from a lower bound of what their training takes."""

import os

from masklab.config.places import noted
from masklab.jobs import nvidia

FLOAT = 4  # bytes; weights and what the optimiser keeps are in single precision
GPU = 300e9  # bytes that no GPU has more of: what those of a cluster have is not known here


def least(encoder, model) -> int:
    """Bytes that training a model takes whatever else it does: the weights of its layers, their gradients, moments.

    Of each layer the matrices alone: four of attention (an LSTM has more), two of the feed-forward layer.
    """
    if not encoder.network:
        return 0
    weights = encoder.layers * (4 * encoder.hidden**2 + 2 * encoder.hidden * encoder.ffn * (encoder.kind != "lstm"))
    moments = 2 if model.optimiser.kind == "adamw" else bool(model.optimiser.momentum)
    return FLOAT * weights * (2 + moments if model.steps else 1)


def too_large(config, partitions=dict) -> list[str]:
    """A note for each encoder with a model that cannot fit.

    partitions: gives name -> (MB of its largest node, ...) where this machine submits to a cluster; then these count.
    """
    needed = {}
    for name, model in config.models.items():
        size = least(config.encoders[model.encoder], model)
        needed[model.encoder] = max(needed.get(model.encoder, (0, name)), (size, name), key=lambda one: one[0])
    here = _host()
    if all(size <= here for size, _ in needed.values()):  # the usual case asks nobody
        return []
    whose, most = "this machine has", max(here, _gpu()) if config.device != "cpu" else here
    if nodes := [megabytes * 1e6 * 1.05 for megabytes, *_ in partitions().values()]:
        whose, most = "a node of the cluster has at most", max(most, *nodes, 0 if config.device == "cpu" else GPU)
    return [
        noted(
            f"encoders.{encoder}: training {name!r} takes more than {size / 1e9:,.0f} GB of memory for the weights of"
            f" its layers, their gradients and the optimiser; {whose} {most / 1e9:,.0f} GB",
            config.raw,
        )
        for encoder, (size, name) in needed.items()
        if size > most
    ]


def _host() -> float:
    """Bytes of memory of this machine; infinite where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") + _swap()
    except (OSError, ValueError):
        return float("inf")


def _swap() -> int:
    try:
        with open("/proc/meminfo", encoding="utf-8") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("SwapTotal"))
    except (OSError, StopIteration, ValueError):
        return 0


def _gpu() -> float:
    """Bytes of the largest GPU of this machine; infinite where its driver does not say."""
    sizes = nvidia.said("memory.total")
    try:
        return float("inf") if sizes is None else max((float(size) * 2**20 for size in sizes), default=0.0)
    except ValueError:  # [N/A]
        return float("inf")
