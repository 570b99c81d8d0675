"""Stacked encoder: embeddings and blocks, with hand-written gradients.

S copies, B rows, T length, N = B T, H width
"""

import itertools

import torch

from masklab.kernels.bits import Keep
from masklab.kernels.rows import add_norm, add_norm_backward, drop_, gelu, gelu_backward_
from masklab.models.stacked.attention import AbsoluteAttention, FirstAbsoluteAttention
from masklab.models.stacked.bias import Bias
from masklab.models.stacked.chosen import First, Masked
from masklab.models.stacked.disentangled import DisentangledAttention, Distances, FirstDisentangledAttention
from masklab.models.stacked.grid import Grid
from masklab.models.stacked.products import affine, affine_gradients, input_gradient

LOWEST = torch.finfo(torch.float32).min / 2
ATTENTION = {  # from every position, from the first
    "absolute": (AbsoluteAttention, FirstAbsoluteAttention),
    "disentangled": (DisentangledAttention, FirstDisentangledAttention),
    "relative": (AbsoluteAttention, None),  # the bias by distance is added to its scores
    "none": (AbsoluteAttention, None),
}
RELATIVE = {"disentangled": Distances, "relative": Bias}  # what attention is given of distances


class StackedEncoder:
    """`MaskedLM.encode` of every copy, at all positions, at the first of each row or at masked ones.

    parameters: `StackedParameters` that hold the encoder's, named as in `MaskedLM` after `prefix`; the token
    embeddings are its table. first: at the first position of each row, by an attention of its own.
    """

    def __init__(self, parameters, config, first: bool, prefix: str = "encoder."):
        self.parameters, self.prefix, self.config, self.first = parameters, prefix, config, first
        name, eps = f"{prefix}embeddings.norm", config.eps
        self.norm = Norm(parameters, name, eps) if config.embedding_norm else None
        everywhere, from_first = ATTENTION[config.positions]
        kinds = [everywhere] * (config.layers - first) + [from_first] * first
        self.blocks = [Block(parameters, f"{prefix}blocks.{i}", config, kind) for i, kind in enumerate(kinds)]
        self.final_norm = Norm(parameters, f"{prefix}final_norm", eps) if config.norm == "pre" else None

    def forward(self, ids, lengths, keep=None, masked=None, pack: bool = False):
        """ids [S, B, T] padded on the right, lengths [S, B] -> [S, B, H], [S, N, H] or, at K tokens, [S, K, H].

        keep: dropout in the order of `dropout.sites`; None: none. masked: a `chosen.Masked`. pack: work on
        packed tokens where that pays; `backward` then asks for a gradient that is 0 at padding.
        """
        copies, size, length = ids.shape
        self.shape = grid = Grid.of(ids.shape, lengths, pack)
        keep = itertools.repeat(None) if keep is None else iter(keep)
        values, width = self.parameters.values, self.parameters.width
        first_rows = torch.arange(copies, device=ids.device) * (values.shape[1] // width)
        self.rows = grid.tokens(ids + first_rows[:, None, None])
        x = values.view(-1, width).index_select(0, self.rows).view(copies, -1, width)
        self.relative = None
        if self.config.has_absolute:
            places = self.parameters[f"{self.prefix}embeddings.position"][:, :length]
            places = (places + self.parameters[self._segment] if self._segment else places)[:, None]
            if grid.places is None:
                x.view(*grid, width).add_(places)
            else:
                x.add_(grid.pack(places.expand(-1, size, -1, -1).flatten(1, 2)))
        if self.config.positions in RELATIVE:
            kind, name = RELATIVE[self.config.positions], f"{self.prefix}relative"
            self.relative = kind(self.parameters, name, length, self.config)
        x = x if self.norm is None else self.norm.forward(x)
        self.kept = _rows(next(keep), grid)
        x = x if self.kept is None else drop_(x, self.kept)
        padding = torch.arange(length, device=ids.device) >= lengths[..., None]
        mask = torch.zeros(padding.shape, device=ids.device).masked_fill_(padding, LOWEST) if padding.any() else None
        chosen = First(self.shape) if self.first else masked
        for block in self.blocks[:-1]:
            x = block.forward(x, grid, mask, keep, self.relative)
        if self.first:  # which looks at places of the grid
            x, grid = grid.unpack(x), Grid.of(grid, lengths)
        x = self.blocks[-1].forward(x, grid, mask, keep, self.relative, chosen)
        x = x if self.final_norm is None else self.final_norm.forward(x, counts=masked and masked.own)
        return x if self.first else grid.unpack(x)

    def backward(self, g, add: bool = False) -> None:
        """Write the gradients of all parameters, given that of the result; add: to that of the token embeddings."""
        grid = self.shape
        g = g if self.first else grid.pack(g)
        g = g if self.final_norm is None else self.final_norm.backward(g)[0]
        g = self.blocks[-1].backward(g)
        g = grid.pack(g) if self.first else g
        for block in reversed(self.blocks[:-1]):
            g = block.backward(g)
        g = g if self.kept is None else drop_(g, self.kept)
        g = g if self.norm is None else self.norm.backward(g)[0]
        copies, size, length = grid
        if self.relative is not None:
            self.relative.write()
        if self.config.has_absolute:
            position = self.parameters.gradient_of(f"{self.prefix}embeddings.position")
            torch.sum(grid.unpack(g).view(copies, size, length, -1), 1, out=position[:, :length])
            position[:, length:].zero_()
            if self._segment:
                torch.sum(position, 1, keepdim=True, out=self.parameters.gradient_of(self._segment))
        if not add:
            self.parameters.gradient_of(f"{self.prefix}embeddings.word").zero_()
        self.parameters.gradient.view(-1, self.parameters.width).index_add_(0, self.rows, g.flatten(0, 1))

    @property
    def _segment(self) -> str | None:
        """The parameter that stands for BERT's only segment, where there is one."""
        name = f"{self.prefix}embeddings.segment"
        return name if name in self.parameters.shapes else None


class Norm:
    """Layer norm with weight and bias [S, H] of what dropout leaves of x [S, N, H], added to a residual stream.

    Remembers what its gradient needs. counts: how many first rows of each copy count, None: all.
    """

    def __init__(self, parameters, name: str, eps: float):
        self.eps = eps
        self.weight, self.bias = parameters.pair(name)
        self.gradients = parameters.gradient_pair(name)

    def forward(self, x, residual=None, bias=None, keep=None, counts=None):
        """The norm of s = residual + dropout(x + bias [S, H]), which is written to x."""
        y, moments = add_norm(x, self.weight, self.bias, self.eps, residual, bias, keep, counts)
        self.saved = x, moments, keep, counts
        return y

    def backward(self, g, bias_gradient=None, **others):
        """Gradients of the residual and of x; writes those of the parameters, and of the bias [S, H].

        others: `more`, `beside` of `add_norm_backward`.
        """
        (s, moments, keep, counts), self.saved = self.saved, None  # memory for what comes next
        into = (*self.gradients, bias_gradient)
        return add_norm_backward(g, s, moments, self.weight, into, keep, counts, **others)


class Block:
    """One encoder block; `attending` is one of `ATTENTION`."""

    def __init__(self, parameters, name: str, config, attending):
        self.parameters, self.pre = parameters, config.norm == "pre"
        self.attention = attending(parameters, f"{name}.attention", config)
        self.attention_norm = Norm(parameters, f"{name}.attention_norm", config.eps)
        self.ffn_norm = Norm(parameters, f"{name}.ffn_norm", config.eps)
        self.out, self.ffn_in, self.ffn_out = (
            (*parameters.pair(f"{name}.{part}"), *parameters.gradient_pair(f"{name}.{part}"))
            for part in ("out", "ffn_in", "ffn_out")
        )

    def forward(self, x, shape, mask, keep, relative=None, chosen=None):
        """x [S, N, H] -> the same, or what `chosen` takes of it.

        keep: an iterator over the dropout of attention, output, ffn; relative: what attention is given of
        distances; chosen: positions that the block is asked for (`models.stacked.chosen`), None: all.
        """
        normed = self.attention_norm.forward(x) if self.pre else x
        asked = chosen if isinstance(chosen, Masked) else None  # attention from first positions is a class of its own
        context = self.attention.forward(normed, shape, mask, keep, relative, asked)
        residual, context = (x, context) if chosen is None else (chosen.take(x), chosen.spread(context))
        rows = asked and asked.own
        stream = affine(context, self.out[0], None, rows)
        norm = self.ffn_norm if self.pre else self.attention_norm
        read = norm.forward(stream, residual, self.out[1], _rows(next(keep), shape), rows)
        inner = affine(read, self.ffn_in[0], None, rows)
        active = gelu(inner, self.ffn_in[1], rows)
        z, kept = affine(active, self.ffn_out[0], None, rows), _rows(next(keep), shape)
        self.saved = normed.shape, context, read, inner, active, kept, chosen, rows
        if not self.pre:
            return self.ffn_norm.forward(z, read, self.ffn_out[1], kept, rows)
        z.add_(self.ffn_out[1][:, None])
        return (z if kept is None else drop_(z, kept)).add_(stream)

    def backward(self, g):
        """Gradient of x, given that of the result."""
        whole, context, read, inner, active, kept, chosen, rows = self.saved
        self.saved = None  # memory for what comes next
        if self.pre:
            dz = g if kept is None else drop_(g.clone(), kept)
            torch.sum(dz, 1, out=self.ffn_out[3])
        else:
            g, dz = self.ffn_norm.backward(g, self.ffn_out[3])
        affine_gradients(dz, active, self.ffn_out[2], None, rows)
        dinner = input_gradient(dz, self.ffn_out[0], rows)
        gelu_backward_(dinner, inner, self.ffn_in[1], self.ffn_in[3], rows)
        affine_gradients(dinner, read, self.ffn_in[2], None, rows)
        dread = input_gradient(dinner, self.ffn_in[0], rows)
        if self.pre:
            g, dy = self.ffn_norm.backward(dread, self.out[3], beside=g)
        else:
            g, dy = self.attention_norm.backward(dread, self.out[3], more=g)
        affine_gradients(dy, context, self.out[2], None, rows)
        dcontext = input_gradient(dy, self.out[0], rows)
        if chosen is not None:
            g, dcontext = chosen.put(g), chosen.gather(dcontext)
        if not self.pre:
            self.attention.backward(dcontext, g)
            return g
        normed = g.new_zeros(whole)
        self.attention.backward(dcontext, normed)
        return self.attention_norm.backward(normed)[0].add_(g)


def _rows(keep, grid):
    """Dropout of [S, B, queries, H] as that of [S, B queries, H], or packed."""
    return None if keep is None else Keep(grid.pack(keep.bits.flatten(1, 2)), keep.p)
