"""Optimisers and learning-rate schedules of the four papers."""

import torch


def build(parameters, config, device):
    """Optimiser of a `config.schema.Optimiser`; every parameter decays, as in the released code."""
    if config.kind == "sgd":
        return torch.optim.SGD(parameters, lr=config.lr, weight_decay=config.weight_decay)
    return torch.optim.AdamW(
        parameters, lr=config.lr, betas=config.betas, eps=config.eps, weight_decay=config.weight_decay, fused=True
    )


def rate_at(step: int, steps: int, config) -> float:
    """Learning rate of update `step` (0-based) of `steps`: linear warm-up, then linear decay to 0 or constant.

    Equals transformers' `get_linear_schedule_with_warmup` / `get_constant_schedule_with_warmup`
    with `round(warmup * steps)` warm-up updates.
    """
    warm = round(config.warmup * steps)
    if step < warm:
        return config.lr * step / max(1, warm)
    if config.schedule == "constant":
        return config.lr
    return config.lr * max(0.0, (steps - step) / max(1, steps - warm))
