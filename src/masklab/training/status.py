"""Running and interrupted runs of a results folder, from the status files that training leaves."""

import fcntl
from pathlib import Path

from masklab.files import read_json
from masklab.progress import duration


def running(folder: Path) -> bool:
    """Whether a process holds the lock of a state folder."""
    with open(folder / "lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def table(results: Path) -> str:
    """One line per run that has begun and not ended."""
    lines = [f"{'run':32}{'state':14}{'step':>16}{'loss':>9}{'tokens/s':>11}{'ETA':>9}"]
    for path in sorted(results.glob("**/state/models/*/status.json")):
        found = read_json(path)
        active = running(path.parent)
        name = str(path.parent.relative_to(results)).replace("state/models/", "")
        lines.append(
            f"{name:32}{'running' if active else 'interrupted':14}{found['step']:>8}/{found['steps']:<7}"
            f"{found['loss']:>9.4f}{found['tokens_per_second']:>11,.0f}"
            f"{duration(found['eta_seconds']) if active else '-':>9}"
        )
    return "\n".join(lines) if len(lines) > 1 else "no run is under way"
