"""Berend, "Better Together: Jointly Using Masked Latent Semantic Modeling and Masked Language Modeling for Sample
Efficient Pre-training" (BabyLM 2023): its figures, tables and claims.

Which recipe is which objective is read from its loss terms, phase 1 from what recipes start from, the larger corpus
from its size. Which tasks are of which suite only a study knows (files do not tell): its sets `blimp`, `glue`,
`msgs-control` and `msgs-ambiguous` say it.
"""

from masklab.report.item import Item
from masklab.studies.mlsm.claims import claims, notices
from masklab.studies.mlsm.gaps import FULL
from masklab.studies.mlsm.select import (
    AMBIGUOUS,
    BLIMP,
    CONTROL,
    GLUE,
    curves,
    joint_and_latent,
    joint_and_others,
    predictions,
    table,
)

__all__ = ["FIGURES", "TABLES", "claims", "notices"]

MSGS = {"Average (control)": (CONTROL,), "Average (ambiguous)": (AMBIGUOUS,), "Average": (CONTROL, AMBIGUOUS)}

FIGURES = {
    "figure1": Item("masklab.studies.mlsm.figures:figure1", predictions, nulls=False),
    "figure2": Item("masklab.studies.mlsm.figures:figure2", joint_and_latent()),
    # As published: the softmax of models with latent logits runs over vocabulary and latent logits.
    "figure2_full_width": Item("masklab.studies.mlsm.figures:figure2", joint_and_latent(FULL)),
    "figure3": Item("masklab.studies.mlsm.figures:curves", curves(BLIMP)),
    "figure3_full_width": Item("masklab.studies.mlsm.figures:curves", curves(BLIMP, metric=FULL)),
    "figure4": Item("masklab.studies.mlsm.figures:curves", curves(GLUE)),
    "figure5": Item("masklab.studies.mlsm.figures:curves", curves(CONTROL, AMBIGUOUS)),
    "figure6": Item("masklab.studies.mlsm.figures:figure6", joint_and_others),
}
TABLES = {
    "table1": Item("masklab.studies.mlsm.tables:table", table({"Average": (BLIMP,)})),
    "table1_full_width": Item("masklab.studies.mlsm.tables:table", table({"Average": (BLIMP,)}, FULL)),
    "table2": Item("masklab.studies.mlsm.tables:table", table({"Average": (GLUE,)})),
    "table3": Item("masklab.studies.mlsm.tables:table", table(MSGS)),
}
