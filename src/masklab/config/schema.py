"""The configuration as one typed model: checks, JSON schema and key table all come from here.

Class and key names are the nouns of ARCHITECTURE.md. Every entity forbids
unknown keys, so that a typo stops the run before any job starts.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class Entity(BaseModel):
    """Base of every config entity: frozen, strict about unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# --- symbolic languages ----------------------------------------------------


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


# --- corpora ---------------------------------------------------------------


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


Corpus = Annotated[TextCorpus | EnglishCorpus | MarkovCorpus, Field(discriminator="kind")]


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


# --- encoders and objectives -----------------------------------------------


class Decoder(Entity):
    """The shallow decoder of a masked autoencoder (MAE-LM): it alone sees [MASK]; checkpoints leave it out."""

    layers: Count = 4
    hidden: Count | None = Field(None, description="Width; None: the encoder's.")
    heads: Count | None = Field(None, description="None: heads as wide as the encoder's.")
    intermediate: Count | None = Field(None, description="Width of the feed-forward layer; None: 4 x hidden.")


class Encoder(Entity):
    """A bidirectional encoder with a masked-language-model head."""

    kind: Literal["transformer", "lstm"] = Field(
        "transformer",
        description="`lstm`: bidirectional LSTM layers with residuals in the place of attention and feed-forward.",
    )
    positions: Literal["disentangled", "absolute", "relative", "none"] = Field(
        "disentangled",
        description="`disentangled`: DeBERTa's relative positions; `absolute`: BERT's; `relative`: a bias per head and bucket of distances, shared by all layers (MAE-LM), next to absolute positions; `none`.",
    )
    absolute: bool = Field(
        True, description="With `positions: relative`: absolute positions too; false: the bias alone."
    )
    relative_buckets: int = Field(32, ge=4, description="Rows of the bias table of `positions: relative`; even.")
    relative_distance: Count = Field(128, description="Distances from about here on share the last bucket.")
    norm: Literal["post", "pre"] = Field(
        "post",
        description="Layer norm after each residual sum (BERT, DeBERTa), or before each sublayer and at the end.",
    )
    embedding_norm: bool = Field(True, description="Layer norm on the embeddings.")
    norm_eps: float | None = Field(
        None, gt=0, description="Epsilon of layer norms; None: 1e-7 disentangled, 1e-5 relative, else 1e-12."
    )
    tied_head: bool = Field(True, description="The output matrix is the token embedding; false: one of its own.")
    layers: Count = 12
    hidden: Count = Field(768, description="Width; a multiple of `heads`.")
    heads: Count = Field(12, description="Attention heads; an LSTM has none.")
    intermediate: Count | None = Field(None, description="Width of the feed-forward layer; None: 4 x hidden.")
    max_positions: Count = Field(512, description="Longest sequence; also the clip of disentangled positions.")
    dropout: Share = Field(0.1, description="Dropout on embeddings, sublayer outputs and attention weights.")
    attention_dropout: Share | None = Field(None, description="Dropout on attention weights; None: `dropout`.")
    init_range: float = Field(0.02, gt=0, description="Standard deviation of the normal initialisation.")
    decoder: Decoder | None = Field(None, description="Decoder of a masked autoencoder; None: the encoder sees [MASK].")

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
        """The decoder's blocks as an encoder: absolute positions, no dropout, the encoder's kind of layer."""
        decoder = self.decoder
        hidden = decoder.hidden or self.hidden
        sizes = {"layers": decoder.layers, "hidden": hidden, "intermediate": decoder.intermediate}
        sizes["heads"] = decoder.heads or max(1, hidden * self.heads // self.hidden)
        fixed = {"positions": "absolute", "norm_eps": self.eps, "dropout": 0.0, "attention_dropout": 0.0}
        return self.model_copy(update=sizes | fixed | {"embedding_norm": True, "decoder": None})

    def problem(self) -> str | None:
        """`key: what is wrong` where values do not fit together, else None."""
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
        problem = self.decoder_stack.problem() if self.decoder is not None else None
        return problem and f"decoder.{problem}"


class Objective(Entity):
    """A weighted sum of losses; at least one weight is positive."""

    mlm: float = Field(0, ge=0, description="Weight of the cross-entropy of the masked token.")
    kd: float = Field(0, ge=0, description="Weight of KL(teacher's vocabulary distribution || student's).")
    mlsm: float = Field(
        0, ge=0, description="Weight of KL(L1-normalised sparse code || student's latent distribution)."
    )
    temperature: float = Field(1.0, gt=0, description="Temperature of both KD distributions (released code: 1).")


class Masking(Entity):
    """Which tokens are hidden."""

    rate: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.15, description="Share of a sequence's tokens (specials counted) that is masked."
    )
    count: Literal["floor", "bernoulli", "one"] = Field(
        "floor",
        description="`floor`: floor(rate x tokens) per sequence (released code); `bernoulli`: each token independently; `one`: exactly one token per sequence, whatever the rate.",
    )
    mask: Share = Field(1.0, description="Share of masked tokens shown as [MASK].")
    random: Share = Field(
        0.0, description="Share shown as a random token; the rest stays as it is (BERT: mask .8, random .1)."
    )


class Optimiser(Entity):
    """Optimiser and schedule."""

    kind: Literal["adamw", "sgd"] = "adamw"
    lr: float = Field(1e-4, gt=0, description="Peak learning rate.")
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: float = Field(1e-8, gt=0)
    weight_decay: float = Field(0.01, ge=0, description="Decoupled decay on every parameter (released code).")
    schedule: Literal["linear", "constant"] = Field(
        "linear", description="`linear`: warm-up, then linear decay to 0; `constant` after warm-up."
    )
    warmup: Share = Field(0.01, description="Share of the steps that warms up linearly.")
    warmup_steps: int | None = Field(None, ge=0, description="The same in steps, in place of `warmup`.")
    momentum: Annotated[float, Field(ge=0, lt=1)] = Field(0.0, description="Of `sgd`.")
    clip: float | None = Field(1.0, gt=0, description="Gradient-norm clip; None: none.")
    explosion: float | None = Field(
        2.0,
        gt=1,
        description="A loss above this many times that of uniform guesses (or of the first update, if larger) is high; a run with more than half of its last 20 losses high stops. None: only a loss that is not a number stops it.",
    )


class Model(Entity):
    """One pre-training run."""

    corpus: str
    tokenizer: str
    encoder: str
    objective: str
    init: str | None = Field(
        None, description="`model@step` to start from (phase 2); also the teacher. None: from scratch."
    )
    shuffle: bool = Field(
        False, description="Permute the numbers within each tensor of `init`: its statistics without its knowledge."
    )
    embeddings: str | None = Field(
        None, description="Entry of `embeddings` that gives the initial word embeddings. None: drawn at random."
    )
    dictionary: str | None = Field(
        None, description="Dictionary that gives MLSM its targets; required when the objective has `mlsm`."
    )
    codes: Literal["stored", "on-the-fly"] = Field(
        "stored",
        description="`stored`: gather the codes computed once for the corpus; `on-the-fly`: run the teacher and solve per batch.",
    )
    steps: int = Field(ge=0, description="Updates; 0: the initial weights are the model, kept as step 0.")
    batch_size: Count = Field(1024, description="Sequences per update.")
    micro_batch: Count | None = Field(
        None,
        description="Sequences per forward pass; gradients accumulate over the batch. None: each process takes its share of the batch at once.",
    )
    processes: Count = Field(
        1,
        description="Processes on one machine that share each batch, started by torchrun: one per GPU, or CPU processes that share the job's threads. With the same `micro_batch`, any number trains the same model up to rounding.",
    )
    masking: Masking = Masking()
    optimiser: Optimiser = Optimiser()
    checkpoints: list[Count] = Field(
        [],
        description="Steps to keep as Hugging Face folders; the last step is always kept. Empty: 20, 40, 60, 80, 100 % of the steps.",
    )
    log_every: Count = Field(50, description="Steps between rows of metrics.parquet.")
    validate_every: Count | None = Field(
        None, description="Steps between validation losses. None: at checkpoints only."
    )
    save_minutes: float = Field(
        0.5,
        gt=0,
        description="Minutes between states saved for resuming; raise it for models whose state takes seconds to write.",
    )
    precision: Literal["fp32", "bf16"] = Field("fp32", description="bf16: autocast, for GPUs.")
    compile: bool = Field(False, description="torch.compile the forward pass (GPU).")
    seed: int = Field(1, ge=0, description="Added to the address of every random stream of this run.")

    @property
    def micro(self) -> int:
        """Sequences of a micro-batch."""
        return self.micro_batch or -(-self.batch_size // self.processes)


class Dictionary(Entity):
    """A sparse-coding dictionary of the hidden states of one checkpoint, and the codes of its corpus."""

    model: str = Field(description="`model@step` whose hidden states are coded.")
    layer: int = Field(ge=0, description="Hidden layer; 0 is the embeddings, n the output of block n.")
    atoms: Count = Field(2500, description="k, the number of latent properties.")
    penalty: float = Field(0.05, gt=0, description="lambda of the lasso.")
    sample: Count = Field(1_000_000, description="Tokens whose hidden states are the training sample.")
    draw: Literal["random", "first"] = Field(
        "random",
        description="`random`: sequences drawn over the whole corpus; `first`: the first tokens, as the released code.",
    )
    iterations: Count = Field(1000, description="Mini-batch iterations of online dictionary learning.")
    batch_size: Count = Field(400, description="Vectors per iteration.")
    backend: Literal["torch", "spams"] = Field(
        "torch", description="`torch`: our own (CPU, GPU); `spams`: the paper's (GPL, CPU)."
    )
    solver: Literal["exact", "fista"] = Field(
        "exact", description="How codes are solved; `fista`: the released code's 100 unchecked iterations."
    )
    seed: int = Field(1, ge=0)


# --- tasks -----------------------------------------------------------------


class EnglishPairs(Entity):
    """Minimal pairs of the generated language, under BLiMP's phenomenon names."""

    kind: Literal["english-pairs"]
    pairs: Count = Field(200, description="Pairs per phenomenon.")
    phenomena: list[str] = Field([], description="Subset of phenomena; empty: all.")
    seed: int = Field(1, ge=0)


class PairFiles(Entity):
    """Minimal pairs from BLiMP's json lines (sentence_good, sentence_bad, linguistics_term or file name)."""

    kind: Literal["pair-files"]
    files: list[str] = Field(description="Files or globs.")
    group_by: Literal["phenomenon", "file"] = Field(
        "phenomenon",
        description="`phenomenon`: the `linguistics_term` of each line, else the file's name; `file`: one group per file.",
    )
    limit: Count | None = Field(None, description="At most this many pairs per file, drawn at random. None: all.")
    seed: int = Field(1, ge=0)


class EnglishLabels(Entity):
    """A labelled task generated from the same grammar (GLUE's and MSGS's kinds)."""

    kind: Literal["english-labels"]
    recipe: str = Field(description="Which task; `masklab tasks` lists them.")
    train: Count = 1000
    valid: Count = 300
    test: Count = 500
    metric: Literal["accuracy", "mcc", "f1"] = Field("accuracy", description="Metric reported and drawn.")
    seed: int = Field(1, ge=0)


class LabelFiles(Entity):
    """A labelled task from json lines, TSV, CSV or Parquet."""

    kind: Literal["label-files"]
    train: str
    valid: str
    test: str | None = Field(None, description="None: the validation split doubles as test (BabyLM 2023).")
    text_a: str = Field(
        "sentence", description="Column of the (first) sentence, or a template such as 'Question: {question}'."
    )
    text_b: str | None = Field(None, description="Column or template of the second sentence. None: single sentences.")
    label: str = "label"
    columns: list[str] | None = Field(None, description="Column names of files without a header line.")
    metric: Literal["accuracy", "mcc", "f1"] = "accuracy"
    limit: Count | None = Field(None, description="At most this many training rows, drawn at random. None: all.")
    seed: int = Field(1, ge=0)


class PatternsTask(Entity):
    """Does a sequence of synsets match one of the patterns? (Chiang & Yogatama 2023, section 4.2)

    A pattern is S* S1 S* S2 S* S3 S*: synsets of three sets occur in this order. Patterns, walks and
    test sets are drawn at (config seed, `seed`), so that tasks that differ in `mix` alone share them.
    """

    kind: Literal["patterns"]
    chains: str | Chains = Field(description="Entry of `chains`.")
    length: Count = Field(100, description="Synsets per sequence.")
    train: Count = Field(100_000, description="Training sequences of both domains together.")
    valid: Count = Field(10_000, description="Validation sequences of both domains together.")
    test: Count = Field(10_000, description="Test sequences per domain.")
    patterns: Count = Field(5, description="A sequence is positive if it matches any of them.")
    set_size: Count = Field(12, description="Synsets per set, drawn without replacement within a set.")
    mix: Share = Field(
        0.0,
        description="Share of B-D2 in training and validation; the rest is A-D1. Every first n rows have it, up to rounding.",
    )
    seed: int = Field(1, ge=0)


Task = Annotated[EnglishPairs | PairFiles | EnglishLabels | LabelFiles | PatternsTask, Field(discriminator="kind")]


# --- probes ----------------------------------------------------------------


class MinimalPairsProbe(Entity):
    """Pseudo-log-likelihood of minimal pairs (Salazar et al. 2020)."""

    kind: Literal["minimal_pairs"]
    tasks: list[str]
    steps: list[int] | Literal["all", "last"] = Field("all", description="Checkpoints to measure.")
    split: list[Literal["step", "task"]] = Field(
        [], description="One job per model, or also per step and per task (for clusters)."
    )
    batch_tokens: Count = Field(16384, description="Tokens per forward pass.")


class FinetuneProbe(Entity):
    """Fine-tuning on sequence classification with early stopping."""

    kind: Literal["finetune"]
    tasks: list[str]
    steps: list[int] | Literal["all", "last"] = "last"
    split: list[Literal["step", "task"]] = Field(
        [], description="One job per model, or also per step and per task (for clusters)."
    )
    seeds: list[int] = Field([1, 2, 3, 4], min_length=1, description="Of fine-tuning: head, batches and dropout.")
    sizes: list[Count] | None = Field(
        None, min_length=1, description="Training-set sizes: so many first rows of the training split. None: all rows."
    )
    pooling: Literal["cls", "mean"] = Field(
        "cls", description="What the head reads: the state of [CLS], or the mean over all tokens, specials included."
    )
    lr: float = Field(5e-5, gt=0)
    batch_size: Count = 32
    epochs: Count = 10
    max_steps: Count | None = Field(None, description="Updates of a run, instead of `epochs` passes over the data.")
    max_length: Count = 128
    weight_decay: float = Field(0.0, ge=0)
    schedule: Literal["linear", "constant"] = "linear"
    warmup: Share = 0.0
    clip: float | None = Field(1.0, gt=0)
    evaluate_every: Count | Literal["epoch"] = Field(
        200, description="Steps between evaluations on the validation split, or `epoch`: after each epoch."
    )
    select: Literal["f1", "accuracy"] = Field(
        "f1", description="Metric that the best evaluation is chosen by; `f1`: accuracy for more than two classes."
    )
    patience: Count = Field(10, description="Evaluations without improvement before stopping.")
    threshold: float = Field(0.001, ge=0, description="Improvement that counts.")
    stop_after_peak: bool = Field(
        True, description="Count patience only after warm-up; false: from the first evaluation, as transformers does."
    )

    @field_validator("seeds", "sizes")
    @classmethod
    def _distinct(cls, values):
        if values is not None and len(set(values)) < len(values):
            raise ValueError("the numbers must differ")
        return values


class PredictionProbe(Entity):
    """What a model predicts for one masked word: over the vocabulary and over the atoms (Figure 1)."""

    kind: Literal["prediction"]
    sentence: str = Field(description="A sentence with exactly one [MASK].")
    steps: list[int] | Literal["all", "last"] = "last"
    split: list[Literal["step", "task"]] = []
    top: Count = Field(8, description="Entries kept of each distribution.")
    tasks: list[str] = Field([], description="Unused; kept empty.", max_length=0)


class LossProbe(Entity):
    """Masked-language-model loss on the test split of the model's corpus, with its exact floor where the law is known."""

    kind: Literal["loss"]
    steps: list[int] | Literal["all", "last"] = "last"
    split: list[Literal["step", "task"]] = []
    sequences: Count = Field(512, description="Test sequences measured, from all over the split.")
    batch_size: Count = Field(64, description="Sequences per forward pass.")
    floor: bool = Field(True, description="Compute the floor, where the corpus's law is known.")
    tasks: list[str] = Field([], description="Unused; kept empty.", max_length=0)


Probe = Annotated[MinimalPairsProbe | FinetuneProbe | PredictionProbe | LossProbe, Field(discriminator="kind")]


# --- studies ---------------------------------------------------------------


class Study(Entity):
    """Which models, measured how, drawn how: a declaration, not code."""

    panels: dict[str, list[str] | dict[str, str]] = Field(
        description="Panel title -> its models, in the order of columns and legends; a mapping gives each its display label (label -> model), a list names models by their objective."
    )
    extra: list[str] = Field([], description="Models that are measured but belong to no panel (the phase-1 models).")
    probes: dict[str, list[str] | Literal["all"]] = Field(
        description="Probe -> the models it measures, or `all` of the study's."
    )
    sets: dict[str, list[str]] = Field({}, description="Named sets of tasks that tables and figures refer to.")
    figures: list[str] = Field([], description="Figures of this study to draw.")
    tables: list[str] = Field([], description="Tables of this study to make.")
    claims: list[str] | Literal["all"] = Field(
        [], description="Claims of the paper to test; `all`: those that the study's panels and sets allow."
    )
    margin: Share = Field(
        0.02, description="Difference (in the metric's unit) up to which claims of `equal` or `no better` hold."
    )

    @property
    def members(self) -> dict[str, list[str]]:
        """Panel title -> its models, in order, whichever way they are declared."""
        return {title: list(p.values()) if isinstance(p, dict) else list(p) for title, p in self.panels.items()}


class Config(Entity):
    """Everything. See config.yaml for a documented example."""

    run: str = Field(
        "",
        pattern=r"^[A-Za-z0-9_.-]*$",
        description="Name of the run; artifacts lie under results/<run>/. Empty: results/ itself.",
    )
    seed: int = Field(1, ge=0, description="Root of every random stream.")
    threads: Count = Field(1, description="CPU threads of a job that trains or measures.")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="`auto`: a GPU where there is one.")
    chains: dict[str, Chains] = {}
    corpora: dict[str, Corpus] = {}
    tokenizers: dict[str, Tokenizer] = {}
    embeddings: dict[str, Embeddings] = {}
    encoders: dict[str, Encoder] = {}
    objectives: dict[str, Objective] = {}
    models: dict[str, Model] = {}
    dictionaries: dict[str, Dictionary] = {}
    tasks: dict[str, Task] = {}
    probes: dict[str, Probe] = {}
    studies: dict[str, Study] = {}
