"""What jobs import, imported once before a warm process forks them: libraries, and modules of MaskLab.

A job must run the code of its own moment: `fresh` drops MaskLab's modules if one of their files has changed since.
What starts a thread when it is imported (transformers) is left to the jobs that need it.
"""

import os
import sys
from contextlib import suppress
from importlib import import_module

from masklab.jobs import provenance

LIBRARIES = (
    "torch", "safetensors.torch", "tokenizers", "pyarrow.parquet", "pyarrow.compute", "pandas", "pydantic",
    "scipy.special", "scipy.stats", "matplotlib.figure", "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf", "snakemake.script",
)  # fmt: skip
PACKAGE = "masklab"
MODULES = (
    "jobs.gpus", "jobs.lacking", "jobs.progress", "jobs.stacks", "jobs.state", "jobs.store", "jobs.underway",
    "kernels.attend", "kernels.recurrent", "kernels.token_loss",
    "training.launch", "training.lookup_run", "training.together", "probes.checkpoints", "report.cells",
    "report.figure_files", "scores.load", "studies", "tasks.encoding",
)  # fmt: skip
KINDS = ("probes", "terms")


def load() -> dict[str, tuple[str, int, int]]:
    """Import them all; the mark of the file of each module of MaskLab's, by its name."""
    for name in LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    for name in MODULES:
        import_module(f"{PACKAGE}.{name}")
    ours = import_module(f"{PACKAGE}.config.kinds").OURS
    for section in KINDS:
        for kind in ours[section].values():
            kind.entity(), kind.function()
    provenance.versions()
    return {name: _mark(module.__file__) for name, module in _ours()}


def fresh(marks: dict[str, tuple[str, int, int]]) -> None:
    """Drop MaskLab's modules, so that they are imported anew, unless all files are those of `marks`."""
    try:
        same = all(_mark(file) == (file, *rest) for file, *rest in marks.values())
    except OSError:
        same = False
    if not same:
        for name, _ in _ours():
            del sys.modules[name]


def _mark(file) -> tuple[str, int, int]:
    status = os.stat(file)
    return str(file), status.st_mtime_ns, status.st_size


def _ours():
    return [(name, module) for name, module in sys.modules.items() if name.partition(".")[0] == PACKAGE]
