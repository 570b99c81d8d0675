"""User files read line by line, compressed or not; every error names the file and the line."""

import json
import lzma
from pathlib import Path

from backports.zstd import ZstdError

from masklab.errors import MaskLabError

COMPRESSED = (".bz2", ".gz", ".xz", ".zst")
READ_ERRORS = (OSError, EOFError, lzma.LZMAError, ZstdError)
ARCHIVES = (".zip", ".tar", ".tgz", ".7z")


def format_of(path) -> str:
    """Last suffix of a file's name without its compression: `a.jsonl.gz` -> `.jsonl`; may be empty."""
    path = Path(path)
    return (Path(path.stem) if path.suffix in COMPRESSED else path).suffix


def stem_of(path) -> str:
    """A file's name without compression and format suffixes: `binding.json.xz` -> `binding`."""
    return (
        Path(path)
        .name.removesuffix(Path(path).suffix if Path(path).suffix in COMPRESSED else "")
        .removesuffix(format_of(path))
    )


def open_bytes(path):
    """Open a file for reading bytes, decompressed (`COMPRESSED`)."""
    import smart_open

    path = Path(path)
    if not path.is_file():
        raise MaskLabError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}")
    if {path.suffix, format_of(path)} & set(ARCHIVES):
        raise MaskLabError(
            f"{path}: archives are not read; unpack it (compressed files end in {', '.join(COMPRESSED)})"
        )
    return smart_open.open(path, "rb")


def read_lines(path):
    """Yield (line number from 1, text without line ending) of a UTF-8 file."""
    number = 0
    try:
        with open_bytes(path) as file:
            for number, line in enumerate(file, 1):
                text = line.decode("utf-8")
                yield number, (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise MaskLabError(f"{path}: line {number}: not valid UTF-8 (byte {error.start})") from None
    except READ_ERRORS as error:
        raise MaskLabError(f"{path}: after line {number}: cannot be read ({error})") from None


def read_json_lines(path):
    """Yield (line number from 1, object) of a file with one JSON object a line; blank lines are skipped."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise MaskLabError(f"{path}: line {number}: not valid JSON ({error})") from None
        if not isinstance(row, dict):
            raise MaskLabError(f"{path}: line {number}: must be a JSON object")
        yield number, row
