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
from masklab.config.check_kinds import check_name, check_takes
from masklab.config.kinds import corpus, probe, register, task
from masklab.config.schema.base import Count, Entity, Share
from masklab.config.schema.objectives import Weight
from masklab.errors import MaskLabError
from masklab.objectives import Term
from masklab.objectives.term import READING
from masklab.report.item import Item
from masklab.scores.reading import Reading
from masklab.scores.view import View

__all__ = [
    "Claim", "ClassVar", "Correlation", "Count", "Crossing", "Entity", "Field", "Item", "Least",
    "MaskLabError", "Ratio", "Reading", "Share", "Slope", "Sum", "Term", "View", "Weight", "claims", "corpus",
    "difference", "figure", "probe", "table", "task", "term",
]  # fmt: skip


def term(name: str, settings: type, *modules: str):
    """Register a class of `Term` as a term that objectives can have."""

    def checked(make):
        if not (isinstance(make, type) and issubclass(make, Term)):
            raise MaskLabError(f"{name!r} of terms must be a class derived from own.Term (got {make!r})")
        hooks = [hook for hook in READING if getattr(make, hook) is not getattr(Term, hook)]
        if hooks and not settings.reads:
            raise MaskLabError(
                f"{name!r} of terms: it has {', '.join(hooks)} of its own; its settings must say"
                " `reads: own.ClassVar = True`"
            )
        return make

    return register("terms", name, settings, modules, wrap=checked)


def figure(name: str, choose, **options):
    """Register `draw(results, chosen) -> (figure, data)`; `choose(view)` gives the readings that it shows.

    options: `caption`, what it shows, in a sentence for the pages of results.
    """
    check_name("figures", name)
    check_takes(f"what {name!r} of figures chooses by", choose, ("view",))
    return register("figures", name, wrap=lambda make: Item(make, choose, **options))


def table(name: str, choose, **options):
    """Register `make(results, chosen) -> frame` (`masklab.report.cells`); `choose(view)` as of a figure."""
    check_name("tables", name)
    check_takes(f"what {name!r} of tables chooses by", choose, ("view",))
    return register("tables", name, wrap=lambda make: Item(make, choose, **options))


def claims(name: str):
    """Register `claims(view) -> [Claim]`, for every study with `claims:`; name: of the group, for messages."""
    return register("claims", name)
