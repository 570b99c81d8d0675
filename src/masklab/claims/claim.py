"""What a claim is. Light: claims are made while the workflow is parsed."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from masklab.claims.effects import Growth, Least, Lowest, Matched, Sum, every_effect, is_curve
from masklab.config import kinds
from masklab.scores.reading import RANKS, Reading, leaves, needs, nulls_of
from masklab.scores.view import View

Region = Literal["above 0", "below 0", "equal", "no more", "no less"]
MARGINAL = ("equal", "no more", "no less")  # regions that the margin is part of
SIGNS = ("above 0", "below 0")  # regions that are about the sign alone
# Units that the study's margin is in.
SCORES = ("accuracy", "accuracy full width", "mcc", "f1", "exact", "pearson", "spearman", "score")
CHANCE = ("majority", "majority_f1")  # metrics of a task that are no model's


@dataclass(frozen=True)
class Claim:
    """One assertion: a sentence, a number, and where the number should lie if the sentence is true.

    section: where it stands; figure: what shows it; text: the sentence, shortened.
    effect: of `masklab.claims.effects`, or a reading. region: above 0, below 0, within the study's margin of 0 (equal),
    at most the margin (no more), at least minus the margin (no less). margin: its own in place of the study's; of a
    slope over training sizes the study's is what it comes to over all of them.
    given: effects that the sentence presupposes: that something diminishes, or is owing to something, can be true or
    false only where there is that something. Each must be shown to be above 0, and not to be less than counts.
    equal_loss: the sentence presupposes that its recipes have equal losses at the checkpoints compared.
    learned: whether the premises on having learned more than a null apply; false only for what holds for untrained
    models too.
    trained: whether every pre-trained recipe must have learned its language (`premises.untrained`), and not just one.
    learned_on: further splits on which having learned a task counts: those that recipes were fine-tuned on, where the
    claim is about other splits and may say that nothing carries over to these.
    learned_tasks: tasks that must have been learned in place of those of the effect: controls of tasks on which a model
    that learned much may well do worse than one that learned nothing.
    learned_by: further recipes of which it is enough that one has learned the tasks: of claims that say of the others
    that they know too little.
    learned_metric: metric that these premises are about, on the splits of `learned_on` alone, in place of the effect's:
    of effects that are no score of a task.
    headline: whether it is one of the few claims that its study stands for.
    """

    name: str
    section: str
    figure: str
    text: str
    effect: object
    region: Region = "above 0"
    margin: float | None = None
    given: tuple = ()
    equal_loss: bool = False
    learned: bool = True
    trained: bool = False
    learned_on: tuple[str, ...] = ()
    learned_tasks: tuple[str, ...] = ()
    learned_by: tuple[str, ...] = ()
    learned_metric: str | None = None
    headline: bool = False

    def __post_init__(self):
        if problem := self._problem():
            raise ValueError(f"claim {self.name!r}: {problem}")
        nested = every_effect(self.effect)[1:]
        if any(isinstance(effect, Growth | Matched) or getattr(effect, "equal_loss", False) for effect in nested):
            raise ValueError("recipes at equal loss are chosen for a whole effect, not for a part of one")

    def _problem(self) -> str | None:
        """What is wrong with what a person has written, if something is."""
        texts = {key: getattr(self, key) for key in ("name", "section", "figure", "text")}
        if key := next((key for key, text in texts.items() if not isinstance(text, str)), None):
            return f"{key} must be text (got {texts[key]!r})"
        if self.region not in (regions := get_args(Region)):
            return f"region must be one of {', '.join(regions)} (got {self.region!r})"
        is_number = isinstance(self.margin, int | float) and not isinstance(self.margin, bool)
        if self.margin is not None and not (is_number and 0 < self.margin < float("inf")):
            return f"margin must be a number above 0, or None for the study's (got {self.margin!r})"
        for key in ("learned_on", "learned_tasks", "learned_by"):
            if not isinstance(names := getattr(self, key), tuple):  # of a word each letter would be a name
                return f"{key} must be a tuple of names (got {names!r})"
        if not isinstance(self.given, tuple):
            return f"given must be a tuple of effects (got {self.given!r})"
        for effect in (self.effect, *self.given):
            if not (isinstance(effect, Reading) or hasattr(effect, "readings")):
                kinds = "own.Reading, own.difference(...), own.Sum, ..."
                return f"an effect must be a reading or made of some ({kinds}; got {effect!r})"
            try:
                hash(effect)
            except TypeError:
                return f"an effect must be made of tuples, not of lists (got {effect!r})"
            if not all(each.readings() for each in every_effect(effect)):
                return f"an effect must be made of at least one reading (got {effect!r})"
            if is_curve(effect):
                return f"an effect must be a number, and this is a curve: say how to `reduce` it (got {effect!r})"
        return None

    def needs(self, view: View) -> list[tuple[str, str]]:
        """(probe, recipe) pairs whose scores it reads, for its effect and its premises."""
        pairs = needs([self.effect, self.to_learn(view)], view)
        pairs += needs(list(self.given), view, with_nulls=False)
        gaps = map(gap_of, self.learners(view))
        pairs += needs([gap for gap in gaps if gap.measured(view)], view, with_nulls=False)
        if self.equal_loss:
            pairs += needs(list(map(loss_of, leaves(self.effect))), view, with_nulls=False)
        return list(dict.fromkeys(pairs))

    def learners(self, view: View) -> list[str]:
        """Recipes whose learning counts where a claim is `trained`: those that it reads, and what these go on from."""
        read = list(dict.fromkeys(reading.recipe for reading in leaves(self.effect))) if self.trained else []
        return list(dict.fromkeys([*read, *filter(None, map(view.first_phase, read))]))

    def to_learn(self, view: View) -> list[Reading]:
        """What its recipes must do better at than their nulls: numbers, at the last checkpoint of a curve.

        Of a rank after fine-tuning that is the task which it was fine-tuned on. Of what is read of no task, what a
        probe of a user's kind measures of nulls too; losses, ranks and their like are of other premises.
        """
        readings = []
        for reading in leaves(self.effect) if self.learned else ():
            if reading.metric in CHANCE or (self.learned_tasks and not reading.tasks):
                continue
            step = "last" if reading.over == "step" else reading.step
            plain = replace(reading, over=None, reduce=None, form="value", step=step)
            if reading.tasks and reading.metric in RANKS:
                plain = replace(plain, metric=None, layers=None)
            if self.learned_metric is not None:
                plain = replace(plain, metric=self.learned_metric, splits=self.learned_on)
            plain = replace(plain, tasks=self.learned_tasks or plain.tasks)
            found = (plain, *(plain.of(name) for name in self.learned_by))
            readings += [each for each in found if each.tasks or _of_a_users_probe(each, view)]
        return list(dict.fromkeys(readings))

    def bounds(self, results) -> tuple[float, float]:
        """The open interval that its region stands for."""
        margin, inf = self.margin_in(results), float("inf")
        return {
            "above 0": (0.0, inf),
            "below 0": (-inf, 0.0),
            "equal": (-margin, margin),
            "no more": (-inf, margin),
            "no less": (-margin, inf),
        }[self.region]

    def least_in(self, results) -> float:
        """The least difference that counts, where the claim is about its sign: the study's margin of what it is in.

        Of a loss it is the difference up to which two losses are equal. 0 of other claims, of which any difference
        counts; so does one that is measured from a threshold or a level.
        """
        effect, view = self.effect, results.view
        parts = _alternatives(effect)
        if self.region not in SIGNS or any(map(_from_a_level, parts)):
            return 0.0
        if (slope := self._least_slope(results)) is not None:
            return slope
        margins = dict.fromkeys(SCORES, view.margin) | {"share of the floor": view.saturation} | _margins(view)
        return min(margins.get(part.unit(view), 0.0) for part in parts)

    def margin_in(self, results) -> float:
        """The margin that its region has; 0 where the margin is no part of it."""
        if self.region not in MARGINAL:
            return 0.0
        if self.margin is not None:
            return self.margin
        slope, view = self._least_slope(results), results.view
        if slope is not None:
            return slope
        scores = {unit: least for unit, least in _margins(view).items() if unit in SCORES}
        return min(scores.get(part.unit(view), view.margin) for part in _alternatives(self.effect))

    def _least_slope(self, results) -> float | None:
        """Of a slope of scores over training sizes: what comes to the margin from the least of all sizes to the most.

        0 if nothing was measured; None of other effects.
        """
        view = results.view
        slopes = leaves(self.effect) if isinstance(self.effect, Reading | Sum) else []
        shapes = {(reading.over, reading.reduce, reading.form) for reading in slopes}
        units = {replace(reading, over=None, reduce=None).unit(view) for reading in slopes}
        if shapes != {("train_size", "slope", "value")} or not units <= set(SCORES):
            return None
        doublings = max(map(results.doublings, slopes))
        margin = _margins(view).get(units.pop(), view.margin) if len(units) == 1 else view.margin
        return margin / doublings if doublings else 0.0


def _of_a_users_probe(reading: Reading, view: View) -> bool:
    """Whether probes of a user's kind, and no others, give a reading and a null of it."""
    names = reading.probes(view) if reading.measured(view) and nulls_of(reading, view) else []
    theirs = all(view.probes[name]["kind"] not in kinds.OURS["probes"] for name in names)
    return bool(names) and theirs and not reading.not_given(view)


def _alternatives(effect) -> list:
    """The effects of which an effect is the least, the lowest or the median; of any other itself."""
    if isinstance(effect, Least | Lowest):
        return [each for part in effect.parts for each in _alternatives(part)]
    return [effect]


def _from_a_level(effect) -> bool:
    """Whether an effect is measured from a threshold or a level, so that what is near 0 is not nothing."""
    return bool(getattr(effect, "threshold", 0.0) or getattr(effect, "level", False))


def _margins(view: View) -> dict[str, float]:
    """Unit -> the margin that the study sets for it apart from that of its other scores."""
    return {metric.replace("_", " "): least for metric, least in view.margins.items()}


def gap_of(recipe: str) -> Reading:
    """How far a recipe is from the least possible loss, in nats."""
    return Reading(recipe, "gap")


def loss_of(reading: Reading) -> Reading:
    """How far a reading's checkpoint, of a curve the last, is from the least possible loss, as a share of that."""
    return reading.of(reading.recipe, **GAP, step="last" if reading.over == "step" else reading.step)


# What turns a reading into that one.
GAP = {"metric": "gap", "tasks": (), "probe": None, "splits": (), "sizes": "all", "layers": None, "seeds": "mean",
       "form": "share of the floor", "over": None, "reduce": None}  # fmt: skip
