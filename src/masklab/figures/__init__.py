"""Figures: one function each, from scores to a matplotlib figure and the data it shows.

`FIGURES` names them per study; importing this package imports neither matplotlib nor pandas.
To add one: write `draw(scores, study, labels, metrics, starts=None) -> (figure, data)` and add a line here.
"""

from masklab.errors import MaskLabError
from masklab.figures.recipes import figures as recipe_figures
from masklab.figures.saturation import figures as saturation_figures
from masklab.figures.spec import Spec, labels, models_of_sets, panel_models_and_starts, panel_of, panel_with, versus

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


def _figure1_corpora(study, config):
    """The corpora with and without the distributional property."""
    panel = study.panels[panel_of(study, "single-")]
    missing = [label for label in ("w/ DH", "w/o DH") if label not in panel]
    if missing:
        raise MaskLabError(f"needs a model labelled {missing[0]!r} in panel 'single'")
    return [config.models[panel[label]].corpus for label in ("w/ DH", "w/o DH")]


def _transfer(name, *sets):
    return Spec(f"masklab.figures.dh:{name}", ("finetune",), models_of_sets(*sets), sets)


_MSGS = ("msgs-control", "msgs-ambiguous")

FIGURES: dict[str, dict[str, Spec]] = {
    "mlsm": {
        "figure1": Spec("masklab.figures.mlsm:figure1", ("prediction",), _figure1, every=True),
        "figure2": Spec("masklab.figures.mlsm:figure2", ("minimal_pairs",), _figure2, ("blimp",), every=True),
        "figure3": Spec("masklab.figures.mlsm:figure3", ("minimal_pairs",), panel_models_and_starts, ("blimp",)),
        "figure4": Spec("masklab.figures.mlsm:figure4", ("finetune",), panel_models_and_starts, ("glue",)),
        "figure5": Spec("masklab.figures.mlsm:figure5", ("finetune",), panel_models_and_starts, _MSGS),
        "figure6": Spec("masklab.figures.mlsm:figure6", ("finetune",), _figure6, _MSGS, every=True),
    },
    "dh": {
        "figure1": Spec("masklab.figures.chain:figure1", (), corpora=_figure1_corpora),
        "figure2": _transfer("figure2", "single-50"),
        "figure3a": _transfer("figure3a", "single-0"),
        "figure3b": _transfer("figure3b", "single-10"),
        "figure5a": _transfer("figure5a", "shared-50"),
        "figure5b": _transfer("figure5b", "separate-50"),
        "figure6": _transfer("figure6", "single-50", "single-0", "single-10"),
        "figure7": _transfer("figure7", "separate-0", "separate-10", "shared-0", "shared-10"),
    },
    "implicit-bias": saturation_figures(),
    "mae": recipe_figures(),
}
