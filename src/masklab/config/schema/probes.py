"""Entries of `probes:`: a class of settings for each way to measure a checkpoint."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator

from masklab.config.schema.base import Count, Entity, Kinds, Share
from masklab.config.schema.models import Decay, Masking

NETWORKS = ("untrained", "shuffled")
TOKENS = ("one-hot", "bag-of-words")
UNITS = "bag-of-units"  # read by regression in the place of fine-tuning alone
WORDS = (*TOKENS, UNITS)
Steps = Annotated[list[int], Field(min_length=1)] | Literal["all", "last"]


class CheckpointProbe(Entity):
    """What every probe says: which checkpoints it measures, and in how many jobs."""

    # The nulls of a study that mean something to this kind of probe (`config.nulls`).
    nulls: ClassVar[tuple[str, ...]] = ()
    # Whether it reads the tokens of the model's corpus, beside tasks.
    reads_tokens: ClassVar[bool] = False

    steps: Steps = Field("last", description="Checkpoints to measure.")
    split: list[Literal["step", "task"]] = Field(
        [], description="One job per model, or also per step and per task (for clusters)."
    )
    pack: Count = Field(1, description="With `split: [task]`: tasks in one job, so that it is worth its start.")


class CorpusProbe(CheckpointProbe):
    """A probe that reads the corpus of the model and no task."""

    reads_tokens: ClassVar = True

    tasks: list[str] = Field([], description="This probe reads no tasks: always empty.", max_length=0)


class TrainingProbe(CheckpointProbe):
    """A probe that trains classifiers on labelled tasks."""

    nulls: ClassVar = NETWORKS + TOKENS
    tasks: list[str] = Field(min_length=1)
    seeds: list[int] = Field([1, 2, 3, 4, 5], min_length=1, description="One classifier each.")
    sizes: list[Count] | None = Field(
        None, min_length=1, description="Training-set sizes: so many first rows of the training split. None: all rows."
    )

    @field_validator("seeds", "sizes")
    @classmethod
    def _distinct(cls, values):
        if values is not None and len(set(values)) < len(values):
            raise ValueError("the numbers must differ")
        return values


class MinimalPairsProbe(CheckpointProbe):
    """Pseudo-log-likelihood of minimal pairs (Salazar et al. 2020)."""

    nulls: ClassVar = NETWORKS + TOKENS
    kind: Literal["minimal_pairs"]
    tasks: list[str] = Field(min_length=1)
    steps: Steps = Field("all", description="Checkpoints to measure.")
    batch_tokens: Count = Field(16384, description="Tokens per forward pass.")


class Finetuning(TrainingProbe):
    """What every probe says that fine-tunes."""

    seeds: list[int] = Field(
        [1, 2, 3, 4], min_length=1, description="Seeds of fine-tuning: of head, batches and dropout."
    )
    pooling: Literal["cls", "mean"] = Field(
        "cls", description="What the head reads: the state of [CLS], or the mean over all tokens, specials included."
    )
    activation: Literal["tanh", "gelu"] | None = Field(
        None,
        description="Within the head. null: tanh for encoders with absolute positions, as BERT's and RoBERTa's classifiers have it, gelu for others, as DeBERTa's; of adopted models as their architecture has it.",
    )
    batches: Literal["length", "random"] = Field(
        "random",
        description="`random`: any rows, as transformers' Trainer draws them; `length`: rows of a batch are of like length, which saves padding. Where length tells of the label, `length` can learn much less.",
    )
    lr: float = Field(5e-5, gt=0)
    batch_size: Count = 32
    epochs: Count = 10
    max_steps: Count | None = Field(None, description="Updates of a run, instead of `epochs` passes over the data.")
    max_length: int = Field(
        128, ge=3, description="Tokens of an example that are read; of a model with fewer positions, as many as these."
    )
    weight_decay: float = Field(0.0, ge=0)
    schedule: Literal["linear", "constant"] = "linear"
    warmup: Share = Field(0.0, description="Share of the most updates that a run can make that warms up linearly.")
    warmup_steps: Count | None = Field(
        None,
        description="Updates that warm up linearly, in place of `warmup`: what a run may last then decides nothing.",
    )
    clip: float | None = Field(1.0, gt=0)
    evaluate_every: Count | Literal["epoch"] = Field(
        200, description="Steps between evaluations on the validation split, or `epoch`: after each epoch."
    )
    select: Literal["f1", "accuracy", "task"] = Field(
        "f1",
        description="Metric that the best evaluation of a classification is chosen by; `f1`: accuracy for more than two classes; `task`: the task's own, as ratings and spans always are.",
    )
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    eps: float = Field(1e-8, gt=0)
    patience: Count = Field(10, description="Evaluations without improvement before stopping.")
    threshold: float = Field(0.001, ge=0, description="Improvement that counts.")
    stop_after_peak: bool = Field(
        True, description="Count patience only after warm-up; false: from the first evaluation, as transformers does."
    )


class FinetuneProbe(Finetuning):
    """Fine-tuning on labels, ratings or answer spans, with early stopping."""

    nulls: ClassVar = NETWORKS + WORDS
    kind: Literal["finetune"]
    grid: dict[Literal["lr", "batch_size", "epochs", "warmup"], list[float]] = Field(
        {},
        description="Values to search, every combination with every seed: the rows are those of the one whose median over seeds is best on the validation split, by `select`.",
    )
    rank: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="tau: measure the effective rank of the last layer on the test split after fine-tuning too (see the `rank` probe). None: no.",
    )
    precision: Literal["fp32", "bf16", "auto"] = Field(
        "fp32",
        description="bf16: products with weights in bf16, predictions as well, and on CPUs mostly the hidden states of classifiers; sums, loss, weights and the optimiser in fp32, and the ranks that `rank` asks for. auto: bf16 on GPUs that have it and, for transformers of 64 units or more with a norm after every sum (not `norm: pre`) that are not adopted, on CPUs that do; the log says which, the scores do not, so name one where machines differ.",
    )
    stride: Count = Field(128, description="Tokens from one window of a long context to the next (spans).")
    max_question: Count = Field(64, description="Tokens of a question that are read (spans).")
    max_answer: Count = Field(30, description="Tokens of the longest answer (spans).")

    @field_validator("grid")
    @classmethod
    def _as_their_keys(cls, grid):
        """Every value of a key is one that the key itself could have."""
        for key, values in grid.items():
            if not values:
                raise ValueError(f"{key}: needs at least 1 item")
            field = cls.model_fields[key]
            form = TypeAdapter(Annotated[field.annotation, *field.metadata])
            for place, value in enumerate(values, 1):
                try:
                    form.validate_python(value)
                except ValidationError as error:
                    said = error.errors()[0]["msg"].partition(",")[0].replace("valid integer", "whole number")
                    said = said.replace("Input should be", "must be")
                    raise ValueError(f"{key}: item {place}: {said} (got {value:g})") from None
        return grid

    @model_validator(mode="after")
    def _searched_in_vain(self):
        for key, instead in (("epochs", "max_steps"), ("warmup", "warmup_steps")):
            if key in self.grid and getattr(self, instead) is not None:
                raise ValueError(f"grid: {key}: idle beside {instead}, which takes its place; leave one of the two out")
        return self


class ReplacedProbe(Finetuning):
    """Features replaced by synonyms and others: how far predictions change before and after fine-tuning (Chiang and Yogatama 2023, section 6), on a pseudo-language."""

    nulls: ClassVar = NETWORKS
    reads_tokens: ClassVar = True
    kind: Literal["replaced"]
    domain: str = Field("A-D1", description="Domain of the test sequences in which features are replaced.")
    synonyms: str = Field("B-D1", description="Domain that spells the same synsets by the other form.")
    examples: Count = Field(500, description="Test sequences, the first ones.")
    spans: list[Count] = Field(
        [1, 3], min_length=1, description="Synsets of a feature, a level each; the most salient one is replaced."
    )
    drawn: bool = Field(
        False,
        description="In each sequence a feature that is drawn is replaced as well, in a replicate the same one for every model, so that models can be compared.",
    )
    share: Share = Field(
        0.5, description="Share of the features that are replaced by their synonym, others by another feature."
    )
    updates: list[Count] = Field(
        [], description="Updates of a fine-tuning after which it is measured, beside its best."
    )


class ParaphrasedProbe(Finetuning):
    """Words, phrases and sentences of text replaced by paraphrases: how far predictions change before and after fine-tuning (Chiang and Yogatama 2023, section 6)."""

    nulls: ClassVar = NETWORKS
    kind: Literal["paraphrased"]
    parses: list[str] = Field(
        min_length=1,
        description="Files of bracketed parses of the test examples (a `.jsonl` or `.tsv` has them in fields that end in `parse`, as MNLI's); an example is used if it has one.",
    )
    wordnet: str | None = Field(
        None, description="Data folder of NLTK with a WordNet 3 database: synonyms of words. None: no words."
    )
    there: str | None = Field(
        None,
        description="Translation model, a folder or a name in Hugging Face's cache (paper: facebook/wmt19-en-de), by whose translations, back by `back`, phrases are paraphrased. None: no phrases and sentences.",
    )
    back: str | None = Field(None, description="The model that translates back (paper: facebook/wmt19-de-en).")
    drawn: bool = Field(
        False,
        description="In each text a word that is drawn of those that have synonyms is replaced as well, in a replicate the same one for every model, so that models can be compared. Needs `wordnet`.",
    )
    in_text: bool = Field(
        False,
        description="Words and phrases are also asked in their own text, by what is predicted for the word before and the one behind, and of words it is measured how often a synonym lies nearer than another word (`told`), the correlation with the form of words held fixed, and that of initial weights' distances. Not in the paper.",
    )
    examples: Count = Field(1000, description="Test examples, the first ones that have a parse.")
    query: str = Field(
        "{a} It was [MASK] .",
        description="What makes an example a query, with {a}, for a pair {b}, and [MASK] (paper, MNLI: `{a} ? [MASK] , {b}`).",
    )
    verbalisers: list[str] | None = Field(
        None,
        description="A word for each label, one token each (paper: terrible, great). None: no queries of examples.",
    )
    updates: list[Count] = Field(
        [], description="Updates of a fine-tuning after which it is measured, beside its best."
    )

    @model_validator(mode="after")
    def _something(self):
        if (self.there is None) != (self.back is None):
            raise ValueError(f"{'there' if self.there is None else 'back'}: a phrase is translated there and back")
        if self.wordnet is None and self.there is None:
            raise ValueError("wordnet: nothing to replace features by; name a WordNet, or models `there` and `back`")
        if self.wordnet is None and self.drawn:
            raise ValueError("drawn: words are replaced by synonyms of WordNet; name its folder under `wordnet`")
        return self


class PredictionProbe(CorpusProbe):
    """What a model predicts for one masked word: over the vocabulary and over the atoms (Figure 1)."""

    kind: Literal["prediction"]
    sentence: str = Field(description="A sentence with exactly one [MASK].")
    top: Count = Field(8, description="Entries kept of each distribution.")
    replicates: Count = Field(
        1, description="Replicates of each recipe that are asked, the first ones, if there are as many."
    )


class LossProbe(CorpusProbe):
    """Masked-language-model loss on the test split of the model's corpus, with its exact floor where the law is known."""

    nulls: ClassVar = NETWORKS + TOKENS
    kind: Literal["loss"]
    sequences: Count = Field(512, description="Test sequences measured, from all over the split.")
    batch_size: Count = Field(64, description="Sequences per forward pass.")
    floor: bool = Field(True, description="Compute the floor, where the corpus's law is known.")
    masks: Literal["training", "one"] = Field(
        "training",
        description="`training`: masked as in the model's training; `one`: one [MASK] per sequence, for which symbolic corpora know the exact conditionals.",
    )
    positions: Literal["all", "one"] = Field(
        "all",
        description="Against exact conditionals: every token of a sequence is hidden in turn, or one drawn at random.",
    )


class CurvatureProbe(CorpusProbe):
    """Trace of the Hessian of the loss at saturation (Liu et al. 2023, section 4), one masked token per sentence."""

    kind: Literal["curvature"]
    sentences: int = Field(2000, ge=2, description="Sentences of the test split drawn by each repeat.")
    repeats: Count = Field(5, description="Estimates from fresh draws, one row each.")
    batch_size: Count = Field(256, description="Sentences per forward pass.")
    width: Count | None = Field(
        None, description="Also the trace of each model embedded in one of this hidden width; None: only its own."
    )


class LandscapeProbe(CorpusProbe):
    """Slices of the loss around a checkpoint (Liu et al. 2023, Figure 4, measured)."""

    kind: Literal["landscape"]
    directions: Count = Field(3, description="Random directions, next to the top one of the gradient covariance.")
    scale: Literal["gaussian", "filter"] = Field(
        "gaussian",
        description="Random directions of standard normal numbers, along which the loss rises by offset^2 / 2 x trace of the Hessian in the mean, in a model of any size; or `filter`: each row as long as the row of the weights it is added to, nothing on biases and layer norms (Li et al. 2018).",
    )
    reach: float | None = Field(
        None, gt=0, description="Largest offset along random directions; None: 0.05 gaussian, 0.5 filter."
    )
    top_reach: float = Field(0.5, gt=0, description="Largest offset along the top direction, a Euclidean length.")
    points: int = Field(11, ge=3, description="Offsets of a slice from -reach to reach; odd, so that 0 is one.")
    sentences: Count = Field(512, description="Test sentences measured, one masked token each.")
    batch_size: Count = Field(256, description="Sentences per forward pass.")
    gradients: Count = Field(32, description="Sums of 8 sentences' gradients that the top direction is taken from.")
    width: Count | None = Field(
        None, description="Hidden width that models grow to first, a multiple of theirs; None: their own."
    )
    layers: Count | None = Field(None, description="Layers that models grow to first; None: their own.")

    @field_validator("points")
    @classmethod
    def _odd(cls, points):
        if points % 2 == 0:
            raise ValueError("must be odd")
        return points

    @property
    def largest(self) -> float:
        return self.reach or {"gaussian": 0.05, "filter": 0.5}[self.scale]


class LinearProbe(TrainingProbe):
    """A linear classifier on frozen representations (Liu et al. 2023, section 2.1 and appendix A.4)."""

    kind: Literal["linear_probe"]
    seeds: list[int] = Field(
        [1, 2, 3, 4, 5],
        min_length=1,
        description="Seeds of a probe: of projection, head, order of batches and, where they are drawn, examples.",
    )
    pooling: Literal["concat", "cls", "mean"] = Field(
        "concat",
        description="`concat`: the last hidden states of all tokens of the sequence side by side, zeros up to the task's longest; `cls`: that of [CLS]; `mean`: the mean over the tokens of the sequence.",
    )
    projection: Count | None = Field(
        512, description="A random Gaussian projection of the features to so many dimensions; None: none."
    )
    examples: Literal["first", "drawn"] = Field(
        "first",
        description="The training rows of a size: `first`, the first ones of the split, for all seeds alike; `drawn`: each seed draws as many of the whole split, so that a mean over seeds is one over examples too. Needs `sizes`.",
    )
    standardise: bool = Field(
        True,
        description="Shift and scale each dimension that the classifier reads to mean 0 and variance 1 on the training rows, so that no representation learns faster for being larger (the paper does not say how its projection is scaled).",
    )
    lr: float = Field(1e-3, gt=0, description="Learning rate of AdamW.")
    batch_size: Count = 512
    epochs: Count = 100
    weight_decay: float = Field(0.01, ge=0)
    schedule: Literal["linear", "constant"] = Field(
        "linear", description="`linear`: warm-up, then decay to 0 (released code); `constant` after warm-up."
    )
    warmup: Share = 0.0
    select: Literal["last", "valid"] = Field(
        "last", description="The classifier measured: after the last epoch, or after the best on the validation split."
    )
    max_length: int = Field(
        128, ge=3, description="Tokens of an example that are read; of a model with fewer positions, as many as these."
    )

    @model_validator(mode="after")
    def _drawn_of_more(self):
        if self.examples == "drawn" and self.sizes is None:
            raise ValueError("examples: drawn needs sizes, how many of the training rows each seed draws")
        return self


class CostProbe(CorpusProbe):
    """Seconds, tokens and FLOPs that checkpoints cost."""

    kind: Literal["cost"]


class RankProbe(CorpusProbe):
    """Effective rank of hidden states by layer, for inputs with and without [MASK] (Meng et al. 2024)."""

    nulls: ClassVar = NETWORKS
    kind: Literal["rank"]
    data: Literal["valid", "test"] = Field("test", description="Split of the model's corpus that is read.")
    sequences: Count = Field(2000, description="Sequences read, from all over the split.")
    batch_size: Count = Field(64, description="Sequences per forward pass.")
    threshold: Annotated[float, Field(gt=0, le=1)] = Field(
        0.9, description="tau: share of the squared singular values that the rank accounts for."
    )
    subspace: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        0.99,
        description="The subspace of real tokens holds this share of their squared norm; how much of [MASK]s lies outside it is measured, beside drawn words and the hidden words themselves. null: not measured, which saves one reading of three.",
    )
    specials: bool = Field(False, description="Count the states of [CLS] and [SEP] too.")
    masking: Masking = Field(Masking(count="rounded"), description="Masking of the input with [MASK].")


Probe = Annotated[CheckpointProbe, Kinds("probes")]
