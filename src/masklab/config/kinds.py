"""Kinds: what an entry of the config can be, and where each kind is made.

`corpora`, `tasks` and `probes` have a key `kind`; `terms` are the keys of an objective; figures, tables and claims are
named by a study. Ours stand in `OURS`, as strings, so that reading a config imports nothing heavy. A user's file
(`code:` in the config) adds its own with the decorators below:

    @kinds.corpus("shifts", Shifts)            # Shifts: a class of settings, derived from `Entity`
    def generate(config, name, seed): ...
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from masklab.errors import MaskLabError

SECTIONS = ("corpora", "tasks", "probes", "terms", "figures", "tables", "claims")


@dataclass(frozen=True)
class Kind:
    """One kind of entry.

    settings: the class of its keys, or where it is, "module:Class"; None where the config gives it none.
    make: what makes or measures it, or where that is, "module:function".
    modules: modules besides that of `make` whose code its artifacts depend on and no import shows.
    file: the user's file that registered it; None for ours.
    """

    section: str
    name: str
    settings: type | str | None
    make: Callable | str
    modules: tuple[str, ...] = ()
    file: str | None = None

    def function(self) -> Callable:
        """What makes it, imported now."""
        return imported(self.make)

    def entity(self) -> type | None:
        """The class of its settings."""
        return imported(self.settings)

    def code(self) -> tuple[str, ...]:
        """Modules that its artifacts are made by; of a user's kind none: the file itself counts."""
        own = (self.make.partition(":")[0],) if isinstance(self.make, str) else ()
        return (*own, *self.modules)


def imported(value):
    """What "module:name" names, imported now; anything else is itself."""
    if not isinstance(value, str):
        return value
    module, _, name = value.partition(":")
    return getattr(importlib.import_module(module), name)


def _ours(section: str, **kinds) -> dict[str, Kind]:
    made = {}
    for name, (settings, make, *modules) in kinds.items():
        name = name.replace("_", "-") if section in ("tasks",) else name
        made[name] = Kind(section, name, f"masklab.config.schema:{settings}", make, tuple(modules))
    return made


OURS: dict[str, dict[str, Kind]] = {
    "corpora": _ours(
        "corpora",
        text=("TextCorpus", "masklab.corpora.text:generate"),
        english=("EnglishCorpus", "masklab.corpora.english:generate"),
        markov=("MarkovCorpus", "masklab.corpora.markov:generate", "masklab.corpora.markov.law"),
        hmm=("HmmCorpus", "masklab.corpora.hmm:generate", "masklab.corpora.hmm.law"),
        pcfg=("PcfgCorpus", "masklab.corpora.pcfg:generate", "masklab.corpora.pcfg.law"),
        causal=("CausalCorpus", "masklab.corpora.causal:generate", "masklab.corpora.causal.law"),
    ),
    "tasks": _ours(
        "tasks",
        english_pairs=("EnglishPairs", "masklab.tasks.generated:english_pairs"),
        pair_files=("PairFiles", "masklab.tasks.pairs:pair_files"),
        english_labels=("EnglishLabels", "masklab.tasks.generated:english_labels"),
        label_files=("LabelFiles", "masklab.tasks.labels:label_files"),
        english_ratings=("EnglishRatings", "masklab.tasks.generated:english_ratings"),
        english_spans=("EnglishSpans", "masklab.tasks.squad:english_spans"),
        glue=("GlueTask", "masklab.tasks.glue:glue"),
        squad=("SquadTask", "masklab.tasks.squad:squad"),
        patterns=("PatternsTask", "masklab.tasks.patterns:patterns"),
        hmm=("HmmTask", "masklab.tasks.hidden:hidden_states"),
        pcfg=("PcfgTask", "masklab.tasks.nonterminals:nonterminals"),
        restricted_labels=("RestrictedLabels", "masklab.tasks.restricted:restricted_labels"),
    ),
    "probes": _ours(
        "probes",
        minimal_pairs=("MinimalPairsProbe", "masklab.probes.minimal_pairs:measure"),
        finetune=("FinetuneProbe", "masklab.probes.finetune:measure"),
        prediction=("PredictionProbe", "masklab.probes.prediction:measure"),
        loss=("LossProbe", "masklab.probes.loss:measure"),
        curvature=("CurvatureProbe", "masklab.probes.curvature:measure"),
        landscape=("LandscapeProbe", "masklab.probes.landscape:measure"),
        linear_probe=("LinearProbe", "masklab.probes.linear_probe:measure"),
        rank=("RankProbe", "masklab.probes.rank:measure"),
        cost=("CostProbe", "masklab.probes.cost:measure"),
    ),
    "terms": _ours(
        "terms",
        mlm=("Mlm", "masklab.objectives.mlm:Mlm"),
        kd=("Kd", "masklab.objectives.kd:Kd"),
        mlsm=("Mlsm", "masklab.objectives.mlsm:Mlsm"),
        mae=("Mae", "masklab.objectives.mae:Mae"),
        adversarial=("Adversarial", "masklab.objectives.adversarial:Adversarial"),
    ),
    "figures": {},
    "tables": {},
    "claims": {},
}
_yours: dict[str, dict[str, Kind]] = {section: {} for section in SECTIONS}
_reading: str | None = None  # the user's file that is being read


def known(section: str) -> dict[str, Kind]:
    """Every kind of a section by name, ours first."""
    return OURS[section] | _yours[section]


def find(section: str, name: str) -> Kind:
    """The kind of that name; MaskLabError says which there are."""
    kinds = known(section)
    if name not in kinds:
        raise MaskLabError(f"no kind {name!r} among {section}; known: {', '.join(kinds)}")
    return kinds[name]


def register(section: str, name: str, settings=None, modules=(), wrap=None):
    """Decorator that adds a kind of a user's file. wrap: what is kept in place of the decorated function."""

    def decorate(make):
        if name in OURS[section] or name in _yours[section]:
            raise MaskLabError(f"{_reading}: {name!r} is already a kind among {section}; choose another name")
        kept = make if wrap is None else wrap(make)
        _yours[section][name] = Kind(section, name, settings, kept, tuple(modules), _reading)
        return make

    return decorate


def corpus(name: str, settings: type, *modules: str):
    """Register `generate(config, name, seed) -> {split: pyarrow.Table}` as a kind of corpus."""
    return register("corpora", name, settings, modules)


def task(name: str, settings: type, *modules: str):
    """Register `build(config, name, seed) -> ({split: table}, facts)` as a kind of task."""
    return register("tasks", name, settings, modules)


def probe(name: str, settings: type, *modules: str):
    """Register `measure(context) -> rows` as a kind of probe."""
    return register("probes", name, settings, modules)


def term(name: str, settings: type, *modules: str):
    """Register a class of `masklab.objectives.Term` as a term that objectives can have."""
    return register("terms", name, settings, modules)
