"""Small worlds for the probes: a real tokenizer, random models saved as checkpoints, task folders."""

import itertools

import pandas as pd
import pytest
import torch

from masklab.config.schema import Encoder
from masklab.files import write_json
from masklab.models.checkpoint import save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.tokenizers import load_tokenizer, save_tokenizer, train_unigram

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
    save_tokenizer(train_unigram(_sentences(600), 90), folder, 64)
    return folder


@pytest.fixture(scope="session")
def make_tokenizer(tokenizer_folder):
    return lambda: load_tokenizer(tokenizer_folder)


@pytest.fixture(scope="session")
def make_checkpoint(tmp_path_factory, tokenizer_folder):
    """make_checkpoint(positions, latent): folder of a random model with spread-out logits."""

    def make(positions="disentangled", latent=0, seed=0):
        config = Encoder(
            positions=positions, layers=2, hidden=32, heads=2, intermediate=64, max_positions=32, init_range=0.15
        )
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


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    """A small corpus whose law is a table: its tokens, a task, models (BERT, LSTM, lookup table) as checkpoints."""
    from masklab.corpora import laws

    laws.LAWS["table"] = "tablelaw"
    yield _table_world(tmp_path_factory.mktemp("table"))
    del laws.LAWS["table"]


def _table_world(root):
    from types import SimpleNamespace

    import numpy as np
    import pyarrow as pa

    from masklab.config.schema import Model, Objective
    from masklab.corpora import symbols
    from masklab.files import write_table
    from masklab.tokenizers import symbol_tokenizer
    from masklab.tokens import write_symbol_tokens
    from masklab.training.launch import launch
    from masklab.training.run import Run
    from tablelaw import from_facts

    facts = {"kind": "table", "seed": 3, "config": {"symbols": 4, "longest": 4}}
    law, rng = from_facts(facts), np.random.default_rng(1)
    names = [f"w{i}" for i in range(4)]
    tokens = root / "tokens" / "corpus" / "symbols"

    def columns(count):
        rows = law.draw(count, rng)
        return symbols.column(np.concatenate(rows), [len(row) for row in rows]), rows

    for split, count in (("train", 3000), ("valid", 60), ("test", 200)):
        write_symbol_tokens(columns(count)[0], 9, 6, tokens, split, {"names": names, **facts})
    save_tokenizer(symbol_tokenizer(names), root / "tokenizer", 6)
    (root / "task").mkdir()
    for split, count in (("train", 300), ("valid", 80), ("test", 120)):
        column, rows = columns(count)
        label = np.array([int((row == 2).any()) + int(row[0] == 1) for row in rows])
        task = symbols.with_facts(pa.table({"symbols": column, "label": label}), names)
        write_table(task, root / "task" / f"{split}.parquet")
    write_json({"kind": "labels", "labels": 3, "metric": "accuracy"}, root / "task" / "task.json")
    shape = {"layers": 1, "hidden": 32, "heads": 4, "max_positions": 8, "dropout": 0.1, "positions": "absolute"}
    encoders = {
        "bert": (Encoder(**shape), 500),
        "lstm": (Encoder(**shape | {"kind": "lstm", "norm": "pre"}), 60),
        "lookup": (Encoder(kind="lookup"), 0),
    }
    folders = {}
    for name, (encoder, steps) in encoders.items():
        sgd = {"kind": "sgd", "lr": 0.5, "schedule": "constant", "momentum": 0.9}
        model = Model(
            corpus="corpus", tokenizer="t", encoder="e", objective="o", steps=steps, batch_size=64,
            masking={"count": "one"}, optimiser=sgd if name == "lstm" else {"lr": 5e-3, "warmup": 0.1},
            checkpoints=[steps] if steps else [],
        )  # fmt: skip
        launch(
            Run(
                name=name, seed=1, model=model, encoder=encoder, objective=Objective(mlm=1), tokens=tokens,
                tokenizer=root / "tokenizer", output=root / name, state=root / "state" / name,
            )
        )  # fmt: skip
        folders[name] = root / name / f"step-{steps}"
    return SimpleNamespace(tokens=tokens, folders=folders, task=root / "task", law=law, root=root)
