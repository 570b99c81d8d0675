"""Liu, Xie, Li and Ma, "Same Pre-training Loss, Better Downstream: Implicit Bias Matters for Language Models" (2023):
its figures, tables and claims.
"""

from masklab.report.item import Item
from masklab.studies.implicit_bias.claims import claims
from masklab.studies.implicit_bias.select import (
    CAUSAL,
    PCFG,
    along_sgd,
    by_drift,
    by_size,
    by_step,
    cooled,
    corpus_of,
    masks,
    pressed_traces,
    shapes,
    slices,
    ways,
)

__all__ = ["FIGURES", "TABLES", "claims"]

_HERE = "masklab.studies.implicit_bias"

FIGURES = {
    "figure1": Item(f"{_HERE}.figures:figure1", by_step("steps")),
    "figure2": Item(f"{_HERE}.figures:figure2", by_size("sizes", "floor")),
    "figure3": Item(f"{_HERE}.traces:figure3", along_sgd("sgd")),
    "figure4": Item(f"{_HERE}.flatness:figure4", slices, nulls=False),
    "figure5": Item(f"{_HERE}.traces:figure5", by_size("sizes", "trace")),
    "figure5_embedded": Item(f"{_HERE}.traces:figure5_embedded", by_size("sizes", "trace_embedded")),
    "figure6": Item(f"{_HERE}.flatness:figure6", nulls=False),
    "figure7": Item(f"{_HERE}.samples:figure7", corpora=corpus_of(PCFG), nulls=False),
    "figure8": Item(f"{_HERE}.samples:figure8", corpora=corpus_of(CAUSAL), nulls=False),
    "figure9": Item(f"{_HERE}.figures:figure9", by_size("more sizes")),
    "figure10": Item(f"{_HERE}.traces:figure10", along_sgd("more sgd")),
    "figure11": Item(f"{_HERE}.figures:figure11", masks),
    "figure_cooled": Item(f"{_HERE}.cooled:figure_cooled", cooled),
    "figure_drift": Item(f"{_HERE}.flatness:figure_drift", nulls=False),
    "figure_pressed": Item(f"{_HERE}.pressed:figure_pressed", pressed_traces),
    "figure_swept": Item(f"{_HERE}.swept:figure_swept", by_drift),
}
TABLES = {
    "table1": Item(f"{_HERE}.tables:table1", ways("loss", "gap")),
    "table2": Item(f"{_HERE}.tables:table2", ways("loss", "gap", "trace")),
    "table3": Item(f"{_HERE}.tables:table3", shapes, nulls=False),
}
