"""What Snakemake's slurm executor does not do by itself: look often, forget no job, give up those that Slurm lost.

Nor does it keep from attempts that would fail like the one before.

These are methods and fields that no interface promises (`inside_snakemake`); `tests/test_requests.py` fails where an
upgrade has renamed one.
"""

import asyncio
import time
from pathlib import Path

import inside_snakemake
import left_lock
from masklab.jobs import queued, underway

LOOK = 15.0  # seconds between looks at the queue, at most
NAMED = 3  # jobs that a line names
LOST = 120.0  # seconds that a queue may know nothing of a job


def watch(executor) -> None:
    """Watch the jobs of the slurm executor of Snakemake.

    By itself it waits 10 s longer after each look that found nothing, up to 3 minutes: too long for jobs of seconds,
    and long enough for a controller to forget those that have ended. For a job that the controller no longer knows,
    because it died before it had written that down, it waits for ever. Where the controller does not answer for a few
    seconds, it forgets all jobs, and the run never ends. And it submits a job again whatever it said.
    """
    if executor is None or not inside_snakemake.able("slurm", executor=executor):
        return
    look, report, succeed = executor.check_active_jobs, executor.report_job_error, executor.report_job_success
    known, ended = {}, set()

    async def sleep():
        await asyncio.sleep(min(LOOK, executor.next_seconds_between_status_checks))

    async def check_active_jobs(active):
        ended.clear()
        async for _ in look(active):  # it says what has ended, and where nothing answers it leaves the others out
            pass
        still, now = [job for job in active if job.external_jobid not in ended], time.monotonic()
        for job in still:
            known.setdefault(job.external_jobid, now)
        said = queued.numbers() if any(now - known[job.external_jobid] > LOST for job in still) else None
        for job in still:
            number = job.external_jobid
            if said is None or number in said or now - known[number] <= LOST:
                known[number] = now if said and number in said else known[number]
                yield job
            else:
                del known[number]
                executor.report_job_error(job, msg=f"Slurm no longer knows job {number}. ")

    def report_job_error(submitted, msg=None, **more):
        ended.add(submitted.external_jobid)
        if recurs(submitted.job, submitted.external_jobid):
            inside_snakemake.give_up(submitted.job)
        report(submitted, msg, **more)

    def report_job_success(submitted):
        ended.add(submitted.external_jobid)
        succeed(submitted)

    executor.sleep, executor.check_active_jobs = sleep, check_active_jobs
    executor.report_job_error, executor.report_job_success = report_job_error, report_job_success


def at_work() -> str | None:
    """A line that names Slurm's jobs from this folder that wait or run, before any job begins; None: there are none.

    They are of a Snakemake that was killed, or of one for other files that is still at work. A second job beside one of
    them, submitted or on this machine, cannot begin, is tried again until it can, and as it begins removes what the
    first has just made, whose state is gone by then.
    """
    jobs = {number: job for number, job in queued.queued(Path.cwd()).items() if job["state"] != "COMPLETING"}
    if not jobs:
        return None
    named = [f"{number} ({job['comment'].replace('_wildcards_', ' ')})" for number, job in list(jobs.items())[:NAMED]]
    more = f" and {len(jobs) - NAMED} more" if len(jobs) > NAMED else ""
    if left_lock.others_live():
        whose, end = "another run here, which is at work", "its end,"
    else:
        whose, end = "a run here that was killed", f"their end, or `scancel {' '.join(jobs)}`,"
    return (
        f"masklab: Slurm has jobs of {whose}: {', '.join(named)}{more}; wait for {end} and give the same command again"
    )


def recurs(job, number: str) -> bool:
    """Whether a job of Snakemake, submitted as `number`, has itself said that another attempt would fail likewise."""
    said = (underway.read(underway.path_of(job.log[0])) or {}) if job.log else {}
    return said.get("slurm_job") == number and said.get("recurs", False)
