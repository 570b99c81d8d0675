"""What models that are fine-tuned share: an encoder with layers on it that are drawn anew each time."""

from typing import ClassVar

import torch
from torch import nn


class Headed(nn.Module):
    """An `encoder`, whose language model's heads and decoder are not used, with a head of its own.

    HEAD: names of the linear layers of the head, in the order in which they are drawn.
    """

    HEAD: ClassVar[tuple[str, ...]]

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def used_parameters(self) -> dict[str, nn.Parameter]:
        """Every parameter but those of heads and decoder of the language model, by name."""
        unused = ("encoder.head.", "encoder.latent.", "encoder.decoder.")
        return {name: parameter for name, parameter in self.named_parameters() if not name.startswith(unused)}

    def reset_head(self, generator) -> None:
        """Draw the head anew: weights normal(0, init_range), biases 0."""
        with torch.no_grad():
            for layer in map(self.get_submodule, self.HEAD):
                drawn = torch.empty(layer.weight.shape).normal_(0, self.encoder.config.init_range, generator=generator)
                layer.weight.copy_(drawn)
                layer.bias.zero_()
