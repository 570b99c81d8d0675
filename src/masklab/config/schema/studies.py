"""Entries of `studies:`: which recipes, measured how, drawn how."""

from typing import Literal

from pydantic import Field, field_validator

from masklab.config.schema.base import Count, Entity, Positive, Share

Null = Literal["untrained", "shuffled", "one-hot", "bag-of-words", "bag-of-units", "majority"]


class Study(Entity):
    """Which recipes, measured how, drawn how: a declaration, not code."""

    title: str = Field("", description="The paper, or the question, in words; it heads what is made.")
    question: str = Field("", description="What it asks, in one sentence; the page of results begins with it.")
    scale: str = Field(
        "",
        description="How large it is and what its verdicts hold for, in words: `toy: two layers, ...`. What stands before the colon is shown as a mark. Empty: what the top level says.",
    )
    wing: str | None = Field(
        None,
        description="The paper whose figures, tables and claims it can have (mlsm, dh, implicit-bias, mae). None: the one of the study's own name, if there is one. Figures and tables that suit any study need none.",
    )
    replicates: Count | None = Field(
        None, description="Replicates of each of its recipes. None: as many as `replicates` at the top level says."
    )
    nulls: list[Null] = Field(
        [],
        description="What stands beside every measure to say what it is worth: `untrained`: initial weights; `shuffled`: the trained weights, permuted within each tensor; `one-hot`, `bag-of-words`: no network, the words in their order or counted; `bag-of-units`: no network, what the words spell (synsets) counted, where the task says it; `majority`: always the same answer.",
    )
    panels: dict[str, list[str] | dict[str, str]] = Field(
        description="Panel title -> its recipes, in the order of columns and legends: a list, or a mapping that gives each its label (label -> recipe)."
    )
    extra: list[str] = Field(
        [], description="Recipes that are measured but belong to no panel (what others start from)."
    )
    probes: dict[str, list[str] | Literal["all"]] = Field(
        description="Probe -> the recipes it measures, or `all` of the study's."
    )
    sets: dict[str, list[str]] = Field(
        {},
        description="Named sets of tasks that tables, figures and claims refer to; of minimal pairs also of single phenomena (`blimp/ellipsis`), or of single paradigms where the task says `group_by: paradigm` (`blimp/passive_1`). A mean of a set is over its tasks, whatever each has more of; of minimal pairs alone it is over all their phenomena.",
    )
    figures: list[str] = Field([], description="Figures of this study to draw.")
    tables: list[str] = Field([], description="Tables of this study to make.")
    claims: list[str] | Literal["all"] = Field(
        [],
        description="Claims to test; `all`: those that the study's recipes and tasks allow. Without a wing or claims of your own these say of each recipe that it does better than the first of its panel, on each of the sets (or, without sets, on each task).",
    )
    headline: list[str] = Field(
        [],
        description="Its two or three claims that matter most, by name, which head what is said of it. Empty: those that its wing marks; without any, those decided most clearly.",
    )
    margin: Share = Field(
        0.02,
        description="Difference (in the metric's unit) up to which claims of `equal` or `no better` hold, and less than which a difference is `negligible`.",
    )
    below_margin: Literal["sign", "negligible"] = Field(
        "sign",
        description="What a difference is called that is shown not to be 0, and to be less than the margin: supported or contradicted by its `sign`, or `negligible`, where a difference that small would be no evidence for the sentence (a test of a minimum effect).",
    )
    margins: dict[str, Positive] = Field(
        {},
        description="Metric -> a margin of its own. Of a score, such as `mcc`, it takes the place of `margin`. Of a metric that is no score, such as `rank_interpolated` or `correlation`, it is the difference below which one is `negligible`; without it any difference counts. `log_trace`: of logarithms of `trace`, and so on. Of a probe of a kind of your own it is one that its `ranges` name, or any where it has none.",
    )
    gain: Share = Field(
        0.0,
        description="How far above each of its nulls, on the mean over replicates, a recipe must be for what is measured on a task to count; besides, the interval must lie above 0.",
    )
    saturation: Share = Field(
        0.01,
        description="Pre-training losses that differ by at most this share of the entropy count as equal; a smaller"
        " difference of theirs is `negligible`.",
    )

    @field_validator("panels")
    @classmethod
    def _once(cls, panels):
        for title, panel in panels.items():
            if twice := next((name for name in panel if isinstance(panel, list) and panel.count(name) > 1), None):
                raise ValueError(f"panel {title!r} names {twice!r} twice")
        return panels

    @property
    def members(self) -> dict[str, list[str]]:
        """Panel title -> its recipes, in order, whichever way they are declared."""
        return {title: list(p.values()) if isinstance(p, dict) else list(p) for title, p in self.panels.items()}
