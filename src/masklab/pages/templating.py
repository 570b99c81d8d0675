"""Templates filled in: whatever one shows is escaped for the language that it is written in."""

import functools
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from masklab.files import atomic
from masklab.markdown import escaped, html
from masklab.pages import TEMPLATES


def fill(path, template: str, about: dict) -> None:
    """Write a template (`.html` or `.md`) with the values that it reads, atomically."""
    text = _environment(Path(template).suffix).get_template(template).render(about)
    with atomic(path) as temporary:
        temporary.write_text(text.rstrip() + "\n", encoding="utf-8")


def write_page(path, title: str, markdown: str) -> None:
    """Write Markdown as an HTML page that stands alone, such as a table or the claims of a study."""
    fill(path, "page.html", {"title": title, "body": Markup(html(markdown))})


@functools.cache
def _environment(suffix) -> Environment:
    shared = {"loader": FileSystemLoader(TEMPLATES), "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(autoescape=True, **shared) if suffix == ".html" else Environment(finalize=_text, **shared)
    environment.filters["style"] = lambda name: Markup((TEMPLATES / name).read_text(encoding="utf-8"))
    environment.filters["closed"] = lambda text: text if str(text).endswith((".", "?", "!", "…")) else f"{text}."
    environment.filters["code"] = lambda text: Markup(f"<code>{escaped(text)}</code>")  # in Markdown, in tables too
    return environment


def _text(value):
    return value if isinstance(value, Markup) else escaped(value)
