"""User files that a corpus, task, law or probe names: globs expanded, light enough for the workflow's parse."""

import glob
import os
from pathlib import Path

from masklab.errors import MaskLabError

# Keys of entries that name files of the user's, and those that name models, which may be names elsewhere.
PATHS = ("files", "train", "valid", "test", "file", "folder", "parses", "wordnet")
MODELS = ("there", "back", "causal")


def below(config):
    """The config with the paths of corpora, tokenizers, tasks and probes as they are opened, from its `data` folder."""
    root = Path(config.data).expanduser() if config.data else None
    sections = {}
    for section in ("corpora", "tokenizers", "tasks", "probes"):
        entries = getattr(config, section)
        sections[section] = {name: opened_from(root, entry) for name, entry in entries.items()}
    return config.model_copy(update=sections)


def opened_from(root, entry):
    """An entry with its paths as they are opened: `~` expanded, and from the folder `root` unless that is None."""
    stated, paths = vars(entry), {}
    for key in PATHS:
        if isinstance(value := stated.get(key), str | list):
            paths[key] = [_from(root, each) for each in value] if isinstance(value, list) else _from(root, value)
    for key in MODELS:
        value = stated.get(key)
        if isinstance(value, str) and (key != "causal" or "/" in value):  # without one it is in `causal_models`
            path = _from(root, value)
            paths |= {key: path} if os.path.isfile(os.path.join(path, "config.json")) else {}
    changed = {key: path for key, path in paths.items() if path != stated[key]}
    return entry.model_copy(update=changed) if changed else entry


def _from(root, path):
    if not isinstance(path, str) or not path.strip():  # of a user's kind it may be anything
        return path
    path = os.path.expanduser(path)
    return path if root is None else str(root / path)


def named(entity) -> list[str]:
    """File names and globs of a corpus, task, law or probe, as written; empty for generated ones.

    `files` is a list; of a user's kind it may be one name, or anything.
    """
    if hasattr(entity, "files"):
        files = [entity.files] if isinstance(entity.files, str) else entity.files
        return [file for file in files if isinstance(file, str)] if isinstance(files, list) else []
    single = (getattr(entity, key, None) for key in ("train", "valid", "test", "file"))
    return [file for file in single if isinstance(file, str)]


def expand(pattern: str) -> list[str]:
    """Files that a name or glob stands for, sorted; `~` is expanded. The name of a file that is there is no glob."""
    pattern = str(Path(pattern).expanduser())
    if not is_glob(pattern):
        return [pattern]
    folder, rest = _parted(pattern)
    return sorted(glob.glob(os.path.join(glob.escape(folder), rest), recursive=True))


def is_glob(pattern: str) -> bool:
    """Whether a path stands for all that match it: it has a `*`, `?` or `[`, and is not itself there.

    Those in the names of folders that are there are parts of these names.
    """
    return glob.has_magic(_parted(pattern)[1]) and not os.path.exists(pattern)


def _parted(pattern: str) -> tuple[str, str]:
    """The folders that a pattern begins with, as far as they are there under these very names, and the rest of it."""
    parts = Path(pattern).parts
    there = next((n for n in range(len(parts) - 1, 0, -1) if os.path.isdir(Path(*parts[:n]))), 0)
    return str(Path(*parts[:there])) if there else "", str(Path(*parts[there:]))


def source_files(entity) -> list[str]:
    """Every file of a corpus, task, law or probe, globs expanded, each once however it is spelled, in order."""
    once = {}
    for pattern in named(entity):
        for file in expand(pattern):
            once.setdefault(os.path.abspath(file), file)
    return list(once.values())


def matched(entity, where: str) -> list[str]:
    """`source_files`, or a MaskLabError at `where` for a glob of `files` that matches none."""
    for pattern in entity.files:
        if not expand(pattern):
            raise MaskLabError(f"{where}.files: {pattern!r} matches no file")
    return source_files(entity)


def missing(entity) -> list[str]:
    """Names and globs that match no file."""
    return [pattern for pattern in named(entity) if not any(os.path.exists(file) for file in expand(pattern))]


def existing(entity) -> list[str]:
    """Those of `source_files` that exist."""
    return [file for file in source_files(entity) if os.path.exists(file)]
