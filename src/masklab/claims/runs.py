"""Effects over runs of pre-training: a value per run of a recipe (a panel of the study), compared in pairs by seed.

Light: imported at parse time. The numbers: `masklab.claims.run_estimates`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from masklab.claims.spec import measuring
from masklab.config.schema import Config, Study
from masklab.errors import MaskLabError
from masklab.figures.recipes import deltas

Layers = Literal["last", "first", "all", "deep", "shallow"]


@dataclass(frozen=True)
class Score:
    """Mean over the tasks of a set of the median over fine-tunings, at the last checkpoint."""

    panel: str
    set: str
    kinds = ("finetune",)

    @property
    def words(self) -> str:
        return f"{self.panel} on {self.set}"


@dataclass(frozen=True)
class Rank:
    """Effective rank of hidden states: of an input (a split of the rank probe), or after fine-tuning on a set of tasks.

    layers: the embeddings (`first`), the last layer, or a mean: over `all` blocks, over the `deep` or `shallow` half of
    them (the middle one of an odd number is in neither).
    """

    panel: str
    split: str = "unmasked"
    layers: Layers = "last"
    metric: str = "rank"
    set: str | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("finetune",) if self.set else ("rank",)

    @property
    def words(self) -> str:
        at = {"last": "last layer", "first": "embeddings"}.get(self.layers, f"{self.layers} layers")
        where = f"after fine-tuning on {self.set}" if self.set else f"{self.split}, {at}"
        return f"{self.metric.replace('_', ' ')} of {self.panel} ({where})"


@dataclass(frozen=True)
class Cost:
    """What the whole of a run cost: seconds, tokens or flops."""

    panel: str
    metric: str = "seconds"
    set: str | None = None
    kinds = ("cost",)

    @property
    def words(self) -> str:
        return f"{self.metric} of {self.panel}"


Reading = Score | Rank | Cost


class _OverRuns:
    """Which scores effects over runs need."""

    estimator: ClassVar[str] = "masklab.claims.run_estimates"

    def lacking(self, study: Study) -> str | None:
        for reading in self.readings(study):
            if not study.panels.get(reading.panel):
                return f"needs a panel {reading.panel!r}"
            if reading.set and not study.sets.get(reading.set):
                return f"needs a set {reading.set!r} with at least one task under sets"
        return None

    def needs(self, study: Study, config: Config) -> list[tuple[str, str]]:
        pairs = []
        for reading in self.readings(study):
            tasks = study.sets[reading.set] if reading.set else []
            for kind in reading.kinds:
                for model in study.members[reading.panel]:
                    found = measuring(study, config, model, kind, tasks)
                    if not found:
                        raise MaskLabError(f"no {kind} probe of the study measures {model}")
                    pairs += found
        return list(dict.fromkeys(pairs))


@dataclass(frozen=True)
class Runs(_OverRuns):
    """The sum of (weight, reading) `terms`, less `threshold`; `relative`: the first term over the second, less 1."""

    terms: tuple[tuple[float, Reading], ...]
    threshold: float = 0.0
    relative: bool = False

    def readings(self, study: Study) -> list[Reading]:
        return [reading for _, reading in self.terms]

    @property
    def unit(self) -> str:
        reading = self.terms[0][1]
        return "share" if self.relative else "score" if isinstance(reading, Score) else reading.metric

    @property
    def comparison(self) -> str:
        """The effect in words."""
        less = f" - {self.threshold:g}" if self.threshold else ""
        if self.relative:
            return f"{self.terms[0][1].words} / {self.terms[1][1].words} - 1{less}"
        parts = [
            f"{'-' if weight < 0 else '+' if number else ''} {'' if abs(weight) == 1 else f'{abs(weight):g} × '}"
            f"{reading.words}".strip()
            for number, (weight, reading) in enumerate(self.terms)
        ]
        return f"{' '.join(parts)}{less}"


@dataclass(frozen=True)
class DeltaSlope(_OverRuns):
    """Slope of the regression of a set's score on delta, the share of [MASK]s in the encoder, per run."""

    set: str
    unit: ClassVar[str] = "score"

    def readings(self, study: Study) -> list[Reading]:
        return [Score(title, self.set) for title in deltas(study)]

    def lacking(self, study: Study) -> str | None:
        few = f"needs three panels of Figure 4; it has {len(deltas(study))}"
        return few if len(deltas(study)) < 3 else super().lacking(study)

    @property
    def comparison(self) -> str:
        return f"slope of the score on {self.set} in delta"


@dataclass(frozen=True)
class Reached(_OverRuns):
    """Share of `reference`'s whole cost at which `panel` first reaches its final score on a set, less `threshold`.

    A run that never reaches it counts with its own whole cost, which is too little.
    """

    panel: str
    reference: str
    set: str
    cost: str = "seconds"
    threshold: float = 0.0
    unit: ClassVar[str] = "share"

    def readings(self, study: Study) -> list[Reading]:
        panels = (self.panel, self.reference)
        return [made for panel in panels for made in (Score(panel, self.set), Cost(panel, self.cost))]

    @property
    def comparison(self) -> str:
        less = f" - {self.threshold:g}" if self.threshold else ""
        return f"share of {self.reference}'s {self.cost} after which {self.panel} reaches it on {self.set}{less}"
