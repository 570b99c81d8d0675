"""Entries of `tokenizers:` and `embeddings:`: tokenizers of each kind, word embeddings."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from masklab.config.schema.base import Count, Entity


class Subwords(Entity):
    """A subword tokenizer trained on one corpus."""

    corpus: str = Field(description="Corpus whose training split it is trained on.")
    vocab_size: int = Field(25000, ge=6, description="Pieces, special tokens included.")
    max_length: int = Field(
        128, ge=3, description="Longer sequences are truncated to this many tokens, [CLS] and [SEP] included."
    )
    lowercase: bool = Field(False, description="Lower-case the text first.")
    sample: Count | None = Field(None, description="Train on this many sequences, drawn at random. None: all.")
    rarest_character: Count = Field(
        1, description="Characters seen fewer times in that text get no piece of their own and become <unk>."
    )


class UnigramTokenizer(Subwords):
    """Unigram language model (Kudo 2018)."""

    kind: Literal["unigram"] = "unigram"
    candidates: Literal["running", "distinct"] = Field(
        "running",
        description="What may become a piece: a string that occurs at least twice in the running text (Kudo 2018), or twice among its distinct words, as Hugging Face's trainer has it by itself: there a word that is part of no other, such as `that`, never becomes one.",
    )


class BPETokenizer(Subwords):
    """Byte-pair encoding of characters (Sennrich et al. 2016)."""

    kind: Literal["bpe"]


class WordPieceTokenizer(Subwords):
    """WordPiece, as BERT's; punctuation is split from words."""

    kind: Literal["wordpiece"]


class SymbolTokenizer(Entity):
    """The fixed vocabulary of a symbolic corpus: the special tokens and one word per symbol."""

    kind: Literal["symbols"]
    corpus: str = Field(description="Corpus whose symbols it names.")
    max_length: int = Field(
        514, ge=3, description="Longer sequences are truncated to this many tokens, [CLS] and [SEP] included."
    )


class FolderTokenizer(Entity):
    """A tokenizer made elsewhere: a Hugging Face folder, its tokens numbered anew behind our special tokens."""

    kind: Literal["folder"]
    folder: str = Field(
        description="Folder with tokenizer.json, such as `AutoTokenizer.from_pretrained(name).save_pretrained(folder)` writes."
    )
    max_length: int = Field(
        128, ge=3, description="Longer sequences are truncated to this many tokens, [CLS] and [SEP] included."
    )

    @property
    def files(self) -> list[str]:
        """The files that it is read from."""
        return [f"{self.folder}/{name}" for name in ("tokenizer.json", "tokenizer_config.json")]


def _tokenizer_kind(value) -> str:
    return (value.get("kind", "unigram") if isinstance(value, dict) else value.kind) or "unigram"


Tokenizer = Annotated[
    Annotated[UnigramTokenizer, Tag("unigram")]
    | Annotated[BPETokenizer, Tag("bpe")]
    | Annotated[WordPieceTokenizer, Tag("wordpiece")]
    | Annotated[SymbolTokenizer, Tag("symbols")]
    | Annotated[FolderTokenizer, Tag("folder")],
    Discriminator(_tokenizer_kind),
]


class Embeddings(Entity):
    """Word embeddings trained on a corpus, for models to start from."""

    kind: Literal["cbow"] = Field(
        "cbow", description="Continuous bag of words with negative sampling (Mikolov et al. 2013)."
    )
    corpus: str
    tokenizer: str
    size: Count = Field(description="Dimensions; the encoder's `hidden`.")
    window: Count = Field(5, description="Widest context on each side; each token's is drawn from 1 to it.")
    negative: Count = Field(5, description="Negative samples per token.")
    exponent: float = Field(0.75, description="Negative samples are drawn in proportion to count ** exponent.")
    epochs: Count = Field(15, description="Passes over the training tokens (released code: 5 + 10).")
    lr: float = Field(0.025, gt=0, description="First learning rate; it falls linearly to `lr_end`.")
    lr_end: float = Field(1e-4, ge=0)
    std: float = Field(0.03, gt=0, description="Standard deviation that all vectors together are rescaled to.")
    layout: Literal["rows", "scrambled"] = Field(
        "rows",
        description="`rows`: a token's row is its vector; `scrambled`: the released code's order of numbers, in which no row is any token's vector.",
    )
    seed: int = Field(1, ge=0)
