"""Studies: which models, measured how, drawn how."""

from typing import Literal

from pydantic import Field

from masklab.config.schema.base import Entity, Share


class Study(Entity):
    """Which models, measured how, drawn how: a declaration, not code."""

    panels: dict[str, list[str] | dict[str, str]] = Field(
        description="Panel title -> its models, in the order of columns and legends; a mapping gives each its display label (label -> model), a list names models by their objective, and may hold patterns (`mae-mlm-*`): a panel that no model matches is left out, and so is a study without panels."
    )
    extra: list[str] = Field([], description="Models that are measured but belong to no panel (the phase-1 models).")
    probes: dict[str, list[str] | Literal["all"]] = Field(
        description="Probe -> the models it measures (patterns too), or `all` of the study's."
    )
    sets: dict[str, list[str]] = Field({}, description="Named sets of tasks that tables and figures refer to.")
    figures: list[str] = Field([], description="Figures of this study to draw.")
    tables: list[str] = Field([], description="Tables of this study to make.")
    claims: list[str] | Literal["all"] = Field(
        [], description="Claims of the paper to test; `all`: those that the study's panels and sets allow."
    )
    margin: Share = Field(
        0.02, description="Difference (in the metric's unit) up to which claims of `equal` or `no better` hold."
    )
    saturation: Share = Field(
        0.01, description="Pre-training losses that differ by at most this share of the smaller one count as equal."
    )

    @property
    def members(self) -> dict[str, list[str]]:
        """Panel title -> its models, in order, whichever way they are declared."""
        return {title: list(p.values()) if isinstance(p, dict) else list(p) for title, p in self.panels.items()}
