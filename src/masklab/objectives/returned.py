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


def maskable_by(term, lengths, masking) -> np.ndarray:
    """What `Term.maskable` gives: [n] bool; MaskLabError where a user's term gives something else."""
    made = term.maskable(lengths, masking)
    if is_of_user(term, "maskable"):
        fits = isinstance(made, np.ndarray) and made.shape == lengths.shape and made.dtype == bool
        if not fits:
            wanted = f"which sequences can be hidden in: an array of true and false of shape {lengths.shape}"
            raise kinds.find("terms", term.name).refused(wanted, made, "maskable")
    return made


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
    shown, further = made[0], made[3] if len(made) > 3 else {}
    if not isinstance(shown, np.ndarray) or shown.shape != ids.shape or shown.dtype.kind not in "iu":
        raise kind.refused(f"{wanted}, arrays of integers", shown, "shown")
    least, most = (int(shown.min()), int(shown.max())) if shown.size else (0, 0)
    if least < 0 or most >= vocab_size:
        raise kind.refused(f"{wanted} with tokens of 0 to {vocab_size - 1}", [least, most], "shown, from and to")
    if not isinstance(further, dict):
        raise kind.refused(f"{wanted} and a mapping of names to (rows, columns)", further, "further tokens")
    ends = lengths[part["part"]] if part else lengths
    for name, tokens in ({"": made[1:3]} | further).items():
        _check_places(kind, wanted, f"{name}: " if name else "", tokens, ends)
    if part and not isinstance(made[4], int | np.integer):
        raise kind.refused(f"{wanted}, further tokens and how many have a loss in the whole batch", made[4], "how many")
    return made


def _check_places(kind, wanted: str, of: str, tokens, ends) -> None:
    """MaskLabError where `tokens` are not (rows, columns) of tokens in sequences of these lengths. of: before them."""
    if not isinstance(tokens, tuple | list) or len(tokens) != 2:
        raise kind.refused(f"{wanted} and a mapping of names to (rows, columns)", tokens, f"{of}further tokens")
    rows, columns = tokens
    size = (getattr(rows, "size", None),)
    for name, array in (("rows", rows), ("columns", columns)):
        if not isinstance(array, np.ndarray) or array.shape != size or array.dtype.kind not in "iu":
            raise kind.refused(f"{wanted}, arrays of integers", array, f"{of}{name}")
    outside = (rows < 0) | (rows >= len(ends)) | (columns < 0)
    outside |= columns >= ends[np.clip(rows, 0, len(ends) - 1)]
    if outside.any():
        place = tuple(int(each[outside.argmax()]) for each in (rows, columns))
        raise kind.refused(f"{wanted} of tokens that are there, not of padding", place, f"{of}row, column")


def arrange(term, batch) -> None:
    """Have `Term.arrange` add to a micro-batch what `forward` wants to know.

    Raises:
        MaskLabError: a user's term returns something, which nobody would read; changes the form of the batch, whose
            flat positions then lie elsewhere; or adds what is not named, or tensors that are not on the CPU.
    """
    own = ("ids", "original", "lengths", "at", "targets") if is_of_user(term, "arrange") else ()
    before = {name: _form(getattr(batch, name)) for name in own}
    made = term.arrange(batch)
    if not own:
        return
    kind = kinds.find("terms", term.name)
    if made is not None:
        raise kind.refused("nothing of `arrange`, which adds to batch.extra", made, "arrange")
    for name, form in before.items():
        if _form(value := getattr(batch, name)) != form:
            raise kind.refused("a batch as it was, but for batch.extra", value, f"arrange, batch.{name}")
    if not isinstance(batch.extra, dict) or not all(isinstance(name, str) for name in batch.extra):
        raise kind.refused("a mapping of names to what `forward` wants to know", batch.extra, "arrange, batch.extra")
    for name, value in batch.extra.items():
        if isinstance(value, Tensor) and value.device.type != "cpu":
            wanted = "tensors on the CPU, which are moved with the batch"
            raise kind.refused(wanted, str(value.device), f"arrange, batch.extra[{name!r}]")


def _form(value) -> tuple:
    """Class, shape, type and device of a tensor; of anything else its class."""
    return type(value), *(getattr(value, name, None) for name in ("shape", "dtype", "device"))


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
