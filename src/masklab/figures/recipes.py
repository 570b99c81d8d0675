"""What the figures, tables and claims of `mae` show: recipes of pre-training, each a panel of the study whose models
are its runs, in order of their seeds of pre-training. Light: read at parse time.
"""

import re

from masklab.config.schema import Config, Study
from masklab.errors import MaskLabError
from masklab.figures.spec import Spec

MLM, MAE, CORRUPTED, KEPT = "MLM", "MAE-LM", "80-10-10", "kept"
# Table 2 of Meng et al. (2024): group -> the recipes it compares.
GROUPS = {
    "Handling [MASK]": (MAE, MLM, KEPT, "reset", "random"),
    "Position encoding": (MAE, "misaligned", "no-relative"),
    "Decoder attention": (MAE, "self+cross", "causal+cross", "cross"),
    "Decoder size": (MAE, "fewer-layers", "more-layers", "narrower", "wider"),
}
COMPARED = (MLM, MAE, CORRUPTED)
_DELTA = re.compile(r"delta-(\d*\.?\d+)")


def delta_of(title: str) -> float | None:
    """Share of [MASK]s in the encoder of a recipe of Figure 4: "delta-0.25" -> .25, MAE-LM 0, `kept` 1; else None."""
    found = _DELTA.fullmatch(title)
    return {MAE: 0.0, KEPT: 1.0}.get(title, float(found[1]) if found else None)


def deltas(study: Study) -> dict[str, float]:
    """Recipes of Figure 4, by rising delta."""
    found = {title: delta_of(title) for title in study.panels if delta_of(title) is not None}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def present(study: Study, wanted, fewest: int = 1) -> list[str]:
    """Those of the recipes `wanted` that are panels of the study; MaskLabError if they are fewer than `fewest`."""
    found = [title for title in wanted if study.panels.get(title)]
    if len(found) < fewest:
        raise MaskLabError(f"needs {fewest} of the panels {', '.join(map(repr, wanted))}")
    return found


def _models(wanted, fewest=1):
    def found(study: Study, config: Config) -> list[str]:
        titles = present(study, wanted(study) if callable(wanted) else wanted, fewest)
        return list(dict.fromkeys(model for title in titles for model in study.members[title]))

    return found


def _against_delta(study: Study, config: Config) -> list[str]:
    """The models of at least two recipes of Figure 4, and MLM's where the study has them."""
    titles = [*present(study, deltas(study), 2), *present(study, (MLM,), 0)]
    return [model for title in titles for model in study.members[title]]


def figures() -> dict[str, Spec]:
    """The figures of the study."""

    def spec(name, kinds, models, *sets):
        return Spec(f"masklab.figures.mae:{name}", kinds, models, sets)

    return {
        "figure1a": spec("figure1a", ("rank",), _models(COMPARED)),
        "figure1a_centred": spec("figure1a_centred", ("rank",), _models(COMPARED)),
        "figure1b": spec("figure1b", ("rank",), _models(COMPARED)),
        "figure3": spec("figure3", ("finetune", "cost"), _models((MLM, MAE), 2), "mnli"),
        "figure4": spec("figure4", ("finetune",), _against_delta, "glue", "squad"),
    }


def tables() -> dict[str, Spec]:
    """The tables of the study."""

    def spec(name, kinds, models, *sets):
        return Spec(f"masklab.tables.mae:{name}", kinds, models, sets)

    every = tuple(dict.fromkeys(title for titles in GROUPS.values() for title in titles))
    return {
        "table1": spec("table1", ("finetune",), _models(COMPARED), "glue", "squad"),
        "table2": spec("table2", ("finetune",), _models(every, 2), "glue", "squad"),
        "losses": spec("losses", ("loss",), _models(COMPARED)),
        "table3": spec("table3", ("finetune", "rank"), _models(COMPARED), "mnli", "squad"),
    }
