"""What a claim is. Light: claims are made while the workflow is parsed."""

from dataclasses import dataclass, replace
from typing import Literal

from masklab.scores.reading import RANKS, Reading, leaves, needs
from masklab.scores.view import View

Region = Literal["above 0", "below 0", "slightly", "equal", "no more", "no less"]
MARGINAL = ("slightly", "equal", "no more", "no less")  # regions that the margin is part of
SIGNS = ("above 0", "below 0")  # regions that are about the sign alone
# Units that the study's margin is in.
SCORES = ("accuracy", "accuracy full width", "mcc", "f1", "exact", "pearson", "spearman", "score")
CHANCE = ("majority", "majority_f1")  # metrics of a task that are no model's


@dataclass(frozen=True)
class Claim:
    """One assertion: a sentence, a number, and where the number should lie if the sentence is true.

    section: where it stands; figure: what shows it; text: the sentence, shortened.
    effect: of `masklab.claims.effects`, or a reading. region: above 0, below 0, above 0 but less than the study's
    margin (slightly), within the margin of 0, at most the margin, at least minus the margin. margin: its own in place
    of the study's.
    given: effects that the sentence presupposes: that something diminishes, or is owing to something, can be true or
    false only where there is that something. Each must be shown to be above 0.
    equal_loss: the sentence presupposes that its recipes have equal losses at the checkpoints compared.
    learned: whether the premises on having learned more than a null apply; false only for what holds for untrained
    models too.
    trained: whether every pre-trained recipe must have learned its language (`premises.untrained`), and not just one.
    learned_on: further splits on which having learned a task counts: those that recipes were fine-tuned on, where the
    claim is about other splits and may say that nothing carries over to these.
    learned_tasks: tasks that must have been learned in place of those of the effect: controls of tasks on which a model
    that learned much may well do worse than one that learned nothing.
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
    learned_metric: str | None = None
    headline: bool = False

    def needs(self, view: View) -> list[tuple[str, str]]:
        """(probe, recipe) pairs whose scores it reads, for its effect and its premises."""
        pairs = needs([self.effect, self.to_learn()], view)
        pairs += needs(list(self.given), view, with_nulls=False)
        recipes = dict.fromkeys(reading.recipe for reading in leaves(self.effect)) if self.trained else ()
        pairs += needs([gap for gap in map(gap_of, recipes) if gap.measured(view)], view, with_nulls=False)
        if self.equal_loss:
            pairs += needs(list(map(loss_of, leaves(self.effect))), view, with_nulls=False)
        return list(dict.fromkeys(pairs))

    def to_learn(self) -> list[Reading]:
        """What its recipes must do better at than their nulls: numbers, at the last checkpoint of a curve.

        Of a rank after fine-tuning that is the task which it was fine-tuned on.
        """
        readings = []
        for reading in leaves(self.effect) if self.learned else ():
            if reading.tasks and reading.metric not in CHANCE:
                step = "last" if reading.over == "step" else reading.step
                plain = replace(reading, over=None, reduce=None, form="value", step=step)
                if reading.metric in RANKS:
                    plain = replace(plain, metric=None, layers=None)
                if self.learned_metric is not None:
                    plain = replace(plain, metric=self.learned_metric, splits=self.learned_on)
                readings.append(replace(plain, tasks=self.learned_tasks or plain.tasks))
        return list(dict.fromkeys(readings))

    def bounds(self, view: View) -> tuple[float, float]:
        """The open interval that its region stands for."""
        margin, inf = self.margin_in(view), float("inf")
        return {
            "above 0": (0.0, inf),
            "below 0": (-inf, 0.0),
            "slightly": (0.0, margin),
            "equal": (-margin, margin),
            "no more": (-inf, margin),
            "no less": (-margin, inf),
        }[self.region]

    def least_in(self, view: View) -> float:
        """The least difference that counts, where the claim is about its sign: the study's margin of what it is in.

        Of a loss it is the difference up to which two losses are equal; of a slope over training sizes, what comes to
        the margin from the first of them to the last. 0 of other claims, of which any difference counts; so does one
        that is measured from a threshold.
        """
        if self.region not in (*SIGNS, "slightly") or getattr(self.effect, "threshold", 0.0):
            return 0.0
        if self.region == "slightly":
            return self.margin_in(view)
        margins = dict.fromkeys(SCORES, view.margin) | {"share of the floor": view.saturation}
        margins |= {metric.replace("_", " "): least for metric, least in view.margins.items()}
        score, per_doubling, _ = (unit := self.effect.unit(view)).partition(" per doubling")
        if not per_doubling or unit in margins:
            return margins.get(unit, 0.0)
        doublings = max(reading.doublings(view) for reading in leaves(self.effect))
        return margins.get(score, 0.0) / doublings if doublings else 0.0

    def margin_in(self, view: View) -> float:
        """The margin that its region has; 0 where the margin is no part of it."""
        if self.region not in MARGINAL:
            return 0.0
        return view.margin if self.margin is None else self.margin


def gap_of(recipe: str) -> Reading:
    """How far a recipe is from the least possible loss, in nats."""
    return Reading(recipe, "gap")


def loss_of(reading: Reading) -> Reading:
    """How far a reading's checkpoint, of a curve the last, is from the least possible loss, as a share of that."""
    return reading.of(reading.recipe, **GAP, step="last" if reading.over else reading.step)


# What turns a reading into that one.
GAP = {"metric": "gap", "tasks": (), "probe": None, "splits": (), "sizes": "all", "layers": None, "seeds": "mean",
       "form": "share of the floor", "over": None, "reduce": None}  # fmt: skip
