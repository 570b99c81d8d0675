"""The parameters of several copies of one model: one vector per copy, with gradients and AdamW's moments alongside."""

import math
from copy import copy

import torch

from masklab.optim.flat import sgd_
from masklab.optim.low import DTYPE

LANES = 32  # numbers in a step of torch's vectorised loops: so rows of every copy are cut into them alike


def neighbours(copies: list[int]) -> bool:
    """Whether copies lie one after the other, as `StackedParameters.part` takes them."""
    return copies == list(range(copies[0], copies[0] + len(copies)))


class StackedParameters:
    """S copies of named parameters as rows of one matrix.

    values, gradient [S, n]; mean, square [S, n] and updates []: AdamW's state. A copy's parameters lie one after
    the other, the table `table` [rows, width] first, then zeros: n is a multiple of its width and of `LANES`. Row r of
    the table of copy s is row s n / width + r of `values.view(-1, width)`.
    """

    def __init__(self, start: dict[str, torch.Tensor], copies: int, table: str, trained: bool = True):
        start = {table: start[table]} | start
        self.trained = trained
        self.shapes = {name: tensor.shape for name, tensor in start.items()}
        self.width = start[table].shape[-1]
        flat = torch.cat([tensor.detach().flatten() for tensor in start.values()])
        flat = torch.nn.functional.pad(flat, (0, -len(flat) % math.lcm(self.width, LANES)))
        self._lay_out(flat.expand(copies, -1).contiguous())
        state = self.values if trained else self.values[:, :0]
        self.mean, self.square = torch.zeros_like(state), torch.zeros_like(state)
        self.updates = torch.zeros((), device=flat.device)
        self.low, self.current = None, True

    @classmethod
    def of(cls, models, table: str, trained: bool = True) -> "StackedParameters":
        """The parameters of `models` of one architecture, which are views of a row each from now on, gradients too.

        trained: False for models that are only asked: what is there of gradients takes no memory and holds no numbers.
        """
        stacked = cls(dict(models[0].named_parameters()), len(models), table, trained)
        for row, model in enumerate(models):
            for name, parameter in model.named_parameters():
                stacked[name][row] = parameter.detach()
        stacked.lend(models)
        return stacked

    def lend(self, models) -> None:
        """Have the parameters of each of `models`, and their gradients, be views of a row each."""
        for row, model in enumerate(models):
            for name, parameter in model.named_parameters():
                parameter.data = self[name][row]
                if self.trained:
                    parameter.grad = self.gradient_of(name)[row]
                if self.low is not None:
                    parameter.low = self._low_views[name][row]

    def lower(self) -> None:
        """Have a bf16 copy of all values (`masklab.optim.low`), as of the last `refresh` or `step`.

        Whoever writes values otherwise sets `current` to False. Numbers below 1e-38 may be 0 there, or not: products
        take them for 0.
        """
        self.low, self.current = self.values.to(DTYPE), True
        self._low_views = self._view(self.low)

    def refresh(self) -> None:
        """Cast the values to their copy, if there is one that is of others."""
        if self.low is not None and not self.current:
            self.low.copy_(self.values)
        self.current = True

    def read(self, name: str) -> torch.Tensor:
        """What products read of parameter `name`, [S, ...]: its bf16 copy where there is one."""
        return self[name] if self.low is None else self._low_views[name]

    def part(self, start: int, stop: int) -> "StackedParameters":
        """The copies start .. stop - 1 alone, on the same memory."""
        part = copy(self)
        for name in ("values", "gradient", "mean", "square", "low"):
            if getattr(self, name) is not None:
                setattr(part, name, getattr(self, name)[start:stop])
        part._look()
        return part

    def like(self) -> "StackedParameters":
        """Room for as many copies, without an optimiser's state."""
        made = copy(self)
        made.mean = made.square = self.mean[:, :0]
        made._lay_out(torch.zeros_like(self.values))
        return made

    def _lay_out(self, values):
        self.values = values
        self.gradient = torch.zeros_like(values, device=None if self.trained else "meta")
        self._look()

    def _look(self):
        self._views, self._gradient_views = self._view(self.values), self._view(self.gradient)
        if getattr(self, "low", None) is not None:
            self._low_views = self._view(self.low)

    def _view(self, matrix):
        views, at = {}, 0
        for name, shape in self.shapes.items():
            views[name] = matrix[:, at : at + shape.numel()].unflatten(1, shape)
            at += shape.numel()
        return views

    def __len__(self):
        return len(self.values)

    def __getitem__(self, name: str) -> torch.Tensor:
        """Parameter `name` of all copies, [S, ...], a view."""
        return self._views[name]

    def gradient_of(self, name: str) -> torch.Tensor:
        """Its gradient, [S, ...], a view."""
        return self._gradient_views[name]

    def with_gradient(self, name: str):
        """(parameter `name` of all copies, its gradient), views."""
        return self._views[name], self._gradient_views[name]

    def pair(self, name: str):
        """(weight, bias) of layer `name`."""
        return self._views[f"{name}.weight"], self._views[f"{name}.bias"]

    def gradient_pair(self, name: str):
        """Their gradients."""
        return self._gradient_views[f"{name}.weight"], self._gradient_views[f"{name}.bias"]

    def keep(self, copies: list[int]) -> None:
        """Drop every copy but these. Views taken before belong to the old ones."""
        rows = torch.tensor(copies, device=self.values.device)
        self.mean, self.square = self.mean[rows], self.square[rows]
        if self.low is not None:
            self.low = self.low[rows]
        self._lay_out(self.values[rows])

    def state(self) -> dict[str, torch.Tensor]:
        """What a resumed run needs, by name."""
        return {"values": self.values, "mean": self.mean, "square": self.square, "updates": self.updates}

    @torch.no_grad()
    def load(self, state: dict[str, torch.Tensor], copies: list[int]) -> None:
        """Take over what `state` returned of these copies."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name][copies] if tensor.dim() else state[name])
        self.current = False

    @torch.no_grad()
    def step(
        self, lr, weight_decay=0.0, clip=None, *, kind="adamw", betas=(0.9, 0.999), eps=1e-8, momentum=0.0
    ) -> torch.Tensor:
        """One update of every copy with its gradient, clipped to norm `clip` by itself; the norms before, [S].

        As `optim.flat.FlatParameters.step`, but that the gradient is not zeroed.
        """
        from masklab.kernels.adamw import adamw_, clipped  # numba, which it computes with, takes half a second

        norms, shares = clipped(self.gradient, clip)
        if kind == "sgd":
            if clip is not None:
                self.gradient.mul_(shares[:, None])
            sgd_(self, lr, weight_decay, momentum)
            self.current = False
        else:
            self.updates += 1
            given = self.values, self.gradient, self.mean, self.square, shares, self.low, int(self.updates)
            adamw_(*given, lr, betas, weight_decay, eps)
            self.current = True
        return norms
