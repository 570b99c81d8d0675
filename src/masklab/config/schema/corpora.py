"""Entries of `corpora:`: a class of settings for each kind of corpus."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from masklab.config.schema.base import Count, Drawn, Kinds, Share
from masklab.config.schema.laws import Chains, Grammar, HiddenMarkov


class TextCorpus(Drawn):
    """Sequences read from text files."""

    kind: Literal["text"]
    files: list[str] = Field(
        description="Files or globs: .txt, .train/.dev/.test (plain), .gz, .xz, .zst, .jsonl, .parquet."
    )
    column: str = Field("text", description="Field that holds the text in .jsonl and .parquet files.")
    unit: Literal["line", "packed"] = Field(
        "line",
        description="`line`: one line is one sequence; `packed`: lines of a file are joined up to `packed_words`.",
    )
    packed_words: Count = Field(96, description="Words of a packed sequence.")
    min_characters: int = Field(5, ge=0, description="Shorter lines are dropped (released code: 5).")
    min_words: int = Field(
        5, ge=0, description="Lines with fewer whitespace-separated words are dropped (released code: 5)."
    )
    deduplicate: bool = Field(
        False,
        description="true: of equal lines, in whichever of the files, only the first is kept; before lines are packed and the budget is drawn.",
    )
    max_words: int | None = Field(
        None,
        ge=1,
        description="Read at most this many words from all files together; the budget is shared evenly over the files. None: all.",
    )
    valid: Count = Field(1000, description="Sequences held out for validation, drawn at random.")
    test: Count = Field(1000, description="Sequences held out for testing, drawn at random.")


class EnglishCorpus(Drawn):
    """Sequences of the generated English-like language."""

    kind: Literal["english"]
    sentences: Count = Field(description="Training sentences.")
    valid: Count = Field(1000, description="Validation sentences.")
    test: Count = Field(1000, description="Test sentences.")


class MarkovCorpus(Drawn):
    """Sequences of symbols from Markov chains, with or without the distributional property."""

    kind: Literal["markov"]
    chains: str | Chains = Field(description="Entry of `chains`.")
    distributional: bool | Share = Field(
        description="true: the form of each feature, a or b, is decided by a coin (w/ DH); false: the first chain is all a, the second all b (w/o DH); a number: the coin decides for this share of the features, the others have the form of their chain."
    )
    sequences: Count = Field(100_000, description="Training sequences per chain (paper: 100,000 in all).")
    valid: Count = Field(10_000, description="Validation sequences per chain.")
    test: Count = Field(10_000, description="Test sequences per chain.")
    length: Count = Field(512, description="Synsets per sequence.")
    seed: int = Field(
        1,
        ge=0,
        description="Seed of the walks: corpora of equal chains, length and seed hold the same synsets in the same order.",
    )


class HmmCorpus(Drawn):
    """Sentences of symbols from a hidden Markov model (Liu et al. 2023, A.1)."""

    kind: Literal["hmm"]
    hmm: str | HiddenMarkov = Field(description="Entry of `hmms`.")
    sequences: Count = Field(10_000_000, description="Training sentences (paper: 10,000,000).")
    valid: Count = Field(10_000, description="Validation sentences.")
    test: Count = Field(10_000, description="Test sentences.")
    length: Count = Field(16, description="Words per sentence.")
    seed: int = Field(1, ge=0, description="Seed of the sentences.")


class PcfgCorpus(Drawn):
    """Sentences of a probabilistic context-free grammar."""

    kind: Literal["pcfg"]
    grammar: str | Grammar = Field(description="Entry of `grammars`.")
    sentences: Count = Field(100_000, description="Training sentences (paper: 20,000,000).")
    valid: Count = Field(10_000, description="Validation sentences.")
    test: Count = Field(10_000, description="Test sentences.")
    min_length: Count = Field(1, description="Sentences of fewer words are drawn again.")
    max_length: Count = Field(32, description="Sentences of more words are drawn again.")
    seed: int = Field(1, ge=0, description="Seed of the sentences.")


class CausalCorpus(Drawn):
    """Sentences of symbols drawn from a causal language model over few of its tokens (Liu et al. 2023, A.1)."""

    kind: Literal["causal"]
    causal: str = Field(
        description="Entry of `causal_models`; or, with a / in it, a folder or id of the Hugging Face hub (paper: facebook/opt-125m)."
    )
    vocabulary: Count = Field(
        2000, description="Number of words: the most frequent tokens of the model, special ones left out."
    )
    frequency: Literal["order", "sampled"] = Field(
        "order",
        description="How frequent a token is: `order`: earlier in the vocabulary is more frequent, as in OPT's and in Unigram tokenizers; `sampled`: counted in `counted` texts of the model.",
    )
    counted: Count = Field(10_000, description="Texts of at most `length` tokens drawn to count tokens in.")
    stop: str = Field(
        "eos",
        description="What ends a sentence before `length`: `eos`: the model's end-of-text token, which is no word; a word such as `.`, which is then the last one; `none`: nothing.",
    )
    shortest: Count = Field(1, description="Words that a sentence has at least.")
    length: Count = Field(24, description="Most words that a sentence has.")
    temperature: float = Field(
        1.0, gt=0, description="Temperature of the model's distribution, before it is renormalised."
    )
    sequences: Count = Field(200_000_000, description="Training sentences (paper: 200,000,000).")
    valid: Count = Field(10_000, description="Validation sentences.")
    test: Count = Field(10_000, description="Test sentences.")
    batch_size: Count = Field(512, description="Sentences drawn together.")
    seed: int = Field(1, ge=0, description="Seed of the sentences.")

    @model_validator(mode="after")
    def _lengths(self):
        if self.shortest > self.length:
            raise ValueError(f"shortest: {self.shortest} is above length ({self.length})")
        return self

    @property
    def language(self) -> tuple:
        """What its symbols stand for: equal for corpora whose symbols are the same words."""
        drawn = self.counted, self.seed, self.redraw, self.length, self.temperature
        counted = drawn if self.frequency == "sampled" else ()
        return self.causal, self.vocabulary, self.frequency, *counted


Corpus = Annotated[Drawn, Kinds("corpora")]
