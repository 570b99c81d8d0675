"""Effects: numbers made of readings, one per replicate. Light; the numbers: `masklab.claims.values`.

Effects nest: a difference of two slopes is a `Sum` of two `Slope`s.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal

from masklab.claims import effect_words
from masklab.scores.allowed_words import check_words
from masklab.scores.reading import Reading, leaves
from masklab.scores.view import View


def difference(left, right, threshold: float = 0.0) -> "Sum":
    """left - right - threshold."""
    return Sum(((1.0, left), (-1.0, right)), threshold)


def less(left: "Sum", right: "Sum") -> "Sum":
    """One sum of readings less another, equal readings added up and those of weight 0 left out; no thresholds."""
    total = {}
    for sign, effect in ((1, left), (-1, right)):
        for weight, reading in effect.terms:
            total[reading] = total.get(reading, 0.0) + sign * weight
    return Sum(tuple((weight, reading) for reading, weight in total.items() if weight))


def every_effect(effect) -> list:
    """An effect and those that it is made of; no readings."""
    if isinstance(effect, Reading):
        return []
    return [effect, *(each for part in effect.readings() for each in every_effect(part))]


def every_part(effect) -> list:
    """The parts of which an effect is the least, each once; of any other, a median among them, itself."""
    if not isinstance(effect, Least) or isinstance(effect, Median):
        return [effect]
    return list(dict.fromkeys(each for part in effect.parts for each in every_part(part)))


def is_curve(part) -> bool:
    """Whether a reading or an effect is a curve, and no number."""
    if isinstance(part, Reading):
        return part.over is not None and part.reduce is None
    return isinstance(part, Sum | Ratio) and any(map(is_curve, part.readings()))


def _is_read_over(part, axis: str) -> bool:
    """Whether it is a reading that is a curve over this axis."""
    return isinstance(part, Reading) and part.over == axis and is_curve(part)


def _check_numbers(what: str, parts) -> None:
    """ValueError: one of them is a curve."""
    if any(map(is_curve, parts)):
        raise ValueError(f"{what} is made of numbers, and a reading over something is a curve: say how to `reduce` it")


def _check_alike(what: str, parts) -> None:
    """ValueError: some of them are curves, and others are numbers."""
    if len({is_curve(part) for part in parts}) > 1:
        raise ValueError(f"{what} is of numbers or of curves, not of both: say how to `reduce` the curves")


def _check_finite(what: str, *values) -> None:
    """ValueError: one of them is no finite number."""
    for value in values:
        if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
            raise ValueError(f"{what} must be a number (got {value!r})")


@dataclass(frozen=True)
class Sum:
    """The sum of (weight, part) `terms`, less `threshold`.

    level: 0 is a level that a sentence sets, such as half of a whole, so that what is near it is not nothing.
    """

    terms: tuple[tuple[float, object], ...]
    threshold: float = 0.0
    level: bool = False

    def __post_init__(self):
        _check_alike("a sum or difference", self.readings())
        _check_finite("a weight of a sum or difference", *(weight for weight, _ in self.terms))
        _check_finite("the threshold of a sum or difference", self.threshold)

    def readings(self) -> list:
        return [part for _, part in self.terms]

    def words(self, view: View) -> str:
        words, common = effect_words.apart(self.readings(), view)
        signed = effect_words.signed((weight, text) for (weight, _), text in zip(self.terms, words, strict=True))
        return f"{signed}{effect_words.minus(self.threshold)}{common}"

    def unit(self, view: View) -> str:
        return self.terms[0][1].unit(view)


@dataclass(frozen=True)
class Ratio:
    """top / bottom - 1 - threshold."""

    top: object
    bottom: object
    threshold: float = 0.0

    def __post_init__(self):
        _check_alike("a ratio", self.readings())
        _check_finite("the threshold of a ratio", self.threshold)

    def readings(self) -> list:
        return [self.top, self.bottom]

    def words(self, view: View) -> str:
        (top, bottom), common = effect_words.apart(self.readings(), view)
        return f"{top} / {bottom} - 1{effect_words.minus(self.threshold)}{common}"

    def unit(self, view: View) -> str:
        return "share"


@dataclass(frozen=True)
class Least:
    """The least of several parts: above 0 if each of them is, and below 0 if one of them is.

    Inside other effects it is the part whose interval ends the lowest, the same one in all replicates.
    """

    parts: tuple

    def __post_init__(self):
        _check_numbers("the least or the median of several", self.parts)

    def readings(self) -> list:
        return list(self.parts)

    def words(self, view: View) -> str:
        return f"least of {effect_words.several(self.parts, view)}"

    def unit(self, view: View) -> str:
        return self.parts[0].unit(view)


@dataclass(frozen=True)
class Lowest:
    """The lowest of several readings in each replicate: a level that all reach. What is tested is a `Least`."""

    parts: tuple[Reading, ...]

    def readings(self) -> list:
        return list(self.parts)

    def words(self, view: View) -> str:
        return f"lowest of {effect_words.several(self.parts, view)}"

    def unit(self, view: View) -> str:
        return self.parts[0].unit(view)


@dataclass(frozen=True)
class Growth:
    """By how much several readings grow, from the first whose recipe is at the lowest loss of all to the last.

    Which recipes are at that loss, the scores say; where none but the last is, the claim is untested. at: a number for
    each reading, such as the logarithm of its weights; then what a straight line over these rises by from the first to
    the last, fitted to all that are at that loss. Without it, the last less the first.
    """

    parts: tuple[Reading, ...]
    at: tuple[float, ...] = ()

    def readings(self) -> list:
        return list(self.parts)

    def chosen(self, places) -> "Growth":
        """Of the readings at these places alone."""
        at = tuple(self.at[place] for place in places) if self.at else ()
        return Growth(tuple(self.parts[place] for place in places), at)

    def weights(self) -> list[float]:
        """Of each part in the sum that the growth is: of the line's slope, times the way from first to last."""
        if len(self.parts) == 1:
            return [0.0]
        if len(set(self.at)) < 2:  # none, or one for all: there is no line
            return [-1.0, *(0.0 for _ in self.parts[2:]), 1.0]
        mean = sum(self.at) / len(self.at)
        apart = [x - mean for x in self.at]
        scale = (self.at[-1] - self.at[0]) / sum(x * x for x in apart)
        return [scale * x for x in apart]

    def words(self, view: View) -> str:
        if len(self.parts) == 1:
            return f"{self.parts[0].words(view)}, less that of the smallest at its loss"
        fitted = f" (by a line through {len(self.parts)})" if len(set(self.at)) > 1 and len(self.parts) > 2 else ""
        return difference(self.parts[-1], self.parts[0]).words(view) + fitted

    def unit(self, view: View) -> str:
        return self.parts[0].unit(view)


@dataclass(frozen=True)
class Matched:
    """What the models of `course` read at the loss of another, less what that one reads.

    course, others: pairs of a reading and its loss, which is a reading too; those of the course are of one model after
    more and more updates. The other is the first of `others` whose mean loss lies between those of two neighbours of
    the course; between these two the course is a straight line over the loss, of one slope for all replicates. Which
    ones they are, the scores say (`matched`); where there is none, the claim is untested.
    """

    course: tuple[tuple[Reading, Reading], ...]
    others: tuple[tuple[Reading, Reading], ...]
    matched: bool = False

    def readings(self) -> list:
        return [part for parts in zip(*self.course, *self.others, strict=True) for part in parts]

    def words(self, view: View) -> str:
        ends = [self.course[at][0].parts(view) for at in (0, -1)]
        of_one = ends[0]["recipe"] == ends[1]["recipe"]
        ends = [f"{end['recipe']} at {end['step']}" if of_one else end["recipe"] for end in ends]
        said = self.others[0][0].parts(view)
        other = said["recipe"] if len(self.others) == 1 else "a smaller one"
        rest = ", ".join(text for key, text in said.items() if key != "recipe" and text)
        return f"between {' and '.join(ends)} at the loss of {other} - {other}: {rest}"

    def unit(self, view: View) -> str:
        return self.course[0][0].unit(view)


@dataclass(frozen=True)
class Median(Least):
    """The median of several parts, in each replicate: above 0 if most of them are."""

    def words(self, view: View) -> str:
        return f"median of {effect_words.several(self.parts, view)}"


@dataclass(frozen=True)
class Slope:
    """Slope of the regression of the numbers `ys` on `xs`, values of the fact that is called `of`."""

    ys: tuple
    xs: tuple[float, ...]
    of: str

    def __post_init__(self):
        _check_numbers("a slope", self.ys)
        if len(self.ys) != len(self.xs):
            raise ValueError(f"a slope needs a number for each of its ys (got {len(self.xs)} for {len(self.ys)})")
        _check_finite("an x of a slope", *self.xs)

    def readings(self) -> list:
        return list(self.ys)

    def words(self, view: View) -> str:
        return f"slope in {self.of} of {effect_words.common(self.ys, view)}"

    def unit(self, view: View) -> str:
        return f"{self.ys[0].unit(view)} per {self.of}"


@dataclass(frozen=True)
class Correlation:
    """Pearson's correlation of `ys` with `xs`, point by point; or R2, its square, less `threshold`.

    Each element of both is a number or a reading that is a curve; the points of all are put together. With fewer than
    `points` the claim is untested: three or four points correlate by chance. equal_loss: only over recipes at the
    lowest loss of all.
    varied: untested too unless `xs` differ between the points by more than replicates do (`premises.unvaried`), where
    the sentence takes it for granted that they do; the points are then the same in all replicates.
    sign: -1 for minus the correlation.
    """

    ys: tuple
    xs: tuple
    statistic: Literal["correlation", "R2"] = "correlation"
    threshold: float = 0.0
    points: int = 8
    equal_loss: bool = False
    varied: bool = False
    sign: int = 1

    def __post_init__(self):
        check_words(self, "correlation")
        _check_finite("the threshold of a correlation", self.threshold)
        if self.threshold and self.statistic != "R2":
            raise ValueError("a threshold is one of R2")
        if len(self.ys) != len(self.xs):
            raise ValueError(f"a correlation needs an x for each of its ys (got {len(self.xs)} for {len(self.ys)})")
        if any(is_curve(part) and not isinstance(part, Reading) for part in self.readings()):
            raise ValueError("a correlation is of numbers or of readings that are curves, not of their differences")
        axes = [[part.over if is_curve(part) else None for part in side] for side in (self.ys, self.xs)]
        if axes[0] != axes[1]:
            raise ValueError("a correlation is of numbers with numbers, and of curves with curves over the same column")
        if self.equal_loss and not all(isinstance(part, Reading) for part in self.ys):
            raise ValueError("a correlation at equal loss is one of readings, each of one recipe")

    def readings(self) -> list:
        return [*self.ys, *self.xs]

    def words(self, view: View) -> str:
        less = effect_words.minus(self.threshold)
        which = f"{'- ' if self.sign < 0 else ''}{self.statistic}"
        return f"{which} of {effect_words.common(self.ys, view)} with {effect_words.common(self.xs, view)}{less}"

    def unit(self, view: View) -> str:
        return self.statistic


@dataclass(frozen=True)
class Within:
    """Slope of `ys` on `xs` over replicates, or their partial correlation: what differs between recipes does not count.

    ys, xs, givens: readings of the same recipes, in order. Every number is taken less the recipe's mean, and less that
    of its replicate over all recipes, which share what is drawn for it; the slopes are those of the regression on `xs`
    and `givens` of all of them together, and the correlation is that of what `givens` leave of both. The value of a
    replicate is Tukey's pseudo-value, n times the number of all less (n - 1) times that of the others: the mean of
    these has the jackknife's standard error; of correlations on Fisher's scale. With one recipe, or fewer than `points`
    degrees of freedom left to the errors of a fit, the claim is untested. equal_loss: only of recipes at the lowest
    loss of all.
    """

    ys: tuple[Reading, ...]
    xs: tuple[Reading, ...]
    givens: tuple[Reading, ...] = ()
    points: int = 4
    statistic: Literal["slope", "partial correlation"] = "slope"
    equal_loss: bool = False

    def __post_init__(self):
        check_words(self, "what is computed over replicates")

    def readings(self) -> list:
        return [*self.ys, *self.xs, *self.givens]

    def words(self, view: View) -> str:
        given = f", given {effect_words.common(self.givens, view)}" if self.givens else ""
        each = "in" if self.statistic == "slope" else "with"
        both = f"{effect_words.common(self.ys, view)} {each} {effect_words.common(self.xs, view)}"
        return f"{self.statistic} over replicates of {both}{given}"

    def unit(self, view: View) -> str:
        if self.statistic != "slope":
            return self.statistic
        return f"{self.ys[0].unit(view)} per {self.xs[0].unit(view)}"


@dataclass(frozen=True)
class Mediated:
    """What the difference of two recipes in x does to y by way of x: that difference times a slope of y on x.

    left, right: readings of x of both. within: the slope, over replicates of each recipe. A replicate's value is
    Tukey's pseudo-value of the product of the mean difference and the slope, as that of `within`.
    """

    left: Reading
    right: Reading
    within: Within

    @property
    def points(self) -> int:
        """Degrees of freedom that the slope needs."""
        return self.within.points

    def readings(self) -> list:
        return [*self.within.readings(), self.left, self.right]

    def words(self, view: View) -> str:
        return f"({difference(self.left, self.right).words(view)}) x {self.within.words(view)}"

    def unit(self, view: View) -> str:
        return self.within.ys[0].unit(view)


@dataclass(frozen=True)
class Crossing:
    """Share of `whole` at which a curve over steps first reaches `level`, less `threshold`.

    curve, cost: readings over steps; level, whole: readings of a number. cost None: the cost is counted in updates, and
    `whole` is a number of them; start is then what the curve reads after none. Between two checkpoints the curve is a
    straight line. A replicate that never reaches the level counts with its whole cost, which is a lower bound; without
    a start one that has it at the first checkpoint counts with that, an upper bound.
    """

    curve: Reading
    cost: Reading | None
    level: object
    whole: object
    threshold: float = 0.0
    start: Reading | None = None

    def __post_init__(self):
        for what, part in {"curve": self.curve, "cost": self.cost or self.curve}.items():
            if not _is_read_over(part, "step"):
                raise ValueError(f"crossing: {what} must be a reading over steps (got {part!r})")
        if isinstance(self.whole, Reading) != (self.cost is not None):
            wanted = "a number of updates, as the cost is counted in updates" if self.cost is None else "a reading"
            raise ValueError(f"crossing: whole must be {wanted} (got {self.whole!r})")
        _check_numbers("the level of a crossing", [self.level])
        _check_finite("the threshold of a crossing", self.threshold)

    def readings(self) -> list:
        paid = [] if self.cost is None else [self.cost, self.whole]
        return [self.curve, self.level, *paid, *([] if self.start is None else [self.start])]

    def words(self, view: View) -> str:
        if self.cost is None:
            of = f"{self.whole:g} updates"
        else:
            of = f"{view.label(self.whole.recipe)}'s {self.cost.parts(view)['what']}"
        levels = [each.parts(view) for each in leaves(self.level)]
        whose = " or ".join(f"{level['recipe']}'s" for level in levels) + (", the lower," if len(levels) > 1 else "")
        at = f"{whose} " + ", ".join(part for part in (levels[0]["what"], levels[0]["panel"]) if part)
        curve, less = view.label(self.curve.recipe), effect_words.minus(self.threshold)
        return f"share of {of} after which {curve} reaches {at}{less}"

    def unit(self, view: View) -> str:
        return "share"


@dataclass(frozen=True)
class Reach:
    """log2 of the training examples after which a curve over training sizes first reaches `level`.

    Between two sizes the curve is a straight line over their logarithms. A curve that has the level at its first size
    counts with that size, an upper bound; one that never has it with its last, a lower bound. So a difference of two is
    in doublings of the examples, and rather too small than too large.
    """

    curve: Reading
    level: float

    def __post_init__(self):
        if not _is_read_over(self.curve, "train_size"):
            raise ValueError(f"reach: curve must be a reading over training sizes (got {self.curve!r})")

    def readings(self) -> list:
        return [self.curve]

    def words(self, view: View) -> str:
        return f"log2 of the examples until {self.curve.words(view)}, is {self.level:g}"

    def unit(self, view: View) -> str:
        return "doublings"
