"""What a claim is, said without importing numpy or pandas: the workflow reads it at parse time.

A claim is a sentence and a number per fine-tuning seed, its *effect*: a weighted sum of quantities read off
curves. The claim says where the mean of the effect lies, its *region*: above 0, below 0, within the margin of
0, at most the margin, at least minus the margin. The margin is the study's (`studies.<study>.margin`).
"""

import importlib
from dataclasses import dataclass
from typing import Literal

from masklab.claims import CLAIMS
from masklab.config.schema import Config, Study
from masklab.errors import MaskLabError
from masklab.figures.spec import panel_of

MAJORITY = "majority"  # in place of a label: what always giving the more frequent answer scores

Sizes = Literal["all", "small", "large"]
Region = Literal["above 0", "below 0", "equal", "no more", "no less"]


@dataclass(frozen=True)
class Curve:
    """A number per seed, read off the curves of one starting point.

    set: the study's set of tasks, "<panel>-<percent of B-D2>"; label: the starting point, or `MAJORITY`.
    domains: test domains averaged. sizes: training sizes averaged; `small` is the smaller half of those
    measured (the middle one of an odd number with it), `large` the rest.
    roughness: not the mean accuracy but, averaged over domains, the mean absolute second difference of
    accuracy along the sizes: how far a curve's points lie off a straight course. Needs three sizes.
    """

    set: str
    label: str
    domains: tuple[str, ...]
    sizes: Sizes = "all"
    roughness: bool = False

    def words(self) -> dict[str, str]:
        """Domains, set and sizes in words."""
        domains = "all domains" if len(self.domains) == 4 else "+".join(self.domains)
        return {"domains": domains, "set": self.set, "sizes": f"{self.sizes} sizes"}


@dataclass(frozen=True)
class Claim:
    """One assertion of a paper.

    section: where it stands; figure: what shows it; text: the sentence, shortened.
    effect: (weight, curve) pairs whose weighted sum per seed is tested; region: where the claim says its mean lies.
    """

    name: str
    section: str
    figure: str
    text: str
    effect: tuple[tuple[float, Curve], ...]
    region: Region = "above 0"

    @property
    def sets(self) -> list[str]:
        """Sets of tasks whose scores it reads."""
        return list(dict.fromkeys(curve.set for _, curve in self.effect))

    @property
    def comparison(self) -> str:
        """The effect in words: what the curves share stands at the end."""
        words = [curve.words() for _, curve in self.effect]
        common = [key for key in words[0] if len({each[key] for each in words}) == 1]
        parts = []
        for (weight, curve), each in zip(self.effect, words, strict=True):
            own = ", ".join(text for key, text in each.items() if key not in common)
            name = f"{'roughness of ' if curve.roughness else ''}{curve.label}{f' ({own})' if own else ''}"
            sign = "-" if weight < 0 else "+" if parts else ""
            parts.append(f"{sign} {'' if abs(weight) == 1 else f'{abs(weight):g} × '}{name}".strip())
        return f"{' '.join(parts)}: {', '.join(words[0][key] for key in common)}"


def difference(left: Curve, right: Curve) -> tuple[tuple[float, Curve], ...]:
    """The effect left - right."""
    return ((1, left), (-1, right))


def minus(left, right) -> tuple[tuple[float, Curve], ...]:
    """The effect of one effect less another."""
    return (*left, *((-weight, curve) for weight, curve in right))


def claims_of(study_name: str, study: Study) -> list[Claim]:
    """Claims that a study declares; "all" means those whose sets, panels and labels it has.

    MaskLabError where one is unknown or cannot be tested, or `all` leaves none.
    """
    if not study.claims:
        return []
    where = f"config: studies.{study_name}.claims"
    kinds = sorted(CLAIMS, key=len, reverse=True)
    kind = next((name for name in kinds if study_name == name or study_name.startswith(f"{name}-")), None)
    if kind is None:
        raise MaskLabError(f"{where}: no claims of that name; there are some for {', '.join(kinds)}")
    known = {claim.name: claim for claim in importlib.import_module(CLAIMS[kind]).CLAIMS}
    if study.claims == "all":
        chosen = [claim for claim in known.values() if _lacking(study, claim) is None]
        if not chosen:
            raise MaskLabError(f"{where}: no claim can be tested: {_lacking(study, next(iter(known.values())))}")
        return chosen
    for name in study.claims:
        if name not in known:
            raise MaskLabError(f"{where}: no claim {name!r}; allowed: {', '.join(known)}, or all")
        lacking = _lacking(study, known[name])
        if lacking:
            raise MaskLabError(f"{where}: {name}: {lacking}")
    return [known[name] for name in study.claims]


def _lacking(study, claim):
    """What the study lacks for a claim; None if nothing."""
    for _, curve in claim.effect:
        if not study.sets.get(curve.set):
            return f"needs a set {curve.set!r} with at least one task under sets"
        try:
            title = panel_of(study, curve.set)
        except MaskLabError as error:
            return str(error)
        if curve.label != MAJORITY and curve.label not in study.panels[title]:
            return f"needs a model labelled {curve.label!r} in panel {title!r}"
    return None


def claim_needs(study_name: str, config: Config) -> list[tuple[str, str]]:
    """(probe, model) pairs whose scores the study's claims read; MaskLabError if a model is not measured."""
    study = config.studies[study_name]
    pairs = []
    for claim in claims_of(study_name, study):
        for _, curve in claim.effect:
            panel = study.panels[panel_of(study, curve.set)]
            models = list(panel.values()) if curve.label == MAJORITY else [panel[curve.label]]
            for model in models:
                found = [
                    (name, model)
                    for name, measured in study.probes.items()
                    if set(config.probes[name].tasks) & set(study.sets[curve.set])
                    and (measured == "all" or model in measured)
                ]
                if not found and curve.label != MAJORITY:
                    raise MaskLabError(
                        f"config: studies.{study_name}: claim {claim.name}: no probe of the study measures"
                        f" {model} on {', '.join(study.sets[curve.set])}"
                    )
                pairs += found
    return list(dict.fromkeys(pairs))
