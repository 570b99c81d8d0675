"""The architecture of a model with its weights drawn anew: what everything that it has learned is compared with."""

from pathlib import Path

import torch

from masklab.files import read_json
from masklab.models.encoder import MaskedLM
from masklab.models.foreign import ForeignMaskedLM
from masklab.rng import seed_at, torch_generator

# What a recipe may start from: weights made elsewhere, those of another recipe, word vectors.
STARTS = ("folder", "init", "embeddings")


def is_initial(checkpoint) -> bool:
    """Whether a checkpoint holds initial weights, by its own record; one without a record was trained elsewhere."""
    record = Path(checkpoint) / "masklab.json"
    made = read_json(record) if record.is_file() else {}
    model = made.get("config", {}).get("model")
    return model is not None and made["step"] == 0 and not any(model.get(start) for start in STARTS)


def initial(model, seed: int = 1):
    """A model of the class and shape of `model`, ours or of transformers, with initial weights; on its device, to read.

    Latent heads are left out.
    """
    if isinstance(model, MaskedLM):
        made = MaskedLM(model.config, model.vocab_size, generator=torch_generator(seed, "initial weights"))
    elif isinstance(model, ForeignMaskedLM):
        made = ForeignMaskedLM(initial(model.view, seed), model.order, model.pad, model.config, model.gelu)
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_at(seed, "initial weights"))
            made = type(model)(model.config)
    return made.to(next(model.parameters()).device).eval()
