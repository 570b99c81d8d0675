"""What a panel of scores is read against: always giving one answer (the majority, chance), and the best other null."""

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.lines import Line2D

from masklab.report import style
from masklab.report.rows import MAJORITY, at_shared, best_of_kinds, called, mean_of, sign_of
from masklab.scores.results import Results


@dataclass(frozen=True)
class Levels:
    """Means over replicates, and over the points of curves; NaN where there is none.

    majority: of always giving one answer, of minimal pairs `called` "chance"; null: the best of the other nulls, with
    its kind. sign: 1 where more is better, -1 where less is.
    """

    majority: float = math.nan
    called: str = MAJORITY
    null: float = math.nan
    kind: str = ""
    sign: int = 1

    def shown(self) -> list[float]:
        """Those that there are."""
        return [level for level in (self.majority, self.null) if math.isfinite(level)]

    def columns(self) -> dict:
        """As columns of the data of a figure."""
        return {"majority": self.majority, "null": self.null, "null_kind": self.kind}


def levels(results: Results, readings, shared=None) -> Levels:
    """Levels of several readings of one thing: the best of each. shared: over these replicates alone."""
    readings = list(readings)
    sign = sign_of(results, readings)
    means = {kind: mean_of(own) for kind, own in best_of_kinds(results, readings, shared).items()}
    said = next((called(results, reading) for reading in readings), MAJORITY)
    majority = means.pop(said, math.nan)
    means = {kind: mean for kind, mean in means.items() if math.isfinite(mean)}
    best = max(means, key=lambda kind: sign * means[kind], default="")
    return Levels(majority, said, means.get(best, math.nan), best, sign)


def together(several) -> Levels:
    """The best levels of several of one thing."""
    several = list(several)
    nulls = [each for each in several if math.isfinite(each.null)]
    majorities = [each for each in several if math.isfinite(each.majority)]
    null = max(nulls, key=lambda each: each.sign * each.null, default=Levels())
    majority = max(majorities, key=lambda each: each.sign * each.majority, default=Levels())
    return Levels(majority.majority, majority.called, null.null, null.kind, null.sign)


def by_size(results: Results, readings, shared=None) -> dict[float, Levels]:
    """Training size -> the best null of several curves over sizes there, without the majority, the same at each."""
    readings, found = list(readings), {}
    sign = sign_of(results, readings)
    for reading in readings:
        for kind, own in results.nulls(reading).items() if reading.over == "train_size" else ():
            own = None if kind == MAJORITY else at_shared(own, shared)
            for x, mean in zip(own.x, own.data[:, :, 0].mean(0), strict=True) if own and own.x is not None else ():
                known = found.get(float(x))
                if math.isfinite(mean) and (known is None or sign * mean > sign * known.null):
                    found[float(x)] = Levels(null=float(mean), kind=kind, sign=sign)
    return dict(sorted(found.items()))


def draw(axes, own: Levels, span: tuple[float, float] | None = None) -> None:
    """A dotted line at the majority and a dashed one at the best null, across the axes or over `span` of x."""
    for level, look in ((own.majority, style.MAJORITY), (own.null, style.NULL)):
        if math.isfinite(level) and span is None:
            axes.axhline(level, zorder=1, label="_level", **look)
        elif math.isfinite(level):
            axes.plot(span, [level] * 2, zorder=4, label="_level", **look)


def keys(several) -> dict[str, Line2D]:
    """Legend entries of the lines of a figure: what they are."""
    several = list(several)
    majorities = list(dict.fromkeys(each.called for each in several if math.isfinite(each.majority)))
    nulls = [each.kind.split(", ") for each in several if math.isfinite(each.null)]  # several of a bent line
    kinds = list(dict.fromkeys(kind for own in nulls for kind in own))
    named = {" or ".join(majorities): Line2D([], [], **style.MAJORITY)} if majorities else {}
    return named | ({f"best null ({', '.join(kinds)})": Line2D([], [], **style.NULL)} if kinds else {})


def known(several) -> np.ndarray:
    """All levels of several that there are."""
    return np.array([level for each in several for level in each.shown()])
