"""Stacked encoder: embeddings and blocks, with hand-written gradients.

S copies, B rows, T length, N = B T, H width
"""

import itertools

import torch
from torch.nn import functional as F

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
    embeddings are its table. first: at the first position of each row, by an attention of its own. apart: as `Norm`.
    """

    def __init__(self, parameters, config, first: bool, prefix: str = "encoder.", apart: bool = False):
        self.parameters, self.prefix, self.config, self.first = parameters, prefix, config, first
        name, eps = f"{prefix}embeddings.norm", config.eps
        self.norm = Norm(parameters, name, eps, apart) if config.embedding_norm else None
        everywhere, from_first = ATTENTION[config.positions]
        kinds = [everywhere] * (config.layers - first) + [from_first] * first
        self.blocks = [Block(parameters, f"{prefix}blocks.{i}", config, kind, apart) for i, kind in enumerate(kinds)]
        self.final_norm = Norm(parameters, f"{prefix}final_norm", eps, apart) if config.norm == "pre" else None

    def forward(self, ids, lengths, keep=None, masked=None, pack: bool = False):
        """ids [S, B, T] padded on the right, lengths [S, B] -> [S, B, H], [S, N, H] or, at K tokens, [S, K, H].

        keep: dropout masks in the order of `dropout.sites`; None: no dropout. masked: a `chosen.Masked`. pack: work on
        packed tokens where that pays; `backward` then asks for a gradient that is 0 at padding.
        """
        copies, size, length = ids.shape
        self.shape = grid = Grid.packed(ids.shape, lengths) if pack else Grid(ids.shape)
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
        x = x if self.kept is None else x * self.kept
        padding = torch.arange(length, device=ids.device) >= lengths[..., None]
        mask = torch.zeros(padding.shape, device=ids.device).masked_fill_(padding, LOWEST) if padding.any() else None
        chosen = First(self.shape) if self.first else masked
        for block in self.blocks[:-1]:
            x = block.forward(x, grid, mask, keep, self.relative)
        if self.first:  # which looks at places of the grid
            x, grid = grid.unpack(x), Grid(grid)
        x = self.blocks[-1].forward(x, grid, mask, keep, self.relative, chosen)
        x = x if self.final_norm is None else self.final_norm.forward(x, masked and masked.own)
        return x if self.first else grid.unpack(x)

    def backward(self, g, add: bool = False) -> None:
        """Write the gradients of all parameters, given that of the result; add: to that of the token embeddings."""
        grid = self.shape
        g = g if self.first else grid.pack(g)
        g = g if self.final_norm is None else self.final_norm.backward(g)
        g = self.blocks[-1].backward(g)
        g = grid.pack(g) if self.first else g
        for block in reversed(self.blocks[:-1]):
            g = block.backward(g)
        g = g if self.kept is None else g.mul_(self.kept)
        g = g if self.norm is None else self.norm.backward(g)
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
    """Layer norm of x [S, N, H] with weight and bias [S, H]; remembers what its gradient needs.

    apart: each copy by itself, so that it has the very numbers of a copy alone, whatever number of them there is.
    """

    def __init__(self, parameters, name: str, eps: float, apart: bool = False):
        self.eps, self.apart = eps, apart
        self.weight, self.bias = parameters.pair(name)
        self.gradients = parameters.gradient_pair(name)

    def forward(self, x, rows=None):
        """rows: how many first rows of each copy count, where copies are apart; the others become zeros."""
        if self.apart:
            rows = [x.shape[1]] * len(x) if rows is None else rows
            found = [
                torch.native_layer_norm(own[:count], own.shape[1:], weight, bias, self.eps)
                for own, count, weight, bias in zip(x, rows, self.weight, self.bias, strict=True)
            ]
            self.saved = x, [each[1:] for each in found]
            return stacked([each[0] for each in found], x)
        width, alone = x.shape[-1:], len(x) == 1  # one copy: torch's kernel applies weight and bias as well
        given = (self.weight[0], self.bias[0]) if alone else (None, None)
        y, mean, scale = torch.native_layer_norm(x, width, *given, self.eps)
        self.saved = x, y, mean, scale
        return y if alone else torch.addcmul(self.bias[:, None], y, self.weight[:, None])

    def backward(self, g):
        saved, self.saved = self.saved, None  # memory for what comes next
        return self._backward_apart(g, *saved) if self.apart else self._backward(g, *saved)

    def _backward_apart(self, g, x, found):
        width, backs = x.shape[-1:], []
        for copy, (mean, scale) in enumerate(found):
            given = x[copy, : len(mean)], width, mean, scale, self.weight[copy], self.bias[copy], [True, True, True]
            back, *parts = torch.ops.aten.native_layer_norm_backward(g[copy, : len(mean)], *given)
            backs.append(back)
            for gradient, part in zip(self.gradients, parts, strict=True):
                gradient[copy] = part
        return stacked(backs, x)

    def _backward(self, g, x, y, mean, scale):
        width = x.shape[-1:]
        weight_gradient, bias_gradient = self.gradients
        if len(x) == 1:
            given = (self.weight[0], self.bias[0], [True, True, True])
            input_gradient, weight, bias = torch.ops.aten.native_layer_norm_backward(g, x, width, mean, scale, *given)
            weight_gradient.copy_(weight)
            bias_gradient.copy_(bias)
            return input_gradient
        torch.sum(g * y, 1, out=weight_gradient)
        torch.sum(g, 1, out=bias_gradient)
        given = (None, None, [True, False, False])
        return torch.ops.aten.native_layer_norm_backward(g * self.weight[:, None], x, width, mean, scale, *given)[0]


class Block:
    """One encoder block; `attending` is one of `ATTENTION`."""

    def __init__(self, parameters, name: str, config, attending, apart: bool = False):
        self.parameters, self.name, self.pre = parameters, name, config.norm == "pre"
        self.attention = attending(parameters, f"{name}.attention", config)
        self.attention_norm = Norm(parameters, f"{name}.attention_norm", config.eps, apart)
        self.ffn_norm = Norm(parameters, f"{name}.ffn_norm", config.eps, apart)

    def forward(self, x, shape, mask, keep, relative=None, chosen=None):
        """x [S, N, H] -> the same, or what `chosen` takes of it.

        keep: an iterator over the dropout masks of attention, output, ffn; relative: what attention is given of
        distances; chosen: positions that the block is asked for (`models.stacked.chosen`), None: all.
        """
        normed = self.attention_norm.forward(x) if self.pre else x
        asked = chosen if isinstance(chosen, Masked) else None  # attention from first positions is a class of its own
        context = self.attention.forward(normed, shape, mask, keep, relative, asked)
        residual, context = (x, context) if chosen is None else (chosen.take(x), chosen.spread(context))
        rows, pair = asked and asked.own, self.parameters.pair
        kept = _rows(next(keep), shape)
        y = dropped(residual, affine(context, *pair(f"{self.name}.out"), rows), kept)
        if not self.pre:
            y = self.attention_norm.forward(y, rows)
        read = self.ffn_norm.forward(y, rows) if self.pre else y
        inner = affine(read, *pair(f"{self.name}.ffn_in"), rows)
        active = F.gelu(inner)
        kept_ffn = _rows(next(keep), shape)
        z = dropped(y, affine(active, *pair(f"{self.name}.ffn_out"), rows), kept_ffn)
        self.saved = normed.shape, context, kept, read, inner, active, kept_ffn, chosen, rows
        return z if self.pre else self.ffn_norm.forward(z, rows)

    def backward(self, g):
        """Gradient of x, given that of the result."""
        whole, context, kept, read, inner, active, kept_ffn, chosen, rows = self.saved
        self.saved = None  # memory for what comes next
        pair, gradients = self.parameters.pair, self.parameters.gradient_pair
        g = g if self.pre else self.ffn_norm.backward(g)
        dz = g if kept_ffn is None else g * kept_ffn
        affine_gradients(dz, active, *gradients(f"{self.name}.ffn_out"), rows)
        dinner = input_gradient(dz, pair(f"{self.name}.ffn_out")[0], rows)
        torch.ops.aten.gelu_backward.grad_input(dinner, inner, grad_input=dinner)
        affine_gradients(dinner, read, *gradients(f"{self.name}.ffn_in"), rows)
        dread = input_gradient(dinner, pair(f"{self.name}.ffn_in")[0], rows)
        g = g + self.ffn_norm.backward(dread) if self.pre else self.attention_norm.backward(dread.add_(g))
        dy = g if kept is None else g * kept
        affine_gradients(dy, context, *gradients(f"{self.name}.out"), rows)
        dcontext = input_gradient(dy, pair(f"{self.name}.out")[0], rows)
        if chosen is not None:
            g, dcontext = chosen.put(g), chosen.gather(dcontext)
        if not self.pre:
            self.attention.backward(dcontext, g)
            return g
        normed = g.new_zeros(whole)
        self.attention.backward(dcontext, normed)
        return self.attention_norm.backward(normed).add_(g)


def stacked(parts, like):
    """Rows of each copy [N_s, H] as one tensor [S, N, H] as long as `like`, zeros behind the fewer ones."""
    if len(parts) == 1:
        return parts[0][None]
    if all(len(part) == like.shape[1] for part in parts):
        return torch.stack(parts)
    y = torch.zeros_like(like)
    for own, part in zip(y, parts, strict=True):
        own[: len(part)] = part
    return y


def dropped(residual, x, keep):
    """residual + keep x, keep None being 1."""
    return residual + x if keep is None else torch.addcmul(residual, x, keep)


def _rows(keep, grid):
    """Masks [S, B, queries, H] -> [S, B queries, H], or packed."""
    return None if keep is None else grid.pack(keep.flatten(1, 2))
