"""Differences between objectives that the wing's claims are about, by the size of the corpus and the sets of tasks.

Light: read when the workflow is parsed.
"""

from masklab.claims.effects import Crossing, Least, Lowest, Median, Sum, difference
from masklab.errors import MaskLabError
from masklab.scores.reading import Reading
from masklab.scores.view import View
from masklab.studies.mlsm.select import (
    BLIMP,
    JOINT,
    KD,
    KD_MLM,
    KNOWN,
    MLM,
    MLSM,
    UNKNOWN,
    objectives,
    start_of,
    tasks_of,
    tracks,
)

LARGE, SMALL = "large", "small"
BETWEEN = 30_000_000  # words: the paper's corpora have 100 and 10 million
MAIN = "main"  # the larger corpus; where the study has one alone, that one, whichever it is
FULL = "accuracy_full_width"  # of pairs, with the softmax over vocabulary and latent logits, as published


class Lacking(Exception):
    """The study has no such recipe or task."""


class Scores:
    """Readings and effects of a study by the size of the corpus, objective and sets of tasks."""

    def __init__(self, view: View):
        self.view, titles = view, tracks(view)
        corpora = {title: view.fact(objectives(view, title)[MLM], "corpus") for title in titles}
        titles = [title for title in titles if title == titles[0] or corpora[title] != corpora[titles[0]]]
        words = view.fact(objectives(view, titles[0])[MLM], "corpus.max_words") if len(titles) == 1 else None
        sizes = (LARGE, SMALL) if words is None or words > BETWEEN else (SMALL,)
        self.panels = dict(zip(sizes, [*titles[:1], *titles[1:][-1:]], strict=False))
        if titles:
            self.panels[MAIN] = titles[0]

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
        measured = self.view.steps(self.reading(size, JOINT, *sets))
        steps = set.intersection(*measured) if measured else ()
        if len(steps) < 2:
            raise Lacking
        return sorted(steps)

    def everywhere(self, size, left, right, *sets) -> Least:
        """The least gap of all checkpoints."""
        return Least(tuple(self.gap(size, left, right, *sets, step=step) for step in self.steps(size, *sets)))

    def by_task(self, size, left, right, *sets) -> Median:
        """The median gap of all tasks."""
        self.gap(size, left, right, *sets)
        tasks = tasks_of(self.view, sets)
        names = [objectives(self.view, self.panels[size])[objective] for objective in (left, right)]
        return Median(tuple(difference(*(Reading(name, tasks=(task,)) for name in names)) for task in tasks))

    def start(self, size, objective, *sets) -> Reading:
        """The score of the model that a recipe starts from."""
        reading = self.reading(size, objective, *sets)
        start = start_of(self.view, [reading.recipe])
        before = start and Reading(start[0], tasks=reading.tasks, step=start[1])
        if not before or not before.measured(self.view):
            raise Lacking
        return before

    def fading(self, size, step, *sets) -> Sum:
        """The score of MLSM at a checkpoint less that of the model it starts from."""
        return difference(self.reading(size, MLSM, *sets, step=step), self.start(size, MLSM, *sets))

    def sooner(self, size, *sets) -> Sum:
        """Updates after which MLSM+MLM reaches a level less those after which MLM does, as a share of all.

        The level is the lower of both last scores, so that each may be the sooner. Both begin with the score of the
        model that they start from, if that is measured of both.
        """
        level = Lowest(tuple(self.reading(size, objective, *sets) for objective in (JOINT, MLM)))
        whole = self.steps(size, *sets)[-1]
        try:
            starts = [self.start(size, objective, *sets) for objective in (JOINT, MLM)]
        except Lacking:
            starts = [None, None]
        curves = [self.reading(size, objective, *sets, step="all", over="step") for objective in (JOINT, MLM)]
        both = zip(curves, starts, strict=True)
        return difference(*(Crossing(curve, None, level, whole, start=start) for curve, start in both))

    def to_reach(self, size, *sets) -> Sum:
        """How far the level of `sooner` lies above the score of the model that MLM and MLSM+MLM start from."""
        level = Lowest(tuple(self.reading(size, objective, *sets) for objective in (JOINT, MLM)))
        return difference(level, self.start(size, MLM, *sets))

    def synergy(self, size, *sets) -> Least:
        """How much better MLSM+MLM is than the better of MLM and MLSM."""
        return Least(tuple(self.gap(size, JOINT, alone, *sets) for alone in (MLM, MLSM)))

    def smaller(self, left, right, *sets, **more) -> Sum:
        """How much more a gap is on the smaller corpus."""
        return difference(*(self.gap(size, left, right, *sets, **more) for size in (SMALL, LARGE)))

    def earlier(self, size, left, right, *sets) -> Sum:
        """How much more a gap is at the first checkpoint than at the last."""
        return difference(self.gap(size, left, right, *sets, step="first"), self.gap(size, left, right, *sets))

    def most_early(self, size, left, right, *sets) -> Least | Sum:
        """How much more a gap is at the first checkpoint than at any later one: of two checkpoints `earlier`."""
        steps = self.steps(size, *sets)
        if len(steps) == 2:
            return self.earlier(size, left, right, *sets)
        first, *later = (self.gap(size, left, right, *sets, step=step) for step in steps)
        return Least(tuple(difference(first, gap) for gap in later))

    def with_mlm(self, size, *sets) -> Least:
        """The lesser of what MLM adds to KD and to MLSM."""
        return Least((self.gap(size, KD_MLM, KD, *sets), self.gap(size, JOINT, MLSM, *sets)))

    def suites(self, size, left, right, one, other) -> Sum:
        """How much more a gap is on one set of tasks than on another."""
        return difference(*(self.gap(size, left, right, sets) for sets in (one, other)))

    def forgetting(self, size) -> Sum:
        """What MLSM is below MLM on paradigms that phase 1 knows, less what it is above on those below chance."""
        return difference(self.gap(size, MLM, MLSM, KNOWN), self.gap(size, MLSM, MLM, UNKNOWN))

    def by(self, size, left, right, amount, *sets) -> Sum:
        """A gap less a printed one."""
        return difference(self.reading(size, left, *sets), self.reading(size, right, *sets), amount)

    def pollution(self, size, objective) -> Sum:
        """What a recipe's pairs gain where the latent logits are left out of the softmax."""
        return difference(self.reading(size, objective, BLIMP), self.reading(size, objective, BLIMP, metric=FULL))

    def copied(self, size, *sets) -> Sum:
        """KD from its teacher's weights less KD from weights of its own."""
        copied = self.reading(size, KD, *sets)
        teacher = self.view.fact(copied.recipe, "init")
        alike = {key: self.view.fact(copied.recipe, key) for key in ("corpus", "steps", "objective.terms")}
        return difference(copied, self._other(copied, alike | {"init": None, "teacher": teacher}))

    def vocabulary(self, size, *sets) -> Sum:
        """MLM with the study's vocabulary less MLM with a larger one, of recipes that differ in nothing else."""
        base = self.start(size, MLM, *sets)
        keys = ("corpus", "steps", "objective.terms", "init", "encoder", "batch_size")
        own = self.view.fact(base.recipe, "tokenizer.vocab_size")
        alike = {key: self.view.fact(base.recipe, key) for key in keys}
        larger = {"tokenizer.vocab_size": lambda size: size is not None and own is not None and size > own}
        return difference(base, self._other(base, alike | larger))

    def _other(self, reading, where) -> Reading:
        """The same of the one other recipe, of a panel or not, whose facts are as `where` says."""
        measured = [
            reading.of(name)
            for name in self.view.recipes
            if name != reading.recipe and name not in self._nulls and _is(self.view.recipes[name], where)
        ]
        measured = [other for other in measured if other.measured(self.view)]
        if len(measured) != 1:
            raise Lacking
        return measured[0]

    @property
    def _nulls(self) -> set:
        return {null for own in self.view.nulls.values() for null in own.values()}


def _is(facts, where) -> bool:
    values = {key: facts.get(key) for key in where}
    return all(wanted(values[key]) if callable(wanted) else values[key] == wanted for key, wanted in where.items())
