"""Running and interrupted jobs of a results folder, from the status files that they leave beside their states."""

import fcntl
import time
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.jobs.progress import STATUS, duration

HEADER = ("job", "is", "done", "loss", "tokens/s", "ETA", "seen")
LEFT = 2  # columns aligned left


def running(folder: Path) -> bool:
    """Whether a process holds the lock of a state folder."""
    try:
        with open(folder / "lock") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def jobs(results: Path) -> list[tuple[str, ...]]:
    """One row per job that has begun and not ended: pre-training, dictionaries, codes, probes."""
    # results/state/<noun>/..., or results/<run>/state/<noun>/...
    paths = sorted({*results.glob(f"state/**/{STATUS}"), *results.glob(f"*/state/**/{STATUS}")})
    rows = []
    for path in paths:
        try:
            status = read_json(path)
        except MaskLabError:
            continue  # it ended just now
        active = running(path.parent)
        parts = [part for part in path.parent.relative_to(results).parts if part != "state"]
        done, total = status["done"], status["total"]
        rate, eta = status.get("tokens_per_second"), status.get("eta_seconds")
        if rate is None and status["unit"] == "tokens":
            rate = status.get("rate")
        rows.append(
            (
                "/".join(parts),
                "running" if active else "interrupted",
                f"{done:,}/{total:,} {status['unit']} {done / max(total, 1):4.0%}",
                f"{status['loss']:.4f}" if "loss" in status else "-",
                f"{rate:,.0f}" if active and rate is not None else "-",
                duration(eta) if active and eta is not None else "-",
                f"{duration(time.time() - status['time'])} ago",
            )
        )
    return rows


def table(results: Path) -> str:
    """The jobs as aligned text."""
    rows = jobs(results)
    if not rows:
        return "no job is under way"
    widths = [max(map(len, column)) for column in zip(HEADER, *rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if number < LEFT else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (HEADER, *rows)
    )
