"""Stacked encoder: embeddings and blocks, with hand-written gradients.

S copies, B rows, T length, N = B T, P places of packed tokens, H width
"""

import itertools

import torch

from masklab.kernels.embed import embed, embed_backward
from masklab.kernels.rowwise import add_norm, add_norm_backward, drop_, gelu, gelu_backward_
from masklab.models.stacked.attention import Attention
from masklab.models.stacked.bias import Bias, BiasAt
from masklab.models.stacked.chosen import First
from masklab.models.stacked.disentangled import DisentangledAttention, Distances
from masklab.models.stacked.products import affine, affine_gradients, input_gradient
from masklab.optim.low import DTYPE

RELATIVE = {"disentangled": Distances, "relative": Bias}  # what attention is given of distances


class StackedEncoder:
    """`MaskedLM.encode` of every copy, at all positions, at the first of each row or at masked ones.

    parameters: `StackedParameters` that hold the encoder's, named as in `MaskedLM` after `prefix`; the token
    embeddings are its table. first: at the first position of each row.
    """

    def __init__(self, parameters, config, first: bool, prefix: str = "encoder."):
        self.parameters, self.prefix, self.config, self.first = parameters, prefix, config, first
        name, eps = f"{prefix}embeddings.norm", config.eps
        self.norm = Norm(parameters, name, eps) if config.embedding_norm else None
        self.blocks = Blocks(parameters, config, prefix, first)

    def forward(self, ids, ragged, keep=None, masked=None, positions=None, packed=False):
        """ids [S, B, T] padded on the right, their `Ragged` -> [S, B, H] or [S, N, H] or, at K tokens, [S, K, H].

        keep: dropout in the order of `dropout.sites`; None: none. masked: a `chosen.Masked`. positions [S, B, T]: where
        tokens stand, None: 0 .. T - 1; packed: the result is not padded, [S, P, H]. `backward` asks for a gradient that
        is 0 at padding.
        """
        copies, _, length = ids.shape
        self.ragged, self.packed = ragged, packed
        keep = itertools.repeat(None) if keep is None else iter(keep)
        values, width = self.parameters.values, self.parameters.width
        (least, most), known = torch.aminmax(ids), self.parameters.shapes[f"{self.prefix}embeddings.word"][0]
        if least < 0 or most >= known:
            raise IndexError(f"ids must lie in 0 .. {known - 1}")
        self.rows = ragged.rows(ids, torch.arange(copies) * (values.shape[1] // width))
        columns = ragged.columns if positions is None else ragged.columns_of(positions)
        far = length if positions is None else 1 + int(columns.max())
        if far > self.config.max_positions:
            raise IndexError(f"rows have {far} tokens, positions end at {self.config.max_positions}")
        places, self.columns = None, columns if self.config.has_absolute else None
        if self.config.has_absolute:
            places = self.parameters[f"{self.prefix}embeddings.position"]
            places = places + self.parameters[self._segment] if self._segment else places
        x = embed(values.view(-1, width), self.rows, places, self.columns, copies)
        self.relative = None
        if self.config.positions in RELATIVE:
            kind, name = RELATIVE[self.config.positions], f"{self.prefix}relative"
            apart = () if positions is None else (columns, ragged.layout)
            self.relative = (BiasAt if apart else kind)(self.parameters, name, far, self.config, *apart)
        x = x if self.norm is None else self.norm.forward(x, counts=ragged.counts)
        self.kept = ragged.rows_of(next(keep))
        x = x if self.kept is None else drop_(x, self.kept, ragged.counts)
        x = self.blocks.forward(x, ragged, keep, self.relative, masked)
        return x if self.first or masked or packed else ragged.unpack(x)

    def backward(self, g, add: bool = False) -> None:
        """Write the gradients of all parameters, given that of the result; add: to that of the token embeddings."""
        ragged = self.ragged
        g = self.blocks.backward(g if self.blocks.chosen or self.packed else ragged.pack(g))
        g = g if self.kept is None else drop_(g, self.kept, ragged.counts)
        g = g if self.norm is None else self.norm.backward(g)[0]
        if self.relative is not None:
            self.relative.write()
        if not add:
            self.parameters.gradient_of(f"{self.prefix}embeddings.word").zero_()
        absolute, tables = self.config.has_absolute, self.parameters.gradient.view(-1, self.parameters.width)
        position = self.parameters.gradient_of(f"{self.prefix}embeddings.position") if absolute else None
        embed_backward(g.contiguous(), tables, self.rows, position, self.columns)
        if self._segment:
            torch.sum(position, 1, keepdim=True, out=self.parameters.gradient_of(self._segment))

    @property
    def _segment(self) -> str | None:
        """The parameter that stands for BERT's only segment, where there is one."""
        name = f"{self.prefix}embeddings.segment"
        return name if name in self.parameters.shapes else None


class Blocks:
    """All blocks of an encoder or a decoder, and the norm behind the last. first: as in `StackedEncoder`."""

    def __init__(self, parameters, config, prefix: str, first: bool = False):
        if parameters.low is not None and config.norm == "pre":
            raise ValueError("states in bf16 are for encoders with a norm after every sum")  # see `supports`
        self.parameters, self.first = parameters, first
        made = Block
        if config.kind == "lstm":
            from masklab.models.stacked.lstm import LstmBlock  # it imports `Norm` from here

            made = LstmBlock
        self.blocks = [made(parameters, f"{prefix}blocks.{i}", config) for i in range(config.layers)]
        self.final_norm = Norm(parameters, f"{prefix}final_norm", config.eps) if config.norm == "pre" else None

    def forward(self, x, ragged, keep, relative=None, masked=None):
        """x [S, P, H], fp32 -> the same or, at chosen tokens, [S, B, H] or [S, K, H]; keep: an iterator."""
        x = x if self.parameters.low is None else x.to(DTYPE)
        self.chosen = First(ragged) if self.first else masked
        for block in self.blocks:
            x = block.forward(x, ragged, keep, relative, self.chosen if block is self.blocks[-1] else None)
            if not self.parameters.trained:
                block.forget()
        rows = masked.own if masked else ragged.counts
        return x if self.final_norm is None else self.final_norm.forward(x, counts=rows)

    def backward(self, g):
        """Gradient of x, fp32, given that of the result."""
        g = g if self.final_norm is None else self.final_norm.backward(g)[0]
        for block in reversed(self.blocks):
            g = block.backward(g)
        return g.float()


class Norm:
    """Layer norm with weight and bias [S, H] of what dropout leaves of x [S, P, H], added to a residual stream.

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
    """One encoder block."""

    def __init__(self, parameters, name: str, config):
        self.parameters, self.pre = parameters, config.norm == "pre"
        kind = DisentangledAttention if config.positions == "disentangled" else Attention
        self.attention = kind(parameters, f"{name}.attention", config)
        self.attention_norm = Norm(parameters, f"{name}.attention_norm", config.eps)
        self.ffn_norm = Norm(parameters, f"{name}.ffn_norm", config.eps)
        self.out, self.ffn_in, self.ffn_out = (
            (
                parameters.read(f"{name}.{part}.weight"),
                parameters[f"{name}.{part}.bias"],
                *parameters.gradient_pair(f"{name}.{part}"),
            )
            for part in ("out", "ffn_in", "ffn_out")
        )

    def forward(self, x, ragged, keep, relative=None, chosen=None):
        """x [S, P, H] -> the same, or what `chosen` takes of it.

        keep: an iterator over the dropout of attention, output, ffn; relative: what attention is given of
        distances; chosen: positions that the block is asked for (`models.stacked.chosen`), None: all.
        """
        normed = self.attention_norm.forward(x, counts=ragged.counts) if self.pre else x
        context = self.attention.forward(normed, ragged, keep, relative, chosen)
        residual = x if chosen is None else chosen.take(x)
        rows, rows_of = (ragged.counts, ragged.rows_of) if chosen is None else (chosen.own, chosen.rows_of)
        stream = affine(context, self.out[0], None, rows)
        norm = self.ffn_norm if self.pre else self.attention_norm
        read = norm.forward(stream, residual, self.out[1], rows_of(next(keep)), rows)
        inner = affine(read, self.ffn_in[0], None, rows)
        active = gelu(inner, self.ffn_in[1], rows)
        z, kept = affine(active, self.ffn_out[0], None, rows), rows_of(next(keep))
        self.saved, self.chosen = (context, read, inner, active, kept, rows), chosen
        if not self.pre:
            return self.ffn_norm.forward(z, read, self.ffn_out[1], kept, rows)
        z.add_(self.ffn_out[1][:, None])
        return (z if kept is None else drop_(z, kept, rows)).add_(stream)

    def forget(self) -> None:
        """Let go of what a gradient would need."""
        self.saved = self.attention.saved = self.attention_norm.saved = self.ffn_norm.saved = None

    def backward(self, g):
        """Gradient of x, given that of the result."""
        (context, read, inner, active, kept, rows), self.saved = self.saved, None  # memory for what comes next
        chosen = self.chosen
        if self.pre:
            dz = g if kept is None else drop_(g.clone(), kept, rows)
        else:
            g, dz = self.ffn_norm.backward(g, self.ffn_out[3])
        affine_gradients(dz, active, self.ffn_out[2], self.ffn_out[3] if self.pre else None, rows)
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
        g = g if chosen is None else chosen.put(g)
        if not self.pre:
            self.attention.backward(dcontext, g)
            return g
        normed = torch.zeros_like(g)
        self.attention.backward(dcontext, normed)
        return self.attention_norm.backward(normed)[0].add_(g)
