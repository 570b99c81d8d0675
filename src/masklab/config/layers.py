"""Which files make up a config, in which order: `extends:`, `--configfile`, `--config`."""

import difflib
import os
from pathlib import Path

from masklab.config.expand import expanded
from masklab.config.inherit import filled, lay
from masklab.config.located import (
    NAMES,
    Mapping,
    Place,
    Sequence,
    is_number,
    parse,
    place_of,
    read_file,
    shown,
    wrong,
)
from masklab.errors import MaskLabError

# config.yaml of the checkout that this library lies in; `extends: default` names it.
DEFAULT = Path(__file__).resolve().parents[3] / "config.yaml"


def layered(files=(), values=()) -> Mapping:
    """Config files laid over each other in their order, and `key=value`s on top; families and `like`s filled in.

    files: paths; none: the default. A file that is not the first says with `extends:` alone what else it lies over.
    values: strings as snakemake's `--config` takes them.
    """
    whole, layers = Mapping(), stack(files)
    for layer in layers.values():
        whole = lay(whole, expanded(layer))
    for value in values:
        whole = lay(whole, expanded(_given(value)))
    whole.files = [str(path) for path in layers]
    return filled(whole)


def complete(raw: dict) -> Mapping:
    """A config given as a mapping that stands alone: families and `like`s filled in."""
    alone = Mapping(raw)
    if alone.pop("extends", None):
        raise wrong(place_of(raw, "extends"), "extends", "only a file can extend others")
    alone = _with_code(alone, Path.cwd())
    return filled(lay(Mapping(), expanded(alone)))


def stack(files=()) -> dict[Path, Mapping]:
    """The files that a config is made of, the lowest first, each once: path -> what it says but for `extends`."""
    stacked = _Stack()
    for file in files or [DEFAULT]:
        stacked.add(Path(file).expanduser(), None)
    return stacked.layers


class _Stack:
    """Files by their full path, each after those that it extends."""

    def __init__(self):
        self.layers: dict[Path, Mapping] = {}
        self.open: list[Path] = []

    def add(self, file: Path, named_at: Place | None) -> None:
        """A file and, before it, those that it extends. named_at: where it is named."""
        path = Path(file).resolve()
        if path in self.open:
            circle = " -> ".join(shown(p) for p in [*self.open[self.open.index(path) :], path])
            raise wrong(named_at, "extends", f"goes round in a circle: {circle}")
        if path in self.layers:
            return
        if named_at is not None and not os.path.isfile(path):
            raise wrong(named_at, "extends", f"no such file: {shown(path)}{_preset(path)}")
        raw = read_file(path, first=not self.layers)
        self.open.append(path)
        if "extends" in raw:
            for name, place in _listed(raw, "extends"):
                self.add(DEFAULT if name == "default" else path.parent / Path(name).expanduser(), place)
            del raw["extends"]
        elif not self.layers and path != DEFAULT.resolve():
            self.add(DEFAULT, None)
        self.open.pop()
        self.layers[path] = _with_code(raw, path.parent)


def _preset(path: Path) -> str:
    """The preset of MaskLab that a file which is not there may have been meant to be, as the end of a message."""
    presets = {file.stem: file.resolve() for file in DEFAULT.parent.glob("presets/*.yaml")}
    close = difflib.get_close_matches(path.stem, presets, n=1, cutoff=0.8)
    return f"; MaskLab's is {presets[close[0]]}" if close else ""


def _listed(raw: Mapping, key: str) -> list[tuple[str, Place | None]]:
    """Strings of a key that takes one or a list of them, with their places."""
    value, place = raw[key], place_of(raw, key)
    items = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in items):
        raise wrong(place, key, "must be a path or a list of paths")
    return [(item, place_of(value, at) or place if isinstance(value, list) else place) for at, item in enumerate(items)]


def _with_code(raw: Mapping, folder: Path) -> Mapping:
    """The config with the paths of `code:` in full; they are relative to the file that says them."""
    if "code" in raw:
        listed = _listed(raw, "code")
        paths = [str((folder / Path(file).expanduser()).resolve()) for file, _ in listed]
        raw = Mapping(raw)
        raw["code"] = Sequence(paths, [place for _, place in listed])
    return raw


def _given(text: str) -> Mapping:
    """One `key=value` of `--config`; the value is YAML."""
    key, equals, value = text.partition("=")
    if not equals:
        raise MaskLabError(f"--config: {text!r} must be written key=value")
    given, place = parse(value, "--config", lines=False), Place("--config", None)
    if key in NAMES and is_number(given):
        given = value.strip()
    if key == "extends":
        raise wrong(place, key, "only a file can extend others")
    return _with_code(Mapping({key: given}, {key: place}), Path.cwd())
