"""Effects on cells of scores: a metric of one model at one checkpoint, compared, or followed over checkpoints or sizes.

Panels list models from small to large. Two losses are *equal* if they differ by no more than the study's
`saturation`, a share of the smaller one: a checkpoint has *converged* from the first whose loss equals the lowest of
its model, and models are at equal loss whose last losses equal the lowest of their panel.

Light: imported at parse time. The numbers: `masklab.claims.cell_estimates`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from masklab.claims.spec import measuring
from masklab.config.schema import Config, Study
from masklab.errors import MaskLabError

# In place of a label: the first and last model of the panel, the first at equal loss, and the worst per seed.
SMALLEST, LARGEST, SMALLEST_EQUAL, WORST = "smallest", "largest", "smallest at equal loss", "worst"
PICKS = (SMALLEST, LARGEST, SMALLEST_EQUAL, WORST)

# Metric -> kind of the probe that measures it.
PROBES = {"accuracy": "linear_probe", "loss": "loss", "gap": "loss", "floor": "loss", "trace": "curvature"}
PROBES |= {"trace_embedded": "curvature"}

Step = Literal["first", "converged", "last"]
Form = Literal["value", "log", "share of the entropy"]


@dataclass(frozen=True)
class Cell:
    """A number per seed, or one with a standard error over test items.

    panel: title of a panel; model: a label of it, or one of `PICKS`. metric: one of `PROBES`.
    labelled: another panel of which `model` picks the label; the cell is the model of `panel` with that label.
    set: set of tasks that the metric is averaged over; None for metrics of the corpus.
    step: which checkpoint. form: the value itself, its logarithm, or what share of the corpus's entropy it is.
    """

    panel: str
    model: str = LARGEST
    metric: str = "accuracy"
    set: str | None = None
    step: Step = "last"
    form: Form = "value"
    labelled: str | None = None

    def words(self) -> dict[str, str]:
        """What it is, in parts."""
        form = {"value": "", "log": "log ", "share of the entropy": "relative "}[self.form]
        return {
            "metric": form + self.metric + (f" on {self.set}" if self.set else ""),
            "model": f"{self.model} of {self.labelled}" if self.labelled else self.model,
            "panel": f"in {self.panel}",
            "step": {"last": "last checkpoint", "converged": "as it converged", "first": "first checkpoint"}[self.step],
        }


class _Read:
    """What effects on cells share: which models and probes they read."""

    estimator: ClassVar[str] = "masklab.claims.cell_estimates"

    def lacking(self, study: Study) -> str | None:
        for cell in self.cells:
            panel = study.panels.get(cell.panel)
            if panel is None:
                return f"needs a panel {cell.panel!r}"
            if cell.model not in PICKS and (not isinstance(panel, dict) or cell.model not in panel):
                return f"needs a model labelled {cell.model!r} in panel {cell.panel!r}"
            if cell.set is not None and not study.sets.get(cell.set):
                return f"needs a set {cell.set!r} with at least one task under sets"
        return None

    def needs(self, study: Study, config: Config) -> list[tuple[str, str]]:
        pairs = []
        for cell in self.cells:
            models = study.members[cell.panel] if cell.model in PICKS else [study.panels[cell.panel][cell.model]]
            for metric in dict.fromkeys([cell.metric, "loss"]):
                tasks = study.sets[cell.set] if metric == cell.metric and cell.set else []
                for model in models:
                    found = measuring(study, config, model, PROBES[metric], tasks)
                    if not found:
                        on = f" on {', '.join(tasks)}" if tasks else ""
                        raise MaskLabError(f"no {PROBES[metric]} probe of the study measures {model}{on}")
                    pairs += found
        return list(dict.fromkeys(pairs))


@dataclass(frozen=True)
class Cells(_Read):
    """The sum of (weight, cell) `terms`, less `threshold`.

    equal_loss: presupposes that the cells' models are at equal loss, at the checkpoints compared.
    """

    terms: tuple[tuple[float, Cell], ...]
    threshold: float = 0.0
    equal_loss: bool = False

    @property
    def cells(self) -> list[Cell]:
        return [cell for _, cell in self.terms]

    @property
    def unit(self) -> str:
        cell = self.terms[0][1]
        return {"log": f"log {cell.metric}", "share of the entropy": "share of the entropy"}.get(cell.form, cell.metric)

    @property
    def comparison(self) -> str:
        """The effect in words: what the cells share stands at the end."""
        words = [cell.words() for cell in self.cells]
        common = [key for key in words[0] if key != "model" and len({each[key] for each in words}) == 1]
        if len(words) > 1 and len({each["model"] for each in words}) == 1:
            common = ["model", *common]
        parts = []
        for (weight, _), each in zip(self.terms, words, strict=True):
            own = [text for key, text in each.items() if key not in common]
            sign = "-" if weight < 0 else "+" if parts else ""
            scale = "" if abs(weight) == 1 else f"{abs(weight):g} × "
            rest = f" ({', '.join(own[1:])})" if own[1:] else ""
            parts.append(f"{sign} {scale}{own[0] if own else ''}{rest}".strip())
        if self.threshold:
            parts.append(f"- {self.threshold:g}")
        return f"{' '.join(parts)}: {', '.join(words[0][key] for key in common)}"


@dataclass(frozen=True)
class Trend(_Read):
    """How the cell `y` moves with `x`, per seed of `y`.

    along: over the checkpoints of the cells' model from its convergence on, or over the models of their panel that are
    at equal loss. x: the metric of a cell without a set. statistic: Pearson's correlation, or R2, the coefficient of
    determination of the linear regression of y on x, less `threshold`. Takes three points.
    """

    y: Cell
    x: str
    along: Literal["checkpoints", "models"]
    statistic: Literal["correlation", "R2"] = "correlation"
    threshold: float = 0.0

    @property
    def cells(self) -> list[Cell]:
        model = LARGEST if self.along == "models" else self.y.model
        return [self.y, Cell(self.y.panel, model, self.x)]

    @property
    def unit(self) -> str:
        return self.statistic

    @property
    def comparison(self) -> str:
        words = self.y.words()
        over = (
            "models at equal loss"
            if self.along == "models"
            else f"checkpoints of the {self.y.model} since it converged"
        )
        less = f" - {self.threshold:g}" if self.threshold else ""
        return f"{self.statistic} of {words['metric']} with {self.x}{less}: {over}, {words['panel']}"
