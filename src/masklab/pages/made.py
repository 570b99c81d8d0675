"""When and on which machine results were made, from the records of their jobs."""

import os
import platform
import socket
from datetime import datetime
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.jobs.provenance import records


def made(root, job: bool = False) -> dict | None:
    """`jobs`, `taken`: artifacts that other runs had made, which the store gave; of the jobs `began` and `ended` in
    words, `computing`, `hosts`, `versions`. None where no job is recorded.

    root: the folder of results; records lie below `made/`. job: whether a job writes the page, which counts itself: its
    record is written when it has ended.
    """
    found = {path: record for path in records(Path(root, "made")) if (record := _record(path))}
    if not found:
        return None
    own = [record for record in found.values() if "taken_from" not in record]
    counted = own or list(found.values())
    last = max(counted, key=lambda record: record["ended"])
    first = min(record["ended"] - record["seconds"] for record in counted)
    return {
        "jobs": len(own) + (job and Path(root, "made/report.json") not in found),
        "taken": len(found) - len(own),
        "began": _words(first),
        "ended": _words(last["ended"]),
        "computing": duration(sum(record["seconds"] for record in counted)),
        "hosts": {host: _machine(host) for host in sorted({record.get("host") or "?" for record in counted})},
        "versions": last.get("versions", {}),
    }


def _record(path):
    try:
        record = read_json(path)
        return record if record.get("finished") and record["ended"] and record["seconds"] is not None else None
    except (MaskLabError, KeyError, AttributeError):
        return None  # a record that is being written, or a file that is none


def _machine(host) -> str:
    """What the machine is, where it is this one; of others the records hold the name alone."""
    if host != socket.gethostname():
        return ""
    return f"{platform.system()}, {platform.machine()}, {os.cpu_count()} processors"


def _words(moment) -> str:
    when = datetime.fromtimestamp(moment).astimezone()
    return f"{when.day} {when:%B %Y, %H:%M %Z}".strip()


def duration(seconds: float) -> str:
    """ "17 minutes", "3.2 hours"."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
