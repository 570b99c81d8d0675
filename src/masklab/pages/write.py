"""Writing `README.md` and `report.html` of a folder of results."""

from pathlib import Path

from masklab.pages.gathered import gathered
from masklab.pages.templating import fill


def write(root, outline: dict, options: str = "", outdated=(), job: bool = False) -> None:
    """Write both pages of `root`, the folder of results; arguments as `gathered.gathered` takes them."""
    about = gathered(root, outline, options, outdated, job)
    fill(Path(root, "report.html"), "report.html", about)
    fill(Path(root, "README.md"), "readme.md", about)
