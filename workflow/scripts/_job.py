"""What every script shares: log, threads, one-line errors, what an artifact was made from, the shared store."""

import contextlib
import gc
import logging
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

from masklab.errors import MaskLabError, Passing
from masklab.inside_libc import end_with, keep_freed_memory
from masklab.jobs import gpus, provenance, queued, state, store
from masklab.jobs.lacking import lacking
from masklab.jobs.progress import configure, cry
from masklab.jobs.underway import Underway

log = logging.getLogger("masklab")


@contextlib.contextmanager
def job(snakemake):
    """Run a script's body: log records go to `log:`, and to stderr where the run has no log of its own; a MaskLabError
    is one line and status 1.

    An artifact that lies in the store is taken from it, and the body does not run. After the body nothing can fail the
    job: what cannot be written down or kept in the store is a warning.
    """
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ[variable] = str(threads(snakemake.threads))
    gc.set_threshold(50_000)  # imports make objects that stay: looking through them for garbage takes time
    keep_freed_memory()
    if not queued.is_own():
        end_with() or watch()  # a Snakemake that is killed: the next one does not find its jobs at work
    underway = None
    try:
        configure(snakemake.log[0])
        underway = Underway(snakemake.rule, dict(snakemake.wildcards), snakemake.log[0])
        params = dict(snakemake.params)
        config = params.get("config")
        if changed := changed_since(params["code"], config):
            raise MaskLabError(f"the {changed}; nothing was made; run the same command again")
        if params["code"].files:
            from masklab.config import kinds

            kinds.load(params["code"].files)
        names, inputs, entry = dict(snakemake.wildcards), list(snakemake.input), None
        record = provenance.Record(snakemake.rule, names, config, params["code"], snakemake.log[0])
        with contextlib.suppress(OSError):  # an input is gone: the body says so
            entry = store.entry(snakemake.rule, names, config, params["code"], inputs)
        if store.take(entry, snakemake.output, inputs, again=record.path.exists()):
            afterwards("the record", lambda: record.finished(inputs, taken_from=str(entry.path)))
            log.info("taken from the store: %s", entry.path)
            forget(params.get("state"))
            afterwards("that it ended", underway.ended)
            sys.exit(0)
        check_ahead(snakemake)
        if params.get("state"):
            state.begin(params["state"], params["code"])
        read = marks(inputs)
        try:
            with provenance.stamped(config):
                yield
            if changed := [file for file, mark in marks(inputs).items() if read.get(file) not in (mark, None)]:
                raise Passing(f"{changed[0]}: changed while this job read it; run the same command again")
        except BaseException:
            afterwards("the record", record.stopped)
            raise
        afterwards("what it was made from", lambda: provenance.embed(snakemake.output, config))
        afterwards("the record", lambda: record.finished(inputs))
        store.publish(entry, snakemake.rule, snakemake.output)
        afterwards("that it ended", underway.ended)
    except (Exception, SystemExit) as error:
        said = error if isinstance(error, MaskLabError) else lacking(error, snakemake.rule, **snakemake.wildcards)
        said = said or blame(error, snakemake.log[0])
        if isinstance(error, SystemExit) and not said:
            raise
        if said:
            log.error("error: %s", said)
        else:
            log.exception("failed")
        recurs = isinstance(error, MaskLabError) and not isinstance(error, Passing)
        try:
            underway.failed(f"error: {said}" if said else traceback.format_exc(), recurs=recurs)
        except (OSError, AttributeError):  # a full disk: neither the log nor the status of the run may have it
            cry(f"masklab: {snakemake.rule} {' '.join(dict(snakemake.wildcards).values())}: error: {said or error}")
        sys.exit(1)


def check_ahead(snakemake) -> None:
    """Before a model is trained: what will be measured on it can be, as far as that is known by now.

    It stands here, and not in the script of that job, since it is no part of what a model is made by.
    """
    if snakemake.rule == "pretrain":
        from masklab.tasks import pair_lengths

        names, results = snakemake.wildcards, Path(snakemake.output.manifest).parents[3]
        folder = Path(snakemake.input.tokenizer).parent
        pair_lengths.check(names.recipe, int(names.replicate), folder, results / "tasks")


def watch(every: float = 1.0) -> None:
    """Have a thread kill this process when its Snakemake is gone: for systems whose kernel does not."""

    def look():
        try:
            while True:
                os.kill(snakemake, 0)
                time.sleep(every)
        except OSError:
            os.kill(os.getpid(), signal.SIGKILL)

    if snakemake := int(os.environ.get(queued.SNAKEMAKE, 0)):
        threading.Thread(target=look, daemon=True).start()


def blame(error, file) -> str | None:
    """One line for an error of a user's file, whose traceback goes to the job's log alone; None for any other."""
    from masklab.config import kinds

    if said := kinds.blame(error):
        with contextlib.suppress(OSError), open(file, "a", encoding="utf-8") as opened:
            traceback.print_exception(error, file=opened)
    return said


def changed_since(code, config) -> str | None:
    """What of a job's config or code is no longer what it was when this run began; None: all is as it was."""
    if isinstance(config, dict) and "changed" in config:
        return f"config changed while this job waited: {config['changed']}"
    parts = dict.fromkeys([*code.changed, *edited(code)])
    return f"code changed while this job waited: {', '.join(parts)}" if parts else None


def edited(noted) -> list[str]:
    """Parts of a job's code that are no longer what they were when this run began: a user's files, with what they
    import from beside themselves, and MaskLab's own, which are looked at if one was written to since."""
    from masklab.jobs import code

    ours = code.written_since(noted.modules)
    if not (noted.files or ours):
        return []
    then = {part: mark for part, mark in noted.modules.items() if ours or code.is_of_user(part)}
    now = code.today(then, noted.files, "") if then else {}
    return sorted(part for part, mark in then.items() if now.get(part) != mark)


def forget(folder) -> None:
    """Forget what a job that was stopped had left in its state folder, if there is one and nobody writes there."""
    if folder and os.path.isdir(folder):
        with contextlib.suppress(Passing, OSError), state.locked(folder):
            state.done(folder)


def marks(inputs) -> dict[str, str]:
    """What each input is known by; none of those that are gone, of which the body says so."""
    found = {}
    for file in inputs:
        with contextlib.suppress(OSError):
            found[str(file)] = provenance.input_mark(file)
    return found


def afterwards(what: str, write) -> None:
    """Write down something about work that has ended; that it cannot be written (a full disk) is a warning."""
    try:
        write()
    except OSError as error:
        log.warning("%s could not be written (%s)", what, error)


def threads(asked: int) -> int:
    """CPU threads of this job: what Slurm gave it or Snakemake allows, and no more than this process may use."""
    given = int(os.environ.get("SLURM_CPUS_PER_TASK", asked)) if queued.is_own() else asked
    return max(1, min(given, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else given))


def checkpoint(manifest, reference: str) -> Path:
    """Folder of `recipe@step`, beside the manifest of one replicate of the recipe."""
    return Path(manifest).parent / f"step-{reference.rpartition('@')[2]}"


def saved_after(model, snakemake):
    """The settings of a model with the minutes between saved states, which its weights do not depend on: a resource of
    its job and no param, so that a change of them makes nothing again."""
    return model.model_copy(update={"save_minutes": snakemake.resources.save_seconds / 60})


def device(name: str, count: int = 1) -> str:
    """`auto` -> cuda where there is one, else cpu. Of several GPUs this job gets `count`, those that the fewest use."""
    if name != "cpu":
        gpus.take(count)
    if name != "auto":
        return name
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if gpus.visible():
        log.warning(
            "torch %s cannot use the GPU of this machine (a build for CPUs, or an old driver): the CPU computes; with"
            " device: cuda this is an error, with device: cpu nothing is said",
            torch.__version__,
        )
    return "cpu"
