"""Every sentence of sections 2.3, 4, A.5 and E that scores can support or contradict.

A sentence with several assertions, or about several corpora, gives one claim for each. What a claim is about is found
by facts; claims whose recipes or tasks the study lacks are left out.
"""

from dataclasses import replace
from itertools import combinations
from math import isclose, log

from masklab.claims.claim import Claim
from masklab.claims.effects import Correlation, Growth, Least, Matched, Sum, Within, difference
from masklab.scores.reading import Reading
from masklab.scores.view import View
from masklab.studies.implicit_bias.select import (
    ADVERSARIAL,
    CORPORA,
    HMM,
    LOOKUP,
    PCFG,
    PLAIN,
    accuracy,
    algorithms,
    branches,
    drift,
    letters,
    measured_start,
    places,
    press,
    pressed,
    sgd,
    sizes,
    swept,
    tasks,
    trace_of_sizes,
    twin,
    weights,
)

HEADLINES = ("larger-pcfg-b", "adversarial-worse-pcfg-b", "sgd-trace-falls-pcfg", "size-correlates-pcfg-b")


def claims(view: View) -> list[Claim]:
    """The claims that the study's recipes and tasks allow."""
    listed = []
    for group in (_checkpoints, _sizes, _algorithms, _flatness, _drift, _more_masks, _within_sizes, _intervention):
        for section, figure, name, text, effect, *more in group(view):
            options = {"region": "above 0"} | dict(zip(OPTIONS, more, strict=False))
            listed.append(Claim(name, section, figure, text, effect, **options, headline=name in HEADLINES))
    return listed


OPTIONS = ("region", "equal_loss", "given", "margin")  # what stands behind an effect
EQUAL = ("above 0", True)  # of recipes or checkpoints at equal loss
ALIKE = 0.05  # logarithms of traces that are called the same, where `margins` has no `log_trace`
BY_SIZE = {"sizes": "2", "more sizes": "9"}


def _names(view, kind) -> dict[str, str]:
    """Task -> how claims call it, from its facts: pcfg-a, hmm-6, causal-sst2."""
    if kind == PCFG:
        return {task: f"{PCFG}-{letter}" for letter, task in letters(view).items()}
    facts = {task: view.tasks[task] for task in tasks(view, kind)}
    return {task: f"{kind}-{of['position'] if 'position' in of else of['task']}" for task, of in facts.items()}


def _figures(view, kind, numbers) -> dict[str, str]:
    """Task -> number of the figure that shows it; numbers: place -> number, the first that has it counts."""
    shown = places(view, kind)
    return {task: number for place, number in reversed(numbers.items()) for task in shown.get(place, [])}


def _gap(recipe, **more):
    return Reading(recipe, "gap", form="share of the floor", **more)


def _trace(recipe, **more):
    return Reading(recipe, "trace", form="log", **more)


def _negative(effect: Sum) -> Sum:
    return Sum(tuple((-weight, part) for weight, part in effect.terms))


def _over_sizes(view, own, reading) -> Growth:
    """What a line over the logarithm of the blocks' weights, through all sizes at one loss, grows by, end to end."""
    return Growth(tuple(map(reading, own)), tuple(log(weights(view.recipes[size])) for size in own))


def _since(reading) -> Sum:
    """The change from when its loss converged to the last checkpoint."""
    return difference(reading, reading.of(reading.recipe, step="converged"))


def _checkpoints(view):
    rises = "After the pre-training loss converges, the downstream accuracy continues increasing"
    falls = "After the loss converges, the trace of Hessian falls under AdamW as well"
    for kind in CORPORA:
        figures = _figures(view, kind, {"steps": "1"} | BY_SIZE)
        later = branches(view, kind)
        for task, name in _names(view, kind).items():
            if later:
                effect = Growth(tuple(accuracy(branch, task) for branch in later))
                yield "2.3 checkpoints", "cooled", f"rises-{name}", rises, effect, *EQUAL
                continue
            several = [size for size in sizes(view, kind) if len(view.fact(size, "checkpoints")) > 1]
            for largest in several[-1:]:
                effect = _since(accuracy(largest, task))
                yield "2.3 checkpoints", figures[task], f"rises-{name}", rises, effect, *EQUAL
        if later:
            growth = Growth(tuple(map(_trace, later)))
            yield "not in the paper", "cooled", f"rises-trace-{kind}", falls, growth, "below 0", True


def _sizes(view):
    s = "2.3 sizes"
    approaches = "As we increase the model size, the pre-training loss approaches the entropy"
    larger = "Even with the same pre-training loss, larger models are better than smaller models"
    smallest = "the smallest 4M model can fit pre-training close to the entropy of the true conditional probability"
    for kind in CORPORA:
        if len(own := sizes(view, kind)) < 2:
            continue
        fall = difference(_gap(own[-1]), _gap(own[0]))
        yield s, "2", f"loss-falls-{kind}", f"{approaches} (it falls)", fall, "below 0"
        yield s, "2", f"loss-near-{kind}", f"{approaches} (up to the margin)", Sum(((1.0, _gap(own[-1])),)), "no more"
        if kind == HMM:
            yield s, "2", "hmm-smallest", smallest, Sum(((1.0, _gap(own[0])),)), "no more"
        figures = _figures(view, kind, BY_SIZE | {"steps": "1"})
        for task, name in _names(view, kind).items():
            section = "A.5" if figures[task] == "9" else s
            growth = _over_sizes(view, own, lambda size, task=task: accuracy(size, task))
            yield section, figures[task], f"larger-{name}", larger, growth, *EQUAL
        yield from _matched(view, kind, own, larger)


def _smaller(view, recipe, other, same=()) -> bool:
    """Whether a recipe has fewer weights than another, and is like it in some facts."""
    own, others = view.recipes[recipe], view.recipes[other]
    return weights(own) < weights(others) and all(own[key] == others[key] for key in same)


def _matched(view, kind, own, larger):
    """Of sizes whose last losses differ the larger one on its way, where it has the loss of the smaller one."""
    course = branches(view, kind)
    smaller = [size for size in own if course and _smaller(view, size, course[0], ("encoder.layers",))]
    if len(course) < 2 or not smaller:
        return
    text = f"{larger} (the larger one on its way, at the loss that the smaller one ends with)"
    for task, name in _names(view, kind).items():
        course_of, others = ([(accuracy(each, task), _gap(each)) for each in listed] for listed in (course, smaller))
        yield "2.3 sizes", "cooled", f"larger-matched-{name}", text, Matched(tuple(course_of), tuple(others))


def _algorithms(view):
    s, ways, names, own = "2.3 algorithms", algorithms(view), _names(view, PCFG), sizes(view, PCFG)
    same = "the adversarially trained transformer has almost the same pre-training loss as the normally trained"
    worse = "Naturally trained transformers are better than adversarially trained ones"
    six = "it is more than 6% worse than the normal model"
    small = "and even worse than a normal 9M model on the downstream task B"
    worst = "The lookup table performs worse than all normally trained transformers on task B"
    if ADVERSARIAL in ways and PLAIN in ways:
        pair, same_loss = (ways[PLAIN], ways[ADVERSARIAL]), ("equal", False, (), view.saturation)
        yield s, "T1, T2", "adversarial-loss", same, difference(*map(_gap, reversed(pair))), *same_loss
        for task, name in names.items():
            section, table = ("4 algorithms", "T2") if name == "pcfg-c" else (s, "T1")
            less = [accuracy(recipe, task) for recipe in pair]
            yield section, table, f"adversarial-worse-{name}", worse, difference(*less), *EQUAL
            if table == "T1":
                yield section, table, f"adversarial-worse-6-{name}", six, difference(*less, 0.06), *EQUAL
    for task in places(view, PCFG).get("sizes", []):
        if ADVERSARIAL in ways and own:
            smaller = [recipe for recipe in own if _smaller(view, recipe, ways[ADVERSARIAL])]
            growth = Growth(tuple(accuracy(recipe, task) for recipe in (*smaller, ways[ADVERSARIAL])))
            yield s, "T1, 2", "adversarial-below-small", small, growth, "below 0", True
        if LOOKUP in ways and own:
            least = Least(tuple(difference(accuracy(recipe, task), accuracy(ways[LOOKUP], task)) for recipe in own))
            yield s, "T1, 2", "lookup-worst", worst, least


def _flatness(view):
    falls = "the trace of Hessian demonstrates a clear decreasing trend after the pre-training loss converges"
    further = "SGD lowers the trace further than training on with AdamW does"
    improves = "as the trace of Hessian decreases, the downstream performance improves"
    larger = "The trace of Hessian of the adversarially pre-trained model is larger than the normally pre-trained model"
    sharp = "an increase in linear probe accuracy with a sharp decrease in the trace of Hessian, with model size"
    strong = "The trace of Hessian correlates with downstream performance for models with different sizes"
    for kind in CORPORA:
        if (trained_on := sgd(view, kind)) is None:
            continue
        s, (recipe, _) = "4 checkpoints", trained_on
        start = measured_start(view, kind)

        def change(reading, start=start):
            """From where SGD began, or where that was not measured from its first converged checkpoint."""
            return difference(reading, reading.of(start[0], step=start[1])) if start else _since(reading)

        yield s, "3", f"sgd-trace-falls-{kind}", falls, change(_trace(recipe)), "below 0", True
        if start:  # SGD raises the loss at first, and so the trace has another way to fall
            own = f"{falls} (from where SGD's own loss has converged)"
            yield s, "3", f"sgd-trace-falls-on-{kind}", own, _since(_trace(recipe)), "below 0", True
        for longest in branches(view, kind)[-1:]:
            more = difference(_trace(recipe), _trace(longest))
            yield "not in the paper", "3", f"sgd-trace-more-{kind}", further, more, "below 0", True
        figures, names = _figures(view, kind, {"sgd": "3", "more sgd": "10"}), _names(view, kind)
        since = {"step": "since converged", "over": "step"}
        for task, figure in figures.items():
            name = names[task]
            fallen = (_negative(change(_trace(recipe))),)
            yield s, figure, f"sgd-improves-{name}", improves, change(accuracy(recipe, task)), *EQUAL, fallen
            both = (accuracy(recipe, task, **since),), (Reading(recipe, "trace", **since),)
            yield s, figure, f"sgd-correlates-{name}", improves, Correlation(*both, varied=True), "below 0"
    ways = algorithms(view)
    if ADVERSARIAL in ways and PLAIN in ways:
        s, pair = "4 algorithms", (_trace(ways[ADVERSARIAL]), _trace(ways[PLAIN]))
        yield s, "T2", "adversarial-trace", larger, difference(*pair), *EQUAL
        twice = difference(*pair, round(log(2), 4))
        yield s, "T2", "adversarial-trace-2", f"{larger} (3 times; tested: more than twice)", twice, *EQUAL
    for kind in CORPORA:
        if len(own := sizes(view, kind)) < 2:
            continue
        s, metric = "4 sizes", trace_of_sizes(view, own)
        figure = "5" if metric == "trace" else "5 embedded"
        growth = _over_sizes(view, own, lambda size, metric=metric: Reading(size, metric, form="log"))
        yield s, figure, f"size-trace-{kind}", sharp, growth, "below 0", True
        if metric != "trace":
            plain = "The trace of Hessian falls with model size as it is measured, in a model of its own width, too"
            growth = _over_sizes(view, own, _trace)
            yield "not in the paper", "5", f"size-trace-plain-{kind}", plain, growth, "below 0", True
        for task in places(view, kind).get("sizes", []):
            both = tuple(accuracy(size, task) for size in own), tuple(Reading(size, metric) for size in own)
            name = _names(view, kind)[task]
            correlation = Correlation(*both, equal_loss=True, varied=True)
            yield s, figure, f"size-correlates-{name}", strong, correlation, "below 0", True
            half = f"{strong} (more than half of the variance)"
            r2, falls = (Correlation(*both, *how, equal_loss=True, varied=True) for how in (("R2", 0.5), ()))
            yield s, figure, f"size-R2-{name}", half, r2, *EQUAL, (replace(falls, sign=-1),)


def _drift(view):
    """What Theorem 3.3 says of SGD's rate and batch size, which the paper does not vary.

    That runs of one time end at one trace is tested where a run of another time is shown to end elsewhere.
    """
    s, figure = "not in the paper", "swept"
    alike = "By Theorem 3.3 the trace of Hessian depends on k eta^2 / B alone, whatever SGD's rate eta and batch size B"
    further = "The larger k eta^2 / B, the smaller the trace of Hessian"
    better = "... and the better the model"
    near = view.margins.get("log_trace", ALIKE)
    for kind in CORPORA:
        own = swept(view, kind)
        for recipe, other in combinations(own, 2):
            others = [one for one in own if not _as_long(view, one, recipe)]
            if not others or not _as_long(view, recipe, other):
                continue
            # one that is shorter, or longer if there is none, must end elsewhere, or all runs would be alike
            shorter, longer = sorted((others[0], recipe), key=lambda one: drift(view, one))
            elsewhere = (difference(_trace(shorter), _trace(longer), near),)
            ways = [f"{view.fact(one, 'optimiser.lr'):g}-{view.fact(one, 'batch_size')}" for one in (other, recipe)]
            text = f"{alike} (within {near:g} of its logarithm)"
            apart = difference(_trace(recipe), _trace(other))
            yield s, figure, f"sgd-drift-{kind}-{'-'.join(ways)}", text, apart, "equal", True, elsewhere, near
        if own and not _as_long(view, own[0], own[-1]):
            ends = own[-1], own[0]
            fall = difference(*map(_trace, ends))
            yield s, figure, f"sgd-drift-more-{kind}", further, fall, "below 0", True
            for task, name in _names(view, kind).items():
                change = difference(*(accuracy(recipe, task) for recipe in ends))
                yield s, figure, f"sgd-drift-better-{name}", better, change, *EQUAL, (_negative(fall),)


def _as_long(view, recipe, other) -> bool:
    """Whether two runs of SGD have the same time of Theorem 3.3."""
    return isclose(drift(view, recipe), drift(view, other), rel_tol=1e-6)


def _more_masks(view):
    s, own = "E", sizes(view, PCFG, one_mask=False)
    loss = "the loss evaluated with one mask does not change much compared with training with one mask per sentence"
    same = "The downstream performance does not change significantly with 15% mask rate either"
    holds = "The conclusion of Section 2 still holds (larger models are better at the same loss)"
    pairs = {size: other for size in own if (other := twin(view, size, "masking."))}
    for which, size in {"largest": own[-1:], "smallest": own[:1]}.items():
        for recipe in (name for name in size if name in pairs):
            change = difference(_gap(recipe), _gap(pairs[recipe]))
            yield s, "11", f"masks-loss-{which}", loss, change, "equal", False, (), view.saturation
    for task, name in _names(view, PCFG).items():
        for recipe in (size for size in own[-1:] if size in pairs):
            change = difference(accuracy(recipe, task), accuracy(pairs[recipe], task))
            yield s, "11", f"masks-same-{name}", same, change, "equal"
        if len(own) > 1:
            growth = _over_sizes(view, own, lambda size, task=task: accuracy(size, task))
            yield s, "11", f"masks-larger-{name}", holds, growth, *EQUAL


def _within_sizes(view):
    """What one run of each size cannot show: whether trace and accuracy go together among models of the same size."""
    text = "Of models of the same size, those whose trace of Hessian is smaller are better, their losses given"
    for kind in CORPORA:
        if len(own := sizes(view, kind)) < 2:
            continue
        if known := tuple(_names(view, kind)):
            ys = tuple(Reading(size, "accuracy", known, probe="linear_probe") for size in own)
            gaps = tuple(map(_gap, own))
            effect = Within(ys, tuple(map(_trace, own)), gaps, statistic="partial correlation", equal_loss=True)
            yield "not in the paper", "5", f"within-size-{kind}", text, effect, "below 0"


def _intervention(view):
    """What the paper could not do: a term changes the trace, in models that are otherwise trained alike."""
    s, figure = "not in the paper", "pressed"
    moved = "A term that lowers or raises the trace of Hessian in training moves it"
    same = "That term leaves the pre-training loss as it is"
    better = "With the same pre-training loss, a model whose trace was lowered is better than one whose was raised"
    same_loss = "equal", False, (), view.saturation
    plainly = "... and better than one whose trace was left as it is"
    for kind in CORPORA:
        if len(own := pressed(view, kind)) < 2:
            continue
        ends = own[-1], own[0]
        yield s, figure, f"pressed-trace-{kind}", moved, difference(*map(_trace, ends)), "below 0", True
        (plain,) = (recipe for recipe in own if not press(view, recipe))
        for what, end in zip(("lowered", "raised"), ends, strict=True):
            if end != plain:
                change = difference(_gap(end), _gap(plain))
                yield s, figure, f"pressed-loss-{what}-{kind}", f"{same} ({what})", change, *same_loss
        for task, name in _names(view, kind).items():
            change = difference(*(accuracy(recipe, task) for recipe in ends))
            lowered = (difference(*map(_trace, reversed(ends))),)
            yield s, figure, f"pressed-better-{name}", better, change, *EQUAL, lowered
            if own[-1] != plain:
                change = difference(*(accuracy(recipe, task) for recipe in (own[-1], plain)))
                lowered = (difference(_trace(plain), _trace(own[-1])),)
                yield s, figure, f"pressed-lowered-{name}", plainly, change, *EQUAL, lowered
