"""Replicates of one recipe that train side by side, and what they leave."""

import dataclasses
import os

import pandas as pd
import pytest
from runs import make_run
from safetensors.torch import load_file

from masklab.config.schema import Encoder, Objective
from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.jobs.progress import configure
from masklab.rng import replicate_seed
from masklab.training import apart, together
from masklab.training.launch import launch

ABSOLUTE = {"positions": "absolute", "layers": 2, "hidden": 32, "heads": 2, "max_positions": 64, "init_range": 0.1}
RELATIVE = {"positions": "relative", "relative_buckets": 8, "relative_distance": 16}
FORMS = {
    "absolute": {},
    "one block": {"layers": 1},
    "disentangled": {"positions": "disentangled"},
    "pre": {"norm": "pre", "dropout": 0.0},
    "pre, no norm": {"norm": "pre", "embedding_norm": False, "tied_head": False},
    "relative": RELATIVE,
    "relative alone": RELATIVE | {"absolute": False},
    "none": {"positions": "none", "intermediate": 48},
    "linear head": {"head": "linear"},
    "lstm": {"kind": "lstm", "norm": "pre"},
    "lstm, odd widths": {"kind": "lstm", "norm": "pre", "positions": "none", "hidden": 44, "embedding_norm": False},
    "linear head, untied": {"norm": "pre", "embedding_norm": False, "tied_head": False, "head": "linear"},
    "autoencoder": RELATIVE | {"decoder": {"layers": 2}},
    "autoencoder, all of it": RELATIVE | {"decoder": {"layers": 1, "relative": True}},
    "autoencoder, apart": RELATIVE | {"absolute": False, "decoder": {"hidden": 48, "layers": 1}},
    "autoencoder, narrow": {"norm": "pre", "tied_head": False, "decoder": {"hidden": 16, "layers": 1}},
}
AUTOENCODERS = {  # settings of the term
    "autoencoder": {},
    "autoencoder, all of it": {"delta": 0.5},
    "autoencoder, apart": {"delta": 0.5, "reset": True},
    "autoencoder, narrow": {"aligned": False},
}
KEYS = {"steps": 60, "checkpoints": [20, 60], "validate_every": 30, "masking": {"mask": 0.8, "random": 0.1}}


def replicates(english, folder, count, form="absolute", encoder=(), **keys):
    objective = Objective(mae=AUTOENCODERS[form]) if form in AUTOENCODERS else Objective(mlm=1)
    encoder = Encoder(**ABSOLUTE | FORMS[form] | dict(encoder))
    run = make_run(english, encoder, folder, objective=objective, **KEYS | keys)
    made = []
    for k in range(1, count + 1):
        places = {"output": run.output / f"r{k}", "state": run.state / f"r{k}"}
        made.append(dataclasses.replace(run, replicate=k, seed=replicate_seed(1, k), **places))
    return made


def weights(run) -> dict[str, dict]:
    return {folder.name: load_file(folder / "model.safetensors") for folder in sorted(run.output.glob("step-*"))}


def hashes(run) -> dict[str, str]:
    return read_json(run.output / "manifest.json")["steps"]


def metrics(run) -> pd.DataFrame:
    return pd.read_parquet(run.output / "metrics.parquet").drop(columns="seconds")


def left(run) -> tuple[bytes, pd.DataFrame]:
    return (run.output / "manifest.json").read_bytes(), metrics(run)


def stop_at(step, runs) -> None:
    """Train some side by side and stop after so many updates."""
    folder = apart.folder_of(runs[0])
    stopped = together.Together([apart.lent(run, folder) for run in runs], folder)
    apply = stopped.stack.apply

    def interrupted(rows):
        apply(rows)
        if rows[0]["step"] == step:
            stopped.interruption.receive(15)

    stopped.stack.apply = interrupted
    with pytest.raises(MaskLabError, match=f"stopped by signal 15 at step {step}; the state of step {step} is saved"):
        stopped.run_all()


def start(runs, errors):
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    configure()
    for own in runs:  # as their jobs one after the other
        if not (own.output / "manifest.json").exists():
            launch(own, beside=[run for run in runs if run.replicate > own.replicate])
