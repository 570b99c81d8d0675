"""Which recipe of a panel and which task of the study play which part, by facts. Light: read with the workflow.

A panel holds plain MLM, the masked autoencoder MAE-LM (the first recipe of the panel whose [MASK]s all leave the
encoder for a decoder), what its reviewers asked for (MLM with 80 % [MASK], 10 % random and 10 % visible tokens), and
ablations: recipes that differ from MAE-LM in one thing. Other recipes of a panel are left out.
"""

from masklab.claims.effects import Sum, difference
from masklab.errors import MaskLabError
from masklab.scores.reading import RANKS, Reading, needs
from masklab.scores.view import View

MLM, MAE, CORRUPTED = COMPARED = ("MLM", "MAE-LM", "80/10/10")
PART, KEPT, RESET, RANDOM = "part stays", "kept", "reset", "random"
MISALIGNED, ABSOLUTE = "misaligned", "no relative positions"
CROSSES = ("self+cross", "causal+cross", "cross")
FEWER, MORE, NARROWER, WIDER = "fewer layers", "more layers", "narrower", "wider"
# Table 2 of Meng et al. (2024): group -> what it compares.
GROUPS = {
    "Handling [MASK]": (MAE, MLM, KEPT, RESET, RANDOM),
    "Position encoding": (MAE, MISALIGNED, ABSOLUTE),
    "Decoder attention": (MAE, *CROSSES),
    "Decoder size": (MAE, FEWER, MORE, NARROWER, WIDER),
}
DELTA = "objective.mae.delta"
LOG_RANK = "corpus.hmm.log_rank"
UNSEEN = {"checkpoints", "keep_decoder"}  # keys that change no training
SPANS = {"english-spans", "squad"}
# What tasks are about: answer spans, or sentences, among these entailment: MNLI, or what is generated in its place.
ABOUT = {
    "sentences": lambda task: task["kind"] not in SPANS,
    "entailment": lambda task: (
        task.get("recipe") == "entailment" or (task["kind"], task.get("task")) == ("glue", "mnli")
    ),
    "answers": lambda task: task["kind"] in SPANS,
}


# --- recipes -------------------------------------------------------------------------------


def role_of(facts: dict) -> str | None:
    """MLM, 80/10/10 or MAE-LM, or neither, of a recipe's own facts."""
    mask, terms = facts["masking.mask"], facts["objective.terms"]
    decoded = facts.get("encoder.decoder.layers") is not None
    if not facts["steps"]:
        return None
    if terms == ["mlm"] and not decoded:
        return MLM if mask == 1 else CORRUPTED if mask and facts["masking.random"] else None
    return MAE if terms == ["mae"] and decoded and mask == 1 and facts[DELTA] == 0 else None


def _staying(own, base):
    if own[DELTA] == 1:
        return RESET if own["objective.mae.reset"] else KEPT
    return None if own["objective.mae.reset"] else PART


def _size(own, base):
    width, other = (facts["encoder.decoder.hidden"] or facts["encoder.hidden"] for facts in (own, base))
    return None if width == other else NARROWER if width < other else WIDER


# Keys in which alone an ablation may differ from MAE-LM, and what it then is.
ABLATIONS = (
    ({DELTA, "objective.mae.reset"}, _staying),
    ({"masking.mask", "masking.random"}, lambda own, base: RANDOM if own["masking.random"] == 1 else None),
    ({"objective.mae.aligned"}, lambda own, base: MISALIGNED),
    (
        {f"encoder.{key}" for key in ("positions", "relative_buckets", "relative_distance")},
        lambda own, base: ABSOLUTE if own["encoder.positions"] == "absolute" else None,
    ),
    ({"encoder.decoder.attention"}, lambda own, base: own["encoder.decoder.attention"]),
    (
        {"encoder.decoder.layers"},
        lambda own, base: FEWER if own["encoder.decoder.layers"] < base["encoder.decoder.layers"] else MORE,
    ),
    ({f"encoder.decoder.{key}" for key in ("hidden", "heads", "intermediate")}, _size),
)


def ablation(view: View, name: str, base: str) -> str | None:
    """What a recipe is as an ablation of MAE-LM, `base`; None if it is none, or several at once."""
    keys = view.differing(name, base) - UNSEEN
    own, other = view.recipes[name], view.recipes[base]
    return next((what(own, other) for allowed, what in ABLATIONS if keys and keys <= allowed), None)


class Panel:
    """A panel of the study. roles: role -> recipe, the first of each; deltas: delta -> recipe, ascending."""

    def __init__(self, view: View, title: str):
        self.view, self.title = view, title
        members = list(dict.fromkeys(view.panels[title].values()))
        roles = {name: role_of(view.recipes[name]) for name in members}
        base = next((name for name in members if roles[name] == MAE), None)
        others = [name for name in members if name != base and roles[name] in (None, MAE)]
        roles |= {name: ablation(view, name, base) if base else None for name in others}
        self.roles: dict[str, str] = {}
        for name, role in roles.items():
            if role is not None:
                self.roles.setdefault(role, name)
        staying = {view.fact(name, DELTA): name for name, role in roles.items() if role == PART}
        staying |= {float(role == KEPT): self.roles[role] for role in (MAE, KEPT) if role in self.roles}
        self.deltas = dict(sorted(staying.items()))

    def __getitem__(self, role: str) -> str:
        """The recipe with a role; MaskLabError if the panel has none."""
        return next(iter(self.labelled((role,)).values()))

    def labelled(self, roles, fewest: int = 1) -> dict[str, str]:
        """Label -> recipe of those roles that the panel has; MaskLabError if they are fewer than `fewest`."""
        names = [self.roles[role] for role in roles if role in self.roles]
        if len(names) < fewest:
            raise MaskLabError(
                f"panel {self.title!r} has {len(names)} of the recipes {', '.join(roles)}; {fewest} needed"
            )
        return {self.view.label(name, self.title): name for name in names}

    def null(self, role: str, kind: str = "untrained") -> str:
        """The recipe that is a null of the one with a role; MaskLabError if the study has none."""
        null = self.view.nulls.get(self[role], {}).get(kind)
        if null is None:
            raise MaskLabError(f"panel {self.title!r} has no null {kind!r} of {role}")
        return null

    def tasks(self, recipes, about=("sentences", "answers"), ranked: bool = False) -> dict[str, tuple[str, ...]]:
        """What tasks are about -> those that all these recipes are fine-tuned on; MaskLabError if there is none.

        ranked: only tasks after which the rank is measured.
        """

        def measured(name, task):
            probes = self.view.measured_by(name, ["finetune"], [task])
            return any(self.view.probes[probe].get("rank") or not ranked for probe in probes)

        shared = {
            each: tuple(task for task in self.view.find_tasks(ABOUT[each]) if all(measured(r, task) for r in recipes))
            for each in about
        }
        if not any(shared.values()):
            raise MaskLabError(
                f"panel {self.title!r}: {', '.join(recipes)} share no fine-tuning on {' or '.join(about)}"
            )
        return {each: tasks for each, tasks in shared.items() if tasks}

    def heading(self, said: str) -> str:
        """What stands over a part of a table, or names a claim: with the panel where there are several."""
        return said if len(self.view.panels) == 1 else f"{self.title}: {said}"


def laws(view: View, role: str) -> dict[int, str]:
    """Rank of the law's log conditionals -> the recipe with a role that is trained on it; of laws of known rank."""
    found = {}
    for panel in (Panel(view, title) for title in view.panels):
        name = panel.roles.get(role)
        log_rank = None if name is None else view.fact(name, LOG_RANK)
        if log_rank is not None:
            found.setdefault(2 * int(log_rank) + 2, name)  # as `HiddenMarkov.conditional_rank`
    return dict(sorted(found.items()))


def every(view: View, choose) -> dict:
    """Title -> `choose` (panel), of the panels that have and measure all of it; MaskLabError if none does."""
    by_panel, lacking = {}, MaskLabError("the study has no panel")
    for title in view.panels:
        try:
            chosen = choose(Panel(view, title))
            needs(chosen, view, with_nulls=False)
            by_panel[title] = chosen
        except MaskLabError as error:
            lacking = error
    if not by_panel:
        raise lacking
    return by_panel


def needs_subspace(view: View, recipes) -> None:
    """MaskLabError where no rank probe of a recipe measures what of [MASK]s real tokens do not span."""
    for recipe in recipes:
        probes = view.measured_by(recipe, ["rank"])
        if probes and not any(view.probes[name].get("subspace") for name in probes):
            raise MaskLabError(
                f"probe {probes[0]} measures no share outside the subspace of real tokens; give it a `subspace`, .99"
                " unless said"
            )


# --- readings ------------------------------------------------------------------------------

INPUTS = ("masked", "unmasked")
# Ranks that are claimed, by what the names of their claims end in: between whole numbers, and without a threshold.
BETWEEN = {"": "rank_interpolated", "-centred": "rank_interpolated_centred"}
ENTROPY = {"-entropy": "rank_entropy", "-entropy-centred": "rank_entropy_centred"}
PLACES = ("mask-positions", "random-words", "hidden-words")
COSTS = ("seconds", "flops", "tokens")


def score(recipe: str, tasks, metric: str | None = None, **more) -> Reading:
    """Mean over tasks of the median over fine-tunings (section 4.1); of a rank, the last layer's after them."""
    layers = "last" if metric in RANKS else None
    return Reading(recipe, metric, tuple(tasks), probe="finetune", seeds="median", layers=layers, **more)


def rank(recipe: str, split: str, metric: str, **more) -> Reading:
    """Effective rank of the states of an input."""
    return Reading(recipe, metric, splits=(split,), **more)


def gap(recipe: str, metric: str, layers="all", **more) -> Sum:
    """Rank of all tokens of masked inputs less that of unmasked ones."""
    return difference(*(rank(recipe, split, metric, layers=layers, **more) for split in INPUTS))


def own_part(recipe: str, metric: str, layers="all", **more) -> Sum:
    """The part of the gap that the rows of [MASK]s make: masked inputs less their real positions."""
    return difference(*(rank(recipe, s, metric, layers=layers, **more) for s in ("masked", "real-positions")))


def words_part(recipe: str, metric: str) -> Sum:
    """What the rows of random words in the places of [MASK]s make of the rank of inputs with these: its own part."""
    return difference(*(rank(recipe, s, metric, layers="all") for s in ("with-words", "beside-words")))


def other_part(recipe: str, metric: str) -> Sum:
    """The rest of the gap: real tokens beside [MASK]s less unmasked inputs."""
    return difference(*(rank(recipe, s, metric, layers="all") for s in ("real-positions", "unmasked")))


def above_real(recipe: str, metric: str) -> Sum:
    """Rank of [MASK]s less that of the tokens of unmasked inputs."""
    return difference(*(rank(recipe, s, metric, layers="last") for s in (PLACES[0], INPUTS[1])))


def left_out(recipe: str, than: str, metric="outside", layers="all", **more) -> Sum:
    """Share of [MASK]s outside the subspace of real tokens less that of what else stands in their places."""
    return difference(*(Reading(recipe, metric, splits=(s,), layers=layers, **more) for s in (PLACES[0], than)))
