"""Writing `README.md` and `report.html` of a folder of results."""

from pathlib import Path

from masklab.files import write_json
from masklab.pages.gathered import WORDS, gathered, words_kept
from masklab.pages.templating import fill


def write(root, outline: dict, options: str = "", outdated=(), job: bool = False) -> None:
    """Write both pages of `root`, the folder of results; arguments as `gathered.gathered` takes them."""
    about = gathered(root, outline, options, outdated, job)
    fill(Path(root, "report.html"), "report.html", about)
    fill(Path(root, "README.md"), "readme.md", about)
    words = {study["name"]: {key: study[key] for key in ("title", "question")} for study in outline["studies"]}
    write_json(words_kept(root) | words, Path(root, WORDS))  # for pages of configs that do not declare these studies
