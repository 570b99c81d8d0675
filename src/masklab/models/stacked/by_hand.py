"""The encoder of one model by compiled code: in a model that autograd trains, whatever reads its states, with its
gradient written by hand; in one that is only asked, without.

B rows, T length, K tokens that are asked for, H width
"""

import torch
from torch.autograd.function import once_differentiable

from masklab.models.stacked import WORD
from masklab.models.stacked.chosen import Masked
from masklab.models.stacked.dropout import drawn, masked_sites, sites
from masklab.models.stacked.encoder import StackedEncoder
from masklab.models.stacked.products import low
from masklab.models.stacked.ragged import Ragged


class Views:
    """The parameters of one model, wherever they lie, as a stack of one; gradients in tensors of its own.

    trained: False for a model that is only asked: what is there of gradients takes no memory and holds no numbers.
    """

    low = None

    def __init__(self, named, trained: bool = True):
        self.trained, self.shapes = trained, {name: parameter.shape for name, parameter in named.items()}
        self.width, device = self.shapes[WORD][1], None if trained else "meta"
        self._own = {name: parameter.detach()[None] for name, parameter in named.items()}
        self.gradients = {name: torch.zeros_like(own[0], device=device) for name, own in self._own.items()}
        self.values, self.gradient = self[WORD].flatten(1), self.gradient_of(WORD).flatten(1)

    def __getitem__(self, name: str):
        return self._own[name]

    def read(self, name: str):
        return self._own[name]

    def gradient_of(self, name: str):
        return self.gradients[name][None]

    def with_gradient(self, name: str):
        return self[name], self.gradient_of(name)

    def pair(self, name: str):
        return self[f"{name}.weight"], self[f"{name}.bias"]

    def gradient_pair(self, name: str):
        return self.gradient_of(f"{name}.weight"), self.gradient_of(f"{name}.bias")


class ByHand:
    """`MaskedLM.encode` of a model on a CPU, of an architecture that `models.stacked.supports`.

    Its parameters must stay where they are. In training dropout is drawn from torch's default generator, as the model
    draws it. Gradients are for `backward()`: what `torch.autograd.grad` returns is written over by the next one.
    """

    def __init__(self, model):
        self.config = model.config
        unused = ("head.", "latent.", "decoder.")
        self.named = {name: own for name, own in model.named_parameters() if not name.startswith(unused)}
        self._free = []  # encoders whose gradient nobody is going to ask for
        self._asked = None

    def __deepcopy__(self, memo):
        """None: a copy of the model, whose parameters lie elsewhere, encodes by itself."""

    def encode(self, ids, lengths, at=None):
        """Hidden states of the last layer [B T, H], or [K, H] at the flat positions `at`."""
        return _Encode.apply(self, ids, lengths, at, *self.named.values())

    @torch.no_grad()
    def ask(self, ids, lengths, at=None):
        """The same without dropout, and without a gradient."""
        if self._asked is None:
            self._asked = Views(self.named, trained=False)
        encoder = StackedEncoder(self._asked, self.config, first=False, prefix="")
        ragged, masked = self._places(ids, lengths, at)
        with low(torch.is_autocast_enabled("cpu")):
            states = encoder.forward(ids[None].long(), ragged, masked=masked)
        return _in_own_order(states, masked, at)

    def forward(self, ids, lengths, at):
        """(states, what `backward` is told)."""
        (size, length), p = ids.shape, self.config.dropout
        ragged, masked = self._places(ids, lengths, at)
        shapes = sites(self.config, size, length, False)
        if masked is not None:
            shapes = masked_sites(self.config, size, length, masked.queries[0], len(at))
        keep = drawn(shapes, p) if p else None
        encoder = self._free.pop() if self._free else self._made()
        rounds = torch.is_autocast_enabled("cpu")
        with low(rounds):
            states = encoder.forward(ids[None].long(), ragged, keep, masked)
        return _in_own_order(states, masked, at), (encoder, masked, rounds)

    def _places(self, ids, lengths, at):
        """Where the tokens lie, and where those that are asked for do."""
        ragged = Ragged.of(lengths[None], ids.shape[1])
        return ragged, None if at is None else Masked([at.numpy()], [ids.shape[1]], ragged)

    def backward(self, g, told):
        """Gradients of `named`, given that of the states."""
        encoder, masked, rounds = told
        g = g.float()[None]
        if masked is not None:
            whole = g.new_zeros(1, masked.most, g.shape[2])
            whole[:, : g.shape[1]] = g
            g = masked.in_order(whole)
        with low(rounds):
            encoder.backward(g)
        self._free.append(encoder)
        return [encoder.parameters.gradients[name] for name in self.named]

    def _made(self):
        return StackedEncoder(Views(self.named), self.config, first=False, prefix="")


def _in_own_order(states, masked, at):
    """States of a stack of one as the model has them, where some tokens are asked for in their own order."""
    return states[0] if masked is None else masked.in_own_order(states)[0, : len(at)]


class _Encode(torch.autograd.Function):
    @staticmethod
    def forward(ctx, by_hand, ids, lengths, at, *parameters):
        states, ctx.told = by_hand.forward(ids, lengths, at)
        ctx.by_hand, ctx.parameters = by_hand, parameters
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        found = ctx.by_hand.backward(g, ctx.told)
        # autograd adds them to `grad`, or makes them that
        kept = [each if own.grad is not None else each.clone() for each, own in zip(found, ctx.parameters, strict=True)]
        return None, None, None, None, *kept
