"""Starting a run: in this process, in several by torchrun, or in several on each node of a Slurm job."""

import contextlib
import os
import signal
import subprocess
import sys

from masklab.errors import MaskLabError, Passing
from masklab.training.run import Run, write_run

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
PORTS = (20000, 40000)  # where the processes of a job of several nodes meet: its id decides


def launch(run: Run, log=None, beside=()) -> None:
    """Train `run` (see `masklab.training.loop.train`), in as many processes as `run.model.processes` says.

    Several processes are started by torchrun, on this machine or, with `nodes` above 1, by srun on each node of the
    Slurm job that this process runs in; each runs `python -m masklab.training <run.state>/run.json`. Where RANK is
    set (by torchrun, or by a cluster's launcher) this process is already one of them. `log`: file that the first of
    them adds its lines to. The CPU threads of OMP_NUM_THREADS are shared out among the processes of a machine.
    beside: runs of other replicates of the recipe to train side by side with this one, where that can be done
    (`masklab.training.together`).

    Raises:
        MaskLabError: bad input, a stopped run, a process that failed, or several nodes outside a Slurm job.
    """
    if run.encoder.kind == "lookup":
        from masklab.training.lookup_run import write_lookup

        return write_lookup(run)
    if run.encoder.kind == "words":
        from masklab.training.unigram import write_words

        return write_words(run)
    if run.encoder.kind == "folder":
        from masklab.training.adopted_run import write_adopted

        return write_adopted(run)
    run.state.mkdir(parents=True, exist_ok=True)
    if run.model.processes == 1 or "RANK" not in os.environ:  # of several, whoever started them has done so
        from masklab.training.apart import leave
        from masklab.training.together import take, train_together

        if take(run):
            return None
        if beside and run.device == "cpu" and run.model.processes == 1:
            return train_together(run, list(beside))
        leave(run)
    if run.model.processes == 1 or "RANK" in os.environ:
        from masklab.training.loop import train

        return train(run)
    nodes = _nodes(run) if run.model.nodes > 1 else []
    _check_devices(run)
    path = run.state / "run.json"
    write_run(run, path)
    before = {name: os.environ.get(name) for name in THREADS}
    threads = max(1, int(before["OMP_NUM_THREADS"] or os.cpu_count()) // run.model.here)
    os.environ.update(dict.fromkeys(THREADS, str(threads)))
    module = ["--nproc-per-node", str(run.model.here), "--module", "masklab.training", str(path)]
    module += [str(log)] if log else []
    try:
        if nodes:
            _srun(run, nodes, module)
        else:
            _torchrun(run, ["--standalone", "--local-addr", "127.0.0.1", *module])
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _torchrun(run, command):
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    try:
        torchrun.main(command)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        raise Passing(
            f"{run.name}: process {rank} of {run.model.processes} ended with status {failure.exitcode}, and with it"
            " the run; what it said is above; run the same command again to resume"
        ) from None
    except SignalException as error:
        raise Passing(
            f"{run.name}: stopped by signal {int(error.sigval)}; run the same command again to resume"
        ) from None


def _nodes(run) -> list[str]:
    """Names of the nodes of this Slurm job, which must be as many as the run wants."""
    where = f"{run.name}: models.<model>.nodes: {run.model.nodes}"
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        raise MaskLabError(f"{where}, but this is not a Slurm job; run with --profile slurm, or set nodes: 1")
    try:
        shown = subprocess.run(["squeue", "-h", "-j", job, "-o", "%N"], capture_output=True, text=True, check=True)
        names = ["scontrol", "show", "hostnames", shown.stdout.strip()]
        nodes = subprocess.run(names, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        raise Passing(f"{where}: Slurm does not say the nodes of job {job} ({error})") from None
    if len(nodes) != run.model.nodes:
        raise MaskLabError(f"{where}, but job {job} has {len(nodes)} ({', '.join(nodes)})")
    return nodes


def _srun(run, nodes, module):
    """One torchrun on each node; they meet at the first. Signals of Slurm reach the processes themselves."""
    job = os.environ["SLURM_JOB_ID"]
    port = PORTS[0] + int(job) % (PORTS[1] - PORTS[0])
    cpus = os.environ.get("SLURM_CPUS_PER_TASK", "1")
    # What the step of this process set would be taken for requests of the new step.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "SRUN_"))}
    environment["SLURM_JOB_ID"] = job
    command = ["srun", "--overlap", f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}", "--ntasks-per-node=1"]
    command += [f"--cpus-per-task={cpus}", "--kill-on-bad-exit=1"]
    if run.device.startswith("cuda"):
        command.append(f"--gres=gpu:{run.model.here}")
    command += [sys.executable, "-m", "torch.distributed.run", f"--nnodes={len(nodes)}", f"--rdzv-id={job}"]
    command += ["--rdzv-backend=c10d", f"--rdzv-endpoint={_address(nodes[0])}:{port}", *module]
    with subprocess.Popen(command, env=environment) as child, _passed_on(child):
        status = child.wait()
    if status:
        raise Passing(
            f"{run.name}: srun of {run.model.processes} processes on {', '.join(nodes)} ended with status {status};"
            " what they said is above; run the same command again to resume"
        )


@contextlib.contextmanager
def _passed_on(child):
    """Meanwhile this process passes signals on to `child` and outlives it: with it would end the job's other steps."""
    caught = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda number, frame: child.send_signal(number)) for number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _address(node) -> str:
    """Address of a node as Slurm knows it: several nodes of a test may share a machine that has none of their names."""
    shown = subprocess.run(["scontrol", "show", "node", node, "--oneliner"], capture_output=True, text=True).stdout
    addresses = [part.removeprefix("NodeAddr=") for part in shown.split() if part.startswith("NodeAddr=")]
    return addresses[0] if addresses else node


def _check_devices(run):
    if run.device.startswith("cuda"):
        import torch

        if torch.cuda.device_count() < run.model.here:
            raise MaskLabError(
                f"{run.name}: models.<model>.processes: {run.model.here} processes on a machine need as many GPUs,"
                f" this one has {torch.cuda.device_count()}"
            )
