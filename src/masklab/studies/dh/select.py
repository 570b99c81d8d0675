"""Which recipe of the study plays which part, by its facts. Light: read when the workflow is parsed.

A panel holds the starting points for one spelling of features: `single` tokens, or several of `shared` or of `separate`
vocabularies. Tasks of its chains differ in how much of the fine-tuning data is B-D2: none, some, or half. Recipes whose
corpus mixes a part of the forms alone are doses of the distributional property.
"""

from masklab.errors import MaskLabError
from masklab.scores.reading import Reading
from masklab.scores.view import View

WITH, WITHOUT, CBOW, SCRATCH, SHUFFLED = "w/ DH", "w/o DH", "CBOW", "scratch", "shuffled"
STARTS = (WITH, WITHOUT, CBOW, SCRATCH, SHUFFLED)
DOSE = "dose"
BAG, UNITS = "bag of words", "bag of synsets"
BAGS = {"bag-of-words": BAG, "bag-of-units": UNITS}  # kinds of nulls
AD1, BD1, AD2, BD2 = DOMAINS = ("A-D1", "B-D1", "A-D2", "B-D2")  # form of the features, chain of the synsets
NONE, SOME, HALF = "all A-D1", "some B-D2", "half B-D2"
PUBLISHED = {NONE: 0.0, SOME: 0.1, HALF: 0.5}  # the paper's mixes


def start_of(facts: dict) -> str | None:
    """Which starting point a recipe is."""
    if facts.get("corpus.kind") != "markov":
        return None
    if facts["shuffle"]:
        return SHUFFLED
    if facts["steps"]:
        return {1: WITH, 0: WITHOUT}.get(facts["corpus.distributional"], DOSE)
    if facts["embeddings"]:
        return CBOW
    return SCRATCH if facts["init"] is None else None


def spelling_of(facts: dict) -> str:
    """single, shared or separate: how features are spelt where a recipe was trained."""
    single = facts["corpus.chains.features"] == "single"
    return "single" if single else facts["corpus.chains.vocabularies"]


def panels(view: View) -> dict[str, dict[str, str]]:
    """Spelling -> starting point -> recipe; MaskLabError where a panel has two spellings, or two one starting point."""
    by_spelling: dict[str, dict[str, str]] = {}
    for title, members in view.panels.items():
        known = [name for name in members.values() if start_of(view.recipes[name])]
        spellings = {spelling_of(view.recipes[name]) for name in known}
        if len(spellings) > 1:
            raise MaskLabError(f"panel {title!r} mixes features that are spelt as {' and '.join(sorted(spellings))}")
        for name in known:
            by_start = by_spelling.setdefault(spellings.copy().pop(), {})
            start = start_of(view.recipes[name])
            if start != DOSE and by_start.setdefault(start, name) != name:
                raise MaskLabError(f"{by_start[start]} and {name} are the same starting point ({start}); leave one")
    return by_spelling


def doses(view: View) -> dict[float, str]:
    """Share of mixed forms, 0 (w/o DH) to 1 (w/ DH) -> the recipe, of single tokens; ascending."""
    recipes = panels(view).get("single", {})
    known = {0.0: recipes.get(WITHOUT), 1.0: recipes.get(WITH)}
    for name in view.members:
        facts = view.recipes[name]
        if start_of(facts) == DOSE and spelling_of(facts) == "single":
            known.setdefault(facts["corpus.distributional"], name)
    return {share: known[share] for share in sorted(known) if known[share]}


def share_of(mix: float) -> str:
    """Which share of B-D2 a mix is."""
    return NONE if mix == 0 else SOME if mix < 0.5 else HALF


def tasks(view: View, spelling: str) -> dict[str, str]:
    """Share of B-D2 -> the task on the chains that recipes of that spelling read; of several that nearest the paper."""
    recipe = next(iter(panels(view).get(spelling, {}).values()), None)
    if recipe is None:
        return {}
    chains = _chains(view.recipes[recipe], "corpus.chains")
    by_share: dict[str, list[str]] = {}
    for name in view.find_tasks({"kind": "patterns"}):
        facts = view.tasks[name]
        if _chains(facts, "chains") == chains and view.measured_by(recipe, tasks=(name,)):
            by_share.setdefault(share_of(facts["mix"]), []).append(name)

    def away(name):
        return abs(view.tasks[name]["mix"] - PUBLISHED[share_of(view.tasks[name]["mix"])])

    return {share: min(names, key=away) for share, names in by_share.items()}


def _chains(facts, prefix):
    return {key.removeprefix(prefix): value for key, value in facts.items() if key.startswith(f"{prefix}.")}


def sizes(view: View, spelling: str) -> tuple[int, ...]:
    """Training sizes at which all of a panel's last checkpoints are measured, ascending; () where a probe takes all."""
    listed = []
    for recipe in panels(view).get(spelling, {}).values():
        for task in tasks(view, spelling).values():
            probes = [view.probes[name] for name in view.measured_by(recipe, ["finetune"], (task,))]
            # a list of steps: that is a probe of checkpoints before the last
            ends = [facts["sizes"] or () for facts in probes if facts["steps"] in ("last", "all")]
            listed += [set().union(*ends)] if ends else []
    return tuple(sorted(set.intersection(*listed))) if listed else ()


def starts(view: View, spelling: str, share: str) -> tuple[dict[str, str], str]:
    """(starting point -> recipe, task) of a panel of a figure; MaskLabError if the study lacks it."""
    recipes, task = panels(view).get(spelling), tasks(view, spelling).get(share)
    if not recipes:
        raise MaskLabError(f"needs recipes of Markov chains whose features are {spelling_in_words(spelling)}")
    if task is None:
        raise MaskLabError(f"needs a patterns task on the chains of {next(iter(recipes.values()))} with {share}")
    return recipes, task


def spelling_in_words(spelling: str) -> str:
    """A spelling in words."""
    several = "several tokens, {} vocabular{}"
    return {
        "single": "single tokens",
        "shared": several.format("shared", "y"),
        "separate": several.format("separate", "ies"),
    }[spelling]


def curves(*sets: tuple[str, str], metric: str = "accuracy"):
    """`Item.choose` of what shows (spelling, share) pairs: each -> starting point -> domain -> curve over examples."""

    def choose(view: View):
        readings = {}
        for spelling, share in sets:
            recipes, task = starts(view, spelling, share)
            readings[spelling, share] = {
                start: {
                    domain: Reading(recipes[start], metric, (task,), splits=(domain,), over="train_size")
                    for domain in DOMAINS
                }
                for start in STARTS
                if start in recipes
            }
        return readings

    return choose


def dose_curves(view: View):
    """Share of B-D2 -> domain -> share of mixed forms, or `SCRATCH` -> curve over examples."""
    recipes = doses(view)
    if len(recipes) < 3:
        raise MaskLabError("needs recipes whose corpora mix a part of their forms, beside w/ DH and w/o DH")
    by_share = tasks(view, "single")
    recipes |= {start: name for start, name in panels(view)["single"].items() if start == SCRATCH}
    return {
        share: {
            domain: {
                dose: Reading(name, "accuracy", (by_share[share],), splits=(domain,), over="train_size")
                for dose, name in recipes.items()
            }
            for domain in DOMAINS
        }
        for share in (NONE, HALF)
        if share in by_share
    }


def course(view: View):
    """(w/ DH's gap to the floor over checkpoints, {share of B-D2: domain -> accuracy over the same checkpoints}).

    Accuracies are at the largest size that all checkpoints are fine-tuned on. MaskLabError if none but the last is.
    """
    recipe, by_share = panels(view).get("single", {}).get(WITH), tasks(view, "single")
    curves = {}
    for share, task in by_share.items() if recipe else ():
        probes = [view.probes[name] for name in view.measured_by(recipe, ["finetune"], (task,))]
        early = [facts for facts in probes if facts["steps"] != "last"]
        if early and early[0]["sizes"]:
            size = max(early[0]["sizes"])
            shared = {"sizes": size, "step": "all", "over": "step"}
            curves[share] = {d: Reading(recipe, "accuracy", (task,), splits=(d,), **shared) for d in DOMAINS}
    if not curves:
        raise MaskLabError("needs a finetune probe of checkpoints of w/ DH (single tokens), with `steps` and `sizes`")
    return Reading(recipe, "gap", step="all", over="step"), curves


def ends(view: View):
    """(spelling, share) -> starting point -> reading of how many fine-tunings ended at their last update."""
    return {
        (spelling, share): {s: Reading(name, "capped", (task,)) for s, name in recipes.items() if s in STARTS}
        for spelling, recipes in panels(view).items()
        for share, task in tasks(view, spelling).items()
    }


def walks(view: View) -> list[str]:
    """The corpora with and without the distributional property whose walks Figure 1 shows."""
    recipes = panels(view).get("single", {})
    missing = [start for start in (WITH, WITHOUT) if start not in recipes]
    if missing:
        raise MaskLabError(f"needs a recipe that is {missing[0]}, of features of single tokens")
    return [view.fact(recipes[start], "corpus") for start in (WITH, WITHOUT)]
