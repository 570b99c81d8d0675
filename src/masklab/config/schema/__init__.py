"""The configuration as one typed model: checks, JSON schema and key table all come from here.

Class and key names are the nouns of ARCHITECTURE.md. Every entity forbids unknown keys, so that a typo stops the
run before any job starts. One file per group of nouns; everything is imported from this package.
"""

from typing import Literal, get_args

from pydantic import Field, PrivateAttr

from masklab.config.schema.base import Count, Drawn, Entity, kind_class
from masklab.config.schema.corpora import (
    CausalCorpus,
    Corpus,
    EnglishCorpus,
    HmmCorpus,
    MarkovCorpus,
    PcfgCorpus,
    TextCorpus,
)
from masklab.config.schema.encoders import Decoder, Encoder
from masklab.config.schema.laws import Chains, Grammar, HiddenMarkov
from masklab.config.schema.models import CausalModel, Dictionary, Masking, Model, Optimiser
from masklab.config.schema.objectives import Adversarial, Kd, Mae, Mlm, Mlsm, Objective, Sharpness, Weight
from masklab.config.schema.probes import (
    CheckpointProbe,
    CorpusProbe,
    CostProbe,
    CurvatureProbe,
    FinetuneProbe,
    LandscapeProbe,
    LinearProbe,
    LossProbe,
    MinimalPairsProbe,
    ParaphrasedProbe,
    PredictionProbe,
    Probe,
    RankProbe,
    ReplacedProbe,
)
from masklab.config.schema.studies import Study
from masklab.config.schema.tasks import (
    BabylmLabels,
    BabylmPairs,
    EnglishLabels,
    EnglishPairs,
    EnglishRatings,
    EnglishSpans,
    GlueTask,
    HmmTask,
    LabelFiles,
    NextWord,
    PairFiles,
    PatternsTask,
    PcfgTask,
    RestrictedLabels,
    SquadTask,
    Task,
)
from masklab.config.schema.tokenizers import (
    BPETokenizer,
    Embeddings,
    FolderTokenizer,
    SymbolTokenizer,
    Tokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
)
from masklab.errors import MaskLabError


class Settings(Entity):
    """What holds for the whole run."""

    run: str = Field(
        "",
        coerce_numbers_to_str=True,
        description="Name of the run; artifacts lie under results/<run>/. Empty: results/ itself.",
    )
    seed: int = Field(1, ge=0, description="Root of every random stream.")
    data: str = Field(
        "",
        description="Folder that the relative paths of corpora, tokenizers, tasks and probes start from. Empty: the folder that the run is in.",
    )
    threads: Count = Field(1, description="CPU threads of a job that trains or measures.")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="`auto`: a GPU where there is one.")
    replicates: Count = Field(
        1, description="Replicates of every recipe: draws of all that it leaves to chance. A study may say its own."
    )
    scale: str = Field(
        "", description="How large its studies are, in words, where a study does not say its own `scale`."
    )
    code: list[str] = Field(
        [],
        description="Python files of your own that register kinds, figures, tables or claims; relative to the file that names them.",
    )


class Read:
    """What was read for a config. Configs are equal whatever they were read from, so two of these always are."""

    def __init__(self, raw: dict):
        self.raw = raw

    def __eq__(self, other):
        return isinstance(other, Read)

    __hash__ = None


class Config(Settings):
    """Everything. See config.yaml and the files that it extends for a documented example."""

    _read: "Read" = PrivateAttr(default_factory=lambda: Read({}))
    chains: dict[str, Chains] = {}
    hmms: dict[str, HiddenMarkov] = {}
    grammars: dict[str, Grammar] = {}
    corpora: dict[str, Corpus] = {}
    tokenizers: dict[str, Tokenizer] = {}
    embeddings: dict[str, Embeddings] = {}
    causal_models: dict[str, CausalModel] = {}
    encoders: dict[str, Encoder] = {}
    objectives: dict[str, Objective] = {}
    optimisers: dict[str, Optimiser] = {}
    models: dict[str, Model] = {}
    dictionaries: dict[str, Dictionary] = {}
    tasks: dict[str, Task] = {}
    probes: dict[str, Probe] = {}
    studies: dict[str, Study] = {}

    @property
    def raw(self) -> dict:
        """What was read for it: every file in one mapping that stands alone, with places (`masklab.config.located`)."""
        return self._read.raw


# Every part of the config that maps names to entries; those whose entries are of kinds that a user can add to; those
# whose kinds have a class of keys each.
SECTIONS = tuple(name for name, field in Config.model_fields.items() if field.default == {})
KINDED = ("corpora", "tasks", "probes")
OWN_KEYS = (*KINDED, "tokenizers")
TOKENIZERS = {
    "unigram": UnigramTokenizer,
    "bpe": BPETokenizer,
    "wordpiece": WordPieceTokenizer,
    "symbols": SymbolTokenizer,
    "folder": FolderTokenizer,
}


def entry_class(section: str, value: dict) -> type[Entity]:
    """The class of an entry of a section, by its `kind` where there are several; MaskLabError: no such kind."""
    if section in KINDED:
        return kind_class(section, value.get("kind"))
    if section == "tokenizers":
        kind = value.get("kind", "unigram")
        if not isinstance(kind, str) or kind not in TOKENIZERS:
            raise MaskLabError(f"no kind {kind!r} among tokenizers; kinds: {', '.join(TOKENIZERS)}")
        return TOKENIZERS[kind]
    return get_args(Config.model_fields[section].annotation)[1]


def entry(section: str, value: dict):
    """One entry of a part of the config, such as `corpora`, typed."""
    return entry_class(section, value).model_validate(value)
