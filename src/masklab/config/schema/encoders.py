"""Entries of `encoders:`: what a model is made of."""

from typing import Literal

from pydantic import Field

from masklab.config.schema.base import Count, Entity, Share


class Decoder(Entity):
    """The shallow decoder of a masked autoencoder (MAE-LM): it alone sees [MASK]; checkpoints leave it out."""

    layers: Count = 4
    hidden: Count | None = Field(None, description="Hidden width; None: the encoder's.")
    heads: Count | None = Field(
        None, description="Attention heads; None: as many as make them as wide as the encoder's."
    )
    intermediate: Count | None = Field(None, description="Width of the feed-forward layer; None: 4 x hidden.")
    attention: Literal["self", "self+cross", "causal+cross", "cross"] = Field(
        "self",
        description="`self`: bidirectional; `+cross`: then attention to the encoder's states; `causal+cross`: every token is predicted from the encoder's states and the tokens before it (BART); `cross`: masked positions attend to the encoder's states alone.",
    )
    relative: bool = Field(
        False,
        description="With `attention: self` and an encoder with `positions: relative`: a bias per head and bucket of distances, of its own, next to absolute positions. The paper's decoder has none; small models learn sooner with it.",
    )


class Encoder(Entity):
    """A bidirectional encoder with a masked-language-model head."""

    kind: Literal["transformer", "lstm", "lookup", "words", "folder"] = Field(
        "transformer",
        description="`folder`: a model made elsewhere, which a recipe with `folder` stands for; `lstm`: bidirectional LSTM layers with residuals in the place of attention and feed-forward, under `norm: pre` and `positions: absolute` or `none` alone; `lookup`: no network but the table of the corpus's exact conditionals (steps: 0), every other key unused; `words`: no network, a token is its one-hot vector and a masked one is predicted by how often each token occurs in training (steps: 0), every key but `order`, `units` and `max_positions` unused.",
    )
    folder: str | None = Field(None, description="For `folder`: the Hugging Face folder.")
    order: bool = Field(
        True, description="For `words`: the one-hot vectors of a sequence are kept in order; false: they are counted."
    )
    units: bool = Field(
        False,
        description="For `words`: not the tokens are counted but what they spell, where a task says it (synsets of `patterns`); `order` is then unused, and fine-tuning alone is measured.",
    )
    positions: Literal["disentangled", "absolute", "relative", "none"] = Field(
        "disentangled",
        description="`disentangled`: DeBERTa's relative positions; `absolute`: BERT's; `relative`: a bias per head and bucket of distances, shared by all layers (MAE-LM), next to absolute positions; `none`. An LSTM takes `absolute` or `none`.",
    )
    absolute: bool = Field(
        True, description="With `positions: relative`: absolute positions too; false: the bias alone."
    )
    relative_buckets: int = Field(32, ge=4, description="Rows of the bias table of `positions: relative`; even.")
    relative_distance: Count = Field(128, description="Distances from about here on share the last bucket.")
    norm: Literal["post", "pre"] = Field(
        "post",
        description="Layer norm after each residual sum (BERT, DeBERTa), or before each sublayer and at the end. An LSTM takes `pre`, under which a layer is LN(x + LSTM(LN(x))), a layer norm before it and one after the sum, with another at the end.",
    )
    embedding_norm: bool = Field(True, description="Layer norm on the embeddings.")
    norm_eps: float | None = Field(
        None, gt=0, description="Epsilon of layer norms; None: 1e-7 disentangled, 1e-5 relative, else 1e-12."
    )
    tied_head: bool = Field(True, description="The output matrix is the token embedding; false: one of its own.")
    head: Literal["transform", "linear"] = Field(
        "transform",
        description="`transform`: between the last layer's states and the output matrix are a dense layer, gelu and layer norm (BERT); `linear`: logits are the states times the output matrix, plus a bias, so that the rank of logits is bound by that of states.",
    )
    layers: Count = 12
    hidden: Count = Field(
        768, description="Width; a multiple of `heads`. An LSTM takes an even one, half for each direction."
    )
    heads: Count = Field(12, description="Attention heads; an LSTM has none.")
    intermediate: Count | None = Field(None, description="Width of the feed-forward layer; None: 4 x hidden.")
    max_positions: Count = Field(512, description="Longest sequence; also the clip of disentangled positions.")
    dropout: Share = Field(0.1, description="Dropout on embeddings, sublayer outputs and attention weights.")
    attention_dropout: Share | None = Field(None, description="Dropout on attention weights; None: `dropout`.")
    init_range: float = Field(0.02, gt=0, description="Standard deviation of the normal initialisation.")
    decoder: Decoder | None = Field(None, description="Decoder of a masked autoencoder; None: the encoder sees [MASK].")

    @property
    def network(self) -> bool:
        """Whether there are weights to train."""
        return self.kind not in ("lookup", "words")

    @property
    def ffn(self) -> int:
        return self.intermediate or 4 * self.hidden

    @property
    def eps(self) -> float:
        return self.norm_eps or {"disentangled": 1e-7, "relative": 1e-5}.get(self.positions, 1e-12)

    @property
    def has_absolute(self) -> bool:
        return self.positions == "absolute" or (self.positions == "relative" and self.absolute)

    @property
    def decoder_stack(self) -> "Encoder":
        """The decoder's blocks as an encoder: absolute or relative positions, no dropout, the encoder's kind of layer."""
        decoder = self.decoder
        hidden = decoder.hidden or self.hidden
        sizes = {"layers": decoder.layers, "hidden": hidden, "intermediate": decoder.intermediate}
        sizes["heads"] = decoder.heads or max(1, hidden * self.heads // self.hidden)
        positions = "relative" if decoder.relative else "absolute"
        fixed = {
            "positions": positions,
            "absolute": True,
            "norm_eps": self.eps,
            "dropout": 0.0,
            "attention_dropout": 0.0,
        }
        return self.model_copy(update=sizes | fixed | {"embedding_norm": True, "decoder": None})

    def problem(self) -> str | None:
        """`key: what is wrong` where values do not fit together, else None."""
        if not self.network or self.kind == "folder":
            return None
        if self.kind == "lstm":
            if self.positions not in ("absolute", "none"):
                return f"positions: {self.positions!r} needs attention; an LSTM takes 'absolute' or 'none'"
            if self.norm != "pre":
                return "norm: an LSTM takes 'pre' only"
            if self.decoder is not None:
                return "decoder: an LSTM takes none"
            return f"hidden: {self.hidden} must be even, half for each direction" if self.hidden % 2 else None
        if self.hidden % self.heads:
            return f"hidden: {self.hidden} must be a multiple of heads ({self.heads})"
        if self.positions == "relative":
            if self.relative_buckets % 2:
                return f"relative_buckets: {self.relative_buckets} must be even"
            if self.relative_distance <= self.relative_buckets // 4 + 1:
                low = self.relative_buckets // 4 + 2
                return f"relative_distance: {self.relative_distance} must be at least {low} (relative_buckets / 4 + 2)"
        if self.decoder is not None and self.decoder.relative:
            if self.positions != "relative":
                return f"decoder.relative: needs an encoder with positions 'relative' (got {self.positions!r})"
            if self.decoder.attention != "self":
                return f"decoder.relative: needs attention 'self' (got {self.decoder.attention!r})"
        problem = self.decoder_stack.problem() if self.decoder is not None else None
        return problem and f"decoder.{problem}"
