"""The encoder: one bidirectional model with switches, and a masked-language-model head.

`kind`, `positions`, `norm`, `embedding_norm`, `tied_head` and `head` choose the architecture:
BERT (Devlin et al. 2019), DeBERTa (He et al. 2021), their pre-layer-norm forms, the
relative positions and the decoder of MAE-LM (Meng et al. 2024), a bidirectional LSTM.
Where Hugging Face has a class of the same architecture, both compute the same; where
it has none, modeling_masklab.py is the plain form. Cost follows what is asked: the
last block, and the head, see only the positions `at`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.models.attention import Batch, plan_queries
from masklab.models.blocks import Block, Embeddings, Head, LstmBlock
from masklab.models.decoder import Decoder, drop, restore
from masklab.models.linear import Linear, linear
from masklab.models.positions import bias_at, shared_bias
from masklab.rng import torch_generator
from masklab.tokenizers import MASK, PAD, SEP

BLOCKS = {"transformer": Block, "lstm": LstmBlock}
LSTM_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


@dataclass
class Output:
    """What `MaskedLM` returns for N positions.

    logits [N, V]: scores of the vocabulary; latent [N, K] or None: scores of the latent properties;
    hidden [N, H] or None: the hidden state that was asked for.
    """

    logits: torch.Tensor
    latent: torch.Tensor | None = None
    hidden: torch.Tensor | None = None


class MaskedLM(nn.Module):
    """A masked language model, optionally with a second head of `latent` scores (MLSM, Berend 2023, section 2).

    Args:
        config: the architecture.
        vocab_size: V, special tokens included.
        latent: K, number of latent properties; 0: no latent head.
        generator: CPU generator that the initial weights are drawn by; None: torch's default one.

    Raises:
        MaskLabError: values of `config` do not fit together.
    """

    def __init__(self, config: Encoder, vocab_size: int, latent: int = 0, generator: torch.Generator | None = None):
        super().__init__()
        if problem := config.problem():
            raise MaskLabError(f"encoder: {problem}")
        self.config, self.vocab_size, self.latent_size = config, vocab_size, latent
        self.one_path = False  # whether the blocks see every batch in one form, as compiled ones want
        self.by_hand = None  # a `stacked.by_hand.ByHand` that encodes in its place: `stacked.encoding_by_hand`
        self.embeddings = Embeddings(config, vocab_size)
        self.relative = None
        if config.positions == "disentangled":
            # row max_positions + r embeds the distance r = i - j
            self.relative = nn.Parameter(torch.empty(2 * config.max_positions, config.hidden))
        elif config.positions == "relative":
            self.relative = nn.Parameter(torch.empty(config.relative_buckets, config.heads))
        self.blocks = nn.ModuleList(BLOCKS[config.kind](config) for _ in range(config.layers))
        self.final_norm = nn.LayerNorm(config.hidden, config.eps) if config.norm == "pre" else None
        self.head = Head(config, vocab_size)
        self.decoder = Decoder(config) if config.decoder is not None else None
        self.latent = Linear(config.hidden, latent) if latent else None
        self.reset_parameters(generator)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all weights anew: normal(0, init_range) matrices, zero biases, unit layer norms, zero <pad> row.

        Weights and biases of an LSTM are uniform in +-1 / sqrt(its width), torch's default. Each tensor is a stream of
        its own, addressed by its name and one draw from `generator`: models that differ in some tensors have the same
        initial values in all others.
        """
        seed = 0 if self.embeddings.word.is_meta else int(torch.randint(2**62, (), generator=generator))
        for name, parameter in self.named_parameters():
            lstm = name.rsplit(".", 1)[-1].startswith(LSTM_WEIGHTS)
            if lstm or parameter.dim() == 2:
                if not parameter.is_meta:
                    draw, stream = torch.empty(parameter.shape), torch_generator(seed, name)
                    if lstm:
                        bound = (self.config.hidden // 2) ** -0.5
                        draw.uniform_(-bound, bound, generator=stream)
                    else:
                        draw.normal_(0, self.config.init_range, generator=stream)
                    parameter.copy_(draw)
            elif name.endswith("norm.weight"):
                parameter.fill_(1)
            else:
                parameter.zero_()
        self.embeddings.word[PAD].zero_()

    def forward(
        self,
        ids: torch.Tensor,
        lengths: torch.Tensor,
        at: torch.Tensor | None = None,
        hidden: int | None = None,
        positions: torch.Tensor | None = None,
    ) -> Output:
        """Scores at the positions `at`; a model with a decoder reads its [MASK]s there (see `reconstruct`).

        Args:
            ids: [B, T] token ids, padded on the right.
            lengths: [B] tokens of each row, special tokens included.
            at: [N] flat positions b T + t, each at most once; None: every position, N = B T.
            hidden: layer whose hidden state is returned too: 0 the embeddings, l the output of block l.
            positions: [B, T] position of each token, below max_positions; None: 0 .. T - 1.

        Raises:
            MaskLabError: T is above max_positions, there is no layer `hidden`, or a model with a decoder is
                asked for a hidden state or given positions.
        """
        if self.decoder is not None:
            if hidden is not None or positions is not None:
                raise MaskLabError("a model with a decoder takes no `hidden` and no `positions`; use `encode`")
            return self.reconstruct(ids, lengths, at)
        state, last = self._run(ids, lengths, self.config.layers, at, hidden, positions)
        return self._scores(last, state)

    def reconstruct(
        self,
        ids: torch.Tensor,
        lengths: torch.Tensor,
        at: torch.Tensor | None = None,
        dropped: torch.Tensor | None = None,
        reset: torch.Tensor | None = None,
        aligned: bool = True,
        original: torch.Tensor | None = None,
        width: int | None = None,
    ) -> Output:
        """Scores of the decoder at `at`: of the token that stands there.

        Args:
            ids, lengths, at: as in `forward`.
            dropped: [D], or [B, d] with as many in every row, flat positions that leave the encoder's input and
                are [MASK] in the decoder's; None: those that hold [MASK].
            reset: [R] flat positions that stay in the encoder and are [MASK] in the decoder's input all the same.
            aligned: kept tokens keep their positions in the encoder; else they count from 0.
            original: [B, T] ids that nothing is masked in: a causal decoder is fed those before each position.
            width: the most tokens that stay in a row, where it is known (see `decoder.drop`).

        Raises:
            MaskLabError: a causal decoder without `original`.
        """
        if dropped is None:
            real = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
            dropped = ((ids == MASK) & real).flatten().nonzero()[:, 0]
        batch = self._batch(ids, lengths)
        kept = drop(ids, lengths, dropped, width)
        positions = kept.positions if aligned else None
        _, states = self._run(kept.ids, kept.lengths, self.config.layers, None, None, positions)
        keys = self._batch(kept.ids, kept.lengths)
        return self._scores(self.decoder(self._shown(states, kept, reset, original), batch, at, states, keys))

    def _shown(self, states, kept, reset, original):
        """What the decoder reads besides positions, [B T, H]."""
        mask = self.embeddings.word[MASK].to(states.dtype)
        if self.decoder.attention == "cross":
            return mask.expand(len(kept.source), -1)
        if self.decoder.attention == "causal+cross":
            if original is None:
                raise MaskLabError("a causal decoder predicts each token from those before it: give `original`")
            # BART's shift: the first token is predicted from an end of sequence
            before = F.pad(original[:, :-1], (1, 0), value=SEP)
            return F.embedding(before.flatten(), self.embeddings.word).to(states.dtype)
        shown = restore(states, kept, mask)
        return shown if reset is None else shown.index_copy(0, reset, mask.expand(len(reset), -1))

    def _scores(self, last, state=None) -> Output:
        transformed = self.head(last)
        weight = self.embeddings.word if self.head.weight is None else self.head.weight
        logits = linear(transformed, weight, self.head.bias)
        return Output(logits, None if self.latent is None else self.latent(transformed), state)

    def encode(
        self,
        ids: torch.Tensor,
        lengths: torch.Tensor,
        layer: int | None = None,
        at: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Hidden states of `layer` (None: the last) [B, T, H], or [N, H] at the positions `at`.

        Blocks above `layer` are not computed. Under `norm: pre` the last layer is followed by the final norm,
        the others are the residual stream. Arguments and errors as in `forward`.
        """
        given = layer is not None or positions is not None
        if self.by_hand is not None and self.training and torch.is_grad_enabled() and not given:
            last = self.by_hand.encode(ids, lengths, at)
        else:
            _, last = self._run(ids, lengths, self.config.layers if layer is None else layer, at, None, positions)
        return last.view(*ids.shape, -1) if at is None else last

    def states(self, ids: torch.Tensor, lengths: torch.Tensor) -> Iterator[torch.Tensor]:
        """Hidden states of layers 0 .. L in turn, [B T, H] each, as `encode` gives them one by one."""
        batch = self._batch(ids, lengths)
        relative = self._relative(batch)
        x = self.embeddings(ids)
        yield x
        for number, block in enumerate(self.blocks, 1):
            x = block(x, batch, None, relative)
            last = number == self.config.layers and self.final_norm is not None
            yield self.final_norm(x) if last else x

    def _run(self, ids, lengths, upto: int, at, keep: int | None, positions):
        """Hidden states at `at` of layers `keep` (None where not asked) and `upto`."""
        for layer in (upto, keep):
            if layer is not None and not 0 <= layer <= self.config.layers:
                raise MaskLabError(f"layer {layer}: the encoder has layers 0 to {self.config.layers}")
        if self._is_asked(upto, at, keep, positions):
            self._check_length(ids)
            return None, self.by_hand.ask(ids, lengths, at)
        batch = self._batch(ids, lengths, positions)
        relative = self._relative(batch)
        queries = None if at is None or upto == 0 else plan_queries(at, batch, self.one_path)
        x = self.embeddings(ids, positions)
        kept = x if keep == 0 else None
        for number, block in enumerate(self.blocks[:upto], 1):
            x = block(x, batch, queries if number == upto else None, relative)
            if number == self.config.layers and self.final_norm is not None:
                x = self.final_norm(x)
            if keep == number:
                kept = x
        if at is not None:
            if upto == 0:
                x = x.index_select(0, at)
            if kept is not None:
                kept = x if keep == upto else kept.index_select(0, at)
        return kept, x

    def _is_asked(self, upto: int, at, keep, positions) -> bool:
        """Whether `by_hand` gives states that no gradient is wanted of: it knows the last layer's alone."""
        if self.by_hand is None or self.training or torch.is_grad_enabled():
            return False
        last = upto == self.config.layers and keep is None
        return last and positions is None and (at is None or len(at) > 0)

    def _check_length(self, ids) -> None:
        if ids.shape[1] > self.config.max_positions:
            raise MaskLabError(f"sequence of {ids.shape[1]} tokens: max_positions is {self.config.max_positions}")

    def _batch(self, ids, lengths, positions=None) -> Batch:
        size, length = ids.shape
        self._check_length(ids)
        span = length if positions is None else self.config.max_positions
        looked_at = lengths.device.type == "cpu" and not (self.one_path or torch.compiler.is_compiling())
        if looked_at and bool((lengths == length).all()):
            return Batch(size, length, positions=positions, span=span)
        padding = torch.arange(length, device=ids.device) >= lengths[:, None]
        # half the lowest number: stays finite when it is rounded to bf16
        zero = torch.zeros(padding.shape, dtype=self.embeddings.word.dtype, device=ids.device)
        mask = zero.masked_fill_(padding, torch.finfo(torch.float32).min / 2)
        return Batch(size, length, mask[:, None, :], lengths, positions, span)

    def _relative(self, batch: Batch) -> torch.Tensor | None:
        """What attention is given of distances.

        Disentangled: embeddings of S - 1, ..., 1 - S [2 S - 1, H], S the span; relative: the bias [n, 1 or B, T, T].
        """
        if self.relative is None:
            return None
        if self.config.positions == "disentangled":
            zero = self.config.max_positions
            return self.relative[zero - batch.span + 1 : zero + batch.span].flip(0)
        if batch.positions is None:
            return shared_bias(self.relative, batch.length, self.config.relative_distance)
        return bias_at(self.relative, batch.positions, self.config.relative_distance)
