"""Meng, Krishnan, Wang, Wang, Mao, Fang, Ghazvininejad, Han and Zettlemoyer, "Representation Deficiency in Masked
Language Modeling" (ICLR 2024): its figures, tables and claims.
"""

from masklab.report.item import Item
from masklab.studies.mae import shown
from masklab.studies.mae.claims import claims

__all__ = ["FIGURES", "TABLES", "claims"]

FIGURES = {
    "figure1a": Item("masklab.studies.mae.figures:figure1a", shown.figure1a("rank")),
    "figure1a_centred": Item("masklab.studies.mae.figures:figure1a", shown.figure1a("rank_centred")),
    "figure1b": Item("masklab.studies.mae.figures:figure1b", shown.figure1b),
    "figure_outside": Item("masklab.studies.mae.figures:figure_outside", shown.figure_outside),
    "figure_law": Item("masklab.studies.mae.law_figure:figure_law", shown.figure_law, nulls=False),
    "figure_loss": Item("masklab.studies.mae.loss_figure:figure_loss", shown.figure_loss, nulls=False),
    "figure3": Item("masklab.studies.mae.figures:figure3", shown.figure3),
    "figure4": Item("masklab.studies.mae.figures:figure4", shown.figure4),
}
TABLES = {
    name: Item("masklab.report.rows:table_of", getattr(shown, name)) for name in ("table1", "table2", "table3")
} | {"ranks": Item("masklab.studies.mae.tables:ranks", shown.ranks, nulls=False)}
