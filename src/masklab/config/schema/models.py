"""Entries of `optimisers:`, `models:` and `dictionaries:`, and masking: what is trained, and how."""

from typing import Annotated, Literal

from pydantic import Field

from masklab.config.schema.base import Count, Drawn, Entity, Share

Decay = Annotated[float, Field(ge=0, lt=1)]  # of a running mean, which at 1 would never move


class Masking(Entity):
    """Which tokens are hidden."""

    rate: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.15, description="Share of a sequence's tokens (specials counted) that is masked."
    )
    count: Literal["floor", "rounded", "bernoulli", "one"] = Field(
        "floor",
        description="`floor`: floor(rate x tokens) per sequence (released code of Berend 2023); `rounded`: the same rounded up or down at random, so that the mean is rate x tokens (released code of Meng et al. 2024); `bernoulli`: each token independently; `one`: exactly one token per sequence, whatever the rate.",
    )
    specials: bool = Field(False, description="Special tokens can be masked too (released code of Meng et al. 2024).")
    mask: Share = Field(1.0, description="Share of masked tokens shown as [MASK].")
    random: Share = Field(
        0.0, description="Share shown as a random token; the rest stays as it is (BERT: mask .8, random .1)."
    )


class Optimiser(Entity):
    """Optimiser and schedule."""

    kind: Literal["adamw", "sgd"] = "adamw"
    lr: float = Field(1e-4, gt=0, description="Peak learning rate.")
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    eps: float = Field(1e-8, gt=0)
    weight_decay: float = Field(
        0.01,
        ge=0,
        description="Decoupled decay on every parameter (released code); of `sgd` with `momentum` part of the gradient, as torch.optim.SGD has it.",
    )
    schedule: Literal["linear", "constant"] = Field(
        "linear", description="`linear`: warm-up, then linear decay to 0; `constant` after warm-up."
    )
    warmup: Share = Field(0.01, description="Share of the steps that warms up linearly.")
    warmup_steps: int | None = Field(None, ge=0, description="Steps that warm up linearly, in place of `warmup`.")
    momentum: Decay = Field(0.0, description="Momentum of `sgd`.")
    clip: float | None = Field(1.0, gt=0, description="Gradient-norm clip; None: none.")
    explosion: float | None = Field(
        2.0,
        gt=1,
        description="A loss above this many times that of uniform guesses (or of the first update, if larger) is high; a run with more than half of its last 20 losses high stops. None: only a loss that is not a number stops it.",
    )


class CausalModel(Drawn):
    """A small causal language model trained on a corpus of text, for causal corpora: the offline stand-in for OPT."""

    corpus: str
    tokenizer: str
    architecture: Literal["opt", "gpt2"] = Field("opt", description="Class of the transformers library.")
    layers: Count = 2
    hidden: Count = Field(64, description="Width; a multiple of `heads`.")
    heads: Count = 2
    steps: Count = Field(description="Number of updates.")
    batch_size: Count = Field(64, description="Sequences per update.")
    optimiser: Optimiser = Optimiser(lr=2e-3, warmup=0.05)
    save_minutes: float = Field(5, gt=0, description="Minutes between saved states that a killed run resumes from.")
    seed: int = Field(1, ge=0, description="Seed of the initial weights and the batches.")


class Model(Entity):
    """One pre-training run."""

    corpus: str
    tokenizer: str
    encoder: str
    objective: str
    folder: str | None = Field(
        None,
        description="A model made elsewhere: a Hugging Face folder of a masked language model, or its name in Hugging Face's cache. It is measured as it is (`steps: 0`); `tokenizer`, `encoder` and `objective` follow from it. `corpus` is the one that probes of loss and rank read.",
    )
    init: str | None = Field(None, description="`model@step` to start from (phase 2). None: from scratch.")
    teacher: str | None = Field(
        None,
        description="`model@step` that terms with a teacher learn from: a model of the same tokenizer, frozen. None: `init`. With a teacher and no `init` a recipe is of the teacher's next phase and starts from new weights (Berend 2023, section 2.2: the variant that was tried and dropped).",
    )
    shuffle: bool = Field(
        False, description="Permute the numbers within each tensor of `init`: its statistics without its knowledge."
    )
    embeddings: str | None = Field(
        None, description="Entry of `embeddings` that gives the initial word embeddings. None: drawn at random."
    )
    dictionary: str | None = Field(
        None,
        description="Dictionary whose sparse codes are targets; required where a term of the objective reads codes.",
    )
    codes: Literal["stored", "masked", "on-the-fly"] = Field(
        "stored",
        description="`stored`: gather the codes computed once for every token of the corpus; `masked`: the same, computed and kept of those tokens alone that the run will hide; `on-the-fly`: run the teacher and solve per batch.",
    )
    steps: int = Field(ge=0, description="Updates; 0: the initial weights are the model, kept as step 0.")
    batch_size: Count = Field(1024, description="Sequences per update.")
    micro_batch: Count | None = Field(
        None,
        description="Sequences per forward pass; gradients accumulate over the batch. None: each process takes its share of the batch at once.",
    )
    processes: Count = Field(
        1,
        description="Processes that share each batch, started by torchrun: one per GPU, or CPU processes that share the job's threads. With the same `micro_batch`, any number trains the same model up to rounding.",
    )
    nodes: Count = Field(
        1,
        description="Machines that the processes are shared out among, by srun in a Slurm job; `processes` is a multiple of it.",
    )
    masking: Masking = Masking()
    optimiser: Optimiser = Optimiser()
    checkpoints: list[Count] = Field(
        [],
        description="Steps to keep as Hugging Face folders; the last step is always kept. Empty: 20, 40, 60, 80, 100 % of the steps.",
    )
    keep_decoder: bool = Field(
        False, description="Write the decoder of a masked autoencoder next to the checkpoints, to measure its loss."
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
    precision: Literal["fp32", "bf16", "auto"] = Field(
        "fp32",
        description="bf16: products in bf16, sums, loss, weights and the optimiser in fp32; for GPUs, and CPUs with AVX-512 bf16 or AMX. auto: bf16 where the processor is faster at it (the log and the manifest say which); on CPUs that leaves out encoders without a norm after every sum (`norm: pre`, `embedding_norm: false`), which compiled code trains in fp32 alone.",
    )
    compile: bool = Field(False, description="torch.compile the blocks of the encoder (GPU).")
    replicates: Count | None = Field(None, description="Replicates of this recipe. None: as many as its studies say.")
    stack: Literal["alone"] | bool = Field(
        True,
        description="On a CPU, with an objective that reads sequences as `mlm` does, or as `mae` does with a decoder of self-attention, gradients are written by hand and loops between products compiled, and replicates that one run needs train side by side in one job, where that is faster: up to a width of 128, in fp32, and in bf16 where that is named and attention is not disentangled. A replicate has the same weights, to the last bit, whoever trains beside it. alone: each in its own job, which times it by itself. false: by the ordinary loop too, whose weights differ by rounding.",
    )

    @property
    def here(self) -> int:
        """Processes on each machine."""
        return self.processes // self.nodes

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
    wordnet: str | None = Field(
        None,
        description="Data folder of NLTK with a WordNet 3 database (corpora/wordnet/data.noun, ...): the page of the dictionary compares with it, too. Codes do not depend on it.",
    )
