"""Every sentence of Chiang and Yogatama (EMNLP 2023), sections 5.3 and A.2, that a curve can support or contradict.

A sentence with several assertions (two domains, "better" and "only slightly") gives one claim for each. Where
the paper speaks of growth or sample efficiency, the small sizes are tested; where it speaks of diminishing, the
large sizes less the small ones.
"""

from masklab.claims.curve import MAJORITY, Curve, Curves, minus
from masklab.claims.spec import Claim, difference

DH, NO_DH, CBOW, SCRATCH, SHUFFLED = "w/ DH", "w/o DH", "CBOW", "scratch", "shuffled"
AD1, BD1, AD2, BD2 = "A-D1", "B-D1", "A-D2", "B-D2"
ALL = (AD1, BD1, AD2, BD2)
FIGURES = {
    "single-50": "2",
    "single-0": "3a",
    "single-10": "3b",
    "shared-50": "5a",
    "separate-50": "5b",
    "separate-0": "7",
    "separate-10": "7",
    "shared-0": "7",
    "shared-10": "7",
}


def gap(name, left, right, *domains, sizes="all"):
    """Accuracy of one starting point less that of another (or of the majority class)."""
    return difference(Curve(name, left, domains, sizes), Curve(name, right, domains, sizes))


def change(name, label, *domains):
    """Accuracy at the large sizes less that at the small ones."""
    return difference(Curve(name, label, domains, "large"), Curve(name, label, domains, "small"))


def _claims():
    yield from _sample_efficiency()
    yield from _vocabulary_shift()
    yield from _semantic_shift()
    yield from _multi_token_efficiency()
    yield from _separate_vocabularies()
    yield from _shared_vocabulary()


def _claim(section, name, sentence, effect, region="above 0"):
    figures = dict.fromkeys(FIGURES[curve.set] for _, curve in effect)
    return Claim(name, section, ", ".join(figures), sentence, Curves(tuple(effect)), region)


def _sample_efficiency():
    s, at = "5.3.1", "single-50"
    faster = "the w/ DH model's performance on A-D1 and B-D2 grows faster than the performance of the w/o DH model"
    better = "The w/ DH model also has better performance on B-D1 and A-D2"
    for domain in (AD1, BD2):
        yield _claim(s, f"faster-{domain}", faster, gap(at, DH, NO_DH, domain, sizes="small"))
    for domain in (BD1, AD2):
        yield _claim(s, f"better-{domain}", better, gap(at, DH, NO_DH, domain))
    similar = "Models initialized with shuffled weights have similar performance as models trained from scratch"
    outperform = "models with shuffled weights marginally outperform models trained from scratch for all the settings"
    for percent in (50, 0, 10):
        effect = gap(f"single-{percent}", SHUFFLED, SCRATCH, *ALL)
        yield _claim(f"{s}, footnote 2", f"shuffled-similar-{percent}", similar, effect, "equal")
        yield _claim("5.4", f"shuffled-outperforms-{percent}", outperform, effect)
    cbow = "The performance of the CBOW initialization is also better than training from scratch"
    yield _claim(s, "cbow-better", cbow, gap(at, CBOW, SCRATCH, *ALL))
    stable = "its improvement is not as stable as the w/ DH pretrained MLM"
    rough = difference(Curve(at, CBOW, ALL, roughness=True), Curve(at, DH, ALL, roughness=True))
    yield _claim(s, "cbow-less-stable", stable, rough)


def _vocabulary_shift():
    s = "5.3.2 vocabulary shifts"
    helps = "the distributional property in Eq. 1 can help the generalization when there are vocabulary shifts"
    without = "the w/o DH model does not generalize to B-D1 and B-D2 at all"
    generalizes = "the w/ DH model can generalize from domain A-D1 to the test set in B-D1 and B-D2"
    diminishes = "the generalization diminishes as the amount of fine-tuning data increases"
    much = "when 10% of the fine-tuning data is in B-D2, the w/ DH model outperforms the w/o DH model much"
    remains = "and the generalization does not diminish"
    cbow = "The CBOW model also generalizes to B-D1 and B-D2"
    for domain in (BD1, BD2):
        yield _claim(s, f"no-transfer-without-{domain}", without, gap("single-0", NO_DH, MAJORITY, domain), "no more")
        effect = gap("single-0", DH, MAJORITY, domain, sizes="small")
        yield _claim(s, f"transfer-{domain}", generalizes, effect)
        yield _claim(s, f"transfer-helped-{domain}", helps, gap("single-0", DH, NO_DH, domain))
        yield _claim(s, f"transfer-diminishes-{domain}", diminishes, change("single-0", DH, domain), "below 0")
        yield _claim(s, f"transfer-10-{domain}", much, gap("single-10", DH, NO_DH, domain))
        yield _claim(s, f"transfer-10-remains-{domain}", remains, change("single-10", DH, domain), "no less")
        yield _claim(s, f"cbow-transfer-{domain}", cbow, gap("single-0", CBOW, MAJORITY, domain))
    forgets = "Its generalization to B-D1 does not suffer from catastrophic forgetting"
    yield _claim(s, "cbow-transfer-remains", forgets, change("single-0", CBOW, BD1), "no less")


def _semantic_shift():
    s = "5.3.2 semantic shifts"
    both = "both the w/o DH model and the w/ DH model generalize to A-D2 better than the model trained from scratch"
    moreover = "Moreover, the w/ DH model does not perform better"
    slightly = "the CBOW model performs only slightly better than training from scratch"
    for percent in (0, 10):
        at = f"single-{percent}"
        for name, label in (("with", DH), ("without", NO_DH)):
            yield _claim(s, f"semantic-{name}-{percent}", both, gap(at, label, SCRATCH, AD2))
        yield _claim(s, f"semantic-not-dh-{percent}", moreover, gap(at, DH, NO_DH, AD2), "no more")
        yield _claim(s, f"semantic-cbow-{percent}", slightly, gap(at, CBOW, SCRATCH, AD2))
        less = minus(_mlms(at, AD2), gap(at, CBOW, SCRATCH, AD2))
        yield _claim(s, f"semantic-cbow-slight-{percent}", slightly + " (less so than the MLMs)", _sum(less))


def _mlms(name, *domains):
    """Mean advantage of the two pre-trained MLMs over scratch."""
    halves = tuple((0.5, Curve(name, label, domains)) for label in (DH, NO_DH))
    return (*halves, (-1, Curve(name, SCRATCH, domains)))


def _sum(effect):
    """An effect with equal curves added up and those of weight 0 left out."""
    total = {}
    for weight, curve in effect:
        total[curve] = total.get(curve, 0) + weight
    return tuple((weight, curve) for curve, weight in total.items() if weight)


def _multi_token_efficiency():
    s = "A.2.1"
    consistently = "the w/ DH model consistently outperforms the w/o DH model when there is no vocabulary sharing"
    shared = "When the feature sets have shared vocabulary, the w/o DH model performs better than the w/ DH model"
    apparent = "the improvement is not as apparent as in the single-token-level setting"
    barely = "As for the model initialized with CBOW embeddings, it barely outperforms the model trained from scratch"
    for domain in ALL:
        yield _claim(s, f"multi-separate-{domain}", consistently, gap("separate-50", DH, NO_DH, domain))
    effect = minus(gap("single-50", DH, NO_DH, *ALL), gap("separate-50", DH, NO_DH, *ALL))
    yield _claim(s, "multi-less-apparent", apparent, effect)
    yield _claim(s, "multi-shared", shared, gap("shared-50", NO_DH, DH, *ALL))
    for panel in ("shared", "separate"):
        effect = gap(f"{panel}-50", CBOW, SCRATCH, *ALL)
        yield _claim(s, f"multi-cbow-{panel}", barely, effect)
        yield _claim(s, f"multi-cbow-barely-{panel}", barely + " (by the margin at most)", effect, "no more")


def _separate_vocabularies():
    s, at = "A.2.2 separate", "separate-0"
    generalizes = "When all the fine-tuned data is in A-D1, the w/ DH model generalizes to B-D1 and B-D2"
    diminishes = "and the generalization also diminishes when there is more data"
    for domain in (BD1, BD2):
        yield _claim(s, f"separate-transfer-{domain}", generalizes, gap(at, DH, MAJORITY, domain, sizes="small"))
        yield _claim(s, f"separate-diminishes-{domain}", diminishes, change(at, DH, domain), "below 0")
    both = "As for the performance on A-D2, the w/ DH and w/o DH models outperform training from scratch too"
    for name, label in (("with", DH), ("without", NO_DH)):
        yield _claim(s, f"separate-semantic-{name}", both, gap(at, label, SCRATCH, AD2))
    though = "though the advantage is not as apparent as in the single-token setting"
    yield _claim(s, "separate-semantic-less", though, minus(_mlms("single-0", AD2), _mlms(at, AD2)))
    at = "separate-10"
    persists = "When 10% of the fine-tuning data is in B-D2, its generalization to B-D1 persists"
    yield _claim(s, "separate-10-transfer", persists, gap(at, DH, MAJORITY, BD1))
    yield _claim(s, "separate-10-persists", persists, change(at, DH, BD1), "no less")
    less = "w/ DH does not improve the generalization to B-D2 as much as in the single-token-level setting"
    effect = minus(gap("single-10", DH, NO_DH, BD2), gap(at, DH, NO_DH, BD2))
    yield _claim(s, "separate-10-less", less, effect)
    yield _claim(s, "separate-10-semantic", "the w/ DH model outperforms the w/o DH model for A-D2",
                 gap(at, DH, NO_DH, AD2))  # fmt: skip
    cbow = "As for CBOW, it does not help generalization either"
    for domain in (BD1, AD2, BD2):
        yield _claim(s, f"separate-10-cbow-{domain}", cbow, gap(at, CBOW, SCRATCH, domain), "no more")


def _shared_vocabulary():
    s = "A.2.2 shared"
    persistently = (
        "when all the fine-tuning data is in A-D1, the w/ DH model outperforms the w/o DH model on B-D1 persistently"
    )
    for sizes in ("small", "large"):
        yield _claim(s, f"shared-transfer-{sizes}", persistently, gap("shared-0", DH, NO_DH, BD1, sizes=sizes))
    better = "Eq. 1 helps the model generalize to vocabulary shift better than in the single-token setting"
    effect = minus(gap("shared-0", DH, NO_DH, BD1, sizes="large"), gap("single-0", DH, NO_DH, BD1, sizes="large"))
    yield _claim(s, "shared-transfer-better", better, effect)
    less = "when 10% of the fine-tuning data is from B-D2, the advantage over the w/o DH model is less apparent"
    yield _claim(s, "shared-10-less", less, minus(gap("shared-0", DH, NO_DH, BD1), gap("shared-10", DH, NO_DH, BD1)))
    regardless = "regardless of whether we use data in B-D2, Eq. 1 does not help the generalization to B-D2"
    either = "MLM pretraining does not outperform the model trained from scratch on A-D2 either"
    for percent in (0, 10):
        at = f"shared-{percent}"
        yield _claim(s, f"shared-no-help-{percent}", regardless, gap(at, DH, NO_DH, BD2), "no more")
        for name, label in (("with", DH), ("without", NO_DH)):
            yield _claim(s, f"shared-semantic-{name}-{percent}", either, gap(at, label, SCRATCH, AD2), "no more")


CLAIMS = list(_claims())
