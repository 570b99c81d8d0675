"""Tables: one function each, from scores to a tidy frame.

`TABLES` names them per study; importing this package does not import pandas.
To add one: write `make(scores, study, labels, metrics, starts=None) -> DataFrame` with the columns of
`masklab.tables.cells.TIDY` and add a line here.
"""

from masklab.figures.recipes import tables as recipe_tables
from masklab.figures.saturation import tables as saturation_tables
from masklab.figures.spec import Spec, models_of_sets, panel_models


def _transfer(name, *sets):
    return Spec(f"masklab.tables.dh:{name}", ("finetune",), models_of_sets(*sets), sets)


TABLES: dict[str, dict[str, Spec]] = {
    "mlsm": {
        "table1": Spec("masklab.tables.mlsm:table1", ("minimal_pairs",), panel_models, ("blimp",)),
        "table1_full_width": Spec(
            "masklab.tables.mlsm:table1_full_width", ("minimal_pairs",), panel_models, ("blimp",)
        ),
        "table2": Spec("masklab.tables.mlsm:table2", ("finetune",), panel_models, ("glue",)),
        "table3": Spec("masklab.tables.mlsm:table3", ("finetune",), panel_models, ("msgs-control", "msgs-ambiguous")),
    },
    "dh": {
        "table2": _transfer("table2", "single-50"),
        "table3a": _transfer("table3a", "single-0"),
        "table3b": _transfer("table3b", "single-10"),
        "table5a": _transfer("table5a", "shared-50"),
        "table5b": _transfer("table5b", "separate-50"),
        "table7": _transfer("table7", "separate-0", "separate-10", "shared-0", "shared-10"),
        "losses": Spec("masklab.tables.dh:losses", ("loss",), panel_models),
    },
    "implicit-bias": saturation_tables(),
    "mae": recipe_tables(),
}
