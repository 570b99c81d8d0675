"""Section 6 on text: what a `paraphrased` probe measures, and what the paper says of it. Light.

A study has it for any recipe that such a probe measures: a model pre-trained here, or one made elsewhere.
"""

from masklab.claims.claim import Claim
from masklab.claims.effects import Sum, difference
from masklab.errors import MaskLabError
from masklab.phrases import (
    COURSE,
    EXAMPLE,
    HELD,
    IN_TEXT,
    LEVELS,
    LONG,
    MEANS,
    SHORT,
    TOLD,
    WITH,
    WORDS,
    fresh,
    held_fixed,
    in_text,
    is_drawn,
    is_held_fixed,
    is_in_text,
    split,
    untaught,
)
from masklab.scores.reading import Reading, nulls_of
from masklab.scores.view import View
from masklab.studies.dh.section6 import LOW

SECTION = "6.4"
OWN = "not in the paper"  # section of claims that are MaskLab's
TEST = "test"
NEARER = "synonyms nearer than other words"
UNTRAINED = "correlation with the distance of initial weights"
FRESH = "correlation of the change of a classifier never pre-trained"
FRESH_ACCURACY = "accuracy of a classifier never pre-trained"


def levels_of(probe: dict) -> tuple[str, ...]:
    """Levels that a probe measures, by its facts."""
    words = tuple(level for level in WORDS if probe["drawn"] or not is_drawn(level)) if probe["wordnet"] else ()
    phrases = (SHORT, LONG) if probe["there"] else ()
    sentences = (WITH, MEANS, *((EXAMPLE,) if probe["verbalisers"] else ())) if phrases else ()
    if not probe["in_text"]:
        return (*words, *phrases, *sentences)
    asked = tuple(map(in_text, (*words, *phrases)))
    fixed = tuple(held_fixed(level) for level in (*words, *map(in_text, words)))
    return (*words, *phrases, *sentences, *asked, *fixed)


def told_of(level: str, probe: dict) -> str | None:
    """The split that says how often synonyms of a level were told from other words; None: it is not measured."""
    asked = level.removesuffix(HELD)
    return split(asked, TOLD) if probe["in_text"] and asked.removesuffix(IN_TEXT) in WORDS else None


def untaught_of(level: str, probe: dict) -> str | None:
    """The split of the same words, asked of initial weights before fine-tuning; None: it is not measured."""
    return None if told_of(level, probe) is None else untaught(level)


def measured(view: View) -> list[tuple[str, str, dict]]:
    """(recipe, task, facts of the probe) of all that such probes measure; MaskLabError: nothing."""
    found = [
        (recipe, task, facts)
        for recipe in view.members
        for facts in (view.probes[name] for name in view.measured_by(recipe, ["paraphrased"]))
        for task in facts["tasks"]
    ]
    if not found:
        raise MaskLabError("needs a `paraphrased` probe on a recipe of the study")
    return found


def _reading(recipe, task, at, metric="pearson", **more) -> Reading:
    return Reading(recipe, metric, (task,), probe="paraphrased", splits=(at,), **more)


def curves(view: View):
    """(recipe, task) -> level -> (over the updates of fine-tuning on the largest set or None, over examples, that of a
    classifier never pre-trained, at the largest set)."""
    return {
        (recipe, task): {
            level: (
                _reading(recipe, task, split(level, COURSE), sizes="largest", over="at") if probe["updates"] else None,
                _reading(recipe, task, level, over="train_size"),
                _reading(recipe, task, fresh(level), over="train_size"),
            )
            for level in levels_of(probe)
        }
        for recipe, task, probe in measured(view)
    }


def numbers(view: View):
    """Task -> what -> recipe -> number, at the largest size; intervals over features alone are rows of their own."""
    rows: dict = {}
    called = {recipe: label for label, recipe in view.labelled().items()}
    for recipe, task, probe in measured(view):
        for level in levels_of(probe):
            for metric, said in (
                ("pearson", "correlation"),
                ("pearson_low", "95 % interval over features, low"),
                ("pearson_high", "95 % interval over features, high"),
                ("tv_pretrained", "distance before fine-tuning"),
                ("tv_finetuned", "change after fine-tuning"),
            ):
                if is_held_fixed(level) and metric.startswith("tv"):  # the same features, in the rows above
                    continue
                number = _reading(recipe, task, level, metric, sizes="largest")
                rows.setdefault(task, {}).setdefault(f"{level}: {said}", {})[called[recipe]] = number
            for at, said in ((fresh(level), FRESH), (untaught_of(level, probe), UNTRAINED)):
                if at is not None:
                    number = _reading(recipe, task, at, sizes="largest")
                    rows[task].setdefault(f"{level}: {said}", {})[called[recipe]] = number
            at = told_of(level, probe)
            if at and not is_held_fixed(level):
                number = _reading(recipe, task, at, TOLD, sizes="largest")
                rows[task].setdefault(f"{level}: {NEARER}", {})[called[recipe]] = number
        for at, said in ((TEST, "accuracy"), (fresh(TEST), FRESH_ACCURACY)):
            rows[task].setdefault(said, {})[called[recipe]] = _reading(recipe, task, at, "accuracy", sizes="largest")
    return rows


def _knows(recipe, task, level, probe, view):
    """(how much more often synonyms are told from other words, than by what); None: it is not measured.

    What goes with a distance that tells no synonyms says nothing of what a model knows about them. A guess counts only
    where initial weights are not measured.
    """
    at = told_of(level, probe)
    if at is None:
        return None
    told = _reading(recipe, task, at, TOLD, sizes="largest")
    null = nulls_of(told, view).get("untrained")
    return (Sum(((1.0, told),), 0.5), "a guess") if null is None else (difference(told, null), "initial weights")


def claims(view: View) -> list[Claim]:
    """What section 6.4 says of each recipe and task."""
    try:
        found = measured(view)
    except MaskLabError:
        return []
    known, allowed = {"learned_on": (TEST,), "learned_metric": "accuracy"}, []
    low = f"the correlation between D_f and D_f0 is below {LOW:g}"
    remains = "the correlation does not diminish to 0 regardless of the training steps or data sizes"
    higher = "higher-level features have a higher correlation"
    for number, (recipe, task, probe) in enumerate(found, 1):
        tag = "" if len(found) == 1 else f"-{number}"
        own = {level: _reading(recipe, task, level) for level in levels_of(probe)}
        for level, reading in own.items():
            name, said = level.replace(", ", "-").replace(" ", "-"), f"({level})"
            section = OWN if is_in_text(level) or is_held_fixed(level) else SECTION
            known_here, whole = known, not is_held_fixed(level)
            if (knows := _knows(recipe, task, level, probe, view)) is not None:
                more, than = knows
                known_here = known | {"given": (more,)}
                if whole:
                    words = f"before fine-tuning synonyms are told from other words more often than by {than} {said}"
                    allowed.append(Claim(f"told-{name}{tag}", OWN, "phrases", words, more, learned=False))
            if whole:
                effect = Sum(((1.0, reading),), LOW)
                allowed.append(
                    Claim(f"low-{name}{tag}", section, "phrases", f"{low} {said}", effect, "below 0", **known_here)
                )
            if is_in_text(level) and held_fixed(level) in own:  # any network minds the form of words there
                continue
            last = reading.of(recipe, sizes="largest")
            allowed.append(Claim(f"remains-{name}{tag}", section, "phrases", f"{remains} {said}", last, **known_here))
            # what a classifier has that was never pre-trained, with the same D_f0, is nothing that remains
            null = _reading(recipe, task, fresh(level), sizes="largest")
            since = f"{remains} {said} (it is higher than with the D_f of a classifier that was never pre-trained)"
            more = difference(last, null)
            allowed.append(Claim(f"remains-{name}-pretrained{tag}", OWN, "phrases", since, more, **known_here))
        if len(salient := [level for level in LEVELS if level in own]) > 1:
            first, *_, last = salient
            effect = difference(own[last], own[first])
            allowed.append(Claim(f"higher{tag}", SECTION, "phrases", f"{higher} ({last}, {first})", effect, **known))
    return allowed
