"""Who goes on apart from those that it was trained beside: what it takes with it, and what it leaves to the others.

Replicates that train side by side have one state, below `<state of the recipe>/together/` (`training.together`). When a
later run asks for some of them alone, the part of each of the others is put aside there, as `apart/r<k>.safetensors`,
until somebody asks for that replicate. One that then trains by itself makes its part a state of its own.
"""

import dataclasses
import logging
import shutil
from pathlib import Path

from masklab.errors import Passing
from masklab.files import fingerprint
from masklab.jobs import saved, stacks, state, store
from masklab.jobs.progress import STATUS
from masklab.models.stacked.masked import WORD
from masklab.models.stacked.parameters import StackedParameters
from masklab.training.guard import Guard
from masklab.training.metrics_file import Means
from masklab.training.record import ROWS, Record
from masklab.training.run import Run
from masklab.training.stack import Row
from masklab.training.start import initial_model

log = logging.getLogger("masklab")
FILE = stacks.STATE


def folder_of(run: Run) -> Path:
    """Where the replicates of a run's recipe leave what they make side by side."""
    return run.state.parent / stacks.TOGETHER


def lent(run: Run, folder: Path) -> Run:
    """A run whose files lie where its siblings' do until its own job takes them."""
    name = f"r{run.replicate}"
    return dataclasses.replace(run, output=folder / name, state=folder / "states" / name)


def mark_of(run: Run) -> str:
    """Fingerprint of what the weights of a run are made of."""
    return fingerprint(Record(run).what())


def put_aside(folder: Path, staying) -> bool:
    """Put the part of every replicate but those `staying` aside, where a common state has one; False: it could not be.

    Not of one that is done, or that has a state of its own. The caller holds the lock of `folder`.
    """
    left = [k for k in stacks.replicates(folder / FILE) if k not in staying and not _needs_none(folder, k)]
    begun = saved.load(folder / FILE, {}) if left else None
    for k in left if begun else ():
        tensors, facts = _part(begun, k)
        if not saved.attempt(stacks.aside(folder, k), tensors, {}, before=False, **facts):
            return False
    return True


def _needs_none(folder, k) -> bool:
    own = folder.with_name(f"r{k}") / FILE
    return any(file.is_file() for file in (folder / f"r{k}.json", stacks.aside(folder, k), own))


def _part(begun: saved.Saved, k: int) -> tuple[dict, dict]:
    """(tensors, facts) of one replicate of a common state, as a common state of it alone."""
    facts, name = begun.facts, str(k)
    rows, row = {}, facts["replicates"].index(k)
    for key in ("values", "mean", "square", "updates"):
        tensor = begun.tensors[key]
        rows[key] = tensor[row : row + 1] if tensor.dim() else tensor
    rows |= {key: tensor for key, tensor in begun.tensors.items() if key.startswith(f"r{name}.{ROWS}")}
    own = {"replicates": [k], "marks": {name: facts["marks"][name]}, "runs": {name: facts["runs"][name]}}
    return rows, {"step": facts["step"]} | own


def forget(folder: Path) -> None:
    """Remove a common state, and how far it says its replicates are."""
    for file in (folder / FILE, saved.previous(folder / FILE), folder / STATUS):
        file.unlink(missing_ok=True)


def leave(run: Run) -> None:
    """Make what a run has of a common state its own, before it trains by itself."""
    folder = folder_of(run)
    aside = stacks.aside(folder, run.replicate)
    if stacks.has_begun(run.state / FILE):  # it has left already
        aside.unlink(missing_ok=True)
        return
    file = _where(run, folder)
    if file is None:
        return
    with state.locked(run.state):
        begun = _usable(run, folder, file)
        if begun is None and file != aside and _where(run, folder) == aside:  # a sibling has put it aside meanwhile
            file, begun = aside, _usable(run, folder, aside)
        if begun is not None and not _make_own(run, folder, begun):
            return  # the part stays where it is
    if file == aside:
        aside.unlink()
    elif begun is None or not _end(folder, run.replicate):
        return
    for place in (folder / f"r{run.replicate}", folder / "states" / f"r{run.replicate}"):
        shutil.rmtree(place, ignore_errors=True)


def _where(run, folder) -> Path | None:
    """The file with a run's part of a common state; None: it has none."""
    aside = stacks.aside(folder, run.replicate)
    places = aside, folder / FILE, aside  # a sibling's job may put it aside just now
    return next((file for file in places if run.replicate in stacks.replicates(file)), None)


def _usable(run, folder, file) -> saved.Saved | None:
    """The common state in a file; None, and a line why, if a run cannot go on from it."""
    if state.made_by(folder) != state.made_by(run.state):
        log.warning("%s: made by other code or versions; %s begins anew", file, run.name)
        return None
    name = str(run.replicate)

    def fault(facts):
        if facts["marks"].get(name) != mark_of(run):
            return "it was made from another config or other inputs"
        return Record(lent(run, folder)).unusable(facts["runs"][name])

    return saved.load(file, {}, fault)


def _end(folder, leaving: int) -> bool:
    """Put aside the parts of all but the replicate that is leaving, and forget the common state; False: it is in use.

    Where a part cannot be put aside, the common state stays.
    """
    try:
        with state.locked(folder):
            if put_aside(folder, [leaving]):
                forget(folder)
    except Passing:
        return False
    return True


def _make_own(run, folder, begun: saved.Saved) -> bool:
    """Write a run's part of a common state as a state of its own, and its checkpoints; False: it cannot be written."""
    name = str(run.replicate)
    tensors, facts = _part(begun, run.replicate)
    said = facts["runs"][name]
    for old in run.output.glob("step-*"):
        shutil.rmtree(old)
    for step in said["checkpoints"]:
        for part in (folder / f"r{name}" / f"step-{step}").iterdir():
            store.share(part, run.output / f"step-{step}" / part.name)
    model = initial_model(run, run.vocab_size, run.atoms)
    parameters = StackedParameters.of([model], WORD)
    parameters.load(tensors, [0])
    record, guard = Record(run), Guard(None, 0.0)
    guard.load(said["guard"])
    record.made_of, record.seconds, record.kept, record.ways = (
        record.what(), said["seconds"], said["checkpoints"], said["ways"],
    )  # fmt: skip
    record.metrics.fill({column: tensors[f"r{name}.{ROWS}{column}"] for column in said["columns"]})
    record.means = Means(*said["means"])
    record.save(facts["step"], Row(parameters, 0, model), guard)
    if record.saved is not None:
        log.info("%s: goes on by itself from what it was trained beside others", run.name)
    return record.saved is not None
