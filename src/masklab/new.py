"""`masklab new <folder>`: the files of a study of your own that runs as it stands."""

from importlib.resources import files
from pathlib import Path

from masklab.config import DEFAULT
from masklab.errors import MaskLabError
from masklab.files import atomic

FILES = ("config.yaml", "study.py", "README.md")


def new(folder) -> str:
    """Write the files of a study into `folder`, which must be empty or not exist yet; what to do next, in words.

    Its README names the Snakefile of the checkout that this library lies in. Raises MaskLabError and writes nothing
    where the folder holds something, or where there is no checkout.
    """
    folder, checkout = Path(folder).expanduser(), DEFAULT.parent
    if folder.exists() and not folder.is_dir():
        raise MaskLabError(f"{folder}: is a file; name a new or an empty folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise MaskLabError(f"{folder}: is not empty; name a new or an empty folder")
    if not (checkout / "Snakefile").is_file():
        raise MaskLabError(f"{checkout}: no Snakefile: the library must lie in a checkout (`make setup` there)")
    for name in FILES:
        text = (files("masklab") / "template" / name).read_text(encoding="utf-8")
        with atomic(folder / name) as temporary:
            temporary.write_text(text.replace("{checkout}", str(checkout)), encoding="utf-8")
    return f"{folder}: {', '.join(FILES)}; README.md there has the commands"
