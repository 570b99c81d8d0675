"""Tables 1 to 3: ways of training one architecture beside each other, and the shapes of all sizes."""

from masklab.report.cells import cell, filled, null_cells, tidy
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
    *_, shortest = letters(results.view).values()
    return _ways(results, chosen, "loss", "gap", shortest, "trace")


def _ways(results, chosen, *shown):
    rows = []
    for what in shown:
        own = {way: readings[what] for way, readings in chosen.items() if what in readings}
        task = what in results.view.tasks
        row, metric = (said(results.view, what).capitalize(), "accuracy") if task else (what.capitalize(), what)
        rows += [cell(results, reading, CORPORA[PCFG], row, way, metric) for way, reading in own.items()]
        rows += null_cells(results, own.values(), CORPORA[PCFG], row, metric) if task else []
    return tidy(rows)


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
