"""Which recipe of the study is what, by its facts. Light: read when the workflow is parsed.

A panel holds the starting points for one spelling of features: `single` tokens, or several of `shared` or of `separate`
vocabularies. Tasks of its chains differ in how much of the fine-tuning data is B-D2: none, some, or half.
"""

from masklab.errors import MaskLabError
from masklab.scores.reading import Reading
from masklab.scores.view import View

WITH, WITHOUT, CBOW, SCRATCH, SHUFFLED = "w/ DH", "w/o DH", "CBOW", "scratch", "shuffled"
STARTS = (WITH, WITHOUT, CBOW, SCRATCH, SHUFFLED)
BAG = "bag of words"
AD1, BD1, AD2, BD2 = DOMAINS = ("A-D1", "B-D1", "A-D2", "B-D2")  # form of the features, chain of the synsets
NONE, SOME, HALF = "all A-D1", "some B-D2", "half B-D2"


def start_of(facts: dict) -> str | None:
    """Which starting point a recipe is."""
    if facts.get("corpus.kind") != "markov":
        return None
    if facts["shuffle"]:
        return SHUFFLED
    if facts["steps"]:
        return WITH if facts["corpus.distributional"] else WITHOUT
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
            if by_start.setdefault(start, name) != name:
                raise MaskLabError(f"{by_start[start]} and {name} are the same starting point ({start}); leave one")
    return by_spelling


def share_of(mix: float) -> str:
    """Which share of B-D2 a mix is."""
    return NONE if mix == 0 else SOME if mix < 0.5 else HALF


def tasks(view: View, spelling: str) -> dict[str, str]:
    """Share of B-D2 -> the task on the chains that recipes of that spelling read."""
    recipe = next(iter(panels(view).get(spelling, {}).values()), None)
    if recipe is None:
        return {}
    chains = _chains(view.recipes[recipe], "corpus.chains")
    by_share = {}
    for name in view.find_tasks({"kind": "patterns"}):
        facts = view.tasks[name]
        if _chains(facts, "chains") == chains and view.measured_by(recipe, tasks=(name,)):
            by_share.setdefault(share_of(facts["mix"]), name)
    return by_share


def _chains(facts, prefix):
    return {key.removeprefix(prefix): value for key, value in facts.items() if key.startswith(f"{prefix}.")}


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


def curves(*sets: tuple[str, str]):
    """`Item.choose` of what shows (spelling, share) pairs: each -> starting point -> domain -> curve over examples."""

    def choose(view: View):
        readings = {}
        for spelling, share in sets:
            recipes, task = starts(view, spelling, share)
            readings[spelling, share] = {
                start: {
                    domain: Reading(recipes[start], "accuracy", (task,), splits=(domain,), over="train_size")
                    for domain in DOMAINS
                }
                for start in STARTS
                if start in recipes
            }
        return readings

    return choose


def losses(view: View):
    """Panel -> label -> metric -> reading of the pre-trained recipes."""
    readings = {}
    for title, members in view.panels.items():
        for label, name in members.items():
            if view.fact(name, "steps") and view.measured_by(name, ["loss"]):
                readings.setdefault(title, {})[label] = {m: Reading(name, m) for m in ("loss", "floor", "gap")}
    if not readings:
        raise MaskLabError("no loss probe of the study measures a trained recipe")
    return readings


def walks(view: View) -> list[str]:
    """The corpora with and without the distributional property whose walks Figure 1 shows."""
    recipes = panels(view).get("single", {})
    missing = [start for start in (WITH, WITHOUT) if start not in recipes]
    if missing:
        raise MaskLabError(f"needs a recipe that is {missing[0]}, of features of single tokens")
    return [view.fact(recipes[start], "corpus") for start in (WITH, WITHOUT)]
