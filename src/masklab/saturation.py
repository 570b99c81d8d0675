"""Which checkpoints and models have the same pre-training loss (Liu et al. 2023, section 2.1: saturation)."""

import pandas as pd

from masklab.errors import MaskLabError


def tested(scores: pd.DataFrame) -> pd.DataFrame:
    """Rows of the test split, those of `landscape` probes (losses beside a checkpoint) left out."""
    beside = (scores["metric"] == "loss") & scores["mix"].notna()
    return scores[(scores["split"] == "test") & ~beside]


class Losses:
    """Pre-training losses of score rows, by model and step.

    tolerance: losses that differ by no more than this share of the smaller one are equal.
    """

    def __init__(self, scores: pd.DataFrame, tolerance: float):
        self.tolerance = tolerance
        rows = tested(scores)
        self._loss = rows[rows["metric"] == "loss"].groupby(["model", "step"])["value"].mean().sort_index()
        self._floor = rows[rows["metric"] == "floor"].groupby("model")["value"].mean()

    def of(self, model: str) -> pd.Series:
        """Step -> loss, ascending; MaskLabError where the model's loss was not measured."""
        if model not in self._loss.index.get_level_values(0):
            raise MaskLabError(f"scores: no loss rows of {model}")
        return self._loss[model]

    def steps(self, model: str) -> list[int]:
        """Checkpoints whose loss was measured."""
        return [int(step) for step in self.of(model).index]

    def floor(self, model: str) -> float:
        """Entropy of the model's corpus; MaskLabError where it was not measured."""
        if model not in self._floor.index:
            raise MaskLabError(f"scores: no floor rows of {model}: the entropy of its corpus is not known")
        return float(self._floor[model])

    def converged(self, model: str) -> int:
        """First checkpoint whose loss equals the lowest of the model."""
        losses = self.of(model)
        return int(losses.index[losses <= losses.min() * (1 + self.tolerance)][0])

    def equal(self, models: list[str]) -> list[str]:
        """Those of the models whose last loss equals the lowest last loss of all."""
        last = {model: self.of(model).iloc[-1] for model in models}
        return [model for model in models if last[model] <= min(last.values()) * (1 + self.tolerance)]

    def agree(self, places: list[tuple[str, int]]) -> bool:
        """Whether the losses at all (model, step) equal each other."""
        values = [self.of(model)[step] for model, step in places]
        return max(values) <= min(values) * (1 + self.tolerance)
