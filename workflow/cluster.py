"""What a job asks a cluster for, from the config and from what the cluster has; None: no such request.

Names of partitions, an account and the like stand in slurm/profile.yaml. Only the Snakemake that submits asks.
"""

import functools
import math
import subprocess
import sys

from masklab.errors import MaskLabError
from masklab.jobs import queued, underway

MINUTES = {"pretrain": 1440, "causal_model": 1440, "causal_corpus": 1440, "causal_conditionals": 1440, "codes": 480,
           "masked_codes": 480, "dictionary": 240, "probe": 240}  # others: 60  # fmt: skip
COMPUTE = tuple(MINUTES)  # jobs that ask for a GPU, where the config wants one: by rule, or as a `sort_of_...` says
ATTEMPTS = 6  # of a job, by `retries` of slurm/profile.yaml
SLOWER = 2  # times the planned time that a job may take
RESUMED = ("pretrain", "causal_model", "conditionals", "codes", "masked_codes", "dictionary", "embeddings", "tokens")
RESUMED_PROBES = ("finetune", "replaced", "paraphrased", "linear_probe")  # others go on from one checkpoint to the next
SITE = ("slurm_partition", "gpu_partition", "node_mem_mb")  # of the default resources of slurm/profile.yaml
STEP = 500  # MB that requests are rounded up to
LEAST = 2000  # MB
EXHAUSTED = ("MemoryError", "can't allocate memory", "Cannot allocate memory")  # in the words of a job


@functools.cache
def partitions() -> dict[str, tuple[int, float]]:
    """Partition -> MB of its largest node, minutes of its time limit; empty without Slurm."""
    try:
        shown = subprocess.run(
            ["sinfo", "-h", "-e", "-o", "%R|%m|%l"], capture_output=True, text=True, check=True, timeout=60
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    found = {}
    for line in shown.split():
        name, memory, limit = line.split("|")
        largest = found.get(name, (0, 0.0))[0]
        found[name] = max(largest, int(memory.rstrip("+"))), minutes(limit)
    return found


def most(names: str | None) -> tuple[float, float]:
    """MB and minutes that each of the partitions `a,b` has, where Slurm may choose; infinite where sinfo lists none."""
    known = [partitions()[name] for name in named(names) if name in partitions()]
    return tuple(min((each[at] for each in known), default=float("inf")) for at in (0, 1))


def named(names: str | None) -> list[str]:
    """The partitions of `a,b`."""
    return names.split(",") if names else []


def minutes(limit: str) -> float:
    """Minutes of a time limit as sinfo writes it: `infinite`, `[days-]hours:minutes:seconds`, `minutes:seconds`."""
    if not limit[:1].isdigit():
        return float("inf")
    days, _, rest = limit.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    hours, minute, second = [0] * (3 - len(parts)) + parts
    return 1440 * int(days or 0) + 60 * hours + minute + second / 60


class Cluster:
    """Requests of jobs under one configuration, as the slurm executor of Snakemake reads them.

    paths: of the configuration; site: the profile's default resources, name -> text; main: whether this Snakemake
    submits.
    """

    def __init__(self, paths, site: dict[str, str] | None = None, main: bool = True):
        self.paths, self.config, self.site = paths, paths.config, site or {}
        if not (said := self.site.get("node_mem_mb", "0")).isdecimal():
            where = "slurm/profile.yaml: default-resources.node_mem_mb"
            raise MaskLabError(f"{where}: must be a whole number of MB, such as 64000 (got {said!r})")
        self.on_gpu = self.config.device != "cpu"
        self.submits = main and "slurm_partition" in self.site
        self.doubled = {}

    def gpus(self, model=None) -> int | None:
        """GPUs of a job on one node: one for each process of a model, one of anything else that computes."""
        if not self.on_gpu or (model is not None and model.nodes > 1):
            return None
        return 1 if model is None else model.processes

    def gpus_of_each_node(self, model) -> str | None:
        """The same for a model on several nodes."""
        return f"gpu:{model.here}" if self.on_gpu and model.nodes > 1 else None

    def tasks(self, model) -> int | None:
        """One launcher on each node."""
        return model.nodes if model.nodes > 1 else None

    def asks(self, rule: str, sort=None) -> dict:
        """Partition, memory and time of a rule's jobs, as its resources; nothing unless this Snakemake submits.

        sort: wildcards of a job -> the name in place of the rule's that partition and time go by, where jobs differ.
        """
        if not self.submits:
            return {}
        partition = self.partition(rule) if sort is None else lambda wildcards: self.partition(sort(wildcards))
        return {
            "slurm_partition": partition,
            "mem_mb": self.memory(rule, sort),
            "runtime": self.runtime(rule, sort),
        }

    def sort_of_corpus(self, wildcards) -> str:
        """A corpus that a causal model draws computes; others are read or generated."""
        return "causal_corpus" if self.paths.is_causal(wildcards.corpus) else "corpus"

    def sort_of_conditionals(self, wildcards) -> str:
        """Exact conditionals under a causal model run it once for each word that might stand there."""
        return "causal_conditionals" if self.paths.is_causal(wildcards.corpus) else "conditionals"

    def partition(self, rule: str) -> str | None:
        """The partition of GPUs for what computes on one, that of CPUs for all else."""
        on_gpu = self.on_gpu and rule in COMPUTE and "gpu_partition" in self.site
        return self.site["gpu_partition"] if on_gpu else self.site.get("slurm_partition")

    def runtime(self, rule: str, sort=None):
        """Minutes, as a function of a job's wildcards and its attempt.

        What its kind of job is given, more with another attempt; or more, if it is planned to take longer: an attempt
        of what begins anew gets twice that time, all of what is resumed get it together. Never above the partition's
        limit.
        """

        def asked(wildcards, attempt):
            name, names = sort(wildcards) if sort else rule, dict(wildcards.items())
            usual = min(MINUTES.get(name, 60) * attempt, 2 * MINUTES.get(name, 720))
            whole = SLOWER * self._planned(rule, *names.items())
            wanted = whole / ATTEMPTS if self._is_resumed(rule, names) else whole * attempt
            return int(min(max(usual, math.ceil(wanted)), most(self.partition(name))[1]))

        return asked

    def _is_resumed(self, rule, names) -> bool:
        """Whether another attempt goes on where the one before was stopped."""
        if rule == "corpus":
            return self.paths.is_long(names["corpus"])
        return rule in RESUMED or (rule == "probe" and self.config.probes[names["probe"]].kind in RESUMED_PROBES)

    @functools.cache  # noqa: B019 - as long as the workflow lives
    def _planned(self, rule, *names) -> float:
        """Minutes of a job."""
        from masklab.plan.graph import Job

        return self._estimate().costs.of(Job(rule, dict(names))).seconds / 60

    def memory(self, rule: str, sort=None):
        """MB, as a function of a job's wildcards and its attempt.

        What its sizes say it needs, doubled after each attempt that ran out of memory, and never more than the largest
        node of the partition has.
        """

        def asked(wildcards, attempt):
            names = dict(wildcards.items())
            node = self.node(self.partition(sort(wildcards) if sort else rule))
            wanted = max(LEAST, self._needed(rule, *names.items()) * 2 ** self._exhausted(rule, names, attempt))
            return int(min(wanted, node))

        return asked

    def node(self, partition: str) -> float:
        """MB of a node, from `node_mem_mb` of the profile or from sinfo; infinite where neither says."""
        if int(self.site.get("node_mem_mb", 0)):
            return int(self.site["node_mem_mb"])
        return most(partition)[0]

    @functools.cache  # noqa: B019
    def _needed(self, rule, *names):
        from masklab.plan.graph import Job

        return -(-self._estimate().of(Job(rule, dict(names))) // (STEP * 1e6)) * STEP

    @functools.cache  # noqa: B019
    def _estimate(self):
        from masklab.plan import read_assumptions
        from masklab.plan.costs import Costs, Device
        from masklab.plan.host_memory import Memory

        assumptions, device = read_assumptions(), self.planned_device()
        return Memory(Costs(self.paths, Device(device, assumptions["devices"][device]), assumptions), self.on_gpu)

    def _exhausted(self, rule, names, attempt) -> int:
        """How many of the attempts before this one ran out of memory."""
        if attempt == 1:
            return 0
        key = (rule, *names.items())
        if (*key, attempt) not in self.doubled:
            said = underway.read(underway.path_of(self.paths.log(rule, **names))) or {}
            words, number = said.get("failed", ""), said.get("slurm_job")
            out = "out of memory (" in words  # as `lacking` says it of a host
            out = out or any(word in words for word in EXHAUSTED) or queued.ended(number) == "OUT_OF_MEMORY"
            self.doubled[(*key, attempt)] = self.doubled.get((*key, attempt - 1), 0) + out
        return self.doubled[(*key, attempt)]

    def planned_device(self) -> str:
        """Entry of the plan's assumptions that comes nearest to what computes here, or on the cluster's nodes."""
        from masklab.plan import read_assumptions
        from masklab.plan.here import device_here

        return "h100" if self.on_gpu and self.submits else device_here(self.config, read_assumptions()["devices"])[0]

    def warn(self) -> None:
        """Say which partitions of the profile the cluster does not have."""
        asked = self.site.get("slurm_partition"), self.site.get("gpu_partition") if self.on_gpu else None
        names = {name for each in asked for name in named(each)}
        if self.submits and partitions() and (missing := sorted(names - set(partitions()))):
            known = ", ".join(partitions())
            print(f"masklab: warning: slurm/profile.yaml: no partition {', '.join(missing)}; sinfo lists {known}",
                  file=sys.stderr)  # fmt: skip
