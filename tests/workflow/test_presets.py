"""Every preset dry-runs, and its plan counts the jobs that Snakemake counts."""

import collections
import resource
import subprocess
import time

import pytest
from running import COMMAND, ROOT, jobs

from masklab.config import read
from masklab.plan import make_plan

pytestmark = pytest.mark.workflow
FILES = sorted(path.name for path in (ROOT / "presets").glob("*.yaml"))


@pytest.mark.parametrize("name", ["config.yaml", *FILES])
def test_a_preset_dry_runs_within_a_minute_and_its_plan_counts_its_jobs(name, tmp_path, monkeypatch):
    path = ROOT / "presets" / name if name in FILES else ROOT / name
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [*COMMAND, "--dry-run", "--forceall", "--quiet", "rules", "--configfile", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert done.returncode == 0, done.stdout + done.stderr
    assert spent < 60, f"{spent:.0f} s of CPU ({time.monotonic() - began:.0f} s on the clock)"
    monkeypatch.chdir(tmp_path)
    plan = make_plan(read(path))
    assert collections.Counter(job.rule for job in plan.jobs.values()) == jobs(done.stdout)
    print(f"{name}: {len(plan.jobs)} jobs, {spent:.1f} s of CPU")
