"""Which recipe and which task of the study play which part, by facts. Light: read when the workflow is parsed.

Corpora count by their kind. Their *sizes* are the recipes trained from scratch by AdamW on nothing but masked tokens,
one a sentence, from small to large. Tasks are told apart by how long a span of a grammar's sentence they ask about, by
the position of the hidden Markov model's state or of the causal model's word, or by whose labels they have.
"""

import math

from masklab.errors import MaskLabError
from masklab.scores.reading import Reading
from masklab.scores.view import View

PCFG, HMM, CAUSAL = "pcfg", "hmm", "causal"
CORPORA = {PCFG: "PCFG", HMM: "HMM", CAUSAL: "Causal LM"}
# kind of corpus -> kinds of its tasks
LABELLED = {PCFG: ("pcfg",), HMM: ("hmm",), CAUSAL: ("next-word", "restricted-labels")}
PLAIN, ADVERSARIAL, LOOKUP = "plain MLM", "adversarial", "lookup table"
FREE = {"checkpoints"}  # facts in which recipes may differ and yet be trained alike


# --- recipes ---------------------------------------------------------------------------


def _trained(facts) -> bool:
    return bool(facts["steps"]) and not facts["shuffle"] and facts["encoder.kind"] not in ("lookup", "words")


def weights(facts) -> int:
    """Weights of an encoder's blocks, about: what sizes are ordered by before they are made."""
    hidden = facts["encoder.hidden"]
    inner = facts["encoder.intermediate"] or 4 * hidden
    return facts["encoder.layers"] * hidden * (4 * hidden + 2 * inner) + hidden


def sizes(view: View, kind: str, one_mask: bool = True) -> list[str]:
    """Recipes of a kind of corpus from small to large; one_mask false: those with another number of masks.

    MaskLabError where two are of one size: what else they differ in would count as a difference of sizes.
    """

    def fits(facts):
        return (
            facts["corpus.kind"] == kind
            and _trained(facts)
            and facts["objective.terms"] == ["mlm"]
            and facts["optimiser.kind"] == "adamw"
            and (facts["masking.count"] == "one") == one_mask
            and facts["init"] is facts["embeddings"] is None
        )

    recipes = view.find(fits)
    corpora = list(dict.fromkeys(view.fact(name, "corpus") for name in recipes))
    if len(corpora) > 1:
        raise MaskLabError(f"compares sizes on one {kind} corpus, and the study has {' and '.join(corpora)}")
    by_size: dict[int, str] = {}
    for name in recipes:
        if by_size.setdefault(weights(view.recipes[name]), name) != name:
            same = by_size[weights(view.recipes[name])]
            raise MaskLabError(
                f"compares sizes, and {same} and {name} are of the same size; leave one to another study"
            )
    return [by_size[size] for size in sorted(by_size)]


def trace_of_sizes(view: View, recipes: list[str]) -> str:
    """The trace that tells sizes apart: of models grown to one width (appendix B.1), where a probe measures it of all.

    The same function has another trace in a wider model, so that those of unlike widths are no measure of flatness.
    """
    grown = (facts for facts in view.probes.values() if facts["kind"] == "curvature" and facts.get("width"))
    return "trace_embedded" if any(set(recipes) <= set(facts["recipes"]) for facts in grown) else "trace"


def twin(view: View, recipe: str, prefix: str) -> str | None:
    """The size that differs from a recipe in facts with this prefix alone."""
    for name in sizes(view, view.fact(recipe, "corpus.kind")):
        if all(key.startswith(prefix) for key in view.differing(recipe, name) - FREE):
            return name
    return None


def branches(view: View, kind: str) -> list[str]:
    """Recipes that cool one course of AdamW, from its checkpoints on to a rate of 0: from early to late.

    So each has the loss of a model that was meant to end there, and what differs between them is how long they trained.
    """

    def fits(facts):
        return (
            facts["corpus.kind"] == kind
            and _trained(facts)
            and facts["objective.terms"] == ["mlm"]
            and (facts["optimiser.kind"], facts["optimiser.schedule"]) == ("adamw", "linear")
            and facts["init"]
        )

    recipes = view.find(fits)
    _only(sorted({_start(view, name)[0] for name in recipes}), f"courses that others cool on a {kind} corpus")
    return sorted(recipes, key=lambda name: updates(view, name))


def updates(view: View, branch: str) -> int:
    """Updates of a course until it is cooled, and of cooling it."""
    return _start(view, branch)[1] + view.fact(branch, "steps")


def _start(view, recipe) -> tuple[str, int]:
    """(recipe, step) whose weights a recipe starts from."""
    start, _, step = view.fact(recipe, "init").rpartition("@")
    return start, int(step)


def _only(recipes, said) -> str | None:
    if len(recipes) > 1:
        raise MaskLabError(f"the study has {len(recipes)} recipes that are {said} ({', '.join(recipes)}); leave one")
    return recipes[0] if recipes else None


def sgd(view: View, kind: str) -> tuple[str, tuple[str, int]] | None:
    """(recipe trained on by SGD, (recipe, step) that it starts from) of a kind of corpus.

    Of several from one start the first of those that keep the most checkpoints: its course is drawn.
    """
    found = view.find({"corpus.kind": kind, "optimiser.kind": "sgd", "init": bool})
    if not found:
        return None
    _only(sorted({view.fact(name, "init") for name in found}), f"starts of SGD on a {kind} corpus")
    recipe = max(found, key=lambda name: len(view.fact(name, "checkpoints")))
    return recipe, _start(view, recipe)


def swept(view: View, kind: str) -> list[str]:
    """Recipes trained on by SGD from one start, at several rates, batch sizes and lengths, by their `drift`.

    Empty where there is but one.
    """
    if (trained_on := sgd(view, kind)) is None:
        return []
    main, differ = trained_on[0], {"optimiser.lr", "batch_size", "steps"} | FREE
    found = view.find({"corpus.kind": kind, "optimiser.kind": "sgd", "init": view.fact(main, "init")})
    alike = [name for name in found if view.differing(name, main) <= differ]
    return sorted(alike, key=lambda name: drift(view, name)) if len(alike) > 1 else []


def drift(view: View, recipe: str) -> float:
    """k eta^2 / B of SGD's k updates at a rate of at most eta, in batches of B: the time of Theorem 3.3.

    By a schedule that is the same for all it is in each recipe the same multiple of the sum of eta^2 over its updates.
    """
    steps, rate, batch = (view.fact(recipe, key) for key in ("steps", "optimiser.lr", "batch_size"))
    return steps * rate**2 / batch


def measured_start(view: View, kind: str) -> tuple[str, int] | None:
    """(recipe, step) that SGD starts from, if its trace, loss and accuracies are measured at that very step."""
    start, step = sgd(view, kind)[1]
    known = start in view.recipes and all(
        any(step in steps for steps in view.steps(each)) for each in readings(view, start, ("trace", "gap")).values()
    )
    return (start, step) if known else None


def algorithms(view: View) -> dict[str, str]:
    """Way of training -> recipe on the grammar; the plain one differs from the adversarial in its objective alone."""
    adversarial = _only(
        view.find({"corpus.kind": PCFG, "objective.terms": lambda terms: "adversarial" in terms}), ADVERSARIAL
    )
    lookup = _only(view.find({"corpus.kind": PCFG, "encoder.kind": "lookup"}), "lookup tables")
    plain = twin(view, adversarial, "objective.") if adversarial else None
    ways_of_training = {PLAIN: plain, ADVERSARIAL: adversarial, LOOKUP: lookup}
    return {said: name for said, name in ways_of_training.items() if name}


def press(view: View, recipe: str) -> float:
    """Weight with which the trace of the Hessian is lowered in training; below 0: raised; 0: neither."""
    facts = view.recipes[recipe]
    weight = facts.get("objective.sharpness.weight") or 0.0
    return -weight if facts.get("objective.sharpness.raised") else weight


def pressed(view: View, kind: str) -> list[str]:
    """Recipes trained alike but for a term that lowers or raises the trace, from the sharpest to the flattest.

    The plain one is among them. Empty where the study has no recipe with such a term, or nothing to compare it with.
    """
    found = view.find({"corpus.kind": kind, "objective.terms": lambda terms: sorted(terms) == ["mlm", "sharpness"]})
    twins = {name: twin(view, name, "objective.") for name in found}
    plain = _only(sorted({name for name in twins.values() if name}), f"trained as those with sharpness on {kind}")
    together = [plain, *(name for name, of in twins.items() if of)] if plain else []
    return sorted(together, key=lambda name: press(view, name))


# --- tasks -----------------------------------------------------------------------------


def tasks(view: View, kind: str) -> list[str]:
    """Tasks that linear probes measure: of spans from long to short, of positions from left to right."""
    probed = {task for facts in view.probes.values() if facts["kind"] == "linear_probe" for task in facts["tasks"]}
    own = [name for of in LABELLED[kind] for name in view.find_tasks({"kind": of}) if name in probed]
    if kind == PCFG:
        return sorted(own, key=lambda name: -view.tasks[name]["span"])
    return sorted(own, key=lambda name: view.tasks[name].get("position", math.inf))


def said(view: View, task: str) -> str:
    """What a task asks about, in words."""
    facts = view.tasks[task]
    if "span" in facts:
        return f"span of {facts['span']} word{'s' if facts['span'] > 1 else ''}"
    if facts["kind"] == "next-word":
        return f"expected word {facts['position']}"
    return f"position {facts['position']}" if "position" in facts else facts["task"]


def letters(view: View) -> dict[str, str]:
    """The paper's tasks on its grammar: A, B, C -> the longest span, the middle one, the shortest; each task once."""
    own = tasks(view, PCFG)
    lettered = {}
    for letter, task in zip("abc", (own[0], own[len(own) // 2], own[-1]), strict=True) if own else ():
        if task not in lettered.values():
            lettered[letter] = task
    return lettered


def places(view: View, kind: str) -> dict[str, list[str]]:
    """Where the paper shows which tasks: steps (Figure 1), sizes (2, 5), more sizes (9), SGD (3), more SGD (10)."""
    own = tasks(view, kind)
    if not own:
        return {}
    if kind == PCFG:
        a, b, c = own[0], own[len(own) // 2], own[-1]
        ab = list(dict.fromkeys([a, b]))
        return {"steps": [c], "sizes": [b], "more sizes": [a], "sgd": [c], "more sgd": ab}
    if kind == HMM:
        return {"sizes": own[-1:], "more sizes": own[:-1], "sgd": own[-1:], "more sgd": own[:-1]}
    return {"steps": own[:1], "sizes": own[:1], "more sizes": own[1:]}


# --- what figures and tables read ------------------------------------------------------


def accuracy(recipe: str, task: str, **more) -> Reading:
    """Accuracy of the linear probe."""
    return Reading(recipe, "accuracy", (task,), probe="linear_probe", **more)


def readings(view: View, recipe: str, metrics, **more) -> dict[str, Reading]:
    """Metric or task -> its reading, of all tasks on the recipe's corpus: which is which shows beside the others."""
    own = tasks(view, view.fact(recipe, "corpus.kind"))
    return {m: Reading(recipe, m, **more) for m in metrics} | {task: accuracy(recipe, task, **more) for task in own}


def _choose(place, members, lacking):
    """`Item.choose`: kind of corpus -> recipe -> metric or task -> reading, where `place` has tasks of that kind."""

    def choose(view: View):
        kinds = [kind for kind in CORPORA if places(view, kind).get(place)]
        by_kind = {kind: own for kind in kinds if (own := members(view, kind))}
        if not by_kind:
            raise MaskLabError(f"needs {lacking} on a corpus of kind {' or '.join(CORPORA)}, and linear probes of it")
        return by_kind

    return choose


def by_size(place: str, *metrics: str, **more):
    """Of every size, its gap and more."""

    def members(view, kind):
        return {name: readings(view, name, ("gap", *metrics), **more) for name in sizes(view, kind)}

    return _choose(place, members, "recipes trained by AdamW")


def by_step(place: str):
    """Of every size that has several checkpoints, its curves over updates."""

    def members(view, kind):
        several = [name for name in sizes(view, kind) if len(view.fact(name, "checkpoints")) > 1]
        return {name: readings(view, name, ("gap",), step="all", over="step") for name in several}

    return _choose(place, members, "recipes trained by AdamW, with several checkpoints,")


def along_sgd(place: str):
    """Of what SGD trained, its curves over updates, and the numbers of the checkpoint that it starts from."""

    def members(view, kind):
        if (trained_on := sgd(view, kind)) is None:
            return {}
        recipe, _ = trained_on
        chosen = {recipe: readings(view, recipe, ("trace", "gap"), step="all", over="step")}
        if start := measured_start(view, kind):
            chosen[start[0]] = readings(view, start[0], ("trace", "gap"), step=start[1])
        return chosen

    return _choose(place, members, "recipes trained on by SGD")


def traced(members, lacking: str):
    """`Item.choose`: kind of corpus -> recipe, in the order of `members(view, kind)` -> metric or task -> reading."""

    def choose(view: View):
        by_kind = {kind: own for kind in CORPORA if tasks(view, kind) and (own := members(view, kind))}
        if not by_kind:
            raise MaskLabError(f"needs {lacking}")
        return {kind: {name: readings(view, name, ("gap", "trace")) for name in own} for kind, own in by_kind.items()}

    return choose


cooled = traced(branches, "recipes that start from checkpoints of another and are cooled by AdamW, and linear probes")
pressed_traces = traced(pressed, "recipes whose objective is mlm and sharpness, and one like them without sharpness")


def by_drift(view: View):
    """Kind of corpus -> recipes trained on by SGD -> metric or task -> reading; at drift 0 what they start from."""
    by_kind = {}
    for kind in CORPORA:
        if (own := swept(view, kind)) and tasks(view, kind):
            by_kind[kind] = {name: readings(view, name, ("trace", "gap")) for name in own}
            if start := measured_start(view, kind):
                by_kind[kind][start[0]] = readings(view, start[0], ("trace", "gap"), step=start[1])
    if not by_kind:
        raise MaskLabError("needs recipes trained on by SGD from one start at several rates or batch sizes")
    return by_kind


def masks(view: View):
    """Whether a sentence has one mask -> sizes on the grammar -> metric or task -> reading."""
    by_masks = {one: {name: readings(view, name, ("gap",)) for name in sizes(view, PCFG, one)} for one in (True, False)}
    if not all(by_masks.values()) or not tasks(view, PCFG):
        raise MaskLabError("needs recipes on a pcfg corpus with one mask a sentence and with more, and linear probes")
    return by_masks


def ways(*metrics: str):
    """Way of training -> metric or task -> reading; a table of conditionals has no Hessian."""

    def choose(view: View):
        by_way = algorithms(view)
        if ADVERSARIAL not in by_way:
            raise MaskLabError("needs a recipe on a pcfg corpus with an adversarial term")
        return {
            way: readings(view, name, [m for m in metrics if (way, m) != (LOOKUP, "trace")])
            for way, name in by_way.items()
        }

    return choose


def shapes(view: View):
    """Kind of corpus -> size -> its gap, for the shape of every size whose loss is measured."""
    by_kind = {kind: {name: Reading(name, "gap") for name in sizes(view, kind)} for kind in CORPORA}
    by_kind = {kind: own for kind, own in by_kind.items() if own}
    if not by_kind:
        raise MaskLabError(f"needs recipes trained by AdamW on a corpus of kind {' or '.join(CORPORA)}")
    return by_kind


def slices(view: View):
    """What landscape probes measured: `own` and `grown` -> (recipe, which checkpoint) -> its loss over offsets."""
    measured = {"own": {}, "grown": {}}
    for facts in view.probes.values():
        if facts["kind"] == "landscape":
            grown = bool(facts["width"] or facts["layers"])
            for recipe in facts["recipes"]:
                for step in ("last",) if grown else ("first", "last"):
                    reading = Reading(recipe, "loss", probe="landscape", step=step, layers="all", over="at")
                    measured["grown" if grown else "own"].setdefault((recipe, step), reading)
    if not measured["own"]:
        raise MaskLabError("needs a landscape probe of checkpoints as they are")
    return measured


def corpus_of(kind: str):
    """`Item.corpora` of what shows the corpus of this kind."""

    def corpora(view: View) -> list[str]:
        recipes = view.find({"corpus.kind": kind})
        if not recipes:
            raise MaskLabError(f"needs a recipe on a corpus of kind {kind}")
        return [view.fact(recipes[0], "corpus")]

    return corpora
