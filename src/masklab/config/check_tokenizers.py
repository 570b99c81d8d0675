"""A first look into the folder of a tokenizer that was made elsewhere."""

import json
import os
from pathlib import Path

from masklab.errors import MaskLabError

ROLES = ("cls_token", "sep_token", "unk_token", "pad_token", "mask_token")


def check_folder(where: str, entry) -> None:
    """MaskLabError where the folder holds no fast tokenizer, or one that lacks a special token or has it in two roles.

    A folder that does not exist is left to others.
    """
    if not entry.folder.strip():
        raise MaskLabError(f"config: {where}.folder: a path must not be empty")
    if not os.path.exists(entry.folder):
        return
    advice = "such as AutoTokenizer.from_pretrained(name).save_pretrained(folder) writes"
    if not Path(entry.folder).is_dir():
        raise MaskLabError(f"config: {where}.folder: {entry.folder!r} is no folder; name one {advice}")
    found = {}
    for file in map(Path, entry.files):
        try:
            found[file.name] = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise MaskLabError(
                f"config: {where}.folder: {entry.folder} holds no {file.name}; name a folder {advice}"
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise MaskLabError(f"config: {where}.folder: {file}: not valid JSON ({error})") from None
        if not isinstance(found[file.name], dict):
            raise MaskLabError(f"config: {where}.folder: {file}: must be a JSON object")
    if not isinstance(found["tokenizer.json"].get("model"), dict):
        raise MaskLabError(f"config: {where}.folder: {entry.folder}/tokenizer.json: has no model; it is no tokenizer")
    lacks = [role for role in ROLES if not found["tokenizer_config.json"].get(role)]
    map_file = Path(entry.folder, "special_tokens_map.json")  # of older releases of transformers
    if lacks and not map_file.exists():
        raise MaskLabError(
            f"config: {where}.folder: {entry.folder}/tokenizer_config.json: names no {lacks[0]}; pre-training needs"
            f" {', '.join(ROLES)}"
        )
    _check_apart(f"config: {where}.folder: {entry.folder}/tokenizer_config.json", found["tokenizer_config.json"])


def _check_apart(where: str, stated: dict) -> None:
    """Each role has a token of its own; a token is its text, or an object with it as `content`."""
    roles = {}
    for role in ROLES:
        token = stated.get(role)
        token = token.get("content") if isinstance(token, dict) else token
        if not isinstance(token, str):
            continue
        if (other := roles.setdefault(token, role)) != role:
            raise MaskLabError(f"{where}: has {token!r} as {other} and as {role}; each needs its own token")
