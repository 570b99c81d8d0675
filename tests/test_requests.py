"""What jobs ask a cluster for, from a config and from what sinfo says; when one is looked at, and given up."""

import asyncio
import functools
import inspect
import math
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "workflow"))

import cluster  # noqa: E402
import left_lock  # noqa: E402
import watch  # noqa: E402
from masklab.config import read  # noqa: E402
from masklab.errors import MaskLabError  # noqa: E402
from masklab.jobs import queued, underway  # noqa: E402
from masklab.plan import make_plan  # noqa: E402
from masklab.plan.graph import checkout_paths  # noqa: E402

SINFO = "#!/bin/sh\necho 'cpu|3000+|2:00:00'\necho 'cpu|2500|2:00:00'\necho 'gpu|9000|1-00:00:00'\n"
SITE = {"slurm_partition": "cpu", "gpu_partition": "gpu"}
MODEL = {"recipe": "strict-mlm", "replicate": "1"}


def wildcards(**names):
    return SimpleNamespace(items=names.items)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A cluster of two partitions, as far as its commands tell; jobs that ended do so as the file `state` says."""
    commands = tmp_path / "commands"
    commands.mkdir()
    for name, text in (("sinfo", SINFO), ("squeue", f"#!/bin/sh\ncat {tmp_path}/state\n")):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    cluster.partitions.cache_clear()
    yield tmp_path
    cluster.partitions.cache_clear()


@functools.cache
def default_run(device):
    return checkout_paths(read(ROOT / "config.yaml", values=[f"device={device}"]))


def of(device="auto", main=True, **more):
    return cluster.Cluster(default_run(device), SITE | more, main)


def test_what_computes_on_no_gpu_goes_to_the_partition_of_cpus(site):
    assert of().asks("pretrain")["slurm_partition"] == "gpu" and of().asks("corpus")["slurm_partition"] == "cpu"
    assert of("cpu").asks("pretrain")["slurm_partition"] == "cpu" and of("cpu").gpus() is None
    assert of(main=False).asks("pretrain") == {} and cluster.Cluster(of().paths).asks("corpus") == {}


def test_no_request_is_above_what_the_partition_has(site):
    asks, model, corpus = of("cpu").asks("pretrain"), wildcards(**MODEL), wildcards(corpus="ib-pcfg")
    assert [asks["runtime"](model, attempt) for attempt in (1, 2)] == [120, 120]
    assert [of().asks("pretrain")["runtime"](model, attempt) for attempt in (1, 2)] == [1440, 1440]
    assert of().asks("corpus")["runtime"](corpus, 1) == 60
    exact = wildcards(corpus="ib-pcfg", tokenizer="ib-pcfg", sequences="500", positions="one")
    assert of().asks("conditionals")["mem_mb"](exact, 1) == 3000
    assert of(node_mem_mb="2200").asks("conditionals")["mem_mb"](exact, 1) == 2200


@pytest.mark.parametrize("said", ["64G", "0.5", "-1", "much"])
def test_a_nodes_memory_that_is_no_number_of_megabytes_is_refused(said, site):
    """Snakemake would give a traceback once the graph is built."""
    with pytest.raises(MaskLabError) as refused:
        of(node_mem_mb=said)
    must = "must be a whole number of MB, such as 64000"
    assert str(refused.value) == f"slurm/profile.yaml: default-resources.node_mem_mb: {must} (got {said!r})"


def test_of_several_partitions_that_slurm_may_choose_from_the_least_counts(site, monkeypatch, capsys):
    """`sbatch -p cpu,gpu` takes whichever has room first."""
    monkeypatch.setitem(SITE, "slurm_partition", "cpu,gpu")
    requests = of("cpu")
    assert requests.asks("pretrain")["slurm_partition"] == "cpu,gpu"
    assert requests.asks("pretrain")["runtime"](wildcards(**MODEL), 1) == 120 and requests.node("cpu,gpu") == 3000
    requests.warn()
    assert capsys.readouterr().err == ""
    of("cpu", slurm_partition="gpu,fast").warn()
    assert "no partition fast; sinfo lists cpu, gpu" in capsys.readouterr().err
    assert requests.node("fast") == math.inf and requests.node(None) == math.inf


def test_a_corpus_that_a_causal_model_draws_asks_for_what_computes(site):
    requests, needed = of(), {}
    asks = requests.asks("corpus", requests.sort_of_corpus)
    for corpus, partition, minutes in (("ib-causal", "gpu", 1440), ("ib-pcfg", "cpu", 60)):
        names = SimpleNamespace(items={"corpus": corpus}.items, corpus=corpus)
        assert asks["slurm_partition"](names) == partition and asks["runtime"](names, 1) == minutes
        needed[corpus] = asks["mem_mb"](names, 1)
    assert needed["ib-causal"] > needed["ib-pcfg"]


def test_conditionals_under_a_causal_model_ask_for_what_computes(site):
    requests, needed = of(), {}
    asks = requests.asks("conditionals", requests.sort_of_conditionals)
    for corpus, partition, minutes in (("ib-causal", "gpu", 1440), ("ib-pcfg/r1", "cpu", 60)):
        names = {"corpus": corpus, "tokenizer": corpus, "sequences": "500", "positions": "one"}
        names = SimpleNamespace(items=names.items, corpus=corpus)
        assert asks["slurm_partition"](names) == partition and asks["runtime"](names, 1) == minutes
        needed[corpus] = asks["mem_mb"](names, 1)
    assert needed["ib-causal"] > needed["ib-pcfg/r1"]


def test_a_job_that_is_planned_to_take_long_asks_for_its_time(site):
    """Of the paper's sizes: what begins anew in each attempt, what is resumed, and what its kind of job is given."""
    (site / "commands" / "sinfo").write_text("#!/bin/sh\necho 'cpu|3000|infinite'\necho 'gpu|9000|infinite'\n")
    paths = checkout_paths(read(ROOT / "presets" / "paper.yaml"))
    requests, plan = cluster.Cluster(paths, SITE), make_plan(paths.config, "h100")
    squad = {"probe": "mae-squad-large++", "recipe": "mae-large++", "replicate": "1", "unit": "mae-squad"}
    minutes = {}
    for rule, names in (("tokenizer", {"tokenizer": "strict"}), ("probe", squad), ("pretrain", MODEL)):
        asked = requests.asks(rule)["runtime"]
        planned = plan.costs[rule, *names.values()].seconds / 60
        minutes[rule] = planned, [asked(wildcards(**names), attempt) for attempt in range(1, cluster.ATTEMPTS + 1)]
    planned, asked = minutes["tokenizer"]
    assert planned > 60 and asked == [math.ceil(2 * attempt * planned) for attempt in range(1, 7)]
    planned, asked = minutes["probe"]
    assert planned > 6 * 480 and 2 * planned <= sum(asked) < 2 * planned + 6
    planned, asked = minutes["pretrain"]
    assert planned < 1440 and asked == [1440] + [2880] * 5
    assert yaml.safe_load((ROOT / "slurm" / "profile.yaml").read_text())["retries"] + 1 == cluster.ATTEMPTS


def test_only_an_attempt_that_ran_out_of_memory_makes_the_next_ask_for_more(site):
    asked = of().asks("pretrain")["mem_mb"]
    names = MODEL
    first = asked(wildcards(**names), 1)
    job = underway.Underway("pretrain", names, "results/logs/models/strict-mlm/r1.log")
    job.said["slurm_job"] = "7"
    job._write()
    (site / "state").write_text("FAILED\n")
    assert asked(wildcards(**names), 2) == first
    (site / "state").write_text("OUT_OF_MEMORY\n")
    assert asked(wildcards(**names), 2) == first, "asked twice of one attempt, the same is said"
    assert asked(wildcards(**names), 3) == min(2 * first, 9000) > first
    job.failed("MemoryError: no")
    assert asked(wildcards(**names), 4) == 9000


@pytest.mark.parametrize(
    ("said", "more"),
    [
        ("error: out of memory (Unable to allocate 3.20 GiB for an array); lower probes.a.batch_size", True),
        ("error: out of memory (malloc of size 4294967296 failed); give the job more memory", True),
        ("error: out of memory on the GPU (CUDA out of memory. Tried to allocate 2 GiB); lower a key", False),
        ("error: results/a: No such file or directory", False),
    ],
)
def test_out_of_memory_in_the_words_of_every_library(said, more, site):
    (site / "state").write_text("FAILED\n")
    names = {"recipe": "strict-mlm", "replicate": "1"}
    underway.Underway("pretrain", names, "results/logs/models/strict-mlm/r1.log").failed(said)
    asked = of().asks("pretrain")["mem_mb"]
    assert (asked(wildcards(**names), 2) > asked(wildcards(**names), 1)) == more


def test_sacct_cuts_a_state_that_is_not_given_room(site):
    """Of a job that the controller has forgotten."""
    sacct = site / "commands/sacct"
    sacct.write_text('#!/bin/sh\ncase "$*" in *State%*) echo OUT_OF_MEMORY;; *) echo OUT_OF_ME+;; esac\n')
    sacct.chmod(0o755)
    assert queued.ended("7") == "OUT_OF_MEMORY"


@pytest.mark.parametrize(
    ("said", "minutes"),
    [("infinite", math.inf), ("30:00", 30), ("2:00:00", 120), ("1-00:00:00", 1440), ("n/a", math.inf), ("0:30", 0.5)],
)
def test_time_limits_as_sinfo_writes_them(said, minutes):
    assert cluster.minutes(said) == minutes


class Waits:
    """The executor as far as it is watched: every job that is active stays so, but where nothing answers."""

    next_seconds_between_status_checks = 170.0

    def __init__(self):
        self.failed, self.done, self.answers, self.ends = {}, [], True, ()

    async def sleep(self):
        raise AssertionError("the watch has put its own in place of it")

    async def check_active_jobs(self, active):
        for job in active if self.answers else ():
            if job.external_jobid in self.ends:
                self.report_job_success(job)
            else:
                yield job

    def report_job_error(self, job, msg=None):
        self.failed[job.external_jobid] = msg

    def report_job_success(self, job):
        self.done.append(job.external_jobid)


def test_snakemake_has_what_the_watch_stands_on():
    """Names of its own and of its plugins that no interface promises."""
    from snakemake.jobs import Job
    from snakemake.scheduling.job_scheduler import JobScheduler
    from snakemake_executor_plugin_slurm import Executor

    assert all(hasattr(Executor, name) for name in vars(Waits) if not name.startswith("__"))
    assert "self.sleep()" in inspect.getsource(Executor._wait_for_jobs)
    assert "job.restart_times > job.attempt - 1" in inspect.getsource(JobScheduler._handle_error)
    assert "self._attempt = attempt" in inspect.getsource(Job.attempt.fset)


def test_a_job_that_would_fail_again_is_not_submitted_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    executor, job = Waits(), SimpleNamespace(_attempt=1, restart_times=5, log=["results/logs/models/a/r1.log"])
    submitted = SimpleNamespace(external_jobid="7", job=job)
    watch.watch(executor)
    said = underway.Underway("pretrain", {"recipe": "a"}, job.log[0])
    executor.report_job_error(submitted)
    assert job._attempt == 1, "it ended without a word"
    said.failed("error: stopped by signal 15")
    executor.report_job_error(submitted)
    assert job._attempt == 1
    said.failed("error: the loss has exploded", recurs=True)
    executor.report_job_error(SimpleNamespace(external_jobid="8", job=job))
    assert job._attempt == 1, "another attempt said so"
    executor.report_job_error(submitted)
    assert job._attempt == 6


def test_a_job_of_an_array_says_by_its_own_number_that_it_would_fail_again(tmp_path, monkeypatch):
    """Snakemake knows it as `<array>_<task>`; its SLURM_JOB_ID is another number."""
    monkeypatch.chdir(tmp_path)
    for name, value in (("SLURM_JOB_ID", "9"), ("SLURM_ARRAY_JOB_ID", "7"), ("SLURM_ARRAY_TASK_ID", "2")):
        monkeypatch.setenv(name, value)
    job = SimpleNamespace(log=["results/logs/models/a/r1.log"])
    underway.Underway("pretrain", {"recipe": "a"}, job.log[0]).failed("error: the loss has exploded", recurs=True)
    assert watch.recurs(job, "7_2") and not watch.recurs(job, "7_1")


def test_every_job_of_an_array_that_waits_is_known_to_the_queue(site):
    """By itself squeue writes those that wait as one, and each would count as lost after two minutes."""
    squeue = '#!/bin/sh\ncase " $* " in *" -r "*) printf "7_1\\n7_2\\n";; *) echo "7_[1-2]";; esac\n'
    (site / "commands/squeue").write_text(squeue)
    assert queued.numbers() == {"7_1", "7_2"}


def test_jobs_of_a_run_that_was_killed_are_named_before_others_are_submitted_beside_them(site):
    def says(*rows):
        lines = "".join(f"echo '{number}|{state}|None|{where}|{comment}'\n" for number, state, where, comment in rows)
        (site / "commands/squeue").write_text(f"#!/bin/sh\n{lines}")
        return watch.at_work()

    job = "rule_pretrain_wildcards_a_1"
    assert says() is None
    assert says((7, "COMPLETING", site, job), (8, "RUNNING", site / "other", job), (9, "RUNNING", site, "mine")) is None
    assert says((7, "RUNNING", site, job), (8, "PENDING", site, "rule_corpus_wildcards_c")) == (
        "masklab: Slurm has jobs of a run here that was killed: 7 (pretrain a_1), 8 (corpus c); wait for their end, or"
        " `scancel 7 8`, and give the same command again"
    )
    assert ", 3 (pretrain a_1) and 2 more; wait" in says(*((number, "PENDING", site, job) for number in range(1, 6)))
    left_lock.RUNS.mkdir(parents=True)
    (left_lock.RUNS / "login-1-cluster").touch()
    assert "a run here that was killed" in says((7, "RUNNING", site, job))
    with open(left_lock.RUNS / "login-2-cluster", "w") as other:
        left_lock.lock(other)
        said = "masklab: Slurm has jobs of another run here, which is at work: 7 (pretrain a_1); wait for its end"
        assert says((7, "RUNNING", site, job)) == f"{said}, and give the same command again"


def test_folders_of_jobs_may_have_any_name(site):
    """That of another job, too: in Latin-1, say, as of old."""
    where = site / "mine|yours"
    lines = b"8|RUNNING|None|/home/k\xe4the|rule_corpus_wildcards_c\n7|RUNNING|None|%b|rule_corpus_wildcards_c\n"
    (site / "rows").write_bytes(lines % bytes(where))
    (site / "commands/squeue").write_text(f"#!/bin/sh\ncat '{site}/rows'\n")
    assert list(queued.queued(where)) == ["7"]


def test_jobs_are_kept_in_mind_while_the_controller_does_not_answer():
    """The executor would forget them all, and Snakemake would wait for ever."""
    executor = Waits()
    watch.watch(executor)
    jobs = [SimpleNamespace(external_jobid=number, job=SimpleNamespace(log=[])) for number in ("7", "8")]

    async def look():
        return [job async for job in executor.check_active_jobs(jobs)]

    executor.answers = False
    assert asyncio.run(look()) == jobs
    executor.answers, executor.ends = True, ("7",)
    assert asyncio.run(look()) == jobs[1:] and executor.done == ["7"] and not executor.failed


def test_a_job_that_the_queue_has_lost_is_given_up_and_no_other(site, monkeypatch):
    executor, now = Waits(), [0.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    watch.watch(executor)
    jobs = [SimpleNamespace(external_jobid=number, job=SimpleNamespace(log=[])) for number in ("7", "8")]

    def looks(seconds, state):
        """Jobs that are still waited for after a look at the queue, `seconds` from the start."""
        now[0] = seconds
        (site / "state").unlink(missing_ok=True)  # then squeue fails
        if state is not None:
            (site / "state").write_text(state)

        async def look():
            return [job async for job in executor.check_active_jobs(jobs)]

        jobs[:] = asyncio.run(look())
        return [job.external_jobid for job in jobs]

    assert looks(0, "") == looks(100, "") == ["7", "8"], "they may not have reached the queue yet"
    assert looks(130, "7\n8\n") == ["7", "8"]
    assert looks(240, "8\n") == ["7", "8"], "the queue knew them 110 s ago"
    assert looks(260, None) == ["7", "8"], "the queue does not answer"
    assert looks(270, "8\n") == ["8"] and looks(900, "8\n") == ["8"]
    assert executor.failed == {"7": "Slurm no longer knows job 7. "}
