"""A masked batch, as every term sees it."""

from dataclasses import dataclass, field, fields

from torch import Tensor


@dataclass
class Batch:
    """A masked batch. `at`, `targets` and `positions` have one row per token with a loss (N)."""

    ids: Tensor  # [B, T] after corruption
    original: Tensor  # [B, T] before
    lengths: Tensor  # [B]
    at: Tensor  # [N] flat positions b*T + t
    targets: Tensor  # [N] the hidden tokens
    positions: object  # numpy [N]: places in the token store, for stored codes
    extra: dict = field(default_factory=dict)  # what the objective's own `corrupt` and `arrange` say of it

    def to(self, device) -> "Batch":
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values["extra"] = {name: _moved(value, device) for name, value in self.extra.items()}
        return Batch(**{name: _moved(value, device) for name, value in values.items()})


def _moved(value, device):
    return value.to(device, non_blocking=True) if isinstance(value, Tensor) else value
