"""Every sentence of Liu, Xie, Li and Ma (2023), sections 2.3, 4 and E, that scores can support or contradict.

Panels of the study: `pcfg`, `hmm`, `causal` (models by size), `pcfg-sgd`, `hmm-sgd` (one model each, trained on by
SGD), `pcfg-algorithms` (labels AdamW, adversarial, lookup table), `pcfg-15` (sizes trained with 15 % of the tokens
masked). Sets: one per task, `pcfg-a` to `hmm-10`, `causal-qnli`, `causal-sst2`. A sentence with several assertions,
or about several corpora, gives one claim for each.
"""

from math import log

from masklab.claims.cells import LARGEST, SMALLEST, SMALLEST_EQUAL, WORST, Cell, Cells, Trend
from masklab.claims.spec import Claim, difference

# Corpus -> its tasks with the figure that shows accuracy against size.
TASKS = {
    "pcfg": {"pcfg-b": "2", "pcfg-a": "9", "pcfg-c": "9"},
    "hmm": {"hmm-10": "2", "hmm-6": "9"},
    "causal": {"causal-qnli": "2", "causal-sst2": "9"},
}
SGD = {"pcfg": {"pcfg-c": "3", "pcfg-a": "10", "pcfg-b": "10"}, "hmm": {"hmm-10": "3", "hmm-6": "10"}}
ADAMW, ADVERSARIAL, LOOKUP = "AdamW", "adversarial", "lookup table"
ALGORITHMS, ANY15 = "pcfg-algorithms", "pcfg-15"


def _claims():
    yield from _checkpoints()
    yield from _sizes()
    yield from _algorithms()
    yield from _flatness()
    yield from _more_masks()


def _since(cell: Cell) -> tuple:
    """The change of a cell from the convergence of its model to its last checkpoint."""
    return difference(cell, Cell(cell.panel, cell.model, cell.metric, cell.set, "converged", cell.form))


def _growth(panel, **cell) -> tuple:
    """The largest model less the smallest at equal loss."""
    return difference(Cell(panel, LARGEST, **cell), Cell(panel, SMALLEST_EQUAL, **cell))


def _checkpoints():
    s = "2.3 checkpoints"
    rises = "After the pre-training loss converges, the downstream accuracy continues increasing"
    for corpus, tasks in TASKS.items():
        for task, figure in tasks.items():
            shown = {"pcfg-c": "1", "causal-qnli": "1"}.get(task, figure)
            effect = Cells(_since(Cell(corpus, set=task)), equal_loss=True)
            yield Claim(f"rises-{task}", s, shown, rises, effect)


def _sizes():
    s = "2.3 sizes"
    approaches = "As we increase the model size, the pre-training loss approaches the entropy"
    larger = "Even with the same pre-training loss, larger models are better than smaller models"
    smallest = "the smallest 4M model can fit pre-training close to the entropy of the true conditional probability"
    for corpus, tasks in TASKS.items():
        gap = {"metric": "gap", "form": "share of the entropy"}
        effect = Cells(difference(Cell(corpus, LARGEST, **gap), Cell(corpus, SMALLEST, **gap)))
        yield Claim(f"loss-falls-{corpus}", s, "2", approaches + " (it falls)", effect, "below 0")
        near = Cells(((1, Cell(corpus, LARGEST, **gap)),))
        yield Claim(f"loss-near-{corpus}", s, "2", approaches + " (up to the margin)", near, "no more")
        for task, figure in tasks.items():
            effect = Cells(_growth(corpus, set=task), equal_loss=True)
            yield Claim(f"larger-{task}", s if figure == "2" else "A.5", figure, larger, effect)
    near = Cells(((1, Cell("hmm", SMALLEST, "gap", form="share of the entropy")),))
    yield Claim("hmm-smallest", s, "2", smallest, near, "no more")


def _algorithms():
    s = "2.3 algorithms"
    same = "the adversarially trained transformer has almost the same pre-training loss as the normally trained"
    worse = "Naturally trained transformers are better than adversarially trained ones"
    six = "it is more than 6% worse than the normal model"
    small = "and even worse than a normal 9M model on the downstream task B"
    lookup = "The lookup table performs worse than all normally trained transformers on task B"
    gap = {"metric": "gap", "form": "share of the entropy"}
    effect = Cells(difference(Cell(ALGORITHMS, ADVERSARIAL, **gap), Cell(ALGORITHMS, ADAMW, **gap)))
    yield Claim("adversarial-loss", s, "T1, T2", same, effect, "equal")
    for task, table in (("pcfg-a", "T1"), ("pcfg-b", "T1"), ("pcfg-c", "T2")):
        terms = difference(Cell(ALGORITHMS, ADAMW, set=task), Cell(ALGORITHMS, ADVERSARIAL, set=task))
        at = s if table == "T1" else "4 algorithms"
        yield Claim(f"adversarial-worse-{task}", at, table, worse, Cells(terms, equal_loss=True))
        if table == "T1":
            effect = Cells(terms, threshold=0.06, equal_loss=True)
            yield Claim(f"adversarial-worse-6-{task}", s, table, six, effect)
    terms = difference(Cell("pcfg", SMALLEST_EQUAL, set="pcfg-b"), Cell(ALGORITHMS, ADVERSARIAL, set="pcfg-b"))
    yield Claim("adversarial-below-small", s, "T1, 2", small, Cells(terms, equal_loss=True))
    terms = difference(Cell("pcfg", WORST, set="pcfg-b"), Cell(ALGORITHMS, LOOKUP, set="pcfg-b"))
    yield Claim("lookup-worst", s, "T1, 2", lookup, Cells(terms))


def _flatness():
    falls = "the trace of Hessian demonstrates a clear decreasing trend after the pre-training loss converges"
    improves = "as the trace of Hessian decreases, the downstream performance improves"
    larger = "The trace of Hessian of the adversarially pre-trained model is larger than the normally pre-trained model"
    sharp = "an increase in linear probe accuracy with a sharp decrease in the trace of Hessian, with model size"
    strong = "The trace of Hessian correlates with downstream performance for models with different sizes"
    for corpus, tasks in SGD.items():
        panel = f"{corpus}-sgd"
        effect = Cells(_since(Cell(panel, metric="trace", form="log")), equal_loss=True)
        yield Claim(f"sgd-trace-falls-{corpus}", "4 checkpoints", "3", falls, effect, "below 0")
        for task, figure in tasks.items():
            effect = Cells(_since(Cell(panel, set=task)), equal_loss=True)
            yield Claim(f"sgd-improves-{task}", "4 checkpoints", figure, improves, effect)
            trend = Trend(Cell(panel, set=task), "trace", "checkpoints")
            yield Claim(f"sgd-correlates-{task}", "4 checkpoints", figure, improves, trend, "below 0")
    trace = {"metric": "trace", "form": "log"}
    terms = difference(Cell(ALGORITHMS, ADVERSARIAL, **trace), Cell(ALGORITHMS, ADAMW, **trace))
    yield Claim("adversarial-trace", "4 algorithms", "T2", larger, Cells(terms, equal_loss=True))
    twice = Cells(terms, threshold=round(log(2), 4), equal_loss=True)
    yield Claim("adversarial-trace-2", "4 algorithms", "T2", f"{larger} (3 times; tested: more than twice)", twice)
    for corpus, tasks in TASKS.items():
        effect = Cells(_growth(corpus, **trace), equal_loss=True)
        yield Claim(f"size-trace-{corpus}", "4 sizes", "5", sharp, effect, "below 0")
        task = next(iter(tasks))
        trend = Trend(Cell(corpus, set=task), "trace", "models")
        yield Claim(f"size-correlates-{task}", "4 sizes", "5", strong, trend, "below 0")
        trend = Trend(Cell(corpus, set=task), "trace", "models", "R2", 0.5)
        yield Claim(f"size-R2-{task}", "4 sizes", "5", f"{strong} (more than half of the variance)", trend)


def _more_masks():
    s, at = "E", ANY15
    loss = "the loss evaluated with one mask does not change much compared with training with one mask per sentence"
    same = "The downstream performance does not change significantly with 15% mask rate either"
    holds = "The conclusion of Section 2 still holds (larger models are better at the same loss)"
    gap = {"metric": "gap", "form": "share of the entropy"}
    for name, model in (("largest", LARGEST), ("smallest", SMALLEST)):
        terms = difference(Cell(at, model, **gap), Cell("pcfg", model, labelled=at, **gap))
        yield Claim(f"masks-loss-{name}", s, "11", loss, Cells(terms), "equal")
    for task in TASKS["pcfg"]:
        terms = difference(Cell(at, LARGEST, set=task), Cell("pcfg", LARGEST, set=task, labelled=at))
        yield Claim(f"masks-same-{task}", s, "11", same, Cells(terms), "equal")
        yield Claim(f"masks-larger-{task}", s, "11", holds, Cells(_growth(at, set=task), equal_loss=True))


CLAIMS = list(_claims())
