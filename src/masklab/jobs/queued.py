"""What Slurm says of the jobs that were submitted from a folder."""

import subprocess
from pathlib import Path

FIELDS = "%i|%T|%r|%Z|%k"


def queued(folder: Path) -> dict[str, dict]:
    """Number of each Slurm job of this user from `folder` -> `state`, `reason` and `comment`; none without Slurm."""
    try:
        shown = subprocess.run(
            ["squeue", "--me", "-h", "-o", FIELDS], capture_output=True, text=True, check=True, timeout=20
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    found = {}
    for line in shown.splitlines():
        number, state, reason, where, comment = line.split("|", 4)
        if Path(where) == folder and comment.startswith("rule_"):
            found[number] = {"state": state, "reason": reason, "comment": comment.removeprefix("rule_")}
    return found
