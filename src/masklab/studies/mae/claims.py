"""Every sentence of sections 2.2 to 4.4 that scores can support or contradict.

Ranks are tested as the paper's formula has them and, with the suffix -centred, as its words have them ("variance"),
between whole numbers. A sentence about what training did is tested against initial weights too, with the suffix
-learned. No claim but those about costs is tested where a recipe that it reads has not learned its language. Claims
whose recipes or tasks the study lacks are left out; of a study with several panels each has its own.
"""

import math

from masklab.claims.claim import Claim
from masklab.claims.effects import Crossing, Matched, Mediated, Ratio, Slope, Sum, Within, difference, less
from masklab.errors import MaskLabError
from masklab.scores.reading import Reading, needs
from masklab.scores.view import View
from masklab.studies.mae.select import (
    ABSOLUTE,
    BETWEEN,
    CORRUPTED,
    CROSSES,
    ENTROPY,
    KEPT,
    MAE,
    MISALIGNED,
    MLM,
    MORE,
    RANDOM,
    RESET,
    WIDER,
    Panel,
    above_real,
    gap,
    laws,
    left_out,
    other_part,
    own_part,
    rank,
    score,
    words_part,
)

HEADLINES = ("deficient-mlm", "better-sentences", "delta-sentences", "delta-ends-sentences")
UNTRAINED = ("equal-", "slightly-")  # names of claims that hold for models that learned nothing
CENTRED, LOSS = BETWEEN["-centred"], "valid_loss"


def claims(view: View) -> list[Claim]:
    """The claims that the study's recipes and tasks allow."""
    listed = []
    for panel in (Panel(view, title) for title in view.panels):
        for group in (_deficiency, _results, _ablations, _utilisation, _chain):
            for section, figure, name, sentence, (effect, *of), *region in group():
                try:
                    made, given = effect(panel, *of), _given(panel, name)
                    needs(made, view, with_nulls=False)
                except MaskLabError:  # no such recipe, no such task, or not measured
                    continue
                at, named = panel.heading(section), panel.heading(name)
                more = {"headline": name in HEADLINES, "trained": not name.startswith(UNTRAINED), "given": given}
                listed.append(Claim(named, at, figure, sentence, made, *region, **more))
    return listed + _doses(view)


def _doses(view) -> list[Claim]:
    """What the paper does not have: laws whose log conditionals T have ranks that are known and differ."""
    section, listed, metric = "not in the paper", [], BETWEEN["-centred"]
    names = laws(view, MLM)
    nulls = {k: view.nulls.get(name, {}).get("untrained") for k, name in names.items()}
    more = "the higher the rank of T, the more"
    for name, sentence, effect in (
        ("dose-lemma", f"{more} dimensions [MASK]s have in the last layer (than real tokens)",
         lambda recipe: above_real(recipe, metric)),
        ("dose-gap", f"{more} dimensions masked inputs have than unmasked ones", lambda recipe: gap(recipe, metric)),
        ("dose-theorem", f"{more} of [MASK]s lies outside the subspace of real tokens",
         lambda recipe: left_out(recipe, "hidden-words")),
    ):  # fmt: skip
        for suffix, since, made in (
            ("", "", lambda k, effect=effect: effect(names[k])),
            ("-learned", " (more so than at initial weights)",
             lambda k, effect=effect: less(effect(names[k]), effect(nulls[k]))),
        ):  # fmt: skip
            if len(names) < 2 or (suffix and None in nulls.values()):
                continue
            slope = Slope(tuple(map(made, names)), tuple(map(math.log2, names)), "doubling of rank(T)")
            try:
                needs(slope, view, with_nulls=False)
            except MaskLabError:
                continue
            listed.append(Claim(f"{name}{suffix}", section, "law", f"{sentence}{since}", slope, trained=True))
    return listed


# --- effects on a panel --------------------------------------------------------------------


def _gap(panel, role, layers, metric):
    return gap(panel[role], metric, layers)


def _learned(panel, role, effect, *of, **more):
    """An effect on the recipe with a role less the same on its initial weights."""
    return less(effect(panel[role], *of, **more), effect(panel.null(role), *of, **more))


def _outside_more(panel):
    """As a multiple of what real tokens have: one random vector's share differs widely between initial weights."""
    return _learned(panel, MLM, left_out, "hidden-words", form="log")


def _most(panel, role, metric):
    """The part of the gap that [MASK]s themselves make less the rest of it."""
    return less(own_part(panel[role], metric), other_part(panel[role], metric))


def _than_words(panel, role, metric):
    """The part of [MASK]s themselves less that of random words in their places."""
    return less(own_part(panel[role], metric), words_part(panel[role], metric))


def _part(panel, role, metric):
    return own_part(panel[role], metric)


def _deeper(panel, metric):
    return less(*(_gap(panel, MLM, layers, metric) for layers in ("deep", "shallow")))


def _growth(name, metric, times=1.0):
    """Rank of [MASK]s in the last layer less so many times that of their embeddings."""
    last, first = (rank(name, "mask-positions", metric, layers=layers) for layers in ("last", "first"))
    return Sum(((1.0, last), (-times, first)))


def _grows(panel, metric, times=1.0):
    return _growth(panel[MLM], metric, times)


def _outside(panel, role, than, metric="outside"):
    return left_out(panel[role], than, metric)


def _real(name, metric, **more):
    """Rank of real tokens: the last layer's, of unmasked inputs."""
    return rank(name, "unmasked", metric, layers="last", **more)


def _pretrained(panel, metric, left=MAE, right=MLM):
    return difference(*(_real(panel[role], metric) for role in (left, right)))


def _at_its_loss(panel, role, read):
    """What a recipe reads on its way, where it has the validation loss that MAE-LM ends with, less what MAE-LM reads.

    read: recipe -> reading.
    """
    pair = read(panel[role]), Reading(panel[role], LOSS)
    steps = set.intersection(*(_steps(panel.view, reading) for reading in pair))
    if len(steps) < 2:
        raise MaskLabError(f"{panel[role]} is measured at one checkpoint; a course needs two")
    course = tuple(tuple(reading.of(reading.recipe, step=step) for reading in pair) for step in sorted(steps))
    return Matched(course, ((read(panel[MAE]), Reading(panel[MAE], LOSS)),))


def _steps(view, reading) -> set[int]:
    """Checkpoints at which all tasks of a reading are measured."""
    each = [reading.of(reading.recipe, tasks=(task,)) for task in reading.tasks] or [reading]
    return set.intersection(*(set().union(*view.steps(one)) for one in each))


def _real_at_its_loss(panel, role, metric):
    return _at_its_loss(panel, role, lambda name: _real(name, metric))


def _score_at_its_loss(panel, role, about):
    (tasks,) = panel.tasks([panel[role], panel[MAE]], [about]).values()
    return _at_its_loss(panel, role, lambda name: score(name, tasks))


def _followed(panel, about, given=()):
    """Slope of the score on the rank of real tokens over replicates of each recipe.

    Without 80/10/10 and random words, whose losses are of other inputs.
    """
    names = [panel.roles[role] for role in (MLM, MAE, KEPT, RESET) if role in panel.roles]
    if len(names) < 2:
        raise MaskLabError(f"panel {panel.title!r} has no two recipes that are compared within themselves")
    (tasks,) = panel.tasks(names, [about]).values()
    ys, xs = tuple(score(name, tasks) for name in names), tuple(_real(name, CENTRED) for name in names)
    return Within(ys, xs, tuple(Reading(name, metric) for metric in given for name in names))


def _path(panel, about, given=()):
    """What leaving the [MASK]s out does to the score by way of the rank: the decoder is there in both."""
    return Mediated(*(_real(panel[role], CENTRED) for role in (MAE, KEPT)), _followed(panel, about, given))


def _less(panel, left, right, about, metric=None):
    """Score of one recipe less that of another; or so of their ranks after fine-tuning."""
    pair = panel[left], panel[right]
    (tasks,) = panel.tasks(pair, [about], ranked=metric is not None).values()
    return difference(*(score(name, tasks, metric) for name in pair))


def _cause(panel, about):
    """What the decoder alone gains over MLM, less half of what MAE-LM gains."""
    (tasks,) = panel.tasks([panel[role] for role in (MLM, KEPT, MAE)], [about]).values()
    mlm, kept, mae = (score(panel[role], tasks) for role in (MLM, KEPT, MAE))
    return Sum(((1.0, kept), (-0.5, mae), (-0.5, mlm)), level=True)


def _slope(panel, about):
    if len(panel.deltas) < 3:
        raise MaskLabError(f"panel {panel.title!r} has no three recipes that differ in delta alone")
    (tasks,) = panel.tasks(panel.deltas.values(), [about]).values()
    return Slope(tuple(score(name, tasks) for name in panel.deltas.values()), tuple(panel.deltas), "δ")


def _ends(panel, about):
    if len(panel.deltas) >= 3:  # of three equally spaced ones the slope is this very difference
        raise MaskLabError(f"panel {panel.title!r} has a slope over delta, which says more")
    return _less(panel, MAE, KEPT, about)


def _dearer(panel, cost, threshold=0.0):
    return Ratio(*(Reading(panel[role], cost) for role in (MAE, MLM)), threshold)


def _reached(panel, cost):
    mae, mlm, curve = panel[MAE], panel[MLM], {"step": "all", "over": "step"}
    (tasks,) = panel.tasks((mae, mlm), ["entailment"]).values()
    if len(set().union(*panel.view.steps(score(mae, tasks)))) < 2:
        raise MaskLabError(f"{mae} is fine-tuned from one checkpoint; a curve needs two")
    curves = score(mae, tasks, **curve), Reading(mae, cost, **curve)
    return Crossing(*curves, level=score(mlm, tasks), whole=Reading(mlm, cost), threshold=0.5)


def _given(panel, name) -> tuple:
    """What a sentence presupposes to be above 0: a gap, most of which has a cause; an advantage that lasts; a gain."""
    metric = BETWEEN["-centred" if name.endswith("-centred") else ""]
    if name.startswith("masks-own-most"):
        return (_gap(panel, MLM, "all", metric),)
    if name.startswith(("rank-entailment", "rank-answers")):
        return (_pretrained(panel, metric),)
    if name.startswith("decoder-alone-"):
        return (_less(panel, MAE, MLM, name.removeprefix("decoder-alone-")),)
    return (_less(panel, MAE, MLM, "entailment"),) if name.startswith("faster-") else ()


# --- sentences -----------------------------------------------------------------------------


def _deficiency():
    s = "2.2"
    below = "the effective rank without [MASK] is below that with [MASK]"
    deeper = "the gap is more prominent in deeper layers"
    grows = "The rank of [MASK] token representations will increase from the input layer to the output layer"
    themselves = "some model dimensions are exclusively used for representing [MASK] tokens (their own states)"
    most = f"{themselves}: most of the gap"
    for suffix, metric in (BETWEEN | ENTROPY).items():
        yield s, "1a", f"deficient-mlm{suffix}", below, (_gap, MLM, "all", metric)
        since = f"{below} (more than at initial weights)"
        yield s, "1a", f"deficient-mlm-learned{suffix}", since, (_learned, MLM, gap, metric)
    for suffix, metric in BETWEEN.items():
        yield s, "ranks", f"masks-own{suffix}", themselves, (_part, MLM, metric)
        since = f"{themselves} (more than at initial weights)"
        yield s, "ranks", f"masks-own-learned{suffix}", since, (_learned, MLM, own_part, metric)
        yield s, "ranks", f"masks-own-most{suffix}", most, (_most, MLM, metric)
        than = f"{themselves}: more than random words in their places would add"
        yield s, "ranks", f"masks-own-words{suffix}", than, (_than_words, MLM, metric)
        corrupted = f"{below} for 80/10/10 too (asked by reviewers)"
        yield s, "1a", f"deficient-80-10-10{suffix}", corrupted, (_gap, CORRUPTED, "all", metric)
        yield s, "1a", f"deficient-last{suffix}", f"{below} (last layer)", (_gap, MLM, "last", metric)
        yield s, "1a", f"deeper{suffix}", deeper, (_deeper, metric)
        yield s, "1b", f"lemma{suffix}", grows, (_grows, metric)
        yield s, "1b", f"lemma-twice{suffix}", f"{grows} (much: to more than twice)", (_grows, metric, 2.0)
        since = f"{grows} (more than at initial weights)"
        yield s, "1b", f"lemma-learned{suffix}", since, (_learned, MLM, _growth, metric)
    contained = "the row space of real tokens does not contain the row space of [MASK] tokens"
    s, figure = "2.2 Theorem 2.2", "outside"
    real, word = "(more outside than real tokens of other sentences)", "(more outside than random words)"
    yield s, figure, "theorem", f"{contained} {real}", (_outside, MLM, "hidden-words")
    beside = f"{contained} (of those beside them) {real}"
    yield s, figure, "theorem-beside", beside, (_outside, MLM, "hidden-words", "outside_beside")
    yield s, figure, "theorem-words", f"{contained} {word}", (_outside, MLM, "random-words")
    since = f"{contained} (as a multiple of what real tokens have, more outside than at initial weights)"
    yield s, figure, "theorem-learned", since, (_outside_more,)


def _results():
    better = "MAE-LM outperforms previous models pretrained by MLM"
    equal = "MAE-LM's pretraining time cost is roughly equal to that of conventional MLM pretraining (within a fifth)"
    slightly = "MAE-LM takes slightly more time than RoBERTa trained on the same amount of data (at most a fifth)"
    faster = "MAE-LM reaches RoBERTa's accuracy with about 40% of its pretraining time (tested: less than half)"
    for about in ("sentences", "entailment", "answers"):
        yield "4.2", "T1", f"better-{about}", better, (_less, MAE, MLM, about)
    for about in ("sentences", "answers"):
        at_its_loss = f"{better} (against MLM on its way, where it has MAE-LM's loss)"
        yield "4.2", "T1", f"better-matched-{about}", at_its_loss, (_score_at_its_loss, MLM, about), "below 0"
    for cost in ("seconds", "flops"):
        yield "3", "3", f"equal-{cost}", equal, (_dearer, cost), "equal", 0.2
        yield "4.2", "3", f"slightly-{cost}", slightly, (_dearer, cost, 0.2), "below 0"
        yield "4.2", "3", f"faster-{cost}", faster, (_reached, cost), "below 0"


def _ablations():
    s = "4.3"
    cause = "using the additional decoder is not the main reason for the performance gain (less than half of it)"
    helps = "when [MASK] is present in the encoder, resetting the [MASK] token embeddings in the decoder helps"
    worse = "resetting is slightly worse than not including [MASK] in the encoder at all"
    replaced = "replacing [MASK] tokens with random real tokens does not yield better results than MLM"
    notable = "the variations in position encoding do not result in notable performance differences"
    simple = "Only using bidirectional self-attention in the decoder performs better than other settings"
    small = "using a relatively small decoder yields good results"
    trend = "including a higher portion of [MASK] tokens in the encoder degrades its performance"
    similar = "the fine-tuning results of delta = 1 are very similar to RoBERTa, which does not have the decoder"
    for about in ("sentences", "answers"):
        yield s, "T2", f"decoder-alone-{about}", cause, (_cause, about), "below 0"
        yield s, "T2", f"reset-helps-{about}", helps, (_less, RESET, KEPT, about)
        yield s, "T2", f"reset-worse-{about}", worse, (_less, MAE, RESET, about)
        yield s, "T2", f"random-{about}", replaced, (_less, RANDOM, MLM, about), "no more"
        for other, name in ((MISALIGNED, "misaligned"), (ABSOLUTE, "no-relative")):
            yield s, "T2", f"{name}-{about}", notable, (_less, other, MAE, about), "equal"
        for other in CROSSES:
            yield s, "T2", f"{other}-{about}", simple, (_less, MAE, other, about)
        yield s, "T2", f"more-layers-{about}", f"{small} (more layers are worse)", (_less, MAE, MORE, about)
        yield s, "T2", f"wider-{about}", f"{small} (a wider one is worse)", (_less, MAE, WIDER, about)
        yield s, "4", f"delta-{about}", trend, (_slope, about), "below 0"
        yield s, "4", f"delta-ends-{about}", f"{trend} (delta 0 against 1)", (_ends, about)
        yield f"{s}, footnote 2", "4", f"kept-similar-{about}", similar, (_less, KEPT, MLM, about), "equal"


def _utilisation():
    pretrained = "MAE-LM results in a higher effective rank of real token representations than RoBERTa"
    tuned = "such an advantage holds in downstream tasks after fine-tuning"
    for suffix, metric in BETWEEN.items():
        yield "4.4", "T3", f"rank{suffix}", pretrained, (_pretrained, metric)
        for about in ("entailment", "answers"):
            yield "4.4", "T3", f"rank-{about}{suffix}", tuned, (_less, MAE, MLM, about, metric)
        for role, name in ((MLM, ""), (KEPT, "-kept")):
            matched = f"{pretrained} (against {role} on its way, where it has MAE-LM's loss)"
            yield "4.4", "T3", f"rank-matched{name}{suffix}", matched, (_real_at_its_loss, role, metric), "below 0"


def _chain():
    """From how [MASK]s are handled by way of dimensions to scores: what the paper infers, step by step."""
    s, figure = "not in the paper", "T3"
    frees = "Beside the same decoder, leaving [MASK]s out of the encoder frees dimensions for real tokens"
    resets = "... and so does resetting them in the decoder"
    follows = "Of models of the same recipe, those with more dimensions for real tokens are better"
    path = "By way of these dimensions, leaving [MASK]s out of the encoder makes models better"
    yield s, figure, "chain-rank", frees, (_pretrained, CENTRED, MAE, KEPT)
    yield s, figure, "chain-reset", resets, (_pretrained, CENTRED, RESET, KEPT)
    for about in ("sentences", "answers"):
        for given, name, said in (((), "", ""), ((LOSS,), "-loss", " (at the same loss)")):
            yield s, figure, f"chain-score{name}-{about}", f"{follows}{said}", (_followed, about, given)
            yield s, figure, f"chain-path{name}-{about}", f"{path}{said}", (_path, about, given)
