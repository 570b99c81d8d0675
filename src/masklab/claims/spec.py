"""What a claim is, said without importing numpy or pandas: the workflow reads it at parse time.

A claim is a sentence of a paper and a number, its *effect*. The claim says where the effect lies, its *region*:
above 0, below 0, within the margin of 0, at most the margin, at least minus the margin. The margin is the study's
(`studies.<study>.margin`). How an effect is computed from scores is the effect's own business: see `Effect`;
`masklab.claims.curve` has effects read off fine-tuning curves, `masklab.claims.cells` off models, checkpoints and
layers.
"""

import importlib
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from masklab.claims import CLAIMS
from masklab.config.schema import Config, Study
from masklab.errors import MaskLabError
from masklab.studies import kind_of

Region = Literal["above 0", "below 0", "equal", "no more", "no less"]


class Effect(Protocol):
    """How a claim's number is computed from scores: plain, hashable data, in a module that imports nothing heavy.

    estimator: the module that computes effects of this kind, imported when claims are tested. Its function
    `estimates(claims, scores, study, metrics)` returns one `masklab.claims.estimate.Estimate` per claim; metrics: task
    -> the metric it reports.
    """

    estimator: ClassVar[str]

    @property
    def comparison(self) -> str:
        """The effect in words."""

    @property
    def unit(self) -> str:
        """What it is measured in: "accuracy"."""

    def lacking(self, study: Study) -> str | None:
        """What the study lacks for it ("needs a set ..."); None if nothing."""

    def needs(self, study: Study, config: Config) -> list[tuple[str, str]]:
        """(probe, model) pairs whose scores it reads; MaskLabError, without the claim's name, if one is missing."""


@dataclass(frozen=True)
class Claim:
    """One assertion of a paper.

    section: where it stands; figure: what shows it; text: the sentence, shortened.
    effect: the number that is tested; region: where the claim says it lies.
    fewest: seeds below which an effect over seeds is never decided.
    """

    name: str
    section: str
    figure: str
    text: str
    effect: Effect
    region: Region = "above 0"
    fewest: int = 5


def difference(left, right) -> tuple:
    """The (weight, what) terms of left - right."""
    return ((1, left), (-1, right))


def measuring(study: Study, config: Config, model: str, kind: str | None = None, tasks=()) -> list[tuple[str, str]]:
    """(probe, model) pairs of the study's probes that measure `model`: those of a kind, those with any of `tasks`."""
    return [
        (name, model)
        for name, measured in study.probes.items()
        if kind in (None, config.probes[name].kind)
        and (not tasks or set(tasks) & set(config.probes[name].tasks))
        and (measured == "all" or model in measured)
    ]


def claims_of(study_name: str, study: Study) -> list[Claim]:
    """Claims that a study declares; "all" means those whose effects it has the panels and sets for.

    MaskLabError where one is unknown or cannot be tested, or `all` leaves none.
    """
    if not study.claims:
        return []
    where = f"config: studies.{study_name}.claims"
    kind = kind_of(study_name, CLAIMS, "claims")
    known = {claim.name: claim for claim in importlib.import_module(CLAIMS[kind]).CLAIMS}
    if study.claims == "all":
        chosen = [claim for claim in known.values() if claim.effect.lacking(study) is None]
        if not chosen:
            raise MaskLabError(f"{where}: no claim can be tested: {next(iter(known.values())).effect.lacking(study)}")
        return chosen
    for name in study.claims:
        if name not in known:
            raise MaskLabError(f"{where}: no claim {name!r}; allowed: {', '.join(known)}, or all")
        lacking = known[name].effect.lacking(study)
        if lacking:
            raise MaskLabError(f"{where}: {name}: {lacking}")
    return [known[name] for name in study.claims]


def claim_needs(study_name: str, config: Config) -> list[tuple[str, str]]:
    """(probe, model) pairs whose scores the study's claims read; MaskLabError if a model is not measured."""
    study = config.studies[study_name]
    pairs = []
    for claim in claims_of(study_name, study):
        try:
            pairs += claim.effect.needs(study, config)
        except MaskLabError as error:
            raise MaskLabError(f"config: studies.{study_name}: claim {claim.name}: {error}") from None
    return list(dict.fromkeys(pairs))
