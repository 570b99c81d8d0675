"""Weights in bf16 beside the fp32 ones that the optimiser moves.

Under autocast torch casts a weight in every use. A parameter that has a copy (`FlatParameters(low=True)`) is cast once
an update, together with all others. The copies are read under autocast alone: what is computed outside of it, such as
the validation loss, reads the fp32 weights.
"""

import torch

DTYPE = torch.bfloat16


def copy_of(parameter: torch.Tensor) -> torch.Tensor | None:
    """The bf16 copy that a marked parameter has, of its shape; None where there is none."""
    return getattr(parameter, "low", None)


def of(parameter: torch.Tensor) -> torch.Tensor:
    """A parameter in bf16: its copy, or a cast."""
    copy = copy_of(parameter)
    return parameter.to(DTYPE) if copy is None else copy
