"""Tables 1 to 3: ways of training one architecture beside each other, and the shapes of all sizes."""

from masklab.report.cells import filled, tidy
from masklab.report.rows import table_of
from masklab.scores.estimate import Estimate
from masklab.studies.implicit_bias.select import CORPORA, PCFG, letters, said

SHAPE = {"parameters": "Parameters", "hidden": "Width", "layers": "Layers", "heads": "Heads",
         "intermediate": "Feed-forward width"}  # fmt: skip


def table1(results, chosen):
    """Loss, its gap to the entropy, and accuracy on tasks A and B of the paper, the longest span and the middle one."""
    return _ways(
        results, chosen, "loss", "gap", *[task for letter, task in letters(results.view).items() if letter != "c"]
    )


def table2(results, chosen):
    """Loss, its gap to the entropy, accuracy on task C, the shortest span, and trace of the Hessian."""
    shortest = list(letters(results.view).values())[-1:]  # none where no linear probe measures the grammar
    return _ways(results, chosen, "loss", "gap", *shortest, "trace")


def _ways(results, chosen, *shown):
    rows = {}
    for what in shown:
        row = said(results.view, what) if what in results.view.tasks else what
        rows[row.capitalize()] = {way: readings[what] for way, readings in chosen.items() if what in readings}
    return table_of(results, {CORPORA[PCFG]: rows})


def table3(results, chosen):
    """Parameters, layers and width of every size, and heads and width of the feed-forward layer of a transformer."""
    rows = []
    for kind, members in chosen.items():
        for recipe in members:
            facts = results.view.recipes[recipe]
            shape = {metric: facts[f"encoder.{metric}"] for metric in ("hidden", "layers")}
            if facts["encoder.kind"] == "transformer":
                inner = facts["encoder.intermediate"] or 4 * facts["encoder.hidden"]
                shape |= {"heads": facts["encoder.heads"], "intermediate": inner}
            for metric, value in ({"parameters": results.fact(recipe, "parameters")} | shape).items():
                made = Estimate(float(value), float("nan"), float("nan"))
                rows.append(filled(made, CORPORA[kind], SHAPE[metric], recipe, results.view.label(recipe), metric))
    return tidy(rows)
