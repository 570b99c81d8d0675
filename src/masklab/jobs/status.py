"""All that runs, waits, was interrupted or has failed in a results folder, here and on Slurm.

Sources: the file that each job leaves while it is under way (`underway`), the status files beside states (`progress`),
the file of the run (`run_log`), and squeue.
"""

import os
import time
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.jobs import store, underway
from masklab.jobs.locks import lock
from masklab.jobs.progress import STATUS, duration
from masklab.jobs.queued import queued
from masklab.jobs.run_log import RUN, STOPPED, ends_of, in_a_line
from masklab.jobs.stacks import TOGETHER

HEADER = ("job", "is", "done", "loss", "tokens/s", "ETA", "since")
LEFT = 2  # columns aligned left
ORDER = ("running", "starting", "queued", "interrupted", "failed")
SILENT = 600.0  # seconds without a word, of which there is one every other second, after which a run elsewhere is over
REPORT = "stopped.json"  # beside a status file: why training stopped itself
# What is read of the file of a run, and of a status file.
OF_RUN = {"pid", "host", "began", "time", "ended", "total", "done", "begun", "failed", "waiting", "eta_seconds"}
FAR = {"pid", "time", "unit", "done", "total"}


def running(folder: Path) -> bool:
    """Whether a process holds the lock of a state folder."""
    try:
        with open(folder / "lock") as file:
            lock(file, shared=True)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _trainer(place, far, rows) -> str:
    """The job that says at a place how far it is: of replicates side by side, that which trains them all."""
    recipe, _, last = place.rpartition("/")
    if last != TOGETHER:
        return place
    siblings = (own for own in rows if own.startswith(f"{recipe}/"))
    return next((own for own in siblings if rows[own].get("pid") == far["pid"]), place)


def status(results: Path) -> dict:
    """`runs`: what each run says of itself; `jobs`: a row per job that has begun or waits in Slurm and has not ended.

    A row holds `job` and `is` (`ORDER`), and as far as it is known `rule`, `log`, `done`, `total`, `unit`, `loss`,
    `tokens_per_second`, `eta_seconds`, `since` (seconds since 1970), `why`, `pid` (of its process), `slurm_job`,
    `reason` (why Slurm lets it wait).
    """
    slurm = queued(results.absolute().parent)
    runs = [run for path in _each(results, f"state/{RUN}") if (run := _run(path))]
    rows = {}
    for path in _each(results, f"{underway.FOLDER}/*.json"):
        if (said := underway.read(path)) is not None and (said["active"] or not _is_over(said, path.parents[2])):
            rows[_place(said["log"])] = _begun(said, slurm)
    for path in _each(results, f"state/**/{STATUS}"):
        if (far := _said(path, FAR)) is None:
            continue  # it ended just now
        parts = list(path.parent.relative_to(results).parts)
        parts.remove("state")  # the first of them: a recipe may be called so, and a run may not
        place = _trainer("/".join(parts), far, rows)
        row = rows.setdefault(place, {"is": "running" if running(path.parent) else "interrupted", "since": far["time"]})
        row |= {key: far[key] for key in ("done", "total", "unit", "loss") if key in far}
        if row["is"] == "failed" and (step := _stopped(path, far["time"])) is not None:
            row["done"] = step  # and the loss is in its message
            row.pop("loss", None)
        if row["is"] == "running":
            per_second = far.get("rate") if far["unit"] == "tokens" else None
            row["tokens_per_second"] = far.get("tokens_per_second", per_second)
            row["eta_seconds"] = far.get("eta_seconds")
    for run in runs:
        for job in run["failed"]:
            rows.setdefault(_place(job["log"]), {"is": "failed", "why": job["why"], "log": job["log"]})
    known = {row.get("slurm_job") for row in rows.values()}
    names = {job["slurm_job"]: _place(job["log"]) for run in runs for job in run["begun"]}
    for number, job in slurm.items():
        if number not in known:
            waits = job["state"] in ("PENDING", "CONFIGURING")
            place = names.get(number, job["comment"].replace("_wildcards_", " "))
            rows[place] = {"is": "queued" if waits else "starting", "slurm_job": number, "reason": job["reason"]}
    listed = [{"job": place, **row} for place, row in rows.items()]
    return {"runs": runs, "jobs": sorted(listed, key=lambda row: (ORDER.index(row["is"]), row["job"]))}


def _said(path, keys) -> dict | None:
    """What a file says; None where it is gone, or does not say all of this, as one of another version."""
    try:
        said = read_json(path)
    except (MaskLabError, OSError):
        return None
    return said if isinstance(said, dict) and keys <= said.keys() else None


def _stopped(path, since) -> int | None:
    """The step at which training stopped itself after its status file was written; None: it did not."""
    report = path.with_name(REPORT)
    try:
        return read_json(report)["step"] if report.stat().st_mtime >= since else None
    except (MaskLabError, OSError):
        return None


def _each(results, pattern):
    """results/<pattern> and results/<run>/<pattern>."""
    return sorted({*results.glob(pattern), *results.glob(f"*/{pattern}")})


def _place(log) -> str:
    """The name of the job with this log: where its log lies."""
    folder, place = underway.split_log(log)
    return "/".join([*folder.parts[1:], place])


def _run(path) -> dict | None:
    if (run := _said(path, OF_RUN)) is None:
        return None
    lives = run["ended"] is None
    if lives and run["host"] != os.uname().nodename:
        lives = time.time() - run["time"] < SILENT
    elif lives:
        lives = underway.is_there(run["pid"], run["time"])
    failed = [job for job in run["failed"] if not _is_over(job, path.parents[1])]
    return run | {"lives": lives, "folder": str(path.parents[1]), "failed": failed}


def _is_over(job, root) -> bool:
    """Whether all that a job failed to make lies in the folder of the run now: another attempt, or the store, had it.

    Snakemake removes the outputs of a job before it begins.
    """
    if job.get("rule") not in store.RULES or not ("failed" in job or "why" in job):
        return False
    return all(file.exists() for file in store.declared(job["rule"], root / underway.split_log(job["log"])[1]))


def _begun(said, slurm) -> dict:
    row = {key: said[key] for key in ("rule", "log", "slurm_job", "pid")} | {"since": said["began"]}
    there = slurm.get(said["slurm_job"], {})
    if there.get("state") == "PENDING":  # Slurm took it away and will start it again
        return row | {"is": "queued", "reason": there["reason"]}
    if said["active"] or there.get("state") == "RUNNING":
        return row | {"is": "running"}
    if "failed" not in said:
        return row | {"is": "interrupted"}
    row |= {"why": said["failed"], "since": said["ended"]}
    return row | {"is": "interrupted" if STOPPED in said["failed"] else "failed"}


# --- as text -----------------------------------------------------------------------------


def table(results: Path) -> str:
    """The status as text."""
    said = status(results)
    lines = [_spoken(run) for run in said["runs"]]
    if not said["jobs"]:
        return "\n".join([*lines, "no job is under way"])
    rows = [_cells(row) for row in said["jobs"]]
    widths = [max(map(len, column)) for column in zip(HEADER, *rows, strict=True)]
    lines += [
        "  ".join(
            cell.ljust(width) if number < LEFT else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (HEADER, *rows)
    ]
    for row in said["jobs"]:
        if row["is"] == "failed":
            lines += [f"{row['job']} failed: {in_a_line(row['why'])}", f"  log: {row['log']}"]
        elif row.get("reason") not in (None, "None", "", "Priority", "Resources"):
            lines.append(f"{row['job']} waits in Slurm: {row['reason']}")
    for run in said["runs"]:
        if run["lives"] and run["waiting"]:
            lines.append("not begun: " + ", ".join(f"{count:,} {rule}" for rule, count in run["waiting"].items()))
    return "\n".join(lines)


def _spoken(run) -> str:
    done = f"{run['folder']}: {run['done']:,} of {run['total']:,} jobs done"
    done += "".join(f", {count:,} {end}" for end, count in ends_of(job["why"] for job in run["failed"]).items())
    if run["lives"]:
        left = run["eta_seconds"]
        return f"{done}, running for {duration(time.time() - run['began'])}" + (
            "" if left is None else f", ETA {duration(left)}"
        )
    if run["ended"] is None:
        return f"{done}; the run was killed {duration(time.time() - run['time'])} ago"
    return f"{done}; the run ended {duration(time.time() - run['ended'])} ago"


def _cells(row) -> tuple[str, ...]:
    done, total, rate, eta = (row.get(key) for key in ("done", "total", "tokens_per_second", "eta_seconds"))
    return (
        row["job"],
        row["is"],
        "-" if done is None else f"{int(done):,}/{total:,} {row['unit']} {done / max(total, 1):4.0%}",
        f"{row['loss']:.4f}" if "loss" in row else "-",
        "-" if rate is None else f"{rate:,.0f}",
        "-" if eta is None else duration(eta),
        f"{duration(time.time() - row['since'])} ago" if "since" in row else "-",
    )
