"""Figures: one function each, from scores to a matplotlib figure and the data it shows.

`FIGURES` names them per study; importing this package imports neither matplotlib nor pandas.
To add one: write `draw(scores, study, labels, metrics, starts=None) -> (figure, data)` and add a line here.
"""

from masklab.figures.spec import Spec, labels, panel_models_and_starts, panel_with, versus

# Objectives that Figure 1 and Figure 2 set side by side, each in order of preference.
FIGURE1 = (("MLM",), ("MLSM", "MLSM+MLM"))
FIGURE2 = (("MLSM",), ("MLSM+MLM",))


def _figure1(study, config):
    return panel_with(study, labels(config, study), *FIGURE1)[1]


def _figure2(study, config):
    return panel_with(study, labels(config, study), *FIGURE2)[1]


def _figure6(study, config):
    pairs = versus(study, labels(config, study))
    return list(dict.fromkeys(name for _, other, joint in pairs for name in (other, joint)))


_MSGS = ("msgs-control", "msgs-ambiguous")

FIGURES: dict[str, dict[str, Spec]] = {
    "mlsm": {
        "figure1": Spec("masklab.figures.mlsm:figure1", ("prediction",), _figure1, every=True),
        "figure2": Spec("masklab.figures.mlsm:figure2", ("minimal_pairs",), _figure2, ("blimp",), every=True),
        "figure3": Spec("masklab.figures.mlsm:figure3", ("minimal_pairs",), panel_models_and_starts, ("blimp",)),
        "figure4": Spec("masklab.figures.mlsm:figure4", ("finetune",), panel_models_and_starts, ("glue",)),
        "figure5": Spec("masklab.figures.mlsm:figure5", ("finetune",), panel_models_and_starts, _MSGS),
        "figure6": Spec("masklab.figures.mlsm:figure6", ("finetune",), _figure6, _MSGS, every=True),
    }
}
