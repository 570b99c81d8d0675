"""What Slurm says of the jobs that were submitted from a folder, and whether this process is one of its jobs."""

import os
import subprocess
from pathlib import Path

FIELDS = "%i|%T|%r|%Z|%k"
WITHIN = "MASKLAB_WITHIN"  # in the environment of a run: the Slurm job that its Snakemake runs in, or ""
SNAKEMAKE = "MASKLAB_SNAKEMAKE"  # there, too: the number of that Snakemake's process


def leave_within() -> None:
    """Leave for the jobs of this Snakemake in which Slurm job it runs, and as which process."""
    os.environ[WITHIN] = os.environ.get("SLURM_JOB_ID", "")
    os.environ[SNAKEMAKE] = str(os.getpid())


def is_own() -> bool:
    """Whether Slurm gave CPUs and GPUs to this very job, and not to a Snakemake that runs it and others in them."""
    number = os.environ.get("SLURM_JOB_ID")
    return number is not None and number != os.environ.get(WITHIN)


def own() -> str | None:
    """Number of the Slurm job that this process is part of, as `squeue -r` and Snakemake write it; None without one."""
    array, task = (os.environ.get(f"SLURM_ARRAY_{name}_ID") for name in ("JOB", "TASK"))
    return f"{array}_{task}" if array and task else os.environ.get("SLURM_JOB_ID")


def queued(folder: Path) -> dict[str, dict]:
    """Number of each Slurm job of this user from `folder` -> `state`, `reason` and `comment`; none without Slurm."""
    try:
        command = ["squeue", "--me", "-h", "-r", "-o", FIELDS]
        shown = subprocess.run(command, capture_output=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    found = {}
    for line in filter(None, os.fsdecode(shown).split("\n")):  # folders have any bytes in their names
        number, state, reason, rest = line.split("|", 3)
        where, _, comment = rest.rpartition("|")
        if Path(where) == folder and comment.startswith("rule_"):
            found[number] = {"state": state, "reason": reason, "comment": comment.removeprefix("rule_")}
    return found


def numbers() -> set[str] | None:
    """Numbers of all of this user's jobs that Slurm knows, those that have ended too; None where it does not answer.

    `-r`: each job of an array that waits has a number of its own, `4_1`, in place of `4_[1-9]`.
    """
    command = ["squeue", "--me", "-h", "-r", "-t", "all", "-o", "%i"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return set(shown.split())


def ended(number: str | None) -> str | None:
    """State in which a Slurm job ended, such as `OUT_OF_MEMORY`; None where Slurm no longer knows."""
    if number is None:
        return None
    for command in (["squeue", "-h", "-t", "all", "-j", number, "-o", "%T"],
                    ["sacct", "-X", "-n", "-j", number, "-o", "State%20"]):  # fmt: skip
        try:
            shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.split()
        except (OSError, subprocess.SubprocessError):
            continue
        if shown:
            return shown[0]
    return None
