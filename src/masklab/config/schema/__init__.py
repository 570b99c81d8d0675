"""The configuration as one typed model: checks, JSON schema and key table all come from here.

Class and key names are the nouns of ARCHITECTURE.md. Every entity forbids unknown keys, so that a typo stops the
run before any job starts. One file per group of nouns; everything is imported from this package.
"""

from typing import Literal, get_args

from pydantic import Field, TypeAdapter

from masklab.config.schema.base import Count, Drawn, Entity, Share
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
from masklab.config.schema.objectives import Adversarial, Kd, Mae, Mlm, Mlsm, Objective, Weight
from masklab.config.schema.probes import (
    CorpusProbe,
    CostProbe,
    CurvatureProbe,
    FinetuneProbe,
    LandscapeProbe,
    LinearProbe,
    LossProbe,
    MinimalPairsProbe,
    PredictionProbe,
    Probe,
    RankProbe,
)
from masklab.config.schema.studies import Study
from masklab.config.schema.tasks import (
    EnglishLabels,
    EnglishPairs,
    EnglishRatings,
    EnglishSpans,
    GlueTask,
    HmmTask,
    LabelFiles,
    PairFiles,
    PatternsTask,
    PcfgTask,
    RestrictedLabels,
    SquadTask,
    Task,
)
from masklab.config.schema.tokenizers import Embeddings, SymbolTokenizer, Tokenizer, UnigramTokenizer


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
    replicates: Count = Field(
        1, description="Replicates of every recipe: draws of all that it leaves to chance. A study may say its own."
    )
    code: list[str] = Field([], description="Python files of your own that register kinds, figures, tables or claims.")
    chains: dict[str, Chains] = {}
    hmms: dict[str, HiddenMarkov] = {}
    grammars: dict[str, Grammar] = {}
    corpora: dict[str, Corpus] = {}
    tokenizers: dict[str, Tokenizer] = {}
    embeddings: dict[str, Embeddings] = {}
    causal_models: dict[str, CausalModel] = {}
    encoders: dict[str, Encoder] = {}
    objectives: dict[str, Objective] = {}
    models: dict[str, Model] = {}
    dictionaries: dict[str, Dictionary] = {}
    tasks: dict[str, Task] = {}
    probes: dict[str, Probe] = {}
    studies: dict[str, Study] = {}


# Every part of the config that maps names to entries.
SECTIONS = tuple(name for name, field in Config.model_fields.items() if field.default == {})


def entry(section: str, value: dict):
    """One entry of a part of the config, such as `corpora`, typed."""
    _, kind = get_args(Config.model_fields[section].annotation)
    return TypeAdapter(kind).validate_python(value)
