"""Every sentence of Meng et al. (2024), sections 2.2 to 4.4, that scores can support or contradict.

Panels of the study are recipes of pre-training (`figures.recipes`), their models runs with different seeds. Sets:
`glue`, `mnli` (tasks of its kind, also in `glue`), `squad`. Ranks are tested as the paper's formula has them and, with
the suffix -centred, as its words have them ("variance"). What its reviewers asked for, a model trained with 80 %
[MASK], 10 % random and 10 % visible tokens, is the panel `80-10-10`.
"""

from masklab.claims.runs import Cost, DeltaSlope, Rank, Reached, Runs, Score
from masklab.claims.spec import Claim, difference
from masklab.figures.recipes import CORRUPTED, KEPT, MAE, MLM

FEWEST = 3  # runs of pre-training; the paper has one of each
FORMS = {"": "rank", "-centred": "rank_centred"}


def _claims():
    yield from _deficiency()
    yield from _results()
    yield from _ablations()
    yield from _utilisation()


def _claim(name, section, figure, text, effect, region="above 0"):
    return Claim(name, section, figure, text, effect, region, FEWEST)


def _gap(panel, layers, metric):
    """Rank with [MASK] less rank without."""
    return difference(Rank(panel, "masked", layers, metric), Rank(panel, "unmasked", layers, metric))


def _deficiency():
    s = "2.2"
    below = "the effective rank without [MASK] is below that with [MASK]"
    deeper = "the gap is more prominent in deeper layers"
    grows = "The rank of [MASK] token representations will increase from the input layer to the output layer"
    twice = grows + " (much: to more than twice)"
    outside = "the real token representation subspace does not contain that of [MASK]s (they add to its rank)"
    trick = "Even with this trick, the training signals on real token representations are scarce"
    for suffix, metric in FORMS.items():
        for panel, name in ((MLM, "mlm"), (CORRUPTED, "80-10-10")):
            said = below if panel == MLM else f"{trick}: {below} for 80/10/10 too (asked by reviewers)"
            yield _claim(f"deficient-{name}{suffix}", s, "1a", said, Runs(_gap(panel, "all", metric)))
        last = Runs(_gap(MLM, "last", metric))
        yield _claim(f"deficient-last{suffix}", s, "1a", below + " (last layer)", last)
        terms = (*_gap(MLM, "deep", metric), *((-w, r) for w, r in _gap(MLM, "shallow", metric)))
        yield _claim(f"deeper{suffix}", s, "1a", deeper, Runs(terms))
        top, bottom = (Rank(MLM, "mask-positions", layers, metric) for layers in ("last", "first"))
        yield _claim(f"lemma{suffix}", s, "1b", grows, Runs(difference(top, bottom)))
        yield _claim(f"lemma-twice{suffix}", s, "1b", twice, Runs(((1, top), (-2, bottom))))
        real, both = (Rank(MLM, split, "last", metric) for split in ("real-positions", "masked"))
        yield _claim(f"theorem{suffix}", s, "1a", outside, Runs(difference(both, real)))


def _results():
    better = "MAE-LM outperforms previous models pretrained by MLM"
    equal = "MAE-LM's pretraining time cost is roughly equal to that of conventional MLM pretraining"
    slightly = "MAE-LM takes slightly more time than RoBERTa trained on the same amount of data (at most a fifth)"
    faster = "MAE-LM reaches RoBERTa's accuracy with about 40% of its pretraining time (tested: less than half)"
    for key, table in (("glue", "T1"), ("mnli", "T1"), ("squad", "T1")):
        yield _claim(f"better-{key}", "4.2", table, better, Runs(difference(Score(MAE, key), Score(MLM, key))))
    for cost in ("seconds", "flops"):
        terms = difference(Cost(MAE, cost), Cost(MLM, cost))
        yield _claim(f"equal-{cost}", "3", "3", equal, Runs(terms, relative=True), "equal")
        yield _claim(f"slightly-{cost}", "4.2", "3", slightly, Runs(terms, 0.2, relative=True), "below 0")
        yield _claim(f"faster-{cost}", "4.2", "3", faster, Reached(MAE, MLM, "mnli", cost, 0.5), "below 0")


def _ablations():
    cause = "using the additional decoder is not the main reason for the performance gain"
    helps = "when [MASK] is present in the encoder, resetting the [MASK] token embeddings in the decoder helps"
    worse = "resetting is slightly worse than not including [MASK] in the encoder at all"
    replaced = "replacing [MASK] tokens with random real tokens does not yield better results than MLM"
    notable = "the variations in position encoding do not result in notable performance differences"
    simple = "Only using bidirectional self-attention in the decoder performs better than other settings"
    small = "using a relatively small decoder yields good results (more layers are worse)"
    trend = "including a higher portion of [MASK] tokens in the encoder degrades its performance"
    s = "4.3"
    for key in ("glue", "squad"):

        def less(left, right, key=key):
            return Runs(difference(Score(left, key), Score(right, key)))

        yield _claim(f"decoder-alone-{key}", s, "T2", cause, less(KEPT, MLM), "no more")
        yield _claim(f"reset-helps-{key}", s, "T2", helps, less("reset", KEPT))
        yield _claim(f"reset-worse-{key}", s, "T2", worse, less(MAE, "reset"))
        yield _claim(f"random-{key}", s, "T2", replaced, less("random", MLM), "no more")
        for other in ("misaligned", "no-relative"):
            yield _claim(f"{other}-{key}", s, "T2", notable, less(other, MAE), "equal")
        for other in ("self+cross", "causal+cross", "cross"):
            yield _claim(f"{other}-{key}", s, "T2", simple, less(MAE, other))
        yield _claim(f"more-layers-{key}", s, "T2", small, less(MAE, "more-layers"))
        yield _claim(f"delta-{key}", s, "4", trend, DeltaSlope(key), "below 0")
        ends = less(MAE, KEPT)
        yield _claim(f"delta-ends-{key}", s, "4", trend + " (delta 0 against 1)", ends)


def _utilisation():
    pretrained = "MAE-LM results in a higher effective rank of real token representations than RoBERTa"
    tuned = "such an advantage holds in downstream tasks after fine-tuning"
    for suffix, metric in FORMS.items():
        terms = difference(Rank(MAE, metric=metric), Rank(MLM, metric=metric))
        yield _claim(f"rank{suffix}", "4.4", "T3", pretrained, Runs(terms))
        for key in ("mnli", "squad"):
            terms = difference(Rank(MAE, metric=metric, set=key), Rank(MLM, metric=metric, set=key))
            yield _claim(f"rank-{key}{suffix}", "4.4", "T3", tuned, Runs(terms))


CLAIMS = list(_claims())
