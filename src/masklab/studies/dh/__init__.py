"""Chiang and Yogatama, "The Distributional Hypothesis Does Not Fully Explain the Benefits of Masked Language Model
Pretraining" (EMNLP 2023): its figures, tables and claims.
"""

from masklab.report.item import Item
from masklab.studies.dh import section6, section6_text
from masklab.studies.dh.claims import claims as curve_claims
from masklab.studies.dh.select import HALF, NONE, SOME, course, curves, dose_curves, ends, walks

__all__ = ["FIGURES", "TABLES", "claims"]

SEVERAL = (("separate", NONE), ("separate", SOME), ("shared", NONE), ("shared", SOME))
SHOWN = {
    "2": (("single", HALF),),
    "3a": (("single", NONE),),
    "3b": (("single", SOME),),
    "5a": (("shared", HALF),),
    "5b": (("separate", HALF),),
    "6": (("single", HALF), ("single", NONE), ("single", SOME)),
    "7": SEVERAL,
}

FIGURES = {"figure1": Item("masklab.studies.dh.walks:figure1", corpora=walks, nulls=False)} | {
    f"figure{name}": Item("masklab.studies.dh.figures:transfer", curves(*sets)) for name, sets in SHOWN.items()
}
FIGURES |= {
    "figure_dose": Item("masklab.studies.dh.figures:dose", dose_curves, nulls=False),
    "figure_replaced": Item("masklab.studies.dh.section6_figures:replaced", section6.curves, nulls=False),
    "figure_replaced_course": Item("masklab.studies.dh.section6_figures:course", section6.courses, nulls=False),
    "figure_phrases": Item("masklab.studies.dh.section6_figures:text", section6_text.curves),
    "figure_course": Item("masklab.studies.dh.figures:course", course, nulls=False),
}
TABLES = {
    f"table{name}": Item("masklab.studies.dh.tables:transfer", curves(*SHOWN[name]))
    for name in ("2", "3a", "3b", "5a", "5b", "7")
} | {
    "replaced": Item("masklab.studies.dh.section6_figures:table", section6.numbers, nulls=False),
    "phrases": Item("masklab.studies.dh.section6_figures:table", section6_text.numbers),
    "stopping": Item("masklab.studies.dh.tables:stopping", ends, nulls=False),
}


def claims(view):
    """Every claim of the wing that a study's recipes and tasks allow."""
    return [*curve_claims(view), *section6.claims(view), *section6_text.claims(view)]
