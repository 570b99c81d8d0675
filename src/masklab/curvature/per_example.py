"""Squared gradient norms of every sentence of a batch from one forward and one backward pass.

A linear layer's gradient for one sentence is D' X, inputs X [T, i] and gradients D [T, o] of its outputs. Its squared
norm needs no gradient to be laid out: it is the sum of (X X') * (D D') (Goodfellow 2015), and X X' is [T, T]. Layer
norms and biases are sums over positions; embeddings gather, and the tied embedding is input and output at once, with
a cross term. The backward pass stops at activations: no gradient of a parameter is ever formed.

    B sentences, T tokens, one position asked for in each; V vocabulary
"""

import contextlib

import torch
from torch import nn
from torch.nn import functional as F

from masklab.curvature.width import EXPONENTS, exponent
from masklab.models.attention import Attention


def covers(model) -> bool:
    """Whether every parameter of a `MaskedLM` is one that `SquaredNorms` knows (no tables of distances, no decoder)."""
    return model.relative is None and model.decoder is None


def counted(model) -> dict[str, nn.Parameter]:
    """Parameters that the masked-token loss has gradients for, by name: all but those of a latent head."""
    return {name: p for name, p in model.named_parameters() if not name.startswith("latent.")}


def along(logits: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """A scalar whose gradients are J' v, J the Jacobian of the logits; v [B, V] has none.

    Of a v that it is given as such torch compares the shape with sympy, whose import takes half a second.
    """
    return (logits * v).sum()


class SquaredNorms:
    """Records a model's layers while it is open (`with SquaredNorms(model) as norms`).

    The model must be in eval mode and `covers(model)`. Its LSTMs run step by step meanwhile.
    """

    def __init__(self, model):
        self.model, self.tied = model, model.config.tied_head
        self.layers, self.tokens = [], None  # what one forward pass left: (kind, name, inputs, outputs)

    def __enter__(self):
        self.stack, self.names = contextlib.ExitStack(), set()
        for name, module in self.model.named_modules():
            if name == "latent":
                continue
            if isinstance(module, nn.Linear | nn.LayerNorm | nn.LSTM):
                self.names.add(name)
            if isinstance(module, nn.Linear):
                self._hook(module, "linear", name)
            elif isinstance(module, nn.LayerNorm):
                self._hook(module, "norm", name)
            elif isinstance(module, nn.LSTM):
                self.stack.enter_context(_unrolled(module, name, self.layers))
            elif isinstance(module, Attention):
                self.stack.enter_context(_projected_whole(module))
        self._hook(self.model.head, "head", "head")
        # the graph begins at the sum of the embeddings: parameters take no gradient
        for parameter in self.model.parameters():
            self.stack.callback(parameter.requires_grad_, parameter.requires_grad)
            parameter.requires_grad_(False)
        embeddings = self.model.embeddings
        if embeddings.norm is not None:
            handle = embeddings.norm.register_forward_pre_hook(lambda module, args: self._begin(args[0]), prepend=True)
        else:
            handle = embeddings.register_forward_hook(lambda module, args, output: self._begin(output))
        self.stack.callback(handle.remove)
        return self

    def __exit__(self, *raised):
        self.layers.clear()
        self.stack.close()

    def _hook(self, module, kind, name):
        def keep(_, args, output):
            self.layers.append((kind, name, args[0].detach(), output))

        self.stack.callback(module.register_forward_hook(keep).remove)

    def _begin(self, x):
        self.tokens = x.detach().requires_grad_()
        return self.tokens

    def __call__(self, ids, lengths, at, cotangents) -> torch.Tensor:
        """|| J' v ||^2 per sentence, J [V, parameters] the Jacobian of the logits at its position.

        Args:
            ids, lengths, at: as in `MaskedLM.forward`, `at` [B] one flat position of each row, in order.
            cotangents: logits [B, V] -> [v, ...], each [B, V].

        Returns:
            [number of v, B, 3] in the model's dtype, summed over the parameters of each of `width.EXPONENTS`.
        """
        self.layers.clear()
        with torch.enable_grad():
            logits = self.model(ids, lengths, at=at).logits
        if missed := self.names.difference(name for _, name, _, _ in self.layers):
            raise RuntimeError(f"{', '.join(sorted(missed))}: ran unseen; their gradients would be left out")
        outputs = [layer[3] for layer in self.layers if layer[0] != "head"]
        outputs.append(self.tokens)
        norms, vs = [], cotangents(logits.detach())
        for number, v in enumerate(vs, 1):
            gradients = torch.autograd.grad(along(logits, v), outputs, retain_graph=number < len(vs))
            norms.append(self._sum(ids, v, gradients))
        self.layers.clear()
        return torch.stack(norms)

    def _sum(self, ids, v, gradients):
        total = v.new_zeros(len(ids), len(EXPONENTS))

        def add(name, dim, values):
            total[:, EXPONENTS.index(exponent(name, dim, self.tied))] += values

        gradients = iter(gradients)
        for kind, name, x, output in self.layers:
            if kind == "head":
                transformed = output.detach()
                continue
            d = next(gradients).view(len(ids), -1, output.shape[-1])
            x = x.view(*d.shape[:2], -1)
            if kind == "linear":
                add(f"{name}.weight", 2, linear_norm(x, d))
                add(f"{name}.bias", 1, d.sum(1).square().sum(-1))
            elif kind == "norm":
                normal = F.layer_norm(x, x.shape[-1:], eps=self.model.config.eps)
                add(f"{name}.weight", 1, (d * normal).sum(1).square().sum(-1))
                add(f"{name}.bias", 1, d.sum(1).square().sum(-1))
            else:  # an LSTM: x is [its inputs, its previous states], d the gradient of its gates
                width = output.shape[-1] // 4
                add(f"{name}.weight_ih_l0", 2, linear_norm(x[..., :-width], d))
                add(f"{name}.weight_hh_l0", 2, linear_norm(x[..., -width:], d))
                add(f"{name}.bias_ih_l0", 1, 2 * d.sum(1).square().sum(-1))
        d = next(gradients).view(*ids.shape, -1)
        same = (ids[:, :, None] == ids[:, None, :]).to(d.dtype)
        add("embeddings.word", 2, (same * (d @ d.mT)).sum((1, 2)))
        if self.model.embeddings.position is not None:
            add("embeddings.position", 2, d.square().sum((1, 2)))
        if self.model.embeddings.segment is not None:
            add("embeddings.segment", 2, d.sum(1).square().sum(-1))
        if self.tied:
            add("embeddings.word", 2, 2 * (v.gather(1, ids) * (d @ transformed[:, :, None])[..., 0]).sum(-1))
        length = v.square().sum(-1)
        add("embeddings.word" if self.tied else "head.weight", 2, length * transformed.square().sum(-1))
        add("head.bias", 1, length)
        return total


def linear_norm(x: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    """|| sum over t of d_t x_t' ||^2 [B] of x [B, T, i] and d [B, T, o], the cheaper of two ways."""
    length, i, o = x.shape[1], x.shape[2], d.shape[2]
    if length == 1:
        return x.square().sum((1, 2)) * d.square().sum((1, 2))
    if length * (i + o) < i * o:
        return torch.linalg.vecdot(torch.bmm(x, x.mT).flatten(1), torch.bmm(d, d.mT).flatten(1))
    return torch.bmm(x.mT, d).square().sum((1, 2))


@contextlib.contextmanager
def _unrolled(lstm: nn.LSTM, name: str, layers: list):
    """Let a one-layer, one-direction LSTM run step by step and record the sums that enter its gates."""

    def forward(x):
        gates = F.linear(x, lstm.weight_ih_l0, lstm.bias_ih_l0 + lstm.bias_hh_l0)  # its gradient is that of the sums
        h = c = x.new_zeros(len(x), lstm.hidden_size)
        before, after, back = [], [], lstm.weight_hh_l0.t()
        for t in range(x.shape[1]):
            before.append(h.detach())
            i, f, g, o = torch.addmm(gates[:, t], h, back).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            after.append(h)
        layers.append(("lstm", name, torch.cat([x.detach(), torch.stack(before, 1)], -1), gates))
        return torch.stack(after, 1), None

    lstm.forward = forward
    try:
        yield
    finally:
        del lstm.forward


@contextlib.contextmanager
def _projected_whole(attention: Attention):
    """Let attention project the queries of all positions by its linear layer, where the hook sees them."""

    def project_at(x, batch, slots):
        q, k, v = attention.project(x, batch)
        q = q.flatten(1, 2).index_select(1, slots.flatten())
        return q.view(attention.heads, batch.size, -1, attention.width), k, v

    attention.project_at = project_at
    try:
        yield
    finally:
        del attention.project_at
