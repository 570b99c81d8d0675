"""Languages, corpora, tokenizers, word embeddings."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from masklab.config.schema.base import Count, Entity, Share


class Chains(Entity):
    """Random Markov chains over synsets, each synset with two features a and b (Chiang & Yogatama 2023, section 4).

    Everything is drawn at (config seed, `seed`), not at the entry's name: two entries that differ in
    features alone have the same chains.
    """

    synsets: int = Field(1000, ge=2, description="n; each has one feature of form a and one of form b.")
    chains: Count = Field(2, description="Chains over the same synsets; D1, D2, ... in the order drawn.")
    edges: Literal["paper", "released"] = Field(
        "paper",
        description="`paper`: a node is a synset with two edges to two random synsets; `released`: `copies` x synsets hidden nodes on a cycle that repeats one random order of the synsets, each with a second, random edge.",
    )
    copies: Count = Field(5, description="Hidden nodes per synset under `released`.")
    main: Share = Field(0.9, description="Probability of a node's first edge; the second has the rest.")
    features: Literal["single", "multi"] = Field(
        "single", description="`single`: a feature is one token; `multi`: 1 to `longest` tokens of its alphabet."
    )
    vocabularies: Literal["separate", "shared"] = Field(
        "separate", description="Under `multi`: whether the features of form a and b are spelt with the same tokens."
    )
    alphabet: Count | None = Field(None, description="Under `multi`: tokens per alphabet. None: as many as synsets.")
    longest: Count = Field(3, description="Under `multi`: tokens of the longest feature; lengths are drawn uniformly.")
    code: Literal["prefix-free", "random"] = Field(
        "prefix-free",
        description="Under `multi`: `prefix-free`: no feature begins another, so that a sequence can be read in one way only; `random`: features merely differ.",
    )
    seed: int = Field(1, ge=0, description="Of the chains and of the spelling of features.")


class HiddenMarkov(Entity):
    """A random hidden Markov model with block-diagonal transition and emission matrices (Liu et al. 2023, section 2.2).

    Drawn at (config seed, `seed`). The paper gives symbols, states and the entropy of a word given the others, 3.758
    nats, but neither blocks nor the law of the rows; the defaults meet the entropy at 16 words (`mlm_entropy` in the
    facts of a corpus).
    """

    symbols: Count = Field(200, description="Words; a multiple of `blocks`.")
    states: Count = Field(100, description="Hidden states; a multiple of `blocks`.")
    blocks: Count = Field(
        4, description="Equal blocks of states and of words; a sentence stays in the block of its first state."
    )
    concentration: float = Field(
        0.25, gt=0, description="Every row of a block is a Dirichlet draw with this parameter; small ones are peaked."
    )
    seed: int = Field(1, ge=0, description="Of the matrices.")

    @model_validator(mode="after")
    def _divisible(self):
        for key in ("symbols", "states"):
            if getattr(self, key) % self.blocks:
                raise ValueError(f"{key}: {getattr(self, key)} is no multiple of blocks ({self.blocks})")
        return self


class Grammar(Entity):
    """A probabilistic context-free grammar in Chomsky normal form, drawn level by level or read from a file.

    Liu et al. (2023), appendix A.1, give 50 non-terminals, 200 words, depth 6 and length 32, but neither rules nor the
    law they were drawn from. The defaults are calibrated to their entropy of 3.196 nats per masked word and mean length
    of 17: with seed 1 they give 3.21 with the mask drawn uniformly from each sentence (3.43 over all words alike) and
    17.5, which `masklab facts` prints of a corpus's split. Drawn at (config seed, `seed`).
    """

    levels: list[Count] = Field(
        [10, 8, 8, 8, 8, 8],
        min_length=2,
        description="Symbols per level, start symbols first; a symbol becomes two of the next level, one of the last level a word. n levels: trees of depth n, sentences of at most 2^(n - 1) words.",
    )
    words: Count = Field(200, description="V.")
    start_rules: Count = Field(1, description="Rules of a start symbol (the authors' rule file: 1).")
    rules: Count = Field(
        20,
        description="Rules of a symbol between first and last level; pairs drawn with replacement, equal ones summed.",
    )
    emissions: Count = Field(42, description="Words of a symbol of the last level, dealt so that every word is used.")
    stop: float = Field(
        0.2,
        ge=0,
        le=0.5,
        description="Mean probability that a symbol between first and last level is a word instead; each symbol's own is drawn uniformly from 0 to twice this.",
    )
    stop_words: Count = Field(1, description="Words that such a symbol can be.")
    law: Literal["uniform", "dirichlet"] = Field(
        "dirichlet",
        description="Probabilities of a symbol's rules: normalised uniform numbers (the authors' rule file), or normalised Gamma ones.",
    )
    start_concentration: float = Field(
        5.0, gt=0, description="Under `dirichlet`: Gamma's shape, for the start symbols."
    )
    rule_concentration: float = Field(0.5, gt=0, description="Under `dirichlet`: Gamma's shape, for rules.")
    word_concentration: float = Field(0.2, gt=0, description="Under `dirichlet`: Gamma's shape, for words.")
    file: str | None = Field(
        None,
        description="Rule file (`LHS RHS.. probability` per line, the first LHS being the start symbol); all other keys are then without effect.",
    )
    seed: int = Field(1, ge=0)

    @model_validator(mode="after")
    def _words_fit(self):
        if self.levels[-1] * self.emissions < self.words:
            raise ValueError(
                f"emissions: {self.levels[-1]} symbols with {self.emissions} words each cannot use {self.words} words"
            )
        for key in ("emissions", "stop_words"):
            if getattr(self, key) > self.words:
                raise ValueError(f"{key}: {getattr(self, key)} are more than there are words ({self.words})")
        return self


class TextCorpus(Entity):
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
    max_words: int | None = Field(
        None,
        ge=1,
        description="Read at most this many words from all files together; the budget is shared evenly over the files. None: all.",
    )
    valid: Count = Field(1000, description="Sequences held out for validation, drawn at random.")
    test: Count = Field(1000, description="Sequences held out for testing, drawn at random.")


class EnglishCorpus(Entity):
    """Sequences of the generated English-like language."""

    kind: Literal["english"]
    sentences: Count = Field(description="Training sentences.")
    valid: Count = Field(1000, description="Validation sentences.")
    test: Count = Field(1000, description="Test sentences.")


class MarkovCorpus(Entity):
    """Sequences of symbols from Markov chains, with or without the distributional property."""

    kind: Literal["markov"]
    chains: str | Chains = Field(description="Entry of `chains`.")
    distributional: bool = Field(
        description="true: each feature is of form a or b with probability 1/2 (w/ DH); false: the first chain is all a, the second all b (w/o DH)."
    )
    sequences: Count = Field(100_000, description="Training sequences per chain (paper: 100,000 in all).")
    valid: Count = Field(10_000, description="Validation sequences per chain.")
    test: Count = Field(10_000, description="Test sequences per chain.")
    length: Count = Field(512, description="Synsets per sequence.")
    seed: int = Field(
        1,
        ge=0,
        description="Of the walks: corpora of equal chains, length and seed hold the same synsets in the same order.",
    )


class HmmCorpus(Entity):
    """Sentences of symbols from a hidden Markov model (Liu et al. 2023, A.1)."""

    kind: Literal["hmm"]
    hmm: str | HiddenMarkov = Field(description="Entry of `hmms`.")
    sequences: Count = Field(10_000_000, description="Training sentences (paper: 10,000,000).")
    valid: Count = Field(10_000, description="Validation sentences.")
    test: Count = Field(10_000, description="Test sentences.")
    length: Count = Field(16, description="Words per sentence.")
    seed: int = Field(1, ge=0, description="Of the sentences.")


class PcfgCorpus(Entity):
    """Sentences of a probabilistic context-free grammar."""

    kind: Literal["pcfg"]
    grammar: str | Grammar = Field(description="Entry of `grammars`.")
    sentences: Count = Field(100_000, description="Training sentences (paper: 20,000,000).")
    valid: Count = Field(10_000, description="Validation sentences.")
    test: Count = Field(10_000, description="Test sentences.")
    min_length: Count = Field(1, description="Sentences of fewer words are drawn again.")
    max_length: Count = Field(32, description="Sentences of more words are drawn again.")
    seed: int = Field(1, ge=0, description="Of the sentences.")


class CausalCorpus(Entity):
    """Sentences of symbols drawn from a causal language model over few of its tokens (Liu et al. 2023, A.1)."""

    kind: Literal["causal"]
    causal: str = Field(
        description="Entry of `causal_models`; or, with a / in it, a folder or id of the Hugging Face hub (paper: facebook/opt-125m)."
    )
    vocabulary: Count = Field(
        2000, description="Words: the most frequent tokens of the model that are no special ones."
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
    length: Count = Field(24, description="Words that a sentence has at most.")
    temperature: float = Field(1.0, gt=0, description="Of the model's distribution, before it is renormalised.")
    sequences: Count = Field(200_000_000, description="Training sentences (paper: 200,000,000).")
    valid: Count = Field(10_000, description="Validation sentences.")
    test: Count = Field(10_000, description="Test sentences.")
    batch_size: Count = Field(512, description="Sentences drawn together.")
    seed: int = Field(1, ge=0, description="Of the sentences.")

    @model_validator(mode="after")
    def _lengths(self):
        if self.shortest > self.length:
            raise ValueError(f"shortest: {self.shortest} is above length ({self.length})")
        return self

    @property
    def language(self) -> tuple:
        """What its symbols stand for: equal for corpora whose symbols are the same words."""
        counted = (self.counted, self.seed, self.length, self.temperature) if self.frequency == "sampled" else ()
        return self.causal, self.vocabulary, self.frequency, *counted


Corpus = Annotated[
    TextCorpus | EnglishCorpus | MarkovCorpus | HmmCorpus | PcfgCorpus | CausalCorpus, Field(discriminator="kind")
]


class UnigramTokenizer(Entity):
    """A subword tokenizer trained on one corpus."""

    kind: Literal["unigram"] = Field("unigram", description="Unigram language model (Kudo 2018).")
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


class SymbolTokenizer(Entity):
    """The fixed vocabulary of a symbolic corpus: the special tokens and one word per symbol."""

    kind: Literal["symbols"]
    corpus: str = Field(description="Corpus whose symbols it names.")
    max_length: int = Field(
        514, ge=3, description="Longer sequences are truncated to this many tokens, [CLS] and [SEP] included."
    )


def _tokenizer_kind(value) -> str:
    return (value.get("kind", "unigram") if isinstance(value, dict) else value.kind) or "unigram"


Tokenizer = Annotated[
    Annotated[UnigramTokenizer, Tag("unigram")] | Annotated[SymbolTokenizer, Tag("symbols")],
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
    exponent: float = Field(0.75, description="They are drawn in proportion to count ** exponent.")
    epochs: Count = Field(15, description="Passes over the training tokens (released code: 5 + 10).")
    lr: float = Field(0.025, gt=0, description="First learning rate; it falls linearly to `lr_end`.")
    lr_end: float = Field(1e-4, ge=0)
    std: float = Field(0.03, gt=0, description="Standard deviation that all vectors together are rescaled to.")
    layout: Literal["rows", "scrambled"] = Field(
        "rows",
        description="`rows`: a token's row is its vector; `scrambled`: the released code's order of numbers, in which no row is any token's vector.",
    )
    seed: int = Field(1, ge=0)
