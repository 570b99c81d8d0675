"""User files read line by line, compressed or not; every error names the file and the line.

Memory is bounded whatever a file holds: it is read in blocks, and a line longer than `LONGEST` bytes is an error.
"""

import json
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from backports.zstd import ZstdError

from masklab.errors import MaskLabError, in_one_line

COMPRESSED = (".bz2", ".gz", ".xz", ".zst")
READ_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error, ZstdError)
ARCHIVES = (".zip", ".tar", ".tgz", ".7z")
LONGEST = 1 << 24  # bytes of a line
BLOCK = 1 << 22  # bytes read together


def format_of(path) -> str:
    """Last suffix of a file's name without its compression, in lower case: `a.JSONL.gz` -> `.jsonl`; may be empty."""
    return _unpacked(path).suffix.lower()


def stem_of(path) -> str:
    """A file's name without compression and format suffixes: `binding.json.xz` -> `binding`."""
    return _unpacked(path).stem


def _unpacked(path) -> Path:
    """A file's name without the suffix of its compression."""
    path = Path(path)
    return Path(path.stem if path.suffix.lower() in COMPRESSED else path.name)


def open_bytes(path):
    """Open a file for reading bytes, decompressed (`COMPRESSED`)."""
    import smart_open

    return smart_open.open(_readable(path), "rb")


def _readable(path) -> Path:
    path = Path(path)
    if not path.is_file():
        raise MaskLabError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}")
    if {path.suffix.lower(), format_of(path)} & set(ARCHIVES):
        raise MaskLabError(
            f"{path}: archives are not read; unpack it (compressed files end in {', '.join(COMPRESSED)})"
        )
    return path


@dataclass
class Place:
    """Where reading a file has come to. position: bytes of its (decompressed) content; line: lines up to there."""

    position: int = 0
    line: int = 0
    read: int = 0  # bytes of the file itself


def read_blocks(path, place: Place | None = None) -> Iterator[list[str]]:
    """Yield the lines, without their endings, of a UTF-8 file in blocks of about `BLOCK` bytes.

    place: where to begin, the end of a block; it is moved on before each block is yielded.
    """
    from smart_open.compression import compression_wrapper

    place = Place() if place is None else place
    path = _readable(path)
    try:
        with open(path, "rb") as raw, compression_wrapper(raw, "rb") as file:
            if place.position:
                file.seek(place.position)
            while data := file.read(BLOCK):
                if not data.endswith(b"\n"):
                    begun = len(data) - data.rfind(b"\n") - 1
                    rest = file.readline(max(0, LONGEST - begun) + 2)
                    if begun + len(rest.rstrip(b"\r\n")) > LONGEST:
                        number = place.line + data.count(b"\n") + 1
                        raise MaskLabError(f"{path}: line {number}: longer than {LONGEST:,} bytes")
                    data += rest
                lines = _decoded(data, path, place.line)
                if place.line == 0:
                    lines[0] = lines[0].removeprefix("\ufeff")
                place.position += len(data)
                place.line += len(lines)
                place.read = raw.tell()
                yield lines
    except READ_ERRORS as error:
        raise MaskLabError(f"{path}: after line {place.line}: cannot be read ({in_one_line(error)})") from None


def _decoded(data, path, before) -> list[str]:
    """Lines of whole lines of bytes."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        inside = data[: error.start]
        number, byte = before + inside.count(b"\n") + 1, error.start - inside.rfind(b"\n") - 1
        raise MaskLabError(f"{path}: line {number}: not valid UTF-8 (byte {byte})") from None
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.rstrip("\r") for line in lines] if "\r" in text else lines


def read_lines(path):
    """Yield (line number from 1, text without line ending) of a UTF-8 file."""
    number = 0
    for lines in read_blocks(path):
        for line in lines:
            number += 1
            yield number, line


def read_texts(path):
    """The lines of a plain text that are not blank. Other formats are refused: their braces would be read as words."""
    if format_of(path) in (".json", ".jsonl", ".parquet"):
        raise MaskLabError(f"{path}: must be plain text, one sequence a line, not {format_of(path)}")
    yield from (line for _, line in read_lines(path) if line.strip())


def parsed(text: str):
    """The value of a JSON text. ValueError: it is none, is nested without end, or has half a character (`\\ud800`)."""
    try:
        value = json.loads(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def read_json_lines(path):
    """Yield (line number from 1, object) of a file with one JSON object a line; blank lines are skipped."""
    for number, line in read_lines(path):
        if line.strip():
            yield number, json_object(path, number, line)


def json_object(path, number: int, line: str) -> dict:
    """The JSON object of a line."""
    try:
        row = parsed(line)
    except ValueError as error:
        raise MaskLabError(f"{path}: line {number}: not valid JSON ({error})") from None
    if not isinstance(row, dict):
        raise MaskLabError(f"{path}: line {number}: must be a JSON object")
    return row
