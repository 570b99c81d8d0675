"""What every script shares: logging to the rule's log and stderr, threads, one-line errors."""

import contextlib
import logging
import os
import sys

from masklab.errors import MaskLabError
from masklab.memory import keep_freed_memory
from masklab.progress import configure


@contextlib.contextmanager
def job(snakemake):
    """Run a script's body: log records go to `log:` and stderr; a MaskLabError is one line and status 1."""
    threads = int(os.environ.get("SLURM_CPUS_PER_TASK", snakemake.threads))
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ[variable] = str(threads)
    keep_freed_memory()
    configure(snakemake.log[0] if snakemake.log else None)
    try:
        yield
    except MaskLabError as error:
        logging.getLogger("masklab").error("error: %s", error)
        sys.exit(1)
    except Exception:
        logging.getLogger("masklab").exception("failed")
        sys.exit(1)


def device(name: str) -> str:
    """`auto` -> cuda where there is one, else cpu."""
    if name != "auto":
        return name
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
