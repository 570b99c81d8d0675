"""Effects read off fine-tuning curves: weighted sums of accuracies per starting point, domain and training size.

Light: imported at parse time. The numbers: `masklab.claims.curve_estimates`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from masklab.claims.spec import measuring
from masklab.config.schema import Config, Study
from masklab.errors import MaskLabError
from masklab.figures.spec import panel_of

MAJORITY = "majority"  # in place of a label: what always giving the more frequent answer scores

Sizes = Literal["all", "small", "large"]


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


Terms = tuple[tuple[float, Curve], ...]


@dataclass(frozen=True)
class Curves:
    """The effect whose value per fine-tuning seed is the sum of (weight, curve) `terms`."""

    terms: Terms
    estimator: ClassVar[str] = "masklab.claims.curve_estimates"

    @property
    def sets(self) -> list[str]:
        """Sets of tasks whose scores it reads."""
        return list(dict.fromkeys(curve.set for _, curve in self.terms))

    @property
    def unit(self) -> str:
        return "roughness" if any(curve.roughness for _, curve in self.terms) else "accuracy"

    @property
    def comparison(self) -> str:
        """The effect in words: what the curves share stands at the end."""
        words = [curve.words() for _, curve in self.terms]
        common = [key for key in words[0] if len({each[key] for each in words}) == 1]
        parts = []
        for (weight, curve), each in zip(self.terms, words, strict=True):
            own = ", ".join(text for key, text in each.items() if key not in common)
            name = f"{'roughness of ' if curve.roughness else ''}{curve.label}{f' ({own})' if own else ''}"
            sign = "-" if weight < 0 else "+" if parts else ""
            parts.append(f"{sign} {'' if abs(weight) == 1 else f'{abs(weight):g} × '}{name}".strip())
        return f"{' '.join(parts)}: {', '.join(words[0][key] for key in common)}"

    def lacking(self, study: Study) -> str | None:
        for _, curve in self.terms:
            if not study.sets.get(curve.set):
                return f"needs a set {curve.set!r} with at least one task under sets"
            try:
                title = panel_of(study, curve.set)
            except MaskLabError as error:
                return str(error)
            if curve.label != MAJORITY and curve.label not in study.panels[title]:
                return f"needs a model labelled {curve.label!r} in panel {title!r}"
        return None

    def needs(self, study: Study, config: Config) -> list[tuple[str, str]]:
        pairs = []
        for _, curve in self.terms:
            panel = study.panels[panel_of(study, curve.set)]
            models = list(panel.values()) if curve.label == MAJORITY else [panel[curve.label]]
            for model in models:
                found = measuring(study, config, model, tasks=study.sets[curve.set])
                if not found and curve.label != MAJORITY:
                    tasks = ", ".join(study.sets[curve.set])
                    raise MaskLabError(f"no probe of the study measures {model} on {tasks}")
                pairs += found
        return pairs


def minus(left: Iterable, right: Iterable) -> Terms:
    """The terms of one effect less another."""
    return (*left, *((-weight, curve) for weight, curve in right))
