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
        """The batch on a device; a GPU's copies are under way when this returns, if the batch is pinned."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> "Batch":
        """The batch in memory that a GPU reads by itself."""
        return self._each(lambda tensor: tensor.pin_memory())

    def _each(self, do) -> "Batch":
        def of(value):
            return do(value) if isinstance(value, Tensor) else value

        values = {each.name: of(getattr(self, each.name)) for each in fields(self)}
        values["extra"] = {name: of(value) for name, value in self.extra.items()}
        return Batch(**values)
