"""YAML that remembers where it was written.

`Mapping` and `Sequence` are a dict and a list with plain values; beside each key and item stands its place, the file
and line that say it. Laying one over another and filling in families keep the places, so that an error can name them.
"""

import difflib
from dataclasses import dataclass, field
from pathlib import Path

from masklab.errors import MaskLabError


@dataclass(frozen=True)
class Place:
    """Where a key stands.

    line: counted from 1; None where there is no file, as for `--config`.
    path: the key from the top of the file, as it is written there.
    empty: whether nothing is written as its value.
    quoted: whether the value is text in quotes, in which nothing is filled in.
    """

    file: str
    line: int | None
    path: tuple[str, ...] = field(default=(), compare=False)
    empty: bool = field(default=False, compare=False)
    quoted: bool = field(default=False, compare=False)

    def __str__(self):
        return self.file if self.line is None else f"{shown(self.file)}:{self.line}"


def shown(file: str | Path) -> str:
    """A file as messages name it: relative to the current folder, if it lies below that."""
    path = Path(file)
    text = str(path.relative_to(Path.cwd()) if path.is_absolute() and path.is_relative_to(Path.cwd()) else path)
    return text if text.isprintable() else repr(text)


class Mapping(dict):
    """A mapping that knows the place of each of its keys, where there is one.

    files: of a whole config: the files that it was read from, the lowest first.
    """

    __slots__ = ("files", "places")

    def __init__(self, values=(), places=None):
        super().__init__(values)
        self.places: dict = dict(getattr(values, "places", ()) if places is None else places)
        self.files: list[str] = list(getattr(values, "files", ()))

    def put(self, key, value, place: Place | None) -> None:
        """Set a key; a place of None leaves the one that it has."""
        self[key] = value
        if place is not None:
            self.places[key] = place


class Sequence(list):
    """A list that knows the place of each of its items."""

    __slots__ = ("places",)

    def __init__(self, values=(), places=()):
        super().__init__(values)
        self.places = list(places)


def place_of(value, key) -> Place | None:
    """Where a key of a mapping, or an item of a list, stands; None where that is a plain one."""
    places = getattr(value, "places", None)
    if isinstance(value, list):
        return places[key] if places and 0 <= key < len(places) else None
    return places.get(key) if places else None


def has(value, part) -> bool:
    """Whether a mapping has a key, or a list an item of that number."""
    return part in value if isinstance(value, dict) else isinstance(value, list) and part in range(len(value))


def find(raw, path) -> tuple[Place | None, object]:
    """The place of the last part of `path` that exists in `raw`, and the value there."""
    place, value = None, raw
    for part in path:
        if not has(value, part):
            break
        place, value = place_of(value, part) or place, value[part]
    return place, value


def spelt(part) -> str:
    """A part of a key as messages show it, in one line."""
    text = str(part)
    return text if text.isprintable() and text and not text.startswith(".") else repr(text)


def as_written(place: Place | None, path) -> tuple:
    """A key by the name of the hidden entry (`.small`) that says it, which others have taken it from."""
    written = place.path if place is not None else ()
    if len(written) < 2 or not written[1].startswith("."):
        return tuple(path)
    deeper = written[0] != path[0]  # an optimiser's settings lie one key deeper in a model that has taken them
    return (*written, *path[len(written) + deeper :])


def wrong(place: Place | None, path, message: str) -> MaskLabError:
    """The one line of what is wrong: where it stands, which key, what."""
    key = path if isinstance(path, str) else ".".join(map(spelt, path))
    return MaskLabError(": ".join(filter(None, (str(place or "config"), key, message))))


def plain(value):
    """A copy without places: dicts, lists and scalars."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def overlay(base: dict, top: dict) -> dict:
    """`top` laid over `base`, mapping by mapping; neither is changed."""
    merged = Mapping(base) if hasattr(base, "places") or hasattr(top, "places") else dict(base)
    for key, value in top.items():
        below = merged.get(key)
        value = overlay(below, value) if isinstance(value, dict) and isinstance(below, dict) else value
        if isinstance(merged, Mapping):
            merged.put(key, value, place_of(top, key))
        else:
            merged[key] = value
    return merged


# --- reading ---------------------------------------------------------------------------------------------------------


def read_file(path: Path, first: bool = True) -> Mapping:
    """The top-level mapping of a YAML file; MaskLabError where there is none.

    first: no other was named before it, as one is before a target that `--configfile` takes for a file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MaskLabError(f"{shown(path)}: no such file{_instead(path, first)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise MaskLabError(f"{shown(path)}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    content = parse(text, str(path))
    if content is None:
        return Mapping()
    if not isinstance(content, Mapping):
        raise MaskLabError(f"{shown(path)}: must be a mapping of keys to values, such as `run: mine`")
    return content


def _instead(path: Path, first: bool) -> str:
    """What may have been meant by a config file that is not there, as the end of a message."""
    known = (".yaml", ".yml", ".json")
    if path.suffix not in known and not first:
        return "; --configfile takes every word up to the next option, so that targets stand before it"
    ends = (path.suffix,) if path.suffix in known else known
    files = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    beside = {file.stem: file for file in files if file.suffix in ends}
    close = difflib.get_close_matches(path.stem, beside, n=1)
    return f"; did you mean {shown(beside[close[0]])}?" if close else ""


def parse(text: str, file: str, lines: bool = True):
    """The value of a YAML text. lines: whether its places have lines; `file` names it."""
    import yaml

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
        return _Reader(file, lines).value(node, ()) if node is not None else None
    except yaml.MarkedYAMLError as error:
        end = text.rstrip().count("\n")
        marks = [mark for mark in (error.problem_mark, error.context_mark) if mark]
        if "expected ',' or" in (error.problem or ""):
            marks.reverse()  # where the { or [ stands; what comes after it was not expected
        mark = next((mark for mark in marks if mark.line <= end), marks[0] if marks else None)
        message = " ".join(str(part) for part in (error.context, error.problem) if part)
        message = next((plain for part, plain in _PLAINLY.items() if part in message), message)
        if (
            mark
            and text.splitlines()[mark.line : mark.line + 1]
            and "\t" in text.splitlines()[mark.line][: mark.column + 1]
        ):
            message = "a tab; indent with spaces"
        raise wrong(Place(file, mark.line + 1 if lines and mark else None), "", f"not valid YAML: {message}") from None
    except yaml.YAMLError as error:
        raise wrong(Place(file, None), "", f"not valid YAML: {' '.join(str(error).split())}") from None


# What is most often meant by messages of the YAML parser.
_PLAINLY = {
    "mapping values are not allowed": "a second ': ' in one line, a line that is indented too far, or a line above"
    " without its ':'; text with ': ' in it needs quotes",
    "quoted scalar found unexpected end": "a quote is opened and never closed",
    "expected ',' or '}'": "a { is never closed, or a comma is missing in it",
    "expected ',' or ']'": "a [ is never closed, or a comma is missing in it",
    "did not find expected key": "keys of one mapping must begin in one column",
    "could not find expected ':'": "a key without ': ' and a value",
    "found undefined alias": "*name stands for what &name marks, and nothing is marked so; text with * needs quotes",
    "found unexpected ':'": "a space is missing after a ':'; or text with ':' in it needs quotes",
    "did not find expected alphabetic": "text with * or & needs quotes",
    "cannot start any token": "text that begins with @, % or ` needs quotes",
}

_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_NULL = "tag:yaml.org,2002:null"
NAMES = ("run",)  # keys of a whole config whose value is a name; one like 010 or 1.50 is text, as it is written
BITS = 63  # of a whole number: tables of scores and arrays of tokens hold no other
_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class _Reader:
    """Makes values of YAML nodes."""

    def __init__(self, file, lines):
        import yaml

        self.file, self.lines = file, lines
        self.scalar, self.mapping, self.sequence = yaml.ScalarNode, yaml.MappingNode, yaml.SequenceNode
        self.constructor = yaml.constructor.SafeConstructor()
        self.open = set()  # nodes that are being read: an alias to one of them has no end

    def place(self, node, path=(), value=None) -> Place:
        """Where a node stands. value: what is written at a key; without it the node itself, an item of a list."""
        value, line = value or node, node.start_mark.line + 1 if self.lines else None
        scalar = isinstance(value, self.scalar)
        empty = scalar and value.tag == _NULL and not value.value
        quoted = scalar and value.style in ("'", '"') and value.tag == _TEXT and "{" not in value.value
        return Place(self.file, line, tuple(path), empty, quoted)

    def value(self, node, path):
        if not node.tag.startswith("tag:yaml.org,2002:"):
            raise wrong(self.place(node), path, f"unknown tag {node.tag!r}; text that begins with ! needs quotes")
        if isinstance(node, self.scalar):
            return node.value if node.tag == _TEXT else self.constant(node, path)
        if id(node) in self.open:
            raise wrong(self.place(node), path, "contains itself")
        self.open.add(id(node))
        if node.tag not in _TAGS:
            raise wrong(self.place(node), path, f"unknown tag {node.tag!r}")
        if isinstance(node, self.mapping):
            read = self.pairs(node, path)
        else:
            items = [self.value(item, path) for item in node.value]
            read = Sequence(items, [self.place(item, path) for item in node.value])
        self.open.discard(id(node))
        return read

    def constant(self, node, path):
        """A number, a date, true, false or null."""
        try:
            value = self.constructor.construct_object(node)
            if isinstance(value, int) and value.bit_length() > BITS:
                raise wrong(self.place(node), path, f"a number has at most {BITS} bits, some 9.2e18; text needs quotes")
            return value
        except (ValueError, LookupError, AttributeError):
            raise wrong(self.place(node), path, "not a valid date or number; text needs quotes") from None

    def pairs(self, node, path) -> Mapping:
        """A mapping; the keys of `<<` come first and give way to its own."""
        merged, stated = Mapping(), Mapping()
        for key, value in node.value:
            if key.tag == _MERGE:
                for source in self.sources(value, path):
                    for name in source:
                        if name not in merged:
                            merged.put(name, source[name], source.places[name])
                continue
            if not isinstance(key, self.scalar):
                raise wrong(self.place(key), path, "a key must be a name")
            name = key.value  # as it is written: `on`, `010` and 1.50 are names like any other
            if name in stated:
                before = stated.places[name].line
                message = "given twice" + (f" (first in line {before})" if self.lines else "")
                raise wrong(self.place(key), (*path, name), message)
            read = self.value(value, (*path, name))
            if not path and name in NAMES and is_number(read):
                read = value.value
            stated.put(name, read, self.place(key, (*path, name), value))
        return flat(merged, stated) if merged else stated

    def sources(self, node, path) -> list[Mapping]:
        nodes = node.value if isinstance(node, self.sequence) else [node]
        sources = [self.value(item, path) for item in nodes]
        if not all(isinstance(item, Mapping) for item in sources):
            raise wrong(self.place(node), (*path, "<<"), "must be a mapping (`*name`), or a list of such")
        return sources


def is_number(value) -> bool:
    """Whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def flat(base: Mapping, top: Mapping) -> Mapping:
    """`base` with the keys of `top` in their place."""
    merged = Mapping(base)
    for key, value in top.items():
        merged.put(key, value, top.places.get(key))
    return merged
