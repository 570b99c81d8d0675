"""Small runs, and processes that start warm: forked from one that has imported everything."""

import multiprocessing
import os
import socket
import sys

from masklab.config.schema import Model, Objective
from masklab.training.run import Run, write_run

OPTIMISER = {"lr": 2e-3, "warmup": 0.1}
warm = multiprocessing.get_context("forkserver")
warm.set_forkserver_preload(["masklab.training.__main__", "masklab.training.loop", "masklab.sparse.codes", "runs"])


def make_run(english, encoder, folder, name="m", objective=None, **model):
    keys = {"corpus": "c", "tokenizer": "t", "encoder": "e", "objective": "o", "steps": 60, "batch_size": 32,
            "optimiser": OPTIMISER, "log_every": 10, **model}  # fmt: skip
    return Run(
        name=name, seed=1, model=Model(**keys), encoder=encoder, objective=objective or Objective(mlm=1),
        tokens=english / "tokens", tokenizer=english / "tokenizer",
        output=folder / "models" / name, state=folder / "state" / name,
    )  # fmt: skip


def _start(arguments, environment, errors):
    from masklab.training.__main__ import main

    os.environ.update(environment)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    sys.exit(main(arguments))


def start(path, errors, environment=None):
    """A process that does `python -m masklab.training path`, with stderr added to the file `errors`."""
    process = warm.Process(target=_start, args=([str(path)], environment or {}, str(errors)), daemon=True)
    process.start()
    return process


def start_ranks(run, path, errors):
    """The processes of a run as torchrun would start them."""
    write_run(run, path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    size = run.model.processes
    common = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [start(path, errors, {"RANK": str(i), "LOCAL_RANK": str(i), **common}) for i in range(size)]
