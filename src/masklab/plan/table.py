"""A plan as a Markdown table, and beside it what the jobs really cost."""

import math

from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.jobs.progress import duration
from masklab.plan import Plan
from masklab.plan.graph import checkout_paths

HEADER = ("", "jobs", "submitted", "GPU-hours", "CPU-hours", "tokens", "FLOPs", "disk", "longest chain")


def table(plan: Plan, at_once: int | None = None) -> str:
    """What was asked for and its union, in Markdown. at_once: jobs side by side, which adds the elapsed time."""
    sums = {name: plan.total(plan.study(name)) for name in plan.of_study if plan.of_study[name]}
    if len(sums) != 1 or plan.total()["jobs"] != next(iter(sums.values()))["jobs"]:
        sums["all"] = plan.total()
    header = [*HEADER, *([f"elapsed, {at_once} at once"] if at_once else [])]
    rows = [_row(name, total, at_once) for name, total in sums.items()]
    lines = [_line(header), _line(["---", *["---:"] * (len(header) - 1)]), *map(_line, rows), ""]
    shared = "; what is shared between studies counts in each and once in `all`" if len(sums) > 1 else ""
    if plan.guessed:
        lines += [_guessed(plan), ""]
    lines.append(f"On {plan.device.name}{_other(plan)}{shared}.")
    lines.append(f"Assumed: {_assumed(plan)}")
    return "\n".join(lines)


def _guessed(plan) -> str:
    """A warning of its own, since hours may be off by an order of magnitude."""
    return (
        f"GUESSED: how large {', '.join(sorted(plan.guessed))} is. What reads it may take many times less or more: say "
        "where files of text are (--config data=<folder>) and plan again; a kind of corpus of your own tells its size "
        "by a setting called `sentences` or `sequences`."
    )


def _other(plan) -> str:
    """What the device stands for, if nobody has named it, and how another is named."""
    others = " or ".join(f"--device {name}" for name in plan.assumptions["devices"] if name != plan.device.name)
    return f", {plan.stands} ({others} plans for another)" if plan.stands else ""


def _row(name, total, at_once):
    cells = [name, f"{total['jobs']:,}", f"{total['submitted']:,}", _short(total['gpu_hours']),
             _short(total['cpu_hours']), f"{total['tokens']:.2e}", f"{total['flops']:.2e}",
             _size(total['bytes']), duration(total["chain"])]  # fmt: skip
    if at_once:
        cells.append(duration(max(total["chain"], total["busy"] / at_once)))
    return cells


def _short(hours: float) -> str:
    return f"{hours:,.1f}" if hours >= 1 else f"{hours:.2g}"


def _size(count: float) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def _line(cells):
    return f"| {' | '.join(cells)} |"


def _assumed(plan):
    entry, rest = plan.device.entry, plan.assumptions
    parts = [
        f"{precision}: {share:g} of {entry['peak'][precision] / 1e12:g} TFLOP/s"
        for precision, share in entry["share"].items()
    ]
    parts += [
        f"{entry['start_seconds']:g} s to start a job",
        f"{1000 * entry['layer_seconds']['training']:g} ms to launch a layer",
        f"{entry['codes_per_second']:,} codes/s under 1000 atoms",
        f"fine-tunings stop after {rest['stopped_at']:g} of their updates",
    ]
    return "; ".join(parts) + ". All of it: src/masklab/plan/assumptions.yaml."


def actual(plan: Plan, config) -> str:
    """Seconds planned and used by the jobs that have ended, by rule, from the records under `made/`.

    Jobs whose artifact came from a store are left out.
    """
    paths, sums = checkout_paths(config), {}
    for key, job in plan.jobs.items():
        if (seconds := _used(paths, job)) is not None:
            planned, used, count = sums.get(job.rule, (0.0, 0.0, 0))
            sums[job.rule] = planned + plan.costs[key].seconds, used + seconds, count + 1
    if not sums:
        raise MaskLabError(f"{paths.result('made')}: no job of this config has ended yet")
    sums["all"] = tuple(map(sum, zip(*sums.values(), strict=True)))
    lines = [_line(["rule", "jobs", "planned", "used", "used / planned"]), _line(["---", *["---:"] * 4])]
    lines += [
        _line([rule, f"{count:,}", duration(planned), duration(used), f"{used / planned:.2f}" if planned else "–"])
        for rule, (planned, used, count) in sums.items()
    ]
    return "\n".join(lines)


def _used(paths, job) -> float | None:
    """Seconds of a job that has ended here; None: it has not, or its record does not say."""
    try:
        record = read_json(paths.record(job.rule, **job.names))
    except MaskLabError:
        return None
    if not isinstance(record, dict) or not record.get("finished") or "taken_from" in record:
        return None
    seconds = record.get("seconds")
    return seconds if isinstance(seconds, int | float) and 0 <= seconds < math.inf else None
