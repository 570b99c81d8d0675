"""Files at the edge: atomic writes, checksums, JSON and tables.

A reader never sees half a file: everything is written under a temporary name
in the same folder and renamed when complete.
"""

import contextlib
import errno
import fcntl
import glob
import hashlib
import json
import os
import shutil
import socket
import stat
import uuid
from pathlib import Path

from masklab.errors import MaskLabError


@contextlib.contextmanager
def atomic(path, lasting: bool = True):
    """Yield a temporary sibling of `path`; rename it to `path` on success, delete it on error.

    The file gets the mode that the umask says, whatever wrote it (safetensors writes for its owner alone). lasting: it
    is written through to the disk before it gets its name, and its name after that: it outlives a loss of power.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(path)
    try:
        with open(temporary, "xb") as file:
            mode = os.fstat(file.fileno()).st_mode
        yield temporary
        _permit(temporary, mode)
        if lasting:
            settle(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if lasting:
        settle(path.parent)


@contextlib.contextmanager
def atomic_folder(path):
    """Like `atomic` for a folder: yield an empty sibling folder that replaces `path` on success.

    Of a link the folder that it leads to is replaced, beside which the sibling lies; the link stays.
    """
    path = Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(path)
    temporary.mkdir()
    try:
        yield temporary
        mode = temporary.stat().st_mode & 0o666
        for file in temporary.rglob("*"):
            if file.is_file() and not file.is_symlink():
                _permit(file, mode)
        settle(*temporary.rglob("*"), temporary)
        if path.exists():
            shutil.rmtree(path)
        os.replace(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    settle(path.parent)


CANNOT = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.ENOTTY)  # what a file system says that cannot (a folder)


def settle(*paths) -> None:
    """Write files, and the names in folders, through to the disk.

    What is fsynced on macOS may wait in the disk itself, which is asked for all of it at once with the last of them.
    """
    last = paths[-1:] if hasattr(fcntl, "F_FULLFSYNC") else ()
    for path in paths:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
            if path in last:
                fcntl.fcntl(number, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in CANNOT:
                raise
        finally:
            os.close(number)


def tells_case(folder) -> bool:
    """Whether the file system of a folder that is there tells capitals from small letters; those of Macs seldom do."""
    for place in (whole := Path(folder).resolve(), *whole.parents):
        if place.name.isascii() and (other := place.name.swapcase()) != place.name:
            try:
                return not place.samefile(place.with_name(other))
            except OSError:
                return True
    return True


def temporary_name(path: Path) -> Path:
    """A hidden sibling of `path` that no other process has, on this host or on another that shares the folder.

    What processes of this host that are gone have left under such names is removed.
    """
    host = hashlib.blake2b(socket.gethostname().encode(), digest_size=6).hexdigest()  # of any length, in a short name
    stem, end = f".{path.name}.{host}.", ".tmp"
    for left in path.parent.glob(f"{glob.escape(stem)}*{end}"):
        number = left.name.removeprefix(stem).partition(".")[0]
        if number.isdigit() and not _lives(int(number)):
            with contextlib.suppress(OSError):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    return path.with_name(f"{stem}{os.getpid()}.{uuid.uuid4().hex[:8]}{end}")


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another person's
        return True
    return True


def _permit(file, mode: int):
    """Give a file the rights of `mode`, but to execute."""
    mode = stat.S_IMODE(mode) & 0o666
    if stat.S_IMODE(os.stat(file).st_mode) != mode:
        os.chmod(file, mode)


def sha256(path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(value) -> str:
    """Hex SHA-256 of a JSON-able value; equal values give equal fingerprints."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def read_json(path):
    """Parse a JSON file; a broken one raises MaskLabError naming the file."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MaskLabError(f"{path}: no such file") from None
    except (ValueError, RecursionError) as error:
        raise MaskLabError(f"{path}: not valid JSON ({error})") from None


def write_json(value, path, lasting: bool = True) -> None:
    """Write `value` as indented JSON, atomically."""
    with atomic(path, lasting) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


GROUP = 1 << 25  # bytes of a row group
_stamp: bytes | None = None


def stamp(value) -> None:
    """From now on Parquet files of this process carry `value` (JSON-able) as metadata `masklab.made_from`."""
    global _stamp
    _stamp = None if value is None else json.dumps(value).encode()


def write_parquet(frame, path) -> None:
    """Write a pandas frame as Parquet (zstd), atomically, without the index."""
    import pyarrow

    write_table(pyarrow.Table.from_pandas(frame, preserve_index=False), path)


def write_csv(frame, path) -> None:
    """Write a pandas frame as CSV, atomically, without the index."""
    with atomic(path) as temporary:
        frame.to_csv(temporary, index=False)


def read_table(path):
    """A Parquet file as a pyarrow table; a missing or broken one raises MaskLabError naming the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as file:
            return pq.read_table(file)
    except FileNotFoundError:
        raise MaskLabError(f"{path}: no such file") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise MaskLabError(f"{path}: not a Parquet file ({str(error).splitlines()[0]})") from None


def write_table(table, path) -> None:
    """Write a pyarrow table, or what a reader of record batches gives, as Parquet (zstd), atomically.

    Of a reader memory holds about `GROUP` bytes, a row group.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = table.schema
    if _stamp is not None:
        schema = schema.with_metadata({**(schema.metadata or {}), b"masklab.made_from": _stamp})
    if isinstance(table, pa.Table):
        with atomic(path) as temporary:
            pq.write_table(table.replace_schema_metadata(schema.metadata), temporary, compression="zstd")
        return
    with atomic(path) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as out:
        held, size = [], 0
        for batch in table:
            held.append(batch)
            size += batch.nbytes
            if size >= GROUP:
                out.write_table(pa.Table.from_batches(held).replace_schema_metadata(schema.metadata))
                held, size = [], 0
        out.write_table(pa.Table.from_batches(held, table.schema).replace_schema_metadata(schema.metadata))
