"""Laws that corpora of symbols and their tasks share: Markov chains, hidden Markov models, grammars."""

from typing import Literal

from pydantic import Field, model_validator

from masklab.config.schema.base import Count, Drawn, Share


class Chains(Drawn):
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
    seed: int = Field(1, ge=0, description="Seed of the chains and of the spelling of features.")


class HiddenMarkov(Drawn):
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
    log_rank: Count | None = Field(
        None,
        description="The words are a Markov chain themselves (as many states as symbols, one block) whose matrix of log probabilities is, but for what rows and columns are shifted by, of this rank r, and in which all words are equally frequent: the log conditionals of a masked word, less the mean of each of their rows, are then of rank 2 r + 2 (as they are, of 2 r + 3).",
    )
    contrast: float = Field(
        2.0,
        gt=0,
        description="Under `log_rank`: standard deviation of the logits before rows and columns are shifted; the larger, the more peaked.",
    )
    seed: int = Field(1, ge=0, description="Seed of the matrices.")

    @property
    def conditional_rank(self) -> int | None:
        """Rank of the log conditionals of a masked word, shifts of rows left out; None where it is not known."""
        return None if self.log_rank is None else 2 * self.log_rank + 2

    @model_validator(mode="after")
    def _chain(self):
        if self.log_rank is None:
            return self
        if self.states != self.symbols or self.blocks != 1:
            raise ValueError("log_rank: a chain of words needs as many states as symbols, and blocks: 1")
        if self.conditional_rank > self.symbols - 1:
            raise ValueError(
                f"log_rank: 2 x {self.log_rank} + 2 directions do not fit {self.symbols} symbols, which leave"
                f" {self.symbols - 1}"
            )
        return self

    @model_validator(mode="after")
    def _divisible(self):
        for key in ("symbols", "states"):
            if getattr(self, key) % self.blocks:
                raise ValueError(f"{key}: {getattr(self, key)} is not a multiple of blocks ({self.blocks})")
        return self


class Grammar(Drawn):
    """A probabilistic context-free grammar in Chomsky normal form, drawn level by level or read from a file.

    Liu et al. (2023), appendix A.1, give 50 non-terminals, 200 words, depth 6 and length 32, but neither rules nor the
    law they were drawn from. The defaults are calibrated to their entropy of 3.196 nats per masked word and mean length
    of 17: with seed 1 they give 3.21 with the mask drawn uniformly from each sentence (3.43 over all words alike) and
    17.5, which `masklab corpus` prints of a corpus's split. Drawn at (config seed, `seed`).
    """

    levels: list[Count] = Field(
        [10, 8, 8, 8, 8, 8],
        min_length=2,
        description="Symbols per level, start symbols first; a symbol becomes two of the next level, one of the last level a word. n levels: trees of depth n, sentences of at most 2^(n - 1) words.",
    )
    words: Count = Field(200, description="Number of words, V.")
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
    stop_words: Count = Field(1, description="Number of words that a symbol between first and last level can be.")
    law: Literal["uniform", "dirichlet"] = Field(
        "dirichlet",
        description="Probabilities of a symbol's rules: normalised uniform numbers (the authors' rule file), or normalised Gamma ones.",
    )
    start_concentration: float = Field(
        5.0, gt=0, description="Under `dirichlet`: Gamma's shape, for the start symbols."
    )
    rule_concentration: float = Field(0.5, gt=0, description="Under `dirichlet`: Gamma's shape, for rules.")
    word_concentration: float = Field(0.2, gt=0, description="Under `dirichlet`: Gamma's shape, for words.")
    label_spans: list[Count] = Field(
        [],
        description="Numbers of words. Grammars are drawn until, for each of them, no symbol is the one over the first so many words of more than `label_share` of the sentences: else tasks of such spans (kind `pcfg`) have nothing to ask.",
    )
    label_share: Share = Field(
        0.7, description="With `label_spans`: the largest share of the sentences over which one symbol may stand."
    )
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
