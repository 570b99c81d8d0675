"""Starting a run: in this process, or in several by torchrun."""

import os

from masklab.errors import MaskLabError
from masklab.training.run import Run, write_run

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


def launch(run: Run, log=None) -> None:
    """Train `run` (see `masklab.training.loop.train`), in as many processes as `run.model.processes` says.

    Several processes are started on this machine by torchrun, each running
    `python -m masklab.training <run.state>/run.json`; where RANK is set (by torchrun, or by a cluster's
    launcher) this process is already one of them. `log`: file that the first of them adds its lines to.
    The CPU threads of OMP_NUM_THREADS are shared out among the processes.

    Raises:
        MaskLabError: bad input, a stopped run, or a process that failed.
    """
    if run.encoder.kind == "lookup":
        from masklab.training.lookup import write_lookup

        return write_lookup(run)
    run.state.mkdir(parents=True, exist_ok=True)
    several = run.model.processes > 1
    if not several or "RANK" in os.environ:
        from masklab.training.loop import train

        return train(run)
    _check_devices(run)
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    path, processes = run.state / "run.json", run.model.processes
    write_run(run, path)
    before = {name: os.environ.get(name) for name in THREADS}
    threads = max(1, int(before["OMP_NUM_THREADS"] or os.cpu_count()) // processes)
    os.environ.update(dict.fromkeys(THREADS, str(threads)))
    command = ["--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", str(processes)]
    command += ["--module", "masklab.training", str(path), *([str(log)] if log else [])]
    try:
        torchrun.main(command)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        raise MaskLabError(
            f"{run.name}: process {rank} of {processes} ended with status {failure.exitcode}, and with it the run;"
            " what it said is above; run the same command again to resume"
        ) from None
    except SignalException as error:
        raise MaskLabError(
            f"{run.name}: stopped by signal {int(error.sigval)}; run the same command again to resume"
        ) from None
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _check_devices(run):
    if run.device.startswith("cuda"):
        import torch

        if torch.cuda.device_count() < run.model.processes:
            raise MaskLabError(
                f"{run.name}: models.<model>.processes: {run.model.processes} processes need as many GPUs, this"
                f" machine has {torch.cuda.device_count()}"
            )
