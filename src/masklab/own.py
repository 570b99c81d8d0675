"""What a file of your own imports to add kinds, figures, tables and claims: `from masklab import own`.

    @own.corpus("shifts", Shifts)       # a class of settings, derived from own.Entity
    def generate(config, name, seed): ...

The file is named under `code:` in the config. It is imported whenever the config is read, so import what is heavy
(torch, pandas) inside functions. docs/your-own-study.md goes through one step by step.
"""

from typing import ClassVar

from pydantic import Field

from masklab.claims.claim import Claim
from masklab.claims.effects import Correlation, Crossing, Least, Ratio, Slope, Sum, difference
from masklab.config.kinds import corpus, probe, register, task, term
from masklab.config.schema.base import Count, Entity, Share
from masklab.config.schema.objectives import Weight
from masklab.errors import MaskLabError
from masklab.objectives import Term
from masklab.report.item import Item
from masklab.scores.reading import Reading
from masklab.scores.view import View

__all__ = [
    "Claim", "ClassVar", "Correlation", "Count", "Crossing", "Entity", "Field", "Item", "Least",
    "MaskLabError", "Ratio", "Reading", "Share", "Slope", "Sum", "Term", "View", "Weight", "claims", "corpus",
    "difference", "figure", "probe", "table", "task", "term",
]  # fmt: skip


def figure(name: str, choose, **options):
    """Register `draw(results, chosen) -> (figure, data)`; `choose(view)` gives the readings that it shows."""
    return register("figures", name, wrap=lambda make: Item(make, choose, **options))


def table(name: str, choose, **options):
    """Register `make(results, chosen) -> frame` (`masklab.report.cells`); `choose(view)` as of a figure."""
    return register("tables", name, wrap=lambda make: Item(make, choose, **options))


def claims(name: str):
    """Register `claims(view) -> [Claim]`, for every study with `claims:`; name: of the group, for messages."""
    return register("claims", name)
