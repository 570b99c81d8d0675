"""What a figure or a table is, without pandas or matplotlib, since the workflow reads it while it is parsed."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from masklab.config.kinds import Kind, blamed, imported, known
from masklab.config.located import shown
from masklab.errors import MaskLabError, in_one_line
from masklab.scores.facts import base
from masklab.scores.reading import Reading, leaves, needs
from masklab.scores.view import View

NAMED = 3  # readings of a kind that a message names


def _none(view):
    return ()


@dataclass(frozen=True)
class Item:
    """One figure or table.

    make: `(results, chosen) -> (figure, data)` of a figure, `-> frame` of a table, or where that is, "module:function".
    choose: (view) -> `chosen`, the readings that it shows in any structure; MaskLabError, without its own name, if the
    study lacks something. It must choose the same from the part of the view that those readings are about.
    corpora: (view) -> corpora that it reads besides scores; `make` then gets `corpora=[train.parquet, ...]`.
    nulls: whether the nulls of those readings are shown, and so measured, too.
    caption: what it shows, in a sentence or two of plain text; it stands beside it on the page of results.
    """

    make: Callable | str
    choose: Callable[[View], object] = _none
    corpora: Callable[[View], list[str]] = _none
    nulls: bool = True
    caption: str = ""

    def function(self) -> Callable:
        """What makes it, imported now."""
        return imported(self.make)

    def draw(self, results, **more):
        """(figure, data) of a figure, drawn in the style that all figures share.

        Raises:
            MaskLabError: a user's function returns anything else.
        """
        from masklab.report import style

        drawn = style.paper(self.function())(results, self.chosen(results.view), **more)
        if kind := self._kind("figures"):
            wanted = "(figure, data): a Figure of matplotlib, and the pandas frame of what it shows"
            if not isinstance(drawn, tuple | list) or len(drawn) != 2:
                raise kind.refused(wanted, drawn)
            for part, made, method in zip(("figure", "data"), drawn, ("savefig", "to_parquet"), strict=True):
                if not hasattr(made, method):
                    raise kind.refused(wanted, made, part)
        return drawn

    def tabulate(self, results):
        """The frame of a table, with the columns of `cells.TIDY`; MaskLabError where a user's function has others."""
        from masklab.report.cells import TIDY

        frame = self.function()(results, self.chosen(results.view))
        if kind := self._kind("tables"):
            wanted = f"a frame with the columns {', '.join(TIDY)}, as masklab.report.cells.tidy makes it of cells"
            if not hasattr(frame, "to_parquet"):
                raise kind.refused(wanted, frame)
            if missing := [name for name in TIDY if name not in frame.columns]:
                raise kind.refused(wanted, missing[0], "a frame without")
        return frame

    @contextlib.contextmanager
    def written(self, section: str):
        """Errors within of what a user's function has made, and nothing can write, are MaskLabErrors with its file."""
        try:
            yield
        except (MaskLabError, OSError, MemoryError):
            raise
        except Exception as error:
            if (kind := self._kind(section)) is None:
                raise
            which = f"{shown(kind.file)}: {kind.name!r} of {section}"
            raise MaskLabError(f"{which} returned what cannot be written: {in_one_line(error)}") from error

    def _kind(self, section: str) -> Kind | None:
        """The kind that it is of a user's file; None: it is ours."""
        return next((kind for kind in known(section).values() if kind.make is self), None)

    def chosen(self, view: View):
        """The readings that it shows; MaskLabError where a user's file fails to choose them."""
        with blamed():
            return self.choose(view)

    def needs(self, view: View) -> list[tuple[str, str]]:
        """(probe, recipe) pairs whose scores it reads."""
        return needs(self.chosen(view), view, self.nulls)

    def part(self, view: View) -> View:
        """The part of a view that it shows: its params. MaskLabError if it would choose otherwise from that alone."""
        chosen = self.chosen(view)
        if self.choose is not _none and not leaves(chosen):
            raise MaskLabError("chooses no reading of the study")
        pairs = needs(chosen, view, self.nulls)
        tasks = {base(task) for reading in leaves(chosen) for task in reading.tasks}
        corpora = set(self.corpora(view))
        shown = [name for name in view.recipes if view.recipes[name]["corpus"] in corpora]
        part = view.only([*(recipe for _, recipe in pairs), *shown], tasks, [probe for probe, _ in pairs])
        # of what is there for its corpus alone nothing is read; nothing is tested, so no margin
        part = replace(part, replicates=part.counts(pairs), margin=None, margins={}, below_margin="sign", gain=0.0)
        _check_same(leaves(chosen), leaves(self.chosen(part)), view)
        return part


def _check_same(whole: list[Reading], part: list[Reading], view: View) -> None:
    """MaskLabError if what was chosen from a whole study is not what was chosen from the part that it is about."""
    if whole == part:
        return
    told = []
    for where, own, others in (("the whole study", whole, part), ("that part", part, whole)):
        words = [reading.words(view) for reading in own if reading not in others]
        more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
        told += [f"only from {where} it chooses {'; '.join(words[:NAMED])}{more}"] if words else []
    raise MaskLabError(
        "chooses other readings from the part of the study that it shows, that of its recipes, tasks and probes:"
        f" {', '.join(told) or 'the same in another order'}"
    )
