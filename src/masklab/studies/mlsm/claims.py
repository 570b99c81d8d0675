"""What the abstract, section 3.3 and the conclusions say that scores can support or contradict.

"Average" is the mean over phenomena or tasks. Sentences on sample efficiency are tested twice: by the gap at the first
checkpoint, and by the updates after which MLSM+MLM reaches the last score of MLM, less those after which MLM does. A
model that reads MSGS's surface cue is wrong on all of its ambiguous tasks, so on these a claim presupposes that the
controls were learned. Claims whose recipes or tasks the study lacks are left out.
"""

from functools import partial

from masklab.claims.claim import Claim
from masklab.claims.effects import Crossing, Least, Median, Sum, difference
from masklab.errors import MaskLabError
from masklab.scores.reading import Reading, leaves
from masklab.scores.view import View
from masklab.studies.mlsm.select import (
    AMBIGUOUS,
    BLIMP,
    CONTROL,
    GLUE,
    JOINT,
    KD,
    KD_MLM,
    MLM,
    MLSM,
    objectives,
    start_of,
    tasks_of,
    tracks,
)

LARGE, SMALL = "large", "small"
MSGS = (CONTROL, AMBIGUOUS)
SUITES = {"blimp": ("3", (BLIMP,)), "glue": ("4", (GLUE,)), "msgs": ("5", MSGS)}  # name -> figure, sets
HEADLINES = ("joint-over-mlsm", "small-joint-over-mlm", "sooner-small-blimp")


class Lacking(Exception):
    """The study has no such recipe or task."""


class Scores:
    """Readings and effects of a study by the size of the corpus, objective and sets of tasks."""

    def __init__(self, view: View):
        self.view, titles = view, tracks(view)
        self.panels = dict(zip((LARGE, SMALL), [titles[0], *titles[1:][-1:]], strict=False)) if titles else {}

    def reading(self, size, objective, *sets, **more) -> Reading:
        """The mean score over the tasks of some sets."""
        try:
            recipe = objectives(self.view, self.panels[size])[objective]
            tasks = tasks_of(self.view, sets)
        except (KeyError, MaskLabError):
            raise Lacking from None
        reading = Reading(recipe, tasks=tasks, **more)
        if not reading.measured(self.view):
            raise Lacking
        return reading

    def gap(self, size, left, right, *sets, **more) -> Sum:
        """The score of one objective less that of another."""
        return difference(*(self.reading(size, objective, *sets, **more) for objective in (left, right)))

    def steps(self, size, *sets) -> list[int]:
        """Checkpoints at which MLSM+MLM is measured on some tasks; several."""
        reading = self.reading(size, JOINT, *sets)
        probes = self.view.measured_by(reading.recipe, reading.kinds(), reading.tasks)
        kept, told = self.view.fact(reading.recipe, "checkpoints"), [self.view.probes[name]["steps"] for name in probes]
        steps = [
            step for step in kept if all(listed == "all" or (listed != "last" and step in listed) for listed in told)
        ]
        if len(steps) < 2:
            raise Lacking
        return steps

    def everywhere(self, size, left, right, *sets) -> Least:
        """The least gap of all checkpoints."""
        return Least(tuple(self.gap(size, left, right, *sets, step=step) for step in self.steps(size, *sets)))

    def by_task(self, size, left, right, *sets) -> Median:
        """The median gap of all tasks."""
        self.gap(size, left, right, *sets)
        tasks = tasks_of(self.view, sets)
        names = [objectives(self.view, self.panels[size])[objective] for objective in (left, right)]
        return Median(tuple(difference(*(Reading(name, tasks=(task,)) for name in names)) for task in tasks))

    def fading(self, size, *sets) -> Sum:
        """The score of MLSM at its first checkpoint less that of the model it starts from."""
        first, tasks = self.reading(size, MLSM, *sets, step="first"), tasks_of(self.view, sets)
        start = start_of(self.view, [first.recipe])
        before = start and Reading(start[0], tasks=tasks, step=start[1])
        if not before or not before.measured(self.view):
            raise Lacking
        return difference(first, before)

    def sooner(self, size, *sets) -> Sum:
        """Updates after which MLSM+MLM reaches MLM's last score less those after which MLM does, as a share of all."""
        level, whole = self.reading(size, MLM, *sets), self.steps(size, *sets)[-1]
        curves = [self.reading(size, objective, *sets, step="all", over="step") for objective in (JOINT, MLM)]
        return difference(*(Crossing(curve, None, level, whole) for curve in curves))

    def synergy(self, size, *sets) -> Least:
        """How much better MLSM+MLM is than the better of MLM and MLSM."""
        return Least(tuple(self.gap(size, JOINT, alone, *sets) for alone in (MLM, MLSM)))

    def smaller(self, left, right, *sets, **more) -> Sum:
        """How much more a gap is on the smaller corpus."""
        return difference(*(self.gap(size, left, right, *sets, **more) for size in (SMALL, LARGE)))

    def earlier(self, size, left, right, *sets) -> Sum:
        """How much more a gap is at the first checkpoint than at the last."""
        return difference(self.gap(size, left, right, *sets, step="first"), self.gap(size, left, right, *sets))

    def suites(self, left, right, one, other) -> Sum:
        """How much more a gap on the larger corpus is on one set of tasks than on another."""
        return difference(*(self.gap(LARGE, left, right, sets) for sets in (one, other)))


def claims(view: View) -> list[Claim]:
    """The claims that the study's recipes and tasks allow."""
    scores, listed = Scores(view), []
    for group in (_pairs, _glue, _msgs, _efficiency):
        for name, section, figure, text, make, *region in group(scores):
            try:
                effect = make()
            except Lacking:
                continue
            read = {task for reading in leaves(effect) for task in reading.tasks}
            controls = tuple(view.sets[CONTROL]) if read & set(view.sets.get(AMBIGUOUS, ())) else ()
            where, headline = region[0] if region else "above 0", name in HEADLINES
            listed.append(Claim(name, section, figure, text, effect, where, learned_tasks=controls, headline=headline))
    return listed


def _pairs(s):
    lags = (
        "their performance lags behind MLM pre-trained language models in evaluations that investigate the linguistic"
    )
    yield "mlsm-lags", "abstract", "Table 1", f"{lags} capabilities", partial(s.gap, LARGE, MLSM, MLM, BLIMP), "below 0"
    synergy = "the synergistic effects of the joint use of the two different kinds of pre-training objectives"
    for name, (_, sets) in SUITES.items():
        yield f"synergy-{name}", "abstract", "Tables 1 to 3", synergy, partial(s.synergy, LARGE, *sets)
    at, table = "3.3.1", "Table 1"
    better = "MLSM+MLM performs 0.122 points better on average"
    yield "joint-over-mlsm", at, "2", better, partial(s.gap, LARGE, JOINT, MLSM, BLIMP)
    nearly = "nearly as good as the model pre-trained with MLM alone"
    yield "joint-near-mlm", at, table, nearly, partial(s.gap, LARGE, JOINT, MLM, BLIMP), "no less"
    kd = "The additional use of MLM also improves the BLiMP performance of knowledge distillation"
    yield "mlm-helps-kd", at, table, kd, partial(s.gap, LARGE, KD_MLM, KD, BLIMP)
    outperforms = "the MLSM+MLM pre-trained model in fact outperforms the purely MLM pre-trained model variant"
    yield "small-joint-over-mlm", at, table, outperforms, partial(s.gap, SMALL, JOINT, MLM, BLIMP)
    fades = "the average BLiMP performance drops drastically already at the first investigated checkpoint"
    yield "mlsm-fades", at, "3", fades, partial(s.fading, LARGE, BLIMP), "below 0"
    every = "a large performance gap between the MLSM and MLSM+MLM pre-trained models at every checkpoint"
    yield "joint-over-mlsm-everywhere", at, "3", every, partial(s.everywhere, LARGE, JOINT, MLSM, BLIMP)
    good = "the performance of MLSM+MLM being nearly as good or better than that of the purely MLM pre-trained model"
    yield "joint-near-mlm-everywhere", at, "3", good, partial(s.everywhere, LARGE, JOINT, MLM, BLIMP), "no less"
    favorable = "the average BLiMP performance of the alternatively pre-trained models becomes favorable"
    reduced = f"As the size of the pre-training corpus gets reduced, {favorable}"
    for name, other in (("kd+mlm", KD_MLM), ("joint", JOINT)):
        yield f"small-{name}-favorable", at, "3", favorable, partial(s.gap, SMALL, other, MLM, BLIMP, step="all")
        yield f"small-{name}-more", at, "3", reduced, partial(s.smaller, other, MLM, BLIMP, step="all")
    boost = (
        "the joint use of MLSM and MLM can boost the performance of the pre-trained language models (against KD+MLM)"
    )
    for size in (LARGE, SMALL):
        yield f"{size}-joint-over-kd+mlm", "4", table, boost, partial(s.gap, size, JOINT, KD_MLM, BLIMP)


def _glue(s):
    tuned = "models pre-trained with MLSM behave more favorable in terms of fine-tuneability towards downstream tasks"
    for name, (_, sets) in list(SUITES.items())[1:]:
        yield f"mlsm-tunes-{name}", "abstract", "Tables 2, 3", tuned, partial(s.gap, LARGE, MLSM, MLM, *sets)
    at, table = "3.3.2 GLUE", "Table 2"
    again = "Fine-tuning MLSM+MLM models again yielded better results compared to the MLSM models"
    yield "glue-joint-over-mlsm", at, table, again, partial(s.gap, LARGE, JOINT, MLSM, GLUE)
    less = "however, the performance gap is not that pronounced as it was for BLiMP"
    yield "glue-gap-less", at, table, less, partial(s.suites, JOINT, MLSM, BLIMP, GLUE)
    par = "The average fine-tuning performance of MLSM+MLM pre-trained model is on par with traditional MLM"
    yield "glue-on-par", at, table, par, partial(s.gap, LARGE, JOINT, MLM, GLUE), "equal"
    similar = "the intermediate checkpoints of the MLSM+MLM and MLM models have similar fine-tuning performances"
    yield "glue-similar", at, "4", similar, partial(s.gap, LARGE, JOINT, MLM, GLUE, step="all"), "equal"
    slight = f"{similar}, with a slight advantage towards MLSM+MLM"
    yield "glue-advantage", at, "4", slight, partial(s.gap, LARGE, JOINT, MLM, GLUE, step="all")
    notable = "For the smaller training corpus, the advantage of MLSM+MLM pre-trained model is more notable"
    yield "glue-small-advantage", at, "4", notable, partial(s.gap, SMALL, JOINT, MLM, GLUE, step="all")
    yield "glue-small-more", at, "4", notable, partial(s.smaller, JOINT, MLM, GLUE, step="all")


def _msgs(s):
    at, table = "3.3.2 MSGS", "Table 3"
    well = "MLSM+MLM pre-trained models perform well ... also across all the intermediate checkpoints"
    majority = "The majority of the points are located above the diagonal line in each subplot"
    benefits = "the additional benefits of jointly pre-training with MLSM and MLM"
    for size in (LARGE, SMALL):
        yield f"msgs-{size}", at, "5", well, partial(s.gap, size, JOINT, MLM, *MSGS, step="all")
        for name, other in (("mlm", MLM), ("kd+mlm", KD_MLM)):
            yield f"msgs-{size}-most-over-{name}", at, "6", majority, partial(s.by_task, size, JOINT, other, *MSGS)
        for name, sets in (("control", CONTROL), ("ambiguous", AMBIGUOUS)):
            yield f"msgs-{size}-{name}", at, table, f"{benefits} ({name} tasks)", partial(s.gap, size, JOINT, MLM, sets)
    largest = "the largest average performance gain of MLSM+MLM when pre-training over the 10 million token corpus"
    yield "msgs-small-more", at, "5", largest, partial(s.smaller, JOINT, MLM, *MSGS, step="all")


def _efficiency(s):
    at = "3.3.2 sample efficiency"
    apparent = "The performance gains are already apparent after performing only 16000 additional training steps"
    efficient = "jointly using MLSM with MLM offers better sample efficiency"
    early = "the advantages of MLSM pre-training are more pronounced during the earlier phase of pre-training"
    for size in (LARGE, SMALL):
        for name, (figure, sets) in SUITES.items():
            yield f"early-{size}-{name}", at, figure, apparent, partial(s.gap, size, JOINT, MLM, *sets, step="first")
            yield f"sooner-{size}-{name}", at, figure, efficient, partial(s.sooner, size, *sets), "below 0"
            yield f"more-early-{size}-{name}", "4", figure, early, partial(s.earlier, size, JOINT, MLM, *sets)
