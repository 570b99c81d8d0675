"""What the abstract, sections 2.2 to 3.3 and the conclusions say that scores can support or contradict.

"Average" is the mean over phenomena or tasks. Where the paper's own tables give the number that a sentence is about, it
stands behind the sentence; some of its sentences on GLUE contradict its Table 2. Sentences on sample efficiency are
tested twice: by the gap at the first checkpoint, and by the updates after which MLSM+MLM reaches the lower of their two
last scores, less those after which MLM does. A model that reads MSGS's surface cue is wrong on all of its ambiguous
tasks, so on these a claim presupposes that the controls were learned, and on paradigms below chance that those were
that phase 1 knows; that MLSM falls from where it began presupposes that MLM, trained on from there, is above it. No
claim is tested where a recipe that it reads has not learned its language. Claims whose recipes or tasks the study lacks
are left out.
"""

from dataclasses import replace
from functools import partial

from masklab.claims.claim import Claim
from masklab.config.located import spelt
from masklab.scores.reading import leaves
from masklab.scores.view import View
from masklab.studies.mlsm import published
from masklab.studies.mlsm.gaps import FULL, LARGE, MAIN, SMALL, Lacking, Scores
from masklab.studies.mlsm.select import (
    AMBIGUOUS,
    BLIMP,
    CONTROL,
    GLUE,
    JOINT,
    KD,
    KD_MLM,
    KNOWN,
    MLM,
    MLSM,
    UNKNOWN,
    told,
)

MSGS = (CONTROL, AMBIGUOUS)
SUITES = {"blimp": ("3", (BLIMP,)), "glue": ("4", (GLUE,)), "msgs": ("5", MSGS)}  # name -> figure, sets
WIDTH, AS_PUBLISHED = "Table 1, full width", "its softmax over all logits, as published"
OURS = "Not in the paper: "  # how what we ask beside its sentences begins
FAILING = ("mlsm-fades", "mlsm-fails", "pollution")  # what they say of MLSM is that it knows too little: MLM must know
HEADLINES = ("joint-over-mlsm", "small-joint-over-mlm", "glue-small-advantage")


def claims(view: View) -> list[Claim]:
    """The claims that the study's recipes and tasks allow."""
    scores, listed = Scores(view), []
    for group in (_methods, _pairs, _collapse, _glue, _msgs, _efficiency, _conclusions):
        for name, section, figure, text, make, *region in group(scores):
            try:
                effect, given = make(), tuple(beside() for beside in region[1:])
                known = (scores.reading(MAIN, MLM, BLIMP).recipe,) if name in FAILING else ()
            except Lacking:
                continue
            ours = text.startswith(OURS)
            paper = None if ours else published.of(make)
            text += "" if paper is None else f" (its own tables: {paper:+.4f})"
            if make.args[0] == MAIN and LARGE not in scores.panels and section.startswith("3.3"):
                text += " (said of its larger corpus)"
            read = {task for reading in leaves(effect) for task in reading.tasks}
            controls = tuple(view.sets.get(CONTROL, ())) if read & set(view.sets.get(AMBIGUOUS, ())) else ()
            controls = tuple(view.sets.get(KNOWN, ())) if read & set(view.sets.get(UNKNOWN, ())) else controls
            where, headline = region[0] if region else "above 0", name in HEADLINES
            more = {"learned_tasks": controls, "learned_by": known, "headline": headline, "given": given}
            listed.append(Claim(name, section, figure, text, effect, where, trained=True, **more))
    return listed


def notices(view: View) -> list[str]:
    """A line for each panel of which claims are left out since several of its recipes have one objective."""
    lines, there = [], None
    for title in dict.fromkeys(Scores(view).panels.values()):
        for objective, names in told(view, title).items():
            if objective is None or len(names) == 1:
                continue
            there = there or {claim.name for claim in claims(view)}
            kept = {label: name for label, name in view.panels[title].items() if name not in names[1:]}
            left = [claim.name for claim in claims(replace(view, panels=view.panels | {title: kept}))]
            if left := [name for name in left if name not in there]:
                lines.append(
                    f"studies.{view.study}.panels.{spelt(title)}: {' and '.join(names)} have the same objective"
                    f" ({objective}), of which claims compare one: claims that need it are left out, {len(left)}"
                    f" in all, such as {left[0]}; to test them, leave one of these recipes to a panel of its own"
                )
    return lines


def _methods(s):
    """Sections 2.2 to 3.2: choices for which the paper gives a reason that can be tested."""
    continued = (
        "this latter form of continued pre-training is more beneficial (KD from a copy of its teacher's weights)"
    )
    for name, (_, sets) in SUITES.items():
        yield f"kd-copied-{name}", "2.2", "", continued, partial(s.copied, MAIN, *sets)
    vocabulary = (
        "Our preliminary results, however, showed vastly degraded performance for the increased vocabulary size"
    )
    for name, (_, sets) in SUITES.items():
        yield f"vocabulary-{name}", "3.1", "", vocabulary, partial(s.vocabulary, MAIN, *sets)
    superior = "our experiments revealed a superior performance for the joint pre-training with MLM"
    for name, (_, sets) in SUITES.items():
        yield f"with-mlm-{name}", "3.2", "Tables 1 to 3", superior, partial(s.with_mlm, MAIN, *sets)


def _pairs(s):
    lags = (
        "their performance lags behind MLM pre-trained language models in evaluations that investigate the linguistic"
    )
    yield "mlsm-lags", "abstract", "Table 1", f"{lags} capabilities", partial(s.gap, MAIN, MLSM, MLM, BLIMP), "below 0"
    synergy = "the synergistic effects of the joint use of the two different kinds of pre-training objectives"
    for name, (_, sets) in SUITES.items():
        yield f"synergy-{name}", "abstract", "Tables 1 to 3", synergy, partial(s.synergy, MAIN, *sets)
    at, table = "3.3.1", "Table 1"
    better = "MLSM+MLM ... performs 0.122 points better on average"
    yield "joint-over-mlsm", at, "2", better, partial(s.gap, MAIN, JOINT, MLSM, BLIMP)
    size = "0.122 points better on average (as a number)"
    yield "joint-over-mlsm-by-0.122", at, table, size, partial(s.by, MAIN, JOINT, MLSM, 0.122, BLIMP), "equal"
    nearly = "nearly as good as the model pre-trained with MLM alone"
    yield "joint-near-mlm", at, table, nearly, partial(s.gap, MAIN, JOINT, MLM, BLIMP), "no less"
    kd = "The additional use of MLM also improves the BLiMP performance of knowledge distillation"
    yield "mlm-helps-kd", at, table, kd, partial(s.gap, MAIN, KD_MLM, KD, BLIMP)
    size = "by 0.034 points on average (as a number)"
    yield "mlm-helps-kd-by-0.034", at, table, size, partial(s.by, MAIN, KD_MLM, KD, 0.034, BLIMP), "equal"
    outperforms = "the MLSM+MLM pre-trained model in fact outperforms the purely MLM pre-trained model variant"
    yield "small-joint-over-mlm", at, table, outperforms, partial(s.gap, SMALL, JOINT, MLM, BLIMP)
    published = partial(s.gap, MAIN, JOINT, MLM, BLIMP, metric=FULL)  # the paper's numbers are by this softmax
    yield "joint-near-mlm-as-published", at, WIDTH, f"{nearly} ({AS_PUBLISHED})", published, "no less"
    published = partial(s.gap, SMALL, JOINT, MLM, BLIMP, metric=FULL)
    yield "small-joint-over-mlm-as-published", at, WIDTH, f"{outperforms} ({AS_PUBLISHED})", published
    fades = "the average BLiMP performance drops drastically already at the first investigated checkpoint"
    fallen = partial(s.fading, MAIN, "first", BLIMP)
    yield "mlsm-fades", at, "3", fades, fallen, "below 0", _below_mlm(s, "first")
    every = "a large performance gap between the MLSM and MLSM+MLM pre-trained models at every checkpoint"
    yield "joint-over-mlsm-everywhere", at, "3", every, partial(s.everywhere, MAIN, JOINT, MLSM, BLIMP)
    good = "the performance of MLSM+MLM being nearly as good or better than that of the purely MLM pre-trained model"
    yield "joint-near-mlm-everywhere", at, "3", good, partial(s.everywhere, MAIN, JOINT, MLM, BLIMP), "no less"
    favorable = "the average BLiMP performance of the alternatively pre-trained models becomes favorable"
    reduced = f"As the size of the pre-training corpus gets reduced ... {favorable}"
    for name, other in (("kd+mlm", KD_MLM), ("joint", JOINT)):
        yield f"small-{name}-favorable", at, "3", favorable, partial(s.gap, SMALL, other, MLM, BLIMP, step="all")
        yield f"small-{name}-more", at, "3", reduced, partial(s.smaller, other, MLM, BLIMP, step="all")


def _below_mlm(s, step):
    """How far MLSM is below MLM at a checkpoint: what falls in every second phase is not owing to MLSM."""
    return partial(s.gap, MAIN, MLM, MLSM, BLIMP, step=step)


def _collapse(s):
    """Why MLSM alone does badly on pairs: its softmax has latent logits too, or it forgets the vocabulary."""
    at, width, table = "3.3.1", WIDTH, "Table 1"
    poorly = f"the MLSM pre-trained model performs poorly on BLiMP ({AS_PUBLISHED})"
    poor = partial(s.gap, MAIN, MLSM, MLM, BLIMP, metric=FULL)
    yield "collapse-as-published", at, width, poorly, poor, "below 0"
    part = f"{OURS}latent logits in the softmax are part of the collapse"
    below = partial(s.gap, MAIN, MLM, MLSM, BLIMP, metric=FULL)
    yield "pollution", at, width, part, partial(s.pollution, MAIN, MLSM), "above 0", below
    only = f"{OURS}they are all of it: over the vocabulary MLSM does as well as MLM"
    yield "pollution-only", at, width, only, partial(s.gap, MAIN, MLSM, MLM, BLIMP), "no less"
    joint = f"{OURS}where MLM is learned too, latent logits in the softmax do no harm"
    yield "pollution-joint", at, width, joint, partial(s.pollution, MAIN, JOINT), "equal"
    forgets = f"{OURS}MLSM alone forgets: on paradigms that phase 1 knows it is below MLM"
    yield "forgets", at, table, forgets, partial(s.gap, MAIN, MLM, MLSM, KNOWN)
    nearer = f"{OURS}on paradigms on which phase 1 is below chance it is above MLM, nearer to chance"
    yield "forgets-wrong", at, table, nearer, partial(s.gap, MAIN, MLSM, MLM, UNKNOWN)
    lost = f"{OURS}it loses more of what phase 1 knows than it gains where phase 1 is wrong"
    yield "forgets-more", at, table, lost, partial(s.forgetting, MAIN)


def _glue(s):
    tuned = "models pre-trained with MLSM behave more favorable in terms of fine-tuneability towards downstream tasks"
    for name, (_, sets) in list(SUITES.items())[1:]:
        yield f"mlsm-tunes-{name}", "abstract", "Tables 2, 3", tuned, partial(s.gap, MAIN, MLSM, MLM, *sets)
    at, table = "3.3.2 GLUE", "Table 2"
    again = "Fine-tuning MLSM+MLM models again yielded better results compared to the MLSM models"
    yield "glue-joint-over-mlsm", at, table, again, partial(s.gap, MAIN, JOINT, MLSM, GLUE)
    less = "however, the performance gap is not that pronounced as it was for BLiMP"
    yield "glue-gap-less", at, table, less, partial(s.suites, MAIN, JOINT, MLSM, BLIMP, GLUE)
    par = "The average fine-tuning performance of MLSM+MLM pre-trained model is on par with ... traditional MLM"
    yield "glue-on-par", at, table, par, partial(s.gap, MAIN, JOINT, MLM, GLUE), "equal"
    similar = "the intermediate checkpoints of the MLSM+MLM and MLM models have similar fine-tuning performances"
    for name, way, pair in (("", "no worse", (JOINT, MLM)), ("-no-better", "no better", (MLM, JOINT))):
        everywhere = partial(s.everywhere, MAIN, *pair, GLUE)
        yield f"glue-similar{name}", at, "4", f"{similar} (at each of them it is {way})", everywhere, "no less"
    slight = f"{similar} ... with a slight advantage towards MLSM+MLM"
    yield "glue-advantage", at, "4", slight, partial(s.gap, MAIN, JOINT, MLM, GLUE, step="all")
    notable = "For the smaller training corpus ... the advantage of MLSM+MLM pre-trained model is more notable"
    yield "glue-small-advantage", at, "4", notable, partial(s.gap, SMALL, JOINT, MLM, GLUE, step="all")
    yield "glue-small-more", at, "4", notable, partial(s.smaller, JOINT, MLM, GLUE, step="all")


def _msgs(s):
    at, table = "3.3.2 MSGS", "Table 3"
    well = "MLSM+MLM pre-trained models perform well ... also across all the intermediate checkpoints"
    low = "The added value of MLSM+MLM pre-training is the most pronounced when the number of ... update steps is low"
    actually = "and actually the most pronounced ... after performing only 16000 additional training steps"
    lower = {LARGE: low, SMALL: actually}
    majority = "The majority of the points are located above the diagonal line in each subplot"
    benefits = "the additional benefits of jointly pre-training with masked latent semantic modeling and masked"
    for size in (LARGE, SMALL):
        yield f"msgs-{size}", at, "5", well, partial(s.gap, size, JOINT, MLM, *MSGS, step="all"), "no less"
        yield f"msgs-{size}-everywhere", at, "5", well, partial(s.everywhere, size, JOINT, MLM, *MSGS), "no less"
        most, first = partial(s.most_early, size, JOINT, MLM, *MSGS), _first(s, size, *MSGS)
        yield f"msgs-{size}-most-early", at, "5", lower[size], most, "above 0", first
        for name, other in (("mlm", MLM), ("kd+mlm", KD_MLM)):
            yield f"msgs-{size}-most-over-{name}", at, "6", majority, partial(s.by_task, size, JOINT, other, *MSGS)
        for name, sets in (("control", CONTROL), ("ambiguous", AMBIGUOUS)):
            yield f"msgs-{size}-{name}", at, table, f"{benefits} ({name} tasks)", partial(s.gap, size, JOINT, MLM, sets)
    largest = "the largest average performance gain of MLSM+MLM when pre-training was conducted over the 10 million"
    yield "msgs-small-more", at, "5", largest, partial(s.smaller, JOINT, MLM, *MSGS, step="all")
    yield "msgs-small-more-at-the-end", at, table, largest, partial(s.smaller, JOINT, MLM, *MSGS)


def _first(s, size, *sets):
    """The advantage at the first checkpoint, without which none can be the greatest there."""
    return partial(s.gap, size, JOINT, MLM, *sets, step="first")


def _efficiency(s):
    at = "3.3.2 sample efficiency"
    apparent = "The performance gains are already apparent ... after performing only 16000 additional training steps"
    yield "early-small-msgs", "3.3.2 MSGS", "5", apparent, _first(s, SMALL, *MSGS)  # said of it alone
    efficient = "jointly using MLSM with MLM offers better sample efficiency (our reading: in updates)"
    early = "the advantages of MLSM pre-training are more pronounced during the earlier phase of pre-training"
    for size in (LARGE, SMALL):
        for name, (figure, sets) in SUITES.items():
            sooner, to_reach = partial(s.sooner, size, *sets), partial(s.to_reach, size, *sets)
            yield f"sooner-{size}-{name}", at, figure, efficient, sooner, "below 0", to_reach
            more, first = partial(s.earlier, size, JOINT, MLM, *sets), _first(s, size, *sets)
            yield f"more-early-{size}-{name}", "4", figure, early, more, "above 0", first


def _conclusions(s):
    at, tables = "4", "Tables 1 to 3"
    fail = "models exclusively pre-trained with MLSM fail at assigning reliable pseudo-log-likelihood scores"
    fallen = partial(s.fading, MAIN, "last", BLIMP)
    yield "mlsm-fails", at, "3", fail, fallen, "below 0", _below_mlm(s, "last")
    boost = "the joint use of ... can boost the performance of the pre-trained language models"
    for size in (LARGE, SMALL):
        for suite, (_, sets) in SUITES.items():
            yield f"{size}-boost-{suite}", at, tables, f"{boost} ({suite})", partial(s.gap, size, JOINT, MLM, *sets)
    linguistic = "This is especially the case for tasks that directly assess the linguistic capabilities"
    yield "boost-linguistic", at, "Tables 1, 2", linguistic, partial(s.suites, SMALL, JOINT, MLM, BLIMP, GLUE)
    limited = f"{linguistic} ... obtained by relying on limited corpus size"
    for suite, (_, sets) in SUITES.items():
        yield f"boost-limited-{suite}", at, tables, f"{limited} ({suite})", partial(s.smaller, JOINT, MLM, *sets)
