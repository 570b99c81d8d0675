"""Section 6 on the pseudo-language: its readings and its claims. Light: read when the workflow is parsed.

The paper's own measure, the correlation of D_f0 with D_f, where it is known which replacements are synonyms and which
models go by the distributional property: w/ DH by construction, w/o DH, scratch and shuffled weights not.
"""

from masklab.claims.claim import Claim
from masklab.claims.effects import Least, Sum, difference
from masklab.errors import MaskLabError
from masklab.phrases import COURSE, LAW, OTHERS, SYNONYMS, level, split
from masklab.scores.reading import Reading
from masklab.scores.view import View
from masklab.studies.dh.select import NONE, SCRATCH, SHUFFLED, WITH, WITHOUT, panels, tasks

STARTS = (WITH, WITHOUT, SCRATCH, SHUFFLED)
PARTS = {None: "all features", SYNONYMS: "synonyms alone", OTHERS: "others alone"}
LOW = 0.15  # the correlation that all of the paper's lie below, and that it calls low
SECTION = "6, on the pseudo-language"


class Replaced:
    """What a study measures of replaced features: MaskLabError if it is nothing."""

    def __init__(self, view: View):
        recipes, self.task = panels(view).get("single", {}), tasks(view, "single").get(NONE)
        measured = {} if self.task is None else {
            start: view.measured_by(recipes[start], ["replaced"], (self.task,)) for start in STARTS if start in recipes
        }  # fmt: skip
        self.recipes = {start: recipes[start] for start, probes in measured.items() if probes}
        if not self.recipes:
            raise MaskLabError("needs a `replaced` probe on a patterns task of A-D1 alone, features of single tokens")
        self.probe = view.probes[next(probes for probes in measured.values() if probes)[0]]
        self.levels = {count: level(count) for count in self.probe["spans"]}
        # what compares starting points reads features that are the same for all, if there are such ones
        self.same = {count: level(count, bool(self.probe["drawn"])) for count in self.probe["spans"]}
        pairs = zip(self.levels.values(), self.same.values(), strict=True)
        self.shown = list(dict.fromkeys(name for pair in pairs for name in pair))

    def reading(self, start, split, metric="pearson", **more) -> Reading:
        """A number of a starting point, on a split of the probe."""
        return Reading(self.recipes[start], metric, (self.task,), probe="replaced", splits=(split,), **more)


def curves(view: View):
    """Level -> part -> starting point -> correlation over examples."""
    found = Replaced(view)
    return {
        name: {
            part: {start: found.reading(start, split(name, part), over="train_size") for start in found.recipes}
            for part in PARTS
        }
        for name in found.shown
    }


def courses(view: View):
    """Level -> starting point -> correlation over the updates of fine-tuning, at the largest size."""
    found = Replaced(view)
    if not found.probe["updates"]:
        raise MaskLabError("needs a `replaced` probe with `updates`")
    return {
        name: {start: found.reading(start, split(name, COURSE), sizes="largest", over="at") for start in found.recipes}
        for name in found.levels.values()
    }


def numbers(view: View):
    """Level -> what -> starting point -> number, at the largest size; and the accuracies of the same classifiers."""
    found, rows = Replaced(view), {}
    last = {"sizes": "largest"}
    for name in found.shown:
        rows[name] = {f"correlation, {said}": (split(name, part), "pearson") for part, said in PARTS.items()}
        rows[name]["correlation, exact conditionals in the model's place"] = (split(name, LAW), "pearson")
        for part in (SYNONYMS, OTHERS):
            rows[name][f"before fine-tuning, {part}"] = (split(name, part), "tv_pretrained")
            rows[name][f"after fine-tuning, {part}"] = (split(name, part), "tv_finetuned")
        rows[name]["before fine-tuning, from the exact conditionals"] = (name, "tv_from_law")
    rows["accuracy"] = {found.probe[key]: (found.probe[key], "accuracy") for key in ("domain", "synonyms")}
    return {
        name: {
            what: {start: found.reading(start, at, metric, **last) for start in found.recipes}
            for what, (at, metric) in of.items()
        }
        for name, of in rows.items()
    }


def claims(view: View) -> list[Claim]:
    """The claims that the study's recipes allow."""
    try:
        found = Replaced(view)
    except MaskLabError:
        return []
    known = {"trained": True, "learned_on": (found.probe["domain"],), "learned_metric": "accuracy"}
    allowed = []
    for count, name in found.levels.items():
        for short, figure, sentence, needed, make, *region in _sentences(found, name, found.same[count]):
            if set(needed) <= set(found.recipes):
                words = f"{sentence} ({name})"
                effect, *given = made if isinstance(made := make(), tuple) else (made,)
                more = known | {"given": tuple(given)}
                allowed.append(Claim(f"replaced-{short}-{count}", SECTION, figure, words, effect, *region, **more))
    return allowed


def _sentences(c, name, same):
    """(name, what shows it, sentence, starting points, effect, region) of a level.

    same: the level of the same size of which features are the same for all starting points.
    """
    both, figure, table = (WITH, WITHOUT), "replaced", "table replaced"

    def r(start, **more):
        return c.reading(start, name, **more)

    def tv(start, metric, part):
        return c.reading(start, split(same, part), metric)

    def apart(start):
        """How much further other features lie apart than synonyms, before fine-tuning."""
        return difference(tv(start, "tv_pretrained", OTHERS), tv(start, "tv_pretrained", SYNONYMS))

    known = "Eq. 1 makes what is predicted beside synonyms more alike than beside other features, more than without"
    yield "known", table, known, both, lambda: difference(*map(apart, both))
    kept = "with Eq. 1 in pre-training, synonyms change a fine-tuned prediction less than without"
    yield ("kept", table, kept, both,
           lambda: difference(*(tv(start, "tv_finetuned", SYNONYMS) for start in both)), "below 0")  # fmt: skip

    def generalizes():
        """What the same classifiers w/ DH get right more than those w/o DH where features have the other form."""
        return difference(*(c.reading(start, c.probe["synonyms"], "accuracy") for start in both))

    only = f"D_f is high only when D_f0 is high if the model generalizes by Eq. 1 (correlation above {LOW:g})"
    yield "follows", figure, only, both, lambda: (Sum(((1.0, r(WITH)),), LOW), generalizes())
    nulls = tuple(start for start in STARTS[1:] if start in c.recipes)
    owing = "the correlation is higher where the model generalizes by Eq. 1 than where it does not"
    yield ("owing", figure, owing, both,
           lambda: (Least(tuple(difference(*(c.reading(of, same) for of in (WITH, start))) for start in nulls)),
                    generalizes()))  # fmt: skip
    # of the same corpus, so that exact conditionals are the same; their own predictions are alike beside everything
    same_law = tuple(start for start in (SCRATCH, SHUFFLED) if start in c.recipes)
    alone = "it is also higher with the exact D_f0, which is the same for all: D_f is what differs"
    law = split(same, LAW)
    yield ("alone", table, alone, (WITH, SCRATCH),
           lambda: (Least(tuple(difference(*(c.reading(of, law) for of in (WITH, start))) for start in same_law)),
                    generalizes()))  # fmt: skip
    sizes = c.probe["sizes"] or ()
    if sizes:
        regardless = "the correlation does not diminish to 0 regardless of the data sizes"
        yield ("sizes", figure, regardless, both,
               lambda: (Least(tuple(r(WITH, sizes=size) for size in sizes)), generalizes()))  # fmt: skip
