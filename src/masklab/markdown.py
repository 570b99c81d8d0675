"""Plain text inside Markdown, and Markdown as HTML: what a config says is shown as it stands, whatever it holds."""

import functools
import re

# Marks that mean something in the middle of a line, `$` on GitHub alone; `_` within a word and brackets without a link
# mean nothing.
SPECIAL = re.compile(r"([\\`*|~$]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[:]))")
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
FIRST = re.compile(r"^(#+(?=\s|$)|[-+=](?=\s|$|[-=])|\d+(?=[.)](?:\s|$)))")  # and at its beginning


def escaped(text) -> str:
    """Text that Markdown shows as it stands, on one line; in a cell of a table too."""
    line = SPECIAL.sub(r"\\\1", re.sub(r"\s+", " ", str(text)))
    line = re.sub("[&<>]", lambda mark: ENTITIES[mark[0]], line)
    return FIRST.sub(lambda mark: f"{mark[1]}\\" if mark[1].isdigit() else f"\\{mark[1]}", line)


def html(markdown: str) -> str:
    """Markdown with tables as HTML; HTML in it stands there as text."""
    return _parser().render(markdown)


@functools.cache
def _parser():
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table")
