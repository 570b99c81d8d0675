"""Small real artifacts shared by the tests: a corpus, its tokenizer and token arrays."""

import os
import random
import zlib

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import torch

from masklab.config.schema import Encoder

TINY = Encoder(layers=2, hidden=32, heads=2, max_positions=64)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Whatever a test draws without a seed of its own, it draws alike in every run, with its fixtures' first draws."""
    seed = zlib.crc32(item.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@pytest.fixture(scope="session")
def tiny_encoder():
    return TINY


@pytest.fixture(scope="session")
def english(tmp_path_factory):
    """Folder with corpora/, tokenizer/ and tokens/ of 3,000 generated sentences."""
    from masklab.config.schema import EnglishCorpus
    from masklab.corpora import generate
    from masklab.files import write_table
    from masklab.subwords import train
    from masklab.tokenizers import save_tokenizer
    from masklab.tokens import write_tokens

    root = tmp_path_factory.mktemp("english")
    splits = generate(EnglishCorpus(kind="english", sentences=3000, valid=200, test=200), "tiny", 1)
    tokenizer = train(splits["train"]["text"].to_pylist(), 500)
    save_tokenizer(tokenizer, root / "tokenizer", 40)
    for split, table in splits.items():
        write_table(table, root / "corpora" / f"{split}.parquet")
        write_tokens(table["text"], tokenizer, 40, root / "tokens", split)
    return root


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    """A small corpus whose law is a table: its tokens, a task, models (BERT, LSTM, lookup table) as checkpoints."""
    import tablelaw
    from masklab.corpora import laws

    laws.LAWS["table"] = "tablelaw"
    yield tablelaw.world(tmp_path_factory.mktemp("table"))
    del laws.LAWS["table"]
