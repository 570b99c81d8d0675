"""What the hooks of a term must return, checked where a wrong shape would be summed or spread without a word."""

import numpy as np
import torch
from torch import Tensor

from masklab.config import kinds
from masklab.objectives.term import brings


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


def hidden_by(term, ids, lengths, masking, vocab_size, rng, **part):
    """What `Term.corrupt` gives, with or without `part`.

    Raises:
        MaskLabError: a user's term gives something else, or tokens that are not there.
    """
    made = term.corrupt(ids, lengths, masking, vocab_size, rng, **part)
    if not is_of_user(term, "corrupt"):
        return made
    kind, wanted = kinds.find("terms", term.name), f"(shown {list(ids.shape)}, rows [N], columns [N])"
    several = isinstance(made, tuple | list)
    if not several or len(made) not in ((5,) if part else (3, 4)):
        got = (len(made), "corrupt, so many values") if several else (made, "corrupt")
        raise kind.refused(f"{wanted}, and perhaps a mapping of further tokens", *got)
    shown, rows, columns = made[:3]
    size = (getattr(rows, "size", None),)
    for name, array, shape in (("shown", shown, ids.shape), ("rows", rows, size), ("columns", columns, size)):
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype.kind not in "iu":
            raise kind.refused(f"{wanted}, arrays of integers", array, name)
    least, most = (int(shown.min()), int(shown.max())) if shown.size else (0, 0)
    if least < 0 or most >= vocab_size:
        raise kind.refused(f"{wanted} with tokens of 0 to {vocab_size - 1}", [least, most], "shown, from and to")
    ends = (lengths[part["part"]] if part else lengths)[np.clip(rows, 0, len(ids) - 1)]
    outside = (rows < 0) | (rows >= len(ids)) | (columns < 0) | (columns >= ends)
    if outside.any():
        place = tuple(int(each[outside.argmax()]) for each in (rows, columns))
        raise kind.refused(f"{wanted} of tokens that are there, not of padding", place, "row, column")
    return made


def output_of(term, model, batch):
    """What `Term.forward` gives: an `Output` with logits [N, V]; MaskLabError where a user's term gives another."""
    output = term.forward(model, batch)
    if is_of_user(term, "forward"):
        logits, tokens = getattr(output, "logits", None), len(batch.at)
        if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != tokens:
            wanted = f"an Output with logits of shape ({tokens}, words) for the tokens with a loss"
            raise kinds.find("terms", term.name).refused(wanted, output if logits is None else logits, "forward")
    return output


def is_of_user(term, hook: str) -> bool:
    """Whether a term is a user's and has its own form of a hook."""
    return brings(term, hook) and term.name not in kinds.OURS["terms"] and term.name in kinds.known("terms")


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
