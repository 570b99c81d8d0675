"""What every script shares: log, threads, one-line errors, what an artifact was made from, the shared store."""

import contextlib
import gc
import logging
import os
import sys
import traceback
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.jobs import provenance, state, store, warm
from masklab.jobs.progress import configure
from masklab.jobs.underway import Underway
from masklab.memory import keep_freed_memory

log = logging.getLogger("masklab")


@contextlib.contextmanager
def job(snakemake):
    """Run a script's body: log records go to `log:`, and to stderr where the run has no log of its own; a MaskLabError
    is one line and status 1.

    Where MASKLAB_STORE names a folder, an artifact that lies there is taken from it and the body does not run.
    """
    warm.hand_over()
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ[variable] = str(threads(snakemake.threads))
    gc.set_threshold(50_000)  # imports make objects that stay: looking through them for garbage takes time
    keep_freed_memory()
    configure(snakemake.log[0])
    underway = Underway(snakemake.rule, dict(snakemake.wildcards), snakemake.log[0])
    try:
        params = dict(snakemake.params)
        config = params.get("config")
        changed = ", ".join(params["code"].changed)
        changed = f"code changed while this job waited: {changed}" if changed else None
        if isinstance(config, dict) and "changed" in config:
            changed = f"config changed while this job waited: {config['changed']}"
        if changed:
            raise MaskLabError(f"the {changed}; nothing was made; run the same command again")
        if params["code"].files:
            from masklab.config import kinds

            kinds.load(params["code"].files)
        record = provenance.Record(snakemake.rule, dict(snakemake.wildcards), config, params["code"], snakemake.log[0])
        entry = store.entry(snakemake)
        if entry is not None and entry.fetch():
            record.finished(snakemake.input, taken_from=str(entry.path))
            log.info("taken from the store: %s", entry.path)
            underway.ended()
            sys.exit(0)
        if params.get("state"):
            state.begin(params["state"], params["code"])
        try:
            with provenance.stamped(config):
                yield
        except BaseException:
            record.stopped()
            raise
        provenance.embed(snakemake.output, config)
        record.finished(snakemake.input)
        if entry is not None:
            entry.add()
        underway.ended()
    except MaskLabError as error:
        log.error("error: %s", error)
        underway.failed(f"error: {error}")
        sys.exit(1)
    except Exception:
        log.exception("failed")
        underway.failed(traceback.format_exc())
        sys.exit(1)


def threads(asked: int) -> int:
    """CPU threads of this job: what Slurm gave it or Snakemake allows, and no more than this process may use."""
    given = int(os.environ.get("SLURM_CPUS_PER_TASK", asked))
    return max(1, min(given, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else given))


def checkpoint(manifest, reference: str) -> Path:
    """Folder of `recipe@step`, beside the manifest of one replicate of the recipe."""
    return Path(manifest).parent / f"step-{reference.rpartition('@')[2]}"


def device(name: str) -> str:
    """`auto` -> cuda where there is one, else cpu."""
    if name != "auto":
        return name
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
