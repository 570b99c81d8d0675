"""Masks known before a run begins: those of the run itself, whatever hides tokens, and the codes that it then needs."""

import dataclasses

import numpy as np
import pytest
import torch
from runs import make_run

from masklab.config import load
from masklab.config.masks import masks_called, masks_of, name_of
from masklab.config.schema import Decoder, Dictionary, Objective
from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.sparse.codes import CodeStore, write_codes
from masklab.sparse.targets import Codes
from masklab.tokens import TokenStore
from masklab.training.learner import Learner
from masklab.training.loop import train
from masklab.training.masked_tokens import masked_tokens

MODEL = {"corpus": "c", "tokenizer": "t", "encoder": "e", "objective": "o", "steps": 7, "batch_size": 24}
RAW = {
    "corpora": {"c": {"kind": "english", "sentences": 3000}},
    "tokenizers": {"t": {"corpus": "c", "vocab_size": 500, "max_length": 40}},
    "encoders": {"e": {"layers": 1, "hidden": 16, "heads": 2, "max_positions": 64}},
    "objectives": {"mlm": {"mlm": 1}, "o": {"mlsm": 1}, "joint": {"mlsm": 1, "mlm": 1}},
    "models": {
        "first": MODEL | {"objective": "mlm", "checkpoints": [7]},
        "second": MODEL | {"init": "first@7", "dictionary": "d", "codes": "masked"},
        "joint": MODEL | {"init": "first@7", "dictionary": "d", "codes": "masked", "objective": "joint"},
        "longer": MODEL | {"init": "first@7", "dictionary": "d", "codes": "masked", "steps": 9},
    },
    "dictionaries": {"d": {"model": "first@7", "layer": 1, "atoms": 8}},
}


def test_recipes_that_hide_the_same_tokens_share_a_name():
    config = load(RAW)
    names = {recipe: name_of(masks_of(config, recipe)) for recipe in config.models}
    assert names["second"] == names["joint"] and len(set(names.values())) == 3
    assert masks_called(config, "d", names["longer"])["steps"] == 9
    with pytest.raises(MaskLabError, match="no recipe has these masks"):
        masks_called(config, "d", names["first"])


@pytest.mark.parametrize("hidden", ["mask", "some at random", "by a term of its own", "in part"])
def test_masks_are_those_of_the_run(english, tiny_encoder, tmp_path, hidden):
    masking = {"some at random": {"mask": 0.8, "random": 0.1, "count": "bernoulli"}}.get(hidden, {"rate": 0.2})
    objective, encoder, reader = Objective(mlm=1), tiny_encoder, None
    if hidden == "by a term of its own":
        objective, encoder = Objective(mae=1), tiny_encoder.model_copy(update={"decoder": Decoder(layers=1)})
        settings = objective.get("mae").model_dump(mode="json")
        reader = {"term": "mae", "settings": settings, "encoder": encoder.model_dump(mode="json")}
    size = 5 if hidden == "in part" else None
    run = make_run(
        english, encoder, tmp_path, objective=objective, steps=130, batch_size=30, masking=masking, micro_batch=size
    )
    store = TokenStore(english / "tokens", "train")
    masks = {"steps": 130, "batch_size": 30, "masking": run.model.masking.model_dump(), "phase": 0, "reader": reader}
    setup = {"vocab_size": 500, "tokens": english / "tokens", "tokenizer": english / "tokenizer"}
    found = masked_tokens(masks, run.seed, store, setup)
    expected, learner = np.zeros_like(found), Learner(run)
    for step in range(130):  # more than an epoch
        for batch in learner.draw(step).micro:
            expected[batch.positions] = True
    assert np.array_equal(found, expected) and 0.1 < found.mean() < 0.6
    assert not np.array_equal(masked_tokens(masks, run.seed + 1, store, setup), found)


def test_a_run_on_the_codes_of_its_masks_has_the_weights_of_one_on_all_codes(english, tiny_encoder, tmp_path):
    first = make_run(english, tiny_encoder, tmp_path, name="first", steps=4)
    train(first)
    store = TokenStore(english / "tokens", "train")
    dense = torch.rand(len(store.ids), 12, generator=torch.Generator().manual_seed(1)).sub(0.7).clamp(min=0)
    config = Dictionary(model="first@4", layer=1, atoms=12)
    hashes = {}
    for name in ("all", "masked", "other"):
        seed, folder = (2 if name == "other" else 1), tmp_path / name
        run = make_run(english, tiny_encoder, folder, objective=Objective(mlsm=1), steps=6, init="first@4",
                       dictionary="d", codes="stored" if name == "all" else "masked")  # fmt: skip
        run = dataclasses.replace(run, init=first.output / "step-4", dictionary=folder, dictionary_config=config,
                                  codes=folder / "codes", phase=1)  # fmt: skip
        masks = {"steps": 6, "batch_size": 32, "masking": run.model.masking.model_dump(), "phase": 1, "reader": None}
        positions = np.flatnonzero(masked_tokens(masks, seed, store, {"vocab_size": 500}))
        positions = np.arange(len(dense)) if name == "all" else positions
        some = None if name == "all" else positions
        write_codes(folder / "codes", "train", [Codes.of_dense(dense[positions])], 12, some)
        if name == "other":  # the masks of another replicate
            with pytest.raises(MaskLabError, match="made for other masks"):
                train(run)
            continue
        train(run)
        hashes[name] = read_json(run.output / "manifest.json")["steps"]["6"]
    size = len(CodeStore(tmp_path / "masked" / "codes", "train"))
    assert hashes["all"] == hashes["masked"] and size < 0.1 * len(dense)
