"""Small worlds for the probes: a real tokenizer, random models saved as checkpoints, task folders."""

import itertools

import pandas as pd
import pytest
import torch

from masklab.config.schema import Encoder
from masklab.files import write_json
from masklab.models.checkpoint import save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.subwords import train
from masklab.tokenizers import load_tokenizer, save_tokenizer

NOUNS = ("cat", "dog", "bird", "child", "horse", "teacher")
VERBS = ("see", "follow", "like", "carry", "sleep", "run")


def _sentences(count: int) -> list[str]:
    """The first `count` of a list of sentences of varied length, right and wrong in number."""
    found = []
    for adjective, (noun, verb, other) in itertools.product(
        ("", "old ", "very small "), itertools.product(NOUNS, VERBS, NOUNS)
    ):
        found += [f"The {adjective}{noun}s {verb} the {other}.", f"The {adjective}{noun} {verb}s the {other}s today."]
    return found[:count]


@pytest.fixture(scope="session")
def sentences():
    """sentences(count): the first sentences of a fixed list; neighbours are two versions of one sentence."""
    return _sentences


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer") / "unigram"
    # Hugging Face's candidates, so that some words are several pieces
    save_tokenizer(train(_sentences(600), 90, candidates="distinct"), folder, 64)
    return folder


@pytest.fixture(scope="session")
def make_tokenizer(tokenizer_folder):
    return lambda: load_tokenizer(tokenizer_folder)


@pytest.fixture(scope="session")
def make_checkpoint(tmp_path_factory, tokenizer_folder):
    """make_checkpoint(positions, latent): folder of a random model with spread-out logits."""

    def make(positions="disentangled", latent=0, seed=0, **keys):
        shape = {"layers": 2, "hidden": 32, "heads": 2, "intermediate": 64, "max_positions": 32, "init_range": 0.15}
        config = Encoder(positions=positions, **shape | keys)
        vocab_size = load_tokenizer(tokenizer_folder).get_vocab_size()
        model = MaskedLM(config, vocab_size, latent, generator=torch.Generator().manual_seed(seed))
        folder = tmp_path_factory.mktemp("checkpoint") / "step-1"
        save_checkpoint(model, folder, tokenizer_folder=tokenizer_folder, metadata={})
        return folder

    return make


@pytest.fixture
def write_task(tmp_path):
    """write_task(name, rows, classes): task folder with the rows (text_a, text_b, label) as every split."""

    def write(name, rows, classes, test=None):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        for split in ("train", "valid", "test"):
            frame = pd.DataFrame(test if test and split != "train" else rows, columns=["text_a", "text_b", "label"])
            frame.to_parquet(folder / f"{split}.parquet")
        write_json(
            {"kind": "labels", "labels": classes, "pair": rows[0][1] is not None, "metric": "accuracy"},
            folder / "task.json",
        )
        return folder

    return write


@pytest.fixture
def write_pairs(tmp_path):
    """write_pairs(name, rows): task folder with the pairs (phenomenon, good, bad)."""

    def write(name, rows):
        folder = tmp_path / name
        folder.mkdir()
        frame = pd.DataFrame(rows, columns=["phenomenon", "good", "bad"]).assign(paradigm="p")
        frame.to_parquet(folder / "test.parquet")
        write_json({"kind": "pairs"}, folder / "task.json")
        return folder

    return write
