"""Every sentence of sections 5.3 and A.2 that a fine-tuning curve can support or contradict.

A sentence with several assertions (two domains, "better" and "only slightly") gives one claim for each. Where the paper
speaks of growth or sample efficiency, the small sizes are tested; where it speaks of diminishing, the large sizes less
the small ones. Claims whose recipes or tasks the study lacks are left out.
"""

from masklab.claims.claim import Claim
from masklab.claims.effects import Sum, difference
from masklab.scores.reading import Reading
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
    SCRATCH,
    SHUFFLED,
    SOME,
    WITH,
    WITHOUT,
    panels,
    tasks,
)

FIGURES = {
    ("single", HALF): "2",
    ("single", NONE): "3a",
    ("single", SOME): "3b",
    ("shared", HALF): "5a",
    ("separate", HALF): "5b",
}  # the others: 7
MAJORITY = "majority"


class Lacking(Exception):
    """The study has no such recipe or task."""


class Curves:
    """What a study has of curves: readings and effects by spelling, share of B-D2, starting point and domains."""

    def __init__(self, view: View):
        self.panels = panels(view)
        self.tasks = {spelling: tasks(view, spelling) for spelling in self.panels}

    def reading(self, at, start, domains, sizes="all", **more) -> Reading:
        """Accuracy of a starting point, or of always giving one answer, on domains."""
        spelling, share = at
        recipes, task = self.panels.get(spelling, {}), self.tasks.get(spelling, {}).get(share)
        metric, start = ("majority", next(iter(recipes), None)) if start == MAJORITY else ("accuracy", start)
        if start not in recipes or task is None:
            raise Lacking
        return Reading(recipes[start], metric, (task,), splits=tuple(domains), sizes=sizes, **more)

    def gap(self, at, left, right, *domains, sizes="all") -> Sum:
        """Accuracy of one starting point less that of another, or of the majority."""
        return difference(*(self.reading(at, start, domains, sizes) for start in (left, right)))

    def change(self, at, start, *domains) -> Sum:
        """Accuracy at the large sizes less that at the small ones."""
        return difference(*(self.reading(at, start, domains, sizes) for sizes in ("large", "small")))

    def mlms(self, at, *domains) -> Sum:
        """Mean advantage of the two pre-trained MLMs over scratch."""
        halves = [(0.5, self.reading(at, start, domains)) for start in (WITH, WITHOUT)]
        return Sum((*halves, (-1.0, self.reading(at, SCRATCH, domains))))

    def rough(self, at, start) -> Sum:
        """How far off a straight course a curve lies, the mean over domains."""
        readings = [self.reading(at, start, (d,), over="train_size", reduce="roughness") for d in DOMAINS]
        return Sum(tuple((1 / len(DOMAINS), reading) for reading in readings))


def less(left: Sum, right: Sum) -> Sum:
    """One effect less another, equal readings added up and those of weight 0 left out."""
    total = {}
    for sign, effect in ((1, left), (-1, right)):
        for weight, reading in effect.terms:
            total[reading] = total.get(reading, 0) + sign * weight
    return Sum(tuple((weight, reading) for reading, weight in total.items() if weight))


def claims(view: View) -> list[Claim]:
    """The claims that the study's recipes and tasks allow."""
    curves, allowed = Curves(view), []
    groups = (_sample_efficiency, _vocabulary_shift, _semantic_shift, _several_tokens, _separate, _shared)
    for group in groups:
        for section, figure, name, sentence, make, *region in group(curves):
            try:
                effect = make()
            except Lacking:
                continue
            where = region[0] if region else "above 0"
            headline = name in HEADLINES
            allowed.append(Claim(name, section, figure, sentence, effect, where, learned_on=(AD1,), headline=headline))
    return allowed


HEADLINES = ("better-B-D1", "transfer-helped-B-D1", "no-transfer-without-B-D1")


def _figure(*sets):
    return ", ".join(dict.fromkeys(FIGURES.get(at, "7") for at in sets))


def _sample_efficiency(c):
    s, at = "5.3.1", ("single", HALF)
    faster = "the w/ DH model's performance on A-D1 and B-D2 grows faster than the performance of the w/o DH model"
    better = "The w/ DH model also has better performance on B-D1 and A-D2"
    for d in (AD1, BD2):
        yield s, "2", f"faster-{d}", faster, lambda d=d: c.gap(at, WITH, WITHOUT, d, sizes="small")
    for d in (BD1, AD2):
        yield s, "2", f"better-{d}", better, lambda d=d: c.gap(at, WITH, WITHOUT, d)
    similar = "Models initialized with shuffled weights have similar performance as models trained from scratch"
    outperform = "models with shuffled weights marginally outperform models trained from scratch for all the settings"
    for share, name in ((HALF, "half"), (NONE, "none"), (SOME, "some")):
        there = ("single", share)

        def effect(there=there):
            return c.gap(there, SHUFFLED, SCRATCH, *DOMAINS)

        yield f"{s}, footnote 2", _figure(there), f"shuffled-similar-{name}", similar, effect, "equal"
        yield "5.4", _figure(there), f"shuffled-outperforms-{name}", outperform, effect
    cbow = "The performance of the CBOW initialization is also better than training from scratch"
    yield s, "2", "cbow-better", cbow, lambda: c.gap(at, CBOW, SCRATCH, *DOMAINS)
    stable = "its improvement is not as stable as the w/ DH pretrained MLM"
    yield s, "2", "cbow-less-stable", stable, lambda: less(c.rough(at, CBOW), c.rough(at, WITH))


def _vocabulary_shift(c):
    s, none, some = "5.3.2 vocabulary shifts", ("single", NONE), ("single", SOME)
    helps = "the distributional property in Eq. 1 can help the generalization when there are vocabulary shifts"
    without = "the w/o DH model does not generalize to B-D1 and B-D2 at all"
    generalizes = "the w/ DH model can generalize from domain A-D1 to the test set in B-D1 and B-D2"
    diminishes = "the generalization diminishes as the amount of fine-tuning data increases"
    much = "when 10% of the fine-tuning data is in B-D2, the w/ DH model outperforms the w/o DH model much"
    remains = "and the generalization does not diminish"
    cbow = "The CBOW model also generalizes to B-D1 and B-D2"
    for d in (BD1, BD2):
        yield (s, "3a", f"no-transfer-without-{d}", without,
               lambda d=d: c.gap(none, WITHOUT, MAJORITY, d), "no more")  # fmt: skip
        yield (s, "3a", f"transfer-{d}", generalizes,
               lambda d=d: c.gap(none, WITH, MAJORITY, d, sizes="small"))  # fmt: skip
        yield s, "3a", f"transfer-helped-{d}", helps, lambda d=d: c.gap(none, WITH, WITHOUT, d)
        yield s, "3a", f"transfer-diminishes-{d}", diminishes, lambda d=d: c.change(none, WITH, d), "below 0"
        yield s, "3b", f"transfer-some-{d}", much, lambda d=d: c.gap(some, WITH, WITHOUT, d)
        yield s, "3b", f"transfer-some-remains-{d}", remains, lambda d=d: c.change(some, WITH, d), "no less"
        yield s, "3a", f"cbow-transfer-{d}", cbow, lambda d=d: c.gap(none, CBOW, MAJORITY, d)
    forgets = "Its generalization to B-D1 does not suffer from catastrophic forgetting"
    yield s, "3a", "cbow-transfer-remains", forgets, lambda: c.change(none, CBOW, BD1), "no less"


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
        yield (s, figure, f"semantic-not-dh-{name}", moreover,
               lambda at=at: c.gap(at, WITH, WITHOUT, AD2), "no more")  # fmt: skip
        yield s, figure, f"semantic-cbow-{name}", slightly, lambda at=at: c.gap(at, CBOW, SCRATCH, AD2)
        yield (s, figure, f"semantic-cbow-slight-{name}", f"{slightly} (less so than the MLMs)",
               lambda at=at: less(c.mlms(at, AD2), c.gap(at, CBOW, SCRATCH, AD2)))  # fmt: skip


def _several_tokens(c):
    s, separate, shared = "A.2.1", ("separate", HALF), ("shared", HALF)
    consistently = "the w/ DH model consistently outperforms the w/o DH model when there is no vocabulary sharing"
    worse = "When the feature sets have shared vocabulary, the w/o DH model performs better than the w/ DH model"
    apparent = "the improvement is not as apparent as in the single-token-level setting"
    barely = "As for the model initialized with CBOW embeddings, it barely outperforms the model trained from scratch"
    for d in DOMAINS:
        yield s, "5b", f"multi-separate-{d}", consistently, lambda d=d: c.gap(separate, WITH, WITHOUT, d)
    yield (s, "2, 5b", "multi-less-apparent", apparent,
           lambda: less(c.gap(("single", HALF), WITH, WITHOUT, *DOMAINS),
                        c.gap(separate, WITH, WITHOUT, *DOMAINS)))  # fmt: skip
    yield s, "5a", "multi-shared", worse, lambda: c.gap(shared, WITHOUT, WITH, *DOMAINS)
    for at in (shared, separate):

        def effect(at=at):
            return c.gap(at, CBOW, SCRATCH, *DOMAINS)

        yield s, _figure(at), f"multi-cbow-{at[0]}", barely, effect
        yield s, _figure(at), f"multi-cbow-barely-{at[0]}", f"{barely} (by the margin at most)", effect, "no more"


def _separate(c):
    s, none, some = "A.2.2 separate", ("separate", NONE), ("separate", SOME)
    generalizes = "When all the fine-tuned data is in A-D1, the w/ DH model generalizes to B-D1 and B-D2"
    diminishes = "and the generalization also diminishes when there is more data"
    for d in (BD1, BD2):
        yield (s, "7", f"separate-transfer-{d}", generalizes,
               lambda d=d: c.gap(none, WITH, MAJORITY, d, sizes="small"))  # fmt: skip
        yield s, "7", f"separate-diminishes-{d}", diminishes, lambda d=d: c.change(none, WITH, d), "below 0"
    both = "As for the performance on A-D2, the w/ DH and w/o DH models outperform training from scratch too"
    for start, kind in ((WITH, "with"), (WITHOUT, "without")):
        yield s, "7", f"separate-semantic-{kind}", both, lambda start=start: c.gap(none, start, SCRATCH, AD2)
    though = "though the advantage is not as apparent as in the single-token setting"
    yield (s, "3a, 7", "separate-semantic-less", though,
           lambda: less(c.mlms(("single", NONE), AD2), c.mlms(none, AD2)))  # fmt: skip
    persists = "When 10% of the fine-tuning data is in B-D2, its generalization to B-D1 persists"
    yield s, "7", "separate-some-transfer", persists, lambda: c.gap(some, WITH, MAJORITY, BD1)
    yield s, "7", "separate-some-persists", persists, lambda: c.change(some, WITH, BD1), "no less"
    worse = "w/ DH does not improve the generalization to B-D2 as much as in the single-token-level setting"
    yield (s, "3b, 7", "separate-some-less", worse,
           lambda: less(c.gap(("single", SOME), WITH, WITHOUT, BD2), c.gap(some, WITH, WITHOUT, BD2)))  # fmt: skip
    semantic = "the w/ DH model outperforms the w/o DH model for A-D2"
    yield s, "7", "separate-some-semantic", semantic, lambda: c.gap(some, WITH, WITHOUT, AD2)
    cbow = "As for CBOW, it does not help generalization either"
    for d in (BD1, AD2, BD2):
        yield s, "7", f"separate-some-cbow-{d}", cbow, lambda d=d: c.gap(some, CBOW, SCRATCH, d), "no more"


def _shared(c):
    s, none, some = "A.2.2 shared", ("shared", NONE), ("shared", SOME)
    persistently = (
        "when all the fine-tuning data is in A-D1, the w/ DH model outperforms the w/o DH model on B-D1 persistently"
    )
    for sizes in ("small", "large"):
        yield (s, "7", f"shared-transfer-{sizes}", persistently,
               lambda sizes=sizes: c.gap(none, WITH, WITHOUT, BD1, sizes=sizes))  # fmt: skip
    better = "Eq. 1 helps the model generalize to vocabulary shift better than in the single-token setting"
    yield (s, "3a, 7", "shared-transfer-better", better,
           lambda: less(c.gap(none, WITH, WITHOUT, BD1, sizes="large"),
                        c.gap(("single", NONE), WITH, WITHOUT, BD1, sizes="large")))  # fmt: skip
    apparent = "when 10% of the fine-tuning data is from B-D2, the advantage over the w/o DH model is less apparent"
    yield (s, "7", "shared-some-less", apparent,
           lambda: less(c.gap(none, WITH, WITHOUT, BD1), c.gap(some, WITH, WITHOUT, BD1)))  # fmt: skip
    regardless = "regardless of whether we use data in B-D2, Eq. 1 does not help the generalization to B-D2"
    either = "MLM pretraining does not outperform the model trained from scratch on A-D2 either"
    for at, name in ((none, "none"), (some, "some")):
        yield s, "7", f"shared-no-help-{name}", regardless, lambda at=at: c.gap(at, WITH, WITHOUT, BD2), "no more"
        for start, kind in ((WITH, "with"), (WITHOUT, "without")):
            yield (s, "7", f"shared-semantic-{kind}-{name}", either,
                   lambda at=at, start=start: c.gap(at, start, SCRATCH, AD2), "no more")  # fmt: skip
