"""What lies in every checkpoint folder beside the model itself: the record of how it was made, and its tokenizer."""

import shutil
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import read_json, write_json

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def write_companions(folder, metadata: dict | None, tokenizer_folder=None) -> None:
    """Write masklab.json and copy the files of a tokenizer, where one is given, into a folder that is being written."""
    write_json(metadata or {}, folder / "masklab.json", lasting=False)
    if tokenizer_folder is not None:
        for name in TOKENIZER_FILES:
            shutil.copyfile(Path(tokenizer_folder) / name, folder / name)


def of_recipe(checkpoint, key: str):
    """What the record of a checkpoint says of its recipe; MaskLabError where it does not, as of a model of others."""
    path = Path(checkpoint) / "masklab.json"
    try:
        return read_json(path)["config"]["model"][key]
    except KeyError as error:
        raise MaskLabError(f"{path}: no {error.args[0]!r}: not a model of this workbench") from None
