"""Planned seconds of given jobs: JSON in, JSON out, for the log of a run. `python -m masklab.plan.seconds <device>`."""

import json
import os
import sys

from masklab.config import load
from masklab.plan import read_assumptions
from masklab.plan.costs import Costs, Device
from masklab.plan.graph import Job, checkout_paths


def seconds(config: dict, jobs: dict[str, tuple[str, dict]], device: str) -> dict[str, float]:
    """Number of a job -> its seconds; jobs: number -> rule and its wildcards."""
    paths, assumptions = checkout_paths(load(config)), read_assumptions()
    threads = min(paths.config.threads, os.cpu_count() or 1)
    costs = Costs(paths, Device(device, assumptions["devices"][device], threads), assumptions)
    return {number: costs.of(Job(rule, names)).seconds for number, (rule, names) in jobs.items()}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump(seconds(asked["config"], asked["jobs"], sys.argv[1]), sys.stdout)
