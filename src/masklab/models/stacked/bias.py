"""The bias on attention's scores by head and distance (MAE-LM), the same in every layer, stacked.

S copies, B rows, T length, M queries per row, n heads
"""

import torch

from masklab.models.positions import bucket, shift


class Bias:
    """Bias of a batch, and its gradient, to which every block adds."""

    def __init__(self, parameters, name: str, length: int, config):
        table, self.written = parameters.with_gradient(name)  # [S, buckets, n]
        distances = torch.arange(1 - length, length)
        self.buckets = bucket(distances, config.relative_buckets, config.relative_distance)
        values = table.mT[:, :, self.buckets]  # [S, n, 2 T - 1]
        self.values = shift(values[:, :, None].expand(-1, -1, length, -1).contiguous())  # [S, n, T, T]
        self.gradient = torch.zeros(self.values.shape)

    def terms(self, chosen):
        """What is added to scores [S, n, B, M, T]."""
        if chosen is None:
            return self.values[:, :, None]
        rows = torch.stack([own[:, column] for own, column in zip(self.values, chosen.column, strict=True)])
        return rows

    def add_gradient(self, dscores, chosen) -> None:
        """Add the gradient of the bias, given that of scores [S, n, B, M, T]."""
        if chosen is None:
            self.gradient.add_(dscores.sum(2))
            return
        for own, given, column in zip(self.gradient, dscores, chosen.column, strict=True):
            own.index_add_(1, column.flatten(), given.flatten(1, 2))

    def write(self) -> None:
        """Write the parameter's gradient."""
        length = self.gradient.shape[-1]
        full = self.gradient.new_zeros(*self.gradient.shape[:-1], 2 * length - 1)
        shift(full).copy_(self.gradient)
        self.written.zero_()
        self.written.index_add_(1, self.buckets, full.sum(2).mT)
