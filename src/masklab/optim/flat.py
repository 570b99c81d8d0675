"""Optimisers and learning-rate schedules of the four papers, for pre-training and fine-tuning alike."""

import torch

from masklab import inside_torch
from masklab.optim.direct import mark
from masklab.optim.low import DTYPE


class FlatParameters:
    """Parameters as views of one vector, gradients and the optimiser's moments too.

    A step, clipping, zeroing, keeping and restoring a model are then one operation each instead of one per
    parameter, which matters in a small model. AdamW is torch's fused kernel called directly (`inside_torch`): making a
    `torch.optim.AdamW` takes 1.6 s of every process.

    `direct`: the parameters' gradients come from `backward()` alone. On a CPU they are added in place where that is
    faster (`masklab.optim.direct`); on a GPU, to which an addition for each parameter is as dear as a small product,
    they stay in the tensors that autograd made until `gradient` is asked for. `low`: each parameter has a bf16 copy too
    (`masklab.optim.low`), as of the last `refresh`.

    values, gradient [n]; mean, square [n] and updates []: AdamW's state, on the parameters' device.
    """

    def __init__(self, parameters, direct: bool = False, low: bool = False):
        parameters = list(parameters)
        self.values = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
        self._gradient, self.mean, self.square = (torch.zeros_like(self.values) for _ in range(3))
        self._apart = parameters if direct and gathers(self.values.device) else []
        self._parts = []  # of the gradient, for each of these
        self.updates = torch.zeros((), device=self.values.device)
        self.low = self.values.to(DTYPE) if low else None
        start = 0
        for parameter in parameters:
            part = slice(start, start + parameter.numel())
            parameter.data = self.values[part].view_as(parameter)
            parameter.grad = self._gradient[part].view_as(parameter)
            if self._apart:
                self._parts.append(parameter.grad)
                parameter.grad = None
            start = part.stop
            if direct:
                mark(parameter)
            if low:
                parameter.low = self.low[part].view_as(parameter)

    @property
    def gradient(self) -> torch.Tensor:
        """Sum of what `backward()` has given since the last step, [n]."""
        given = [(part, each) for part, each in zip(self._parts, self._apart, strict=True) if each.grad is not None]
        if given:
            with torch.no_grad():
                inside_torch.add_each_([part for part, _ in given], [each.grad for _, each in given])
            for _, each in given:
                each.grad = None
        return self._gradient

    @torch.no_grad()
    def refresh(self) -> None:
        """Cast the values to their copies, if there are any."""
        if self.low is not None:
            self.low.copy_(self.values)

    def state(self) -> dict[str, torch.Tensor]:
        """What a resumed run needs, by name."""
        return {"values": self.values, "mean": self.mean, "square": self.square, "updates": self.updates}

    @torch.no_grad()
    def load(self, state: dict[str, torch.Tensor]) -> None:
        """Take over what `state` returned."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])

    @torch.no_grad()
    def restart(self, values) -> None:
        """Set the parameters to `values` and forget gradient and moments."""
        self.values.copy_(values)
        for tensor in (self.gradient, self.mean, self.square, self.updates):
            tensor.zero_()

    @torch.no_grad()
    def step(self, lr, weight_decay=0.0, clip=None, *, kind="adamw", betas=(0.9, 0.999), eps=1e-8, momentum=0.0):
        """One update with the gradient, clipped to norm `clip`, which is then zeroed; returns its norm before, [].

        kind `adamw`: decoupled weight decay (torch.optim.AdamW); `sgd`: with `momentum` (torch.optim.SGD).
        """
        norm = self.gradient.norm()
        if clip is not None:
            self.gradient.mul_((clip / (norm + 1e-6)).clamp(max=1))
        if kind == "sgd":
            sgd_(self, lr, weight_decay, momentum)
        else:
            adamw_(self, lr, weight_decay, betas, eps)
        self.gradient.zero_()
        return norm


def gathers(device: torch.device) -> bool:
    """Whether gradients on `device` are gathered in one operation."""
    return device.type != "cpu"


def adamw_(flat, lr: float, weight_decay: float, betas: tuple[float, float], eps: float) -> None:
    """One update of `values` with `gradient`, `mean`, `square` and `updates` of `flat`."""
    flat.updates += 1
    moments = (flat.mean, flat.square, flat.updates)
    inside_torch.adamw_(flat.values, flat.gradient, *moments, lr, *betas, weight_decay, eps)


def sgd_(flat, lr: float, weight_decay: float, momentum: float) -> None:
    """One update of `values` with `gradient` and, for momentum, `mean` of `flat`; changes the gradient."""
    update = flat.gradient.add_(flat.values, alpha=weight_decay)
    if momentum:
        update = flat.mean.mul_(momentum).add_(update)
    flat.values.sub_(update, alpha=lr)


def warm_updates(steps: int, config) -> int:
    """Updates of the warm-up of a run of `steps`: `warmup_steps`, or `round(warmup * steps)` where they are None."""
    given = getattr(config, "warmup_steps", None)
    return round(config.warmup * steps) if given is None else given


def rate_at(step: int, steps: int, config) -> float:
    """Learning rate of update `step` (0-based) of `steps`: linear warm-up, then linear decay to 0 or constant.

    `config` has lr, schedule and warmup (a `config.schema.Optimiser` or a fine-tuning probe), and may have
    `warmup_steps`. Equals transformers' `get_linear_schedule_with_warmup` / `get_constant_schedule_with_warmup` with
    `warm_updates`.
    """
    warm = warm_updates(steps, config)
    if step < warm:
        return config.lr * step / max(1, warm)
    if config.schedule == "constant":
        return config.lr
    return config.lr * max(0.0, (steps - step) / max(1, steps - warm))
