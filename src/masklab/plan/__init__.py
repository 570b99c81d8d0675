"""Plan before you pay: what a configuration will cost, before anything is submitted; and what it did cost, after."""

import os
from dataclasses import dataclass
from pathlib import Path

from masklab.config import overlay
from masklab.errors import MaskLabError
from masklab.plan.costs import Cost, Costs, Device
from masklab.plan.graph import LOCAL, Job, checkout_paths, graph, instead, named
from masklab.plan.here import device_here

ASSUMPTIONS = Path(__file__).with_name("assumptions.yaml")
MOST = 1e30  # that anything can be assumed to be
LEAST = "h100"  # a device whose entry has no more keys than any must have


@dataclass
class Plan:
    """jobs: key -> job, each after those it needs; costs: key -> its cost; device: what was assumed to compute.

    stands: in words, what the device stands for if it is this machine's own; else "".
    guessed: corpora of text whose files are not there, so that their size is assumed.
    of_study: study that was asked for -> keys of its figures, tables and claims and of all that it measures, as far as
        they are planned; or a figure's or table's target -> its key.
    """

    jobs: dict[tuple, Job]
    costs: dict[tuple, Cost]
    device: Device
    assumptions: dict
    of_study: dict[str, list[tuple]]
    guessed: set[str]
    stands: str = ""

    def total(self, keys=None) -> dict:
        """Sums over jobs (None: all), and `chain`: seconds of the longest chain of jobs that wait for each other.

        busy: seconds of all jobs one after the other; a job counts as often as it holds a GPU, or on a CPU as often as
            it holds the `threads` of one job.
        """
        keys = list(self.jobs) if keys is None else keys
        costs = [self.costs[key] for key in keys]
        ends = {}
        for key in keys:
            ends[key] = self.costs[key].seconds + max((ends.get(n, 0.0) for n in self.jobs[key].needs), default=0.0)
        return {
            "jobs": len(keys),
            "submitted": sum(self.jobs[key].rule not in LOCAL for key in keys),
            "gpu_hours": sum(cost.gpus * cost.seconds for cost in costs) / 3600,
            "cpu_hours": sum(cost.cores * cost.seconds for cost in costs if not cost.gpus) / 3600,
            "tokens": sum(cost.tokens for cost in costs),
            "flops": sum(cost.flops for cost in costs),
            "bytes": sum(cost.stored for cost in costs),
            "busy": sum(cost.seconds * (cost.gpus or self._share(cost)) for cost in costs),
            "chain": max(ends.values(), default=0.0),
        }

    def _share(self, cost) -> float:
        """Which share of what a job that computes holds, one without a GPU does."""
        return 1 if self.device.is_gpu else cost.cores / self.device.threads

    def closure(self, keys) -> list[tuple]:
        """`keys` and every job below them, in the order of `jobs`."""
        below, waiting = set(), list(keys)
        while waiting:
            if (key := waiting.pop()) not in below:
                below.add(key)
                waiting += self.jobs[key].needs
        return [key for key in self.jobs if key in below]

    def study(self, name: str) -> list[tuple]:
        """Jobs that a study needs, those it shares with others included."""
        return self.closure(self.of_study[name])


def read_assumptions(*files) -> dict:
    """assumptions.yaml with the user's files laid over it, mapping by mapping."""
    import yaml

    merged = yaml.safe_load(ASSUMPTIONS.read_text(encoding="utf-8"))
    least = merged["devices"][LEAST]
    for file in files:
        try:
            content = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            said = getattr(error, "strerror", None) or " ".join(str(error).split())
            raise MaskLabError(f"{file}: {said}") from None
        if not isinstance(content, dict) or (unknown := sorted(map(str, content.keys() - merged))):
            unknown = unknown if isinstance(content, dict) else "no mapping"
            raise MaskLabError(f"{file}: {unknown}: allowed are {', '.join(merged)}")
        _check_numbers(file, content, merged)
        merged = overlay(merged, content)
        devices = merged["devices"] if isinstance(merged["devices"], dict) else {}
        for name, entry in devices.items() or [("", None)]:
            if lacks := _lacking(entry, least):
                raise MaskLabError(f"{file}: devices.{name or '<name>'}: lacks {', '.join(lacks)}, as {LEAST} has them")
            if unknown := sorted(str(each) for key in ("peak", "share") for each in entry[key].keys() - least[key]):
                raise MaskLabError(
                    f"{file}: devices.{name}: {unknown[0]!r} is no precision that is planned; these are "
                    f"{', '.join(least['peak'])}"
                )
    return merged


def _check_numbers(file, value, like, where: str = "") -> None:
    """All that is assumed are numbers, in mappings and lists as those of `like`; but for `gpu` of a device."""
    wrong = None
    if isinstance(like, dict) or (like is None and isinstance(value, dict)):
        if isinstance(value, dict):
            sizes = bool(like) and all(isinstance(key, int) for key in like)
            for key, each in value.items():
                if sizes and not isinstance(key, int):
                    raise MaskLabError(f"{file}: {where}: {key!r}: must be a whole number, as {next(iter(like))} is")
                _check_numbers(file, each, (like or {}).get(key), f"{where}.{key}".lstrip("."))
        else:
            wrong = "must be a mapping"
    elif isinstance(like, list) or (like is None and isinstance(value, list)):
        if isinstance(value, list):
            for each in value:
                _check_numbers(file, each, 0, where)
        else:
            wrong = "must be a list of numbers"
    elif where.startswith("devices.") and where.endswith(".gpu"):
        wrong = None if isinstance(value, bool) else "must be true or false"
    elif isinstance(value, bool) or not isinstance(value, int | float):
        wrong = "must be a number"
        if isinstance(value, str):
            wrong += "; with a power of ten YAML reads one only if it has a point and a sign, such as 67.0e+12"
    else:  # work is divided by most numbers
        least = "at least" if "_seconds" in where or where.startswith("task_rows") else "above"
        if not 0 <= value < MOST or (value == 0 and least == "above"):
            wrong = f"must be {least} 0 and below {MOST:g}"
    if wrong:
        raise MaskLabError(f"{file}: {where}: {value!r}: {wrong}")


def _lacking(entry, least, above: str = "") -> list[str]:
    """Keys that `least` has and an entry of a user's lacks."""
    if not isinstance(least, dict):
        return []
    if not isinstance(entry, dict):
        return [f"{above}{key}" for key in least]
    found = []
    for key, value in least.items():
        found += _lacking(entry[key], value, f"{above}{key}.") if key in entry else [f"{above}{key}"]
    return found


def make_plan(config, device: str | None = None, studies=None, assumptions: dict | None = None) -> Plan:
    """The plan of a configuration on a device of the assumptions; None: this machine's.

    studies: some of its studies, or figures, tables and claims of these by their targets (`mlsm_figure1`), or the pages
        of all `dictionaries`; else all studies.
    """
    assumptions, stands = assumptions or read_assumptions(), ""
    if device is None:
        device, stands = device_here(config, assumptions["devices"])
    if device not in assumptions["devices"]:
        raise MaskLabError(f"plan: no device {device!r}; known: {', '.join(assumptions['devices'])}")
    paths = checkout_paths(config)
    known = named(paths)
    asked = {name: _files(paths, name, known) for name in studies or config.studies}
    targets = [path for files in asked.values() for path in files]
    if not studies:
        targets = [*paths.everything(), paths.result("scores.parquet")]
    jobs = graph(paths, targets)
    threads = min(config.threads, os.cpu_count() or 1) if stands else config.threads  # as Snakemake gives them
    machine = Device(device, assumptions["devices"][device], threads)
    costs = Costs(paths, machine, assumptions)
    of_study, scores = {}, paths.study_scores()
    for name, files in asked.items():
        wanted = dict.fromkeys(Job(*paths.job_of(path)).key for path in (*files, *scores.get(name, ())))
        of_study[name] = [key for key in wanted if key in jobs]
    planned = {key: costs.of(job) for key, job in jobs.items()}
    return Plan(jobs, planned, machine, assumptions, of_study, costs.sizes.guessed, stands)


def _files(paths, name, targets) -> list[str]:
    """What is made for one of `targets`, by its name."""
    if name not in targets:
        raise MaskLabError(
            f"plan: no study, and no figure or table of one, is called {name!r}{instead(paths, name, targets)}"
        )
    return targets[name]
