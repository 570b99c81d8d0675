"""The bias on attention's scores by head and distance (MAE-LM), the same in every layer, stacked.

S copies, P packed tokens of each, T length, n heads
"""

import torch
from torch.nn import functional as F

from masklab.kernels.attend import LANES
from masklab.kernels.distance_bias import gather, spread
from masklab.models.positions import bucket


class Bias:
    """Bias of a batch, and its gradient, to which every block adds."""

    def __init__(self, parameters, name: str, length: int, config):
        table, self.written = parameters.with_gradient(name)  # [S, buckets, n]
        distances = torch.arange(1 - length, length)
        self.buckets = bucket(distances, config.relative_buckets, config.relative_distance)
        self.values = F.pad(table.mT[:, :, self.buckets], (0, LANES))  # as `kernels.attend.attend` asks for
        self.gradient = torch.zeros(self.values.shape)

    def write(self) -> None:
        """Write the parameter's gradient."""
        self.written.zero_()
        self.written.index_add_(1, self.buckets, self.gradient[..., :-LANES].mT)


class BiasAt(Bias):
    """The same where tokens stand at `columns` [S P], below `length`, as `layout` says which look at which."""

    def __init__(self, parameters, name: str, length: int, config, columns, layout):
        super().__init__(parameters, name, length, config)
        self.of_distances, self.at = self.gradient, (columns, layout)
        self.values = spread(self.values, *self.at)
        self.gradient = torch.zeros(self.values.shape)

    def write(self) -> None:
        gather(self.gradient, *self.at, self.of_distances)
        self.gradient = self.of_distances
        super().write()
