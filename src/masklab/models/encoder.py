"""The encoder: a bidirectional transformer with a tied masked-language-model head.

`positions` chooses DeBERTa's disentangled attention (He et al. 2021) or BERT's
absolute positions (Devlin et al. 2019); both are post-layer-norm and compute
what the Hugging Face class of the same architecture computes. Cost follows what
is asked: the last block, and the head, see only the positions `at`.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.models.attention import Attention, Batch, DisentangledAttention, Linear, Queries, plan_queries
from masklab.models.dropout import dropout, dropout_add
from masklab.tokenizers import PAD

EPS = {"disentangled": 1e-7, "absolute": 1e-12}
ATTENTION = {"disentangled": DisentangledAttention, "absolute": Attention}


@dataclass
class Output:
    """What `MaskedLM` returns for N positions.

    logits [N, V]: scores of the vocabulary; latent [N, K] or None: scores of the latent properties;
    hidden [N, H] or None: the hidden state that was asked for.
    """

    logits: torch.Tensor
    latent: torch.Tensor | None = None
    hidden: torch.Tensor | None = None


class Embeddings(nn.Module):
    """Token (and absolute position) embeddings, layer norm, dropout: ids [B, T] -> [B T, H]."""

    def __init__(self, config: Encoder, vocab_size: int):
        super().__init__()
        self.word = nn.Parameter(torch.empty(vocab_size, config.hidden))
        absolute = config.positions == "absolute"
        self.position = nn.Parameter(torch.empty(config.max_positions, config.hidden)) if absolute else None
        # BERT adds the embedding of a segment; every sequence is one segment here
        self.segment = nn.Parameter(torch.empty(1, config.hidden)) if absolute else None
        self.norm = nn.LayerNorm(config.hidden, EPS[config.positions])
        self.p = config.dropout

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = F.embedding(ids, self.word)
        if self.position is not None:
            x = x + (self.position[: ids.shape[1]] + self.segment)
        return dropout(self.norm(x.flatten(0, 1)), self.p, self.training)


class Block(nn.Module):
    """Attention and feed-forward sublayers, each followed by dropout, residual and layer norm."""

    def __init__(self, config: Encoder):
        super().__init__()
        eps = EPS[config.positions]
        self.attention = ATTENTION[config.positions](config.hidden, config.heads, config.dropout)
        self.out = Linear(config.hidden, config.hidden)
        self.attention_norm = nn.LayerNorm(config.hidden, eps)
        self.ffn_in = Linear(config.hidden, config.ffn)
        self.ffn_out = Linear(config.ffn, config.hidden)
        self.ffn_norm = nn.LayerNorm(config.hidden, eps)
        self.p = config.dropout

    def forward(self, x, batch: Batch, queries: Queries | None = None, relative=None) -> torch.Tensor:
        """x [B T, H] -> [B T, H], or [N, H] at the positions of `queries`."""
        context = self.attention(x, batch, queries, relative)
        if queries is not None:
            x = x.index_select(0, queries.at)
        x = self.attention_norm(dropout_add(x, self.out(context), self.p, self.training))
        return self.ffn_norm(dropout_add(x, self.ffn_out(F.gelu(self.ffn_in(x))), self.p, self.training))


class Head(nn.Module):
    """Dense, gelu, layer norm; the decoder is the transposed token embedding plus a bias."""

    def __init__(self, config: Encoder, vocab_size: int):
        super().__init__()
        self.dense = Linear(config.hidden, config.hidden)
        self.norm = nn.LayerNorm(config.hidden, EPS[config.positions])
        self.bias = nn.Parameter(torch.empty(vocab_size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The transform alone, [N, H] -> [N, H]."""
        return self.norm(F.gelu(self.dense(x)))


class MaskedLM(nn.Module):
    """A masked language model, optionally with a second head of `latent` scores (MLSM, Berend 2023, section 2).

    Args:
        config: the architecture.
        vocab_size: V, special tokens included.
        latent: K, number of latent properties; 0: no latent head.
        generator: CPU generator that the initial weights are drawn from; None: torch's default one.

    Raises:
        MaskLabError: `hidden` is not a multiple of `heads`.
    """

    def __init__(self, config: Encoder, vocab_size: int, latent: int = 0, generator: torch.Generator | None = None):
        super().__init__()
        if config.hidden % config.heads:
            raise MaskLabError(f"encoder: hidden {config.hidden} is not a multiple of heads {config.heads}")
        self.config, self.vocab_size, self.latent_size = config, vocab_size, latent
        self.embeddings = Embeddings(config, vocab_size)
        relative = config.positions == "disentangled"
        # row max_positions + r embeds the distance r = i - j
        self.relative = nn.Parameter(torch.empty(2 * config.max_positions, config.hidden)) if relative else None
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.head = Head(config, vocab_size)
        # last, so that a latent head leaves the initial values of everything else as they are
        self.latent = Linear(config.hidden, latent) if latent else None
        self.reset_parameters(generator)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all weights anew: normal(0, init_range) matrices, zero biases, unit layer norms, zero <pad> row."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                if not parameter.is_meta:
                    draw = torch.empty(parameter.shape).normal_(0, self.config.init_range, generator=generator)
                    parameter.copy_(draw)
            elif name.endswith("norm.weight"):
                parameter.fill_(1)
            else:
                parameter.zero_()
        self.embeddings.word[PAD].zero_()

    def forward(
        self, ids: torch.Tensor, lengths: torch.Tensor, at: torch.Tensor | None = None, hidden: int | None = None
    ) -> Output:
        """Scores at the positions `at`.

        Args:
            ids: [B, T] token ids, padded on the right.
            lengths: [B] tokens of each row, special tokens included.
            at: [N] flat positions b T + t, each at most once; None: every position, N = B T.
            hidden: layer whose hidden state is returned too: 0 the embeddings, l the output of block l.

        Raises:
            MaskLabError: T is above max_positions, or there is no layer `hidden`.
        """
        state, last = self._run(ids, lengths, self.config.layers, at, keep=hidden)
        transformed = self.head(last)
        logits = F.linear(transformed, self.embeddings.word, self.head.bias)
        return Output(logits, None if self.latent is None else self.latent(transformed), state)

    def encode(
        self, ids: torch.Tensor, lengths: torch.Tensor, layer: int | None = None, at: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Hidden states of `layer` (None: the last) [B, T, H], or [N, H] at the positions `at`.

        Blocks above `layer` are not computed. Arguments and errors as in `forward`.
        """
        _, last = self._run(ids, lengths, self.config.layers if layer is None else layer, at)
        return last.view(*ids.shape, -1) if at is None else last

    def _run(self, ids, lengths, upto: int, at, keep: int | None = None):
        """Hidden states at `at` of layers `keep` (None where not asked) and `upto`."""
        for layer in (upto, keep):
            if layer is not None and not 0 <= layer <= self.config.layers:
                raise MaskLabError(f"layer {layer}: the encoder has layers 0 to {self.config.layers}")
        batch = self._batch(ids, lengths)
        relative = self._relative(batch.length)
        queries = None if at is None or upto == 0 else plan_queries(at, batch)
        x = self.embeddings(ids)
        kept = x if keep == 0 else None
        for number, block in enumerate(self.blocks[:upto], 1):
            x = block(x, batch, queries if number == upto else None, relative)
            if keep == number:
                kept = x
        if at is not None:
            if upto == 0:
                x = x.index_select(0, at)
            if kept is not None:
                kept = x if keep == upto else kept.index_select(0, at)
        return kept, x

    def _batch(self, ids, lengths) -> Batch:
        size, length = ids.shape
        if length > self.config.max_positions:
            raise MaskLabError(f"sequence of {length} tokens: max_positions is {self.config.max_positions}")
        if lengths.device.type == "cpu" and not torch.compiler.is_compiling() and bool((lengths == length).all()):
            return Batch(size, length, None)
        padding = torch.arange(length, device=ids.device) >= lengths[:, None]
        # half the lowest number: stays finite when it is rounded to bf16
        mask = torch.zeros(padding.shape, device=ids.device).masked_fill_(padding, torch.finfo(torch.float32).min / 2)
        return Batch(size, length, mask[:, None, :])

    def _relative(self, length: int) -> torch.Tensor | None:
        """Embeddings of the distances T - 1, ..., 1 - T: [2 T - 1, H]."""
        if self.relative is None:
            return None
        zero = self.config.max_positions
        return self.relative[zero - length + 1 : zero + length].flip(0)
