"""How long the rest of a run will take: what `masklab plan` expects of each job, corrected by the jobs that have ended.

Jobs of a rule of which some have ended are taken to be as much slower or faster than planned as those, if these were
not far shorter (initial weights are made by the rule of pre-training, and take a second or two in place of none).
Another job takes as many seconds more than planned as jobs have so far: the queue of a cluster, or the start on a busy
machine. Without a plan another job takes as long as the mean of all so far.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from contextlib import suppress
from itertools import accumulate

JOBS: dict[int, str] = {}  # number of each job of this run that makes something -> its rule
EXPECTED: dict[int, float] = {}  # number of a job -> planned seconds
FEW = 10  # jobs of which nothing is planned
SOME = 3  # jobs of a rule from which its pace is taken
LIKE = 10  # times the planned seconds of a job by which those of one that is far shorter are fewer
EARLY = 10.0  # seconds before which nothing is said
_asked = None


class Remaining:
    """Jobs done and left of the run that began at the time `began`.

    Times are of `time.monotonic`, which stands still while a laptop is closed, as jobs do.
    """

    def __init__(self, began: float):
        self.began = began
        self.used: dict[int, float] = {}

    def finished(self, number: int, seconds: float) -> None:
        """Job `number` took so long."""
        self.used[number] = seconds

    def seconds(self, running: dict[int, float]) -> float | None:
        """Seconds left, None while nobody knows; running: number of a job -> when it began."""
        receive()
        now = time.monotonic()
        mean = sum(self.used.values()) / max(1, len(self.used))
        expects = EXPECTED or dict.fromkeys(JOBS, mean)  # the plan takes a while, and is not made of a few jobs
        known = [number for number in self.used if number in expects]
        if len(known) < (1 if EXPECTED else SOME) or now - self.began < EARLY:
            return None
        more = sum(self.used[number] - expects[number] for number in known) / len(known)
        paces, left = self._paces(known, expects), {}
        for number, expected in expects.items():
            if number not in self.used:
                pace = paces.get(JOBS[number])
                times = pace and pace.times(expected)
                wanted = max(expected / 5, expected + more) if times is None else times * expected
                left[number] = max(0.0, wanted - max(0.0, now - running.get(number, now)))
        busy = sum(self.used.values()) + sum(now - began for began in running.values())
        at_once = max(1.0, busy / (now - self.began))
        return max(sum(left.values()) / at_once, max((left.get(number, 0.0) for number in running), default=0.0))

    def _paces(self, known, expects) -> dict[str, "_Pace"]:
        """Rule -> the pace of those of its jobs that have ended."""
        ended: dict[str, list] = {}
        for number in known:
            ended.setdefault(JOBS[number], []).append((expects[number], self.used[number]))
        return {rule: _Pace(jobs) for rule, jobs in ended.items()}


class _Pace:
    """Of ended jobs of a rule. jobs: (planned, used) seconds of each.

    Sums are kept of the longest job, the two longest and so on: each job that is left asks, once in a second, and a run
    has thousands.
    """

    def __init__(self, jobs):
        jobs = sorted(jobs, reverse=True)
        self.shorter = [-LIKE * planned for planned, _ in jobs]  # in order
        self.planned, self.used = ([*accumulate(column)] for column in zip(*jobs, strict=True))

    def times(self, expected: float) -> float | None:
        """How many times as long as planned those took that are not far shorter than a job; None of too few."""
        alike = bisect_right(self.shorter, -expected)
        return self.used[alike - 1] / self.planned[alike - 1] if alike >= SOME and self.planned[alike - 1] else None


def expect(jobs: dict[int, tuple[str, dict]], config: dict, device: str) -> None:
    """The jobs of this run (number -> rule and its wildcards) under a config as it was read.

    Another process plans them: counting parameters needs torch, which the process that schedules does without. It is
    asked by a file, since a pipe holds no thousand jobs, and nobody would read it until torch is imported.
    """
    global _asked
    JOBS.update({number: rule for number, (rule, _) in jobs.items()})
    if len(jobs) < FEW:
        return
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with suppress(OSError):
        answer = tempfile.TemporaryFile()  # noqa: SIM115 - read when the process has ended
        with tempfile.TemporaryFile() as question:
            question.write(json.dumps({"config": config, "jobs": jobs}, default=str).encode())
            question.seek(0)
            process = subprocess.Popen(
                [sys.executable, "-m", "masklab.plan.seconds", device],
                stdin=question, stdout=answer, stderr=subprocess.DEVNULL, env=environment,
            )  # fmt: skip
        _asked = process, answer


def receive() -> None:
    """Take the answer, if it has come."""
    global _asked
    if _asked is not None and _asked[0].poll() is not None:
        with _asked[1] as answer, suppress(ValueError):
            answer.seek(0)
            EXPECTED.update({int(number): seconds for number, seconds in json.load(answer).items()})
        _asked = None
