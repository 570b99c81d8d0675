"""Tables: one function each, from scores to a tidy frame.

`TABLES` names them per study; importing this package does not import pandas.
To add one: write `make(scores, study, labels, metrics, starts=None) -> DataFrame` with the columns of
`masklab.tables.cells.TIDY` and add a line here.
"""

from masklab.figures.spec import Spec, panel_models

TABLES: dict[str, dict[str, Spec]] = {
    "mlsm": {
        "table1": Spec("masklab.tables.mlsm:table1", ("minimal_pairs",), panel_models, ("blimp",)),
        "table1_full_width": Spec(
            "masklab.tables.mlsm:table1_full_width", ("minimal_pairs",), panel_models, ("blimp",)
        ),
        "table2": Spec("masklab.tables.mlsm:table2", ("finetune",), panel_models, ("glue",)),
        "table3": Spec("masklab.tables.mlsm:table3", ("finetune",), panel_models, ("msgs-control", "msgs-ambiguous")),
    }
}
