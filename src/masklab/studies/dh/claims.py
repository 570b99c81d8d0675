"""Every sentence of sections 5.3, 5.4 and A.2 that a fine-tuning curve can support or contradict, and two of ours.

A sentence with several assertions (two domains, "better" and "only slightly") gives one claim for each, and no two
claims are about one number. How sentences are read, and which numbers stand for "much", "persistently" and "not as
stable", is said in docs/dh.md: growth is a slope, "generalizes" is more than the majority and the nulls, "consistently"
is at the size where the effect is the least, "does not diminish" a slope that over all sizes falls by less than the
margin. That something diminishes, persists or is less elsewhere presupposes that there is something (`Claim.given`).
Claims whose recipes or tasks the study lacks are left out.
"""

from masklab.claims.claim import Claim
from masklab.claims.effects import Correlation, Least, Reach, Slope, Sum, difference, less
from masklab.errors import MaskLabError
from masklab.scores.reading import Reading, leaves
from masklab.scores.view import View
from masklab.studies.dh.select import (
    AD1,
    AD2,
    BD1,
    BD2,
    CBOW,
    DOMAINS,
    HALF,
    NONE,
    PUBLISHED,
    SCRATCH,
    SHUFFLED,
    SOME,
    WITH,
    WITHOUT,
    course,
    doses,
    panels,
    sizes,
    tasks,
)

MAJORITY = "majority"
MUCH = 0.05  # accuracy by which "much" exceeds
LEVEL = 0.75  # accuracy that is reached: half way from the majority to all
HEADLINES = ("better-B-D1", "transfer-helped-B-D1", "semantic-not-dh-none")


class Lacking(Exception):
    """The study has no such recipe or task."""


class Curves:
    """What a study has of curves: readings and effects by spelling, share of B-D2, starting point and domains."""

    def __init__(self, view: View):
        self.view, self.panels = view, panels(view)
        self.tasks = {spelling: tasks(view, spelling) for spelling in self.panels}

    def reading(self, at, start, domains, **more) -> Reading:
        """Accuracy of a starting point, or of always giving one answer, on domains."""
        spelling, share = at
        recipes, task = self.panels.get(spelling, {}), self.tasks.get(spelling, {}).get(share)
        metric, start = ("majority", next(iter(recipes), None)) if start == MAJORITY else ("accuracy", start)
        if start not in recipes or task is None:
            raise Lacking
        return Reading(recipes[start], metric, (task,), splits=tuple(domains), **more)

    def gap(self, at, left, right, *domains, threshold=0.0, **more) -> Sum:
        """Accuracy of one starting point less that of another, or of the majority."""
        return difference(*(self.reading(at, start, domains, **more) for start in (left, right)), threshold)

    def everywhere(self, at, left, right, domain) -> Least:
        """The least of the gaps at each size."""
        each = sizes(self.view, at[0])
        if not each:
            raise Lacking
        return Least(tuple(self.gap(at, left, right, domain, sizes=size) for size in each))

    def transfer(self, at, start, domain) -> Least:
        """Accuracy above the majority, and above models that were not pre-trained: the least of these."""
        return Least(tuple(self.gap(at, start, null, domain) for null in (MAJORITY, SCRATCH, SHUFFLED)))

    def some_transfer(self, at, start, domain) -> Least:
        """As `transfer`, over those of the three that the study has: what a sentence about its course presupposes."""
        has = self.panels.get(at[0], {})
        nulls = [MAJORITY, *(null for null in (SCRATCH, SHUFFLED) if null in has)]
        return Least(tuple(self.gap(at, start, null, domain) for null in nulls))

    def slope(self, at, start, domain) -> Reading:
        """Accuracy per doubling of the examples."""
        return self.reading(at, start, (domain,), over="train_size", reduce="slope")

    def faster(self, at, left, right, domain) -> Sum:
        """Slope of one curve less that of another, over the smaller half of the sizes, where curves grow."""
        grown = {"sizes": "small", "over": "train_size", "reduce": "slope"}
        return self.gap(at, left, right, domain, **grown)

    def sooner(self, at, left, right, domain) -> Sum:
        """Doublings of the examples by which one curve reaches `LEVEL` later than another."""
        return difference(
            *(Reach(self.reading(at, start, (domain,), over="train_size"), LEVEL) for start in (left, right))
        )

    def mlms(self, at, *domains) -> Sum:
        """Mean advantage of the two pre-trained MLMs over scratch."""
        halves = [(0.5, self.reading(at, start, domains)) for start in (WITH, WITHOUT)]
        return Sum((*halves, (-1.0, self.reading(at, SCRATCH, domains))))

    @staticmethod
    def lesser(whole: Sum, part: Sum) -> tuple[Sum, Sum]:
        """An effect less another that is said to be smaller; and the first, which must be something."""
        return less(whole, part), whole

    def rough(self, at, start, *domains) -> Sum:
        """How far off a straight course a curve lies, the mean over domains."""
        readings = [self.reading(at, start, (d,), over="train_size", reduce="roughness") for d in domains]
        return Sum(tuple((1 / len(domains), reading) for reading in readings))

    def rougher(self, at, left, right, *domains) -> tuple[Sum, Sum]:
        """How much less stable one curve is than another; and than one from scratch, or all of it might be noise."""
        own = self.rough(at, left, *domains)
        return less(own, self.rough(at, right, *domains)), less(own, self.rough(at, SCRATCH, *domains))


def claims(view: View) -> list[Claim]:
    """The claims that the study's recipes and tasks allow.

    What is made for a claim is its effect, or its effect and those that the sentence presupposes.
    """
    curves, allowed = Curves(view), []
    groups = (_sample_efficiency, _vocabulary_shift, _semantic_shift, _several_tokens, _separate, _shared, _ours)
    for group in groups:
        for section, figure, name, sentence, make, *region in group(curves):
            try:
                made = make()
            except (Lacking, MaskLabError):
                continue
            effect, *given = made if isinstance(made, tuple) else (made,)
            if "10%" in sentence:
                mixes = {view.tasks[task]["mix"] for reading in leaves(effect) for task in reading.tasks} - {0.0}
                sentence += "".join(f" (here {100 * mix:g}%)" for mix in sorted(mixes) if mix != PUBLISHED[SOME])
            more = {"given": tuple(given), "trained": True, "learned_on": (AD1,), "headline": name in HEADLINES}
            allowed.append(Claim(name, section, figure, sentence, effect, *region, **more))
    return allowed


def _sample_efficiency(c):
    s, at = "5.3.1", ("single", HALF)
    faster = "the w/ DH model's performance on A-D1 and B-D2 grows faster than the performance of the w/o DH model"
    better = "The w/ DH model also has better performance on B-D1 and A-D2"
    efficient = "pretraining with data satisfying Eq. 1 indeed improves the sample efficiency"
    for d in (AD1, BD2):
        yield s, "2", f"faster-{d}", faster, lambda d=d: c.faster(at, WITH, WITHOUT, d)
        yield (s, "2", f"sooner-{d}", f"{efficient} (fewer examples until {LEVEL:g})",
               lambda d=d: c.sooner(at, WITH, WITHOUT, d), "below 0")  # fmt: skip
    for d in (BD1, AD2):
        yield s, "2", f"better-{d}", better, lambda d=d: c.gap(at, WITH, WITHOUT, d)
    cbow = "The performance of the CBOW initialization is also better than training from scratch"
    for d in DOMAINS:
        yield s, "2", f"cbow-better-{d}", cbow, lambda d=d: c.gap(at, CBOW, SCRATCH, d)
    stable = "its improvement is not as stable as the w/ DH pretrained MLM (further from a straight course)"
    yield s, "2", "cbow-less-stable", stable, lambda: c.rougher(at, CBOW, WITH, AD1, BD2)
    similar = "Models initialized with shuffled weights have similar performance as models trained from scratch"
    for share, name, figure in ((HALF, "half", "2"), (NONE, "none", "3a"), (SOME, "some", "3b")):
        there, trained = ("single", share), (AD1,) if share == NONE else (AD1, BD2)
        yield (f"{s}, footnote 2", figure, f"shuffled-similar-{name}", similar,
               lambda there=there, trained=trained: c.gap(there, SHUFFLED, SCRATCH, *trained), "equal")  # fmt: skip
    outperform = "models with shuffled weights marginally outperform models trained from scratch for all the settings"
    for d in DOMAINS:
        yield ("5.4", "2, 3a, 3b", f"shuffled-outperforms-{d}", outperform,
               lambda d=d: Least(tuple(c.gap(("single", share), SHUFFLED, SCRATCH, d) for share in (HALF, NONE, SOME)))
               )  # fmt: skip


def _vocabulary_shift(c):
    s, none, some = "5.3.2 vocabulary shifts", ("single", NONE), ("single", SOME)
    helps = "the distributional property in Eq. 1 can help the generalization when there are vocabulary shifts to some"
    helps += " extent"
    without = "the w/o DH model does not generalize to B-D1 and B-D2 at all"
    generalizes = "the w/ DH model can generalize from domain A-D1 to the test set in B-D1 and B-D2"
    diminishes = "the generalization diminishes as the amount of fine-tuning data increases"
    much = "when 10% of the fine-tuning data is in B-D2, the w/ DH model outperforms the w/o DH model much"
    remains = "and the generalization does not diminish"
    cbow = "The CBOW model also generalizes to B-D1 and B-D2"
    for d in (BD1, BD2):
        yield (s, "3a", f"no-transfer-without-{d}", without,
               lambda d=d: c.gap(none, WITHOUT, MAJORITY, d), "no more")  # fmt: skip
        yield s, "3a", f"transfer-{d}", generalizes, lambda d=d: c.transfer(none, WITH, d)
        yield s, "3a", f"transfer-helped-{d}", helps, lambda d=d: c.gap(none, WITH, WITHOUT, d)
        yield (s, "3a", f"transfer-diminishes-{d}", diminishes,
               lambda d=d: (c.slope(none, WITH, d), c.some_transfer(none, WITH, d)), "below 0")  # fmt: skip
        yield (s, "3b", f"transfer-some-{d}", f"{much} (by more than {MUCH:g})",
               lambda d=d: c.gap(some, WITH, WITHOUT, d, threshold=MUCH))  # fmt: skip
        yield (s, "3b", f"transfer-some-remains-{d}", remains,
               lambda d=d: (c.slope(some, WITH, d), c.some_transfer(some, WITH, d)), "no less")  # fmt: skip
        yield s, "3a", f"cbow-transfer-{d}", cbow, lambda d=d: c.transfer(none, CBOW, d)
    forgets = "Its generalization to B-D1 does not suffer from catastrophic forgetting"
    yield (s, "3a", "cbow-transfer-remains", forgets,
           lambda: (c.slope(none, CBOW, BD1), c.some_transfer(none, CBOW, BD1)), "no less")  # fmt: skip


def _semantic_shift(c):
    s = "5.3.2 semantic shifts"
    both = "both the w/o DH model and the w/ DH model generalize to A-D2 better than the model trained from scratch"
    moreover = "Moreover, the w/ DH model does not perform better"
    slightly = "the CBOW model performs only slightly better than training from scratch"
    for share, name, figure in ((NONE, "none", "3a"), (SOME, "some", "3b")):
        at = ("single", share)
        for start, kind in ((WITH, "with"), (WITHOUT, "without")):
            yield (s, figure, f"semantic-{kind}-{name}", both,
                   lambda at=at, start=start: c.gap(at, start, SCRATCH, AD2))  # fmt: skip
        yield (s, figure, f"semantic-not-dh-{name}", moreover,  # "moreover": without it too there is generalization
               lambda at=at: (c.gap(at, WITH, WITHOUT, AD2), c.gap(at, WITHOUT, SCRATCH, AD2)), "no more")  # fmt: skip
        yield s, figure, f"semantic-cbow-{name}", slightly, lambda at=at: c.gap(at, CBOW, SCRATCH, AD2)
        yield (s, figure, f"semantic-cbow-slight-{name}", f"{slightly} (less so than the MLMs)",
               lambda at=at: c.lesser(c.mlms(at, AD2), c.gap(at, CBOW, SCRATCH, AD2)))  # fmt: skip


def _several_tokens(c):
    s, single, separate, shared = "A.2.1", ("single", HALF), ("separate", HALF), ("shared", HALF)
    consistently = "the w/ DH model consistently outperforms the w/o DH model when there is no vocabulary sharing"
    worse = "When the feature sets have shared vocabulary, the w/o DH model performs better than the w/ DH model"
    apparent = "the improvement is not as apparent as in the single-token-level setting"
    barely = "the model initialized with CBOW embeddings barely outperforms the model trained from scratch"
    for d in DOMAINS:
        yield s, "5b", f"multi-separate-{d}", consistently, lambda d=d: c.everywhere(separate, WITH, WITHOUT, d)
    for d in (AD1, BD2):
        yield (s, "2, 5b", f"multi-less-apparent-{d}", apparent,
               lambda d=d: c.lesser(c.gap(single, WITH, WITHOUT, d), c.gap(separate, WITH, WITHOUT, d)))  # fmt: skip
        yield s, "5a", f"multi-shared-{d}", worse, lambda d=d: c.gap(shared, WITHOUT, WITH, d)
    for at, figure in ((shared, "5a"), (separate, "5b")):
        for d in (AD1, BD2):
            yield (s, figure, f"multi-cbow-{at[0]}-{d}", f"{barely} (is within the margin of it)",
                   lambda at=at, d=d: c.gap(at, CBOW, SCRATCH, d), "equal")  # fmt: skip


def _separate(c):
    s, none, some = "A.2.2 separate", ("separate", NONE), ("separate", SOME)
    generalizes = "When all the fine-tuned data is in A-D1, the w/ DH model generalizes to B-D1 and B-D2"
    diminishes = "and the generalization also diminishes when there is more data"
    for d in (BD1, BD2):
        yield s, "7", f"separate-transfer-{d}", generalizes, lambda d=d: c.transfer(none, WITH, d)
        yield (s, "7", f"separate-diminishes-{d}", diminishes,
               lambda d=d: (c.slope(none, WITH, d), c.some_transfer(none, WITH, d)), "below 0")  # fmt: skip
    both = "As for the performance on A-D2, the w/ DH and w/o DH models outperform training from scratch too"
    for start, kind in ((WITH, "with"), (WITHOUT, "without")):
        yield s, "7", f"separate-semantic-{kind}", both, lambda start=start: c.gap(none, start, SCRATCH, AD2)
    though = "though the advantage is not as apparent as in the single-token setting"
    yield (s, "3a, 7", "separate-semantic-less", though,
           lambda: c.lesser(c.mlms(("single", NONE), AD2), c.mlms(none, AD2)))  # fmt: skip
    persists = "When 10% of the fine-tuning data is in B-D2, its generalization to B-D1 persists"
    yield s, "7", "separate-some-transfer", persists, lambda: c.transfer(some, WITH, BD1)
    yield (s, "7", "separate-some-persists", f"{persists} (does not fall)",
           lambda: (c.slope(some, WITH, BD1), c.some_transfer(some, WITH, BD1)), "no less")  # fmt: skip
    worse = "w/ DH does not improve the generalization to B-D2 as much as in the single-token-level setting"
    yield (s, "3b, 7", "separate-some-less", worse,
           lambda: c.lesser(c.gap(("single", SOME), WITH, WITHOUT, BD2), c.gap(some, WITH, WITHOUT, BD2)))  # fmt: skip
    semantic = "the w/ DH model outperforms the w/o DH model for A-D2"
    yield s, "7", "separate-some-semantic", semantic, lambda: c.gap(some, WITH, WITHOUT, AD2)
    cbow = "As for CBOW, it does not help generalization either"
    for d in (BD1, AD2, BD2):
        for name, share in (("some", some), ("none", none)):
            yield (s, "7", f"separate-{name}-cbow-{d}", cbow if share == some else f"{cbow} (without data in B-D2)",
                   lambda d=d, share=share: c.gap(share, CBOW, SCRATCH, d), "no more")  # fmt: skip


def _shared(c):
    s, none, some = "A.2.2 shared", ("shared", NONE), ("shared", SOME)
    persistently = (
        "when all the fine-tuning data is in A-D1, the w/ DH model outperforms the w/o DH model on B-D1 persistently"
    )
    yield s, "7", "shared-transfer", persistently, lambda: c.everywhere(none, WITH, WITHOUT, BD1)
    better = "Eq. 1 helps the model generalize to vocabulary shift better than in the single-token setting"
    yield (s, "3a, 7", "shared-transfer-better", better,
           lambda: less(c.gap(none, WITH, WITHOUT, BD1), c.gap(("single", NONE), WITH, WITHOUT, BD1)))  # fmt: skip
    apparent = "when 10% of the fine-tuning data is from B-D2, the advantage over the w/o DH model is less apparent"
    yield (s, "7", "shared-some-less", apparent,
           lambda: c.lesser(c.gap(none, WITH, WITHOUT, BD1), c.gap(some, WITH, WITHOUT, BD1)))  # fmt: skip
    regardless = "regardless of whether we use data in B-D2, Eq. 1 does not help the generalization to B-D2"
    either = "MLM pretraining does not outperform the model trained from scratch on A-D2 either"
    for at, name in ((none, "none"), (some, "some")):
        yield s, "7", f"shared-no-help-{name}", regardless, lambda at=at: c.gap(at, WITH, WITHOUT, BD2), "no more"
        for start, kind in ((WITH, "with"), (WITHOUT, "without")):
            yield (s, "7", f"shared-semantic-{kind}-{name}", either,
                   lambda at=at, start=start: c.gap(at, start, SCRATCH, AD2), "no more")  # fmt: skip


def _ours(c):
    """What the paper does not ask: how much of the property it takes, and how well it must have been learned."""
    s = "not in the paper"
    more = "the larger the share of mixed forms in pre-training, the better on forms and chains never trained together"
    few = "a quarter of the forms mixed has more than half of the effect of all"
    for share, d in ((NONE, BD1), (HALF, BD1), (HALF, AD2)):
        name = "none" if share == NONE else "half"
        yield s, "dose", f"dose-{name}-{d}", more, lambda share=share, d=d: _dose_slope(c, share, d)
        yield s, "dose", f"dose-quarter-{name}-{d}", few, lambda share=share, d=d: _dose_early(c, share, d)
    learned = "the closer the loss of w/ DH to its floor, the better it does after fine-tuning"
    for share, d in ((NONE, AD1), (NONE, BD1), (NONE, AD2), (HALF, BD1)):
        name = "none" if share == NONE else "half"
        yield s, "course", f"course-{name}-{d}", learned, lambda share=share, d=d: _course(c, share, d), "below 0"


def _dose_readings(c, share, domain):
    recipes, task = doses(c.view), c.tasks.get("single", {}).get(share)
    if len(recipes) < 3 or task is None:
        raise Lacking
    return {dose: Reading(name, "accuracy", (task,), splits=(domain,)) for dose, name in recipes.items()}


def _dose_slope(c, share, domain) -> Slope:
    readings = _dose_readings(c, share, domain)
    return Slope(tuple(readings.values()), tuple(readings), "share of mixed forms")


def _dose_early(c, share, domain) -> tuple[Sum, Sum]:
    """What a quarter gains over none, less half of what the whole gains; and that, which must be something."""
    readings = _dose_readings(c, share, domain)
    if not {0, 0.25, 1} <= readings.keys():
        raise Lacking
    none, quarter, whole = (readings[dose] for dose in (0, 0.25, 1))
    return Sum(((1.0, quarter), (-0.5, none), (-0.5, whole)), level=True), difference(whole, none)


def _course(c, share, domain) -> Correlation:
    gap, curves = course(c.view)
    if share not in curves:
        raise Lacking
    return Correlation((curves[share][domain],), (gap,), points=5)
