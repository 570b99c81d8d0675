"""The parts that encoders and decoders are built of: embeddings, layers, head."""

import torch
from torch import nn
from torch.nn import functional as F

from masklab.config.schema import Encoder
from masklab.models.attention import Attention, Batch, Queries
from masklab.models.dropout import dropout, dropout_add
from masklab.models.linear import Linear
from masklab.models.products import has_bf16
from masklab.models.relative import BiasedAttention, DisentangledAttention
from masklab.optim.direct import lookup


class Embeddings(nn.Module):
    """Token (and absolute position) embeddings, layer norm, dropout: ids [B, T] -> [B T, H]."""

    def __init__(self, config: Encoder, vocab_size: int):
        super().__init__()
        self.word = nn.Parameter(torch.empty(vocab_size, config.hidden))
        absolute = config.has_absolute
        self.position = nn.Parameter(torch.empty(config.max_positions, config.hidden)) if absolute else None
        # BERT adds the embedding of a segment; every sequence is one segment here
        bert = config.positions == "absolute" and config.norm == "post" and config.embedding_norm
        self.segment = nn.Parameter(torch.empty(1, config.hidden)) if bert else None
        self.norm = nn.LayerNorm(config.hidden, config.eps) if config.embedding_norm else None
        # normalised again after every sum, the residual stream may be bf16; else it stays fp32 under autocast
        self.rounds = config.norm == "post" and config.kind == "transformer"
        self.p = config.dropout

    def forward(self, ids: torch.Tensor, positions: torch.Tensor | None = None) -> torch.Tensor:
        x = lookup(ids, self.word)
        if self.position is not None:
            at = self.position[: ids.shape[1]] if positions is None else F.embedding(positions, self.position)
            x = x + (at if self.segment is None else at + self.segment)
        x = x.flatten(0, 1)
        x = x if self.norm is None else self.norm(x)
        if self.rounds and x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            x = x.to(torch.bfloat16)
        return dropout(x, self.p, self.training)


def build_attention(config: Encoder) -> Attention:
    p = config.dropout if config.attention_dropout is None else config.attention_dropout
    if config.positions == "disentangled":
        return DisentangledAttention(config.hidden, config.heads, p, config.dropout)
    return (BiasedAttention if config.positions == "relative" else Attention)(config.hidden, config.heads, p)


class Block(nn.Module):
    """Attention and feed-forward sublayers, each with dropout and residual.

    Layer norm follows each sum (post: Vaswani et al. 2017) or precedes each sublayer (pre: Xiong et al. 2020).
    """

    def __init__(self, config: Encoder):
        super().__init__()
        self.pre = config.norm == "pre"
        self.attention = build_attention(config)
        self.out = Linear(config.hidden, config.hidden)
        self.attention_norm = nn.LayerNorm(config.hidden, config.eps)
        self.ffn_in = Linear(config.hidden, config.ffn)
        self.ffn_out = Linear(config.ffn, config.hidden)
        self.ffn_norm = nn.LayerNorm(config.hidden, config.eps)
        self.p = config.dropout

    def forward(self, x, batch: Batch, queries: Queries | None = None, relative=None) -> torch.Tensor:
        """x [B T, H] -> [B T, H], or [N, H] at the positions of `queries`."""
        context = self.attention(self.attention_norm(x) if self.pre else x, batch, queries, relative)
        if queries is not None:
            x = x.index_select(0, queries.at)
        x = dropout_add(x, self.out(context), self.p, self.training)
        if self.pre:
            return dropout_add(x, self.ffn(self.ffn_norm(x)), self.p, self.training)
        x = self.attention_norm(x)
        return self.ffn_norm(dropout_add(x, self.ffn(x), self.p, self.training))

    def ffn(self, x):
        return self.ffn_out(F.gelu(self.ffn_in(x)))


class Lstm(nn.LSTM):
    """An LSTM that is initialised by the model that owns it.

    Under bf16 on a CPU that has no instructions for it, it computes in float32: there is no other kernel. In eval mode
    with gradients it does without cuDNN, which has no backward there. In float32 cuDNN would round to 10 bits (TF32),
    unlike the products of a transformer, forward and backward: it is told not to, in the whole process.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        torch.backends.cudnn.allow_tf32 = False

    def reset_parameters(self) -> None:
        pass

    def forward(self, x):
        if x.device.type == "cpu" and torch.is_autocast_enabled("cpu") and not has_bf16():
            with torch.autocast("cpu", enabled=False):
                return super().forward(x.float())
        if x.device.type != "cpu" and not self.training and torch.is_grad_enabled():
            with torch.backends.cudnn.flags(enabled=False):
                return super().forward(x)
        return super().forward(x)


class LstmBlock(nn.Module):
    """x -> LN(x + BiLSTM(LN(x))), half of the width for each direction, no feed-forward.

    The layer of the LSTMs of Liu et al. (2023, appendix A.3) as released, with dropout on the LSTM's output.
    The backward direction reads each row from its own last token, so that padding changes nothing.
    torch.compile leaves the LSTM kernel itself out of its graph.
    """

    def __init__(self, config: Encoder):
        super().__init__()
        self.input_norm = nn.LayerNorm(config.hidden, config.eps)
        self.ahead = Lstm(config.hidden, config.hidden // 2, batch_first=True)
        self.behind = Lstm(config.hidden, config.hidden // 2, batch_first=True)
        self.output_norm = nn.LayerNorm(config.hidden, config.eps)
        self.p = config.dropout

    def forward(self, x, batch: Batch, queries: Queries | None = None, relative=None) -> torch.Tensor:
        """As `Block.forward`."""
        y = self.input_norm(x).view(batch.size, batch.length, -1)
        ahead = self.ahead(y)[0]
        behind = reverse(self.behind(reverse(y, batch.lengths))[0], batch.lengths)
        if queries is not None:
            x = x.index_select(0, queries.at)
            ahead, behind = (part.flatten(0, 1).index_select(0, queries.at) for part in (ahead, behind))
        y = torch.cat([ahead, behind], -1).view_as(x)
        return self.output_norm(dropout_add(x, y, self.p, self.training))


def reverse(x: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor:
    """x [B, T, d] with the first `lengths` [B] (None: all) entries of each row in reverse order."""
    if lengths is None:
        return x.flip(1)
    t = torch.arange(x.shape[1], device=x.device)
    index = torch.where(t < lengths[:, None], lengths[:, None] - 1 - t, t)
    return x.gather(1, index[:, :, None].expand_as(x))


class Head(nn.Module):
    """Dense, gelu, layer norm; then the token embedding (or a matrix of its own) transposed, plus a bias.

    Under `head: linear` the first three are left out.
    A decoder of another width than the encoder's is followed by a linear map back (MAE-LM, released code).
    """

    def __init__(self, config: Encoder, vocab_size: int):
        super().__init__()
        width = config.hidden if config.decoder is None else config.decoder_stack.hidden
        transform = config.head == "transform"
        self.dense = Linear(width, width) if transform else None
        self.norm = nn.LayerNorm(width, config.eps) if transform else None
        self.bias = nn.Parameter(torch.empty(vocab_size))
        self.project = None if width == config.hidden else Linear(width, config.hidden, bias=False)
        self.weight = None if config.tied_head else nn.Parameter(torch.empty(vocab_size, config.hidden))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the output matrix is multiplied with, [N, H] -> [N, H]."""
        if self.dense is not None:
            x = self.norm(F.gelu(self.dense(x)))
        return x if self.project is None else self.project(x)
