"""What the hooks of a term must return, checked where a wrong shape would be summed or spread without a word."""

import torch
from torch import Tensor

from masklab.config import kinds


def loss_of(term, batch, output, teacher) -> Tensor:
    """What `Term.loss` gives: [N], a loss for each token of the batch that has one.

    Raises:
        MaskLabError: it is anything else, or has no gradient where gradients are on.
    """
    loss, tokens = term.loss(batch, output, teacher), len(batch.targets)
    fits = isinstance(loss, Tensor) and loss.shape == (tokens,) and loss.is_floating_point()
    if fits and (loss.requires_grad or not torch.is_grad_enabled()):
        return loss
    wanted = f"a loss for each token: a floating tensor of shape ({tokens},) that needs a gradient"
    raise kinds.find("terms", term.name).refused(wanted, loss, "loss")


def worth_of(term, model, step, rng) -> Tensor | None:
    """What `Term.per_update` gives: a floating tensor of one number that needs a gradient, or None.

    Raises:
        MaskLabError: it is anything else.
    """
    worth = term.per_update(model, step, rng)
    fits = isinstance(worth, Tensor) and worth.numel() == 1 and worth.is_floating_point() and worth.requires_grad
    if worth is None or fits:
        return worth
    wanted = "None, or a floating tensor of one number that needs a gradient"
    raise kinds.find("terms", term.name).refused(wanted, worth, "per_update")
