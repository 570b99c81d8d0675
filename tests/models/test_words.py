"""Words without a network: what is counted, the folder, what a run leaves."""

import numpy as np
import pytest
import torch

import tablelaw
from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.files import read_json, sha256
from masklab.models.words import FILE, Words, is_words, load_words, save_words
from masklab.symbols import FIRST
from masklab.tokenizers import CLS, MASK, PAD, SEP, SPECIALS, UNK
from masklab.tokens import TokenStore
from masklab.training.launch import launch
from masklab.training.manifest import unigram


def test_unigram_is_add_one_over_what_can_be_masked(english):
    store = TokenStore(english / "tokens", "train")
    size = read_json(english / "tokens" / "meta.json")["vocab_size"]
    tokens = [t for row in range(len(store)) for t in store.batch([row])[0][0].tolist() if t not in (CLS, SEP)]
    counts = np.bincount(tokens, minlength=size) + 1.0
    counts[[CLS, SEP, PAD, MASK]] = 0
    found = unigram(store, size, specials=False)
    assert found == pytest.approx(counts / counts.sum(), abs=1e-15) and found.sum() == pytest.approx(1)
    assert (found[len(SPECIALS) :] > 0).all() and found[UNK] > 0 == found[MASK]
    counts[[CLS, SEP]] = len(store) + 1
    assert unigram(store, size, specials=True) == pytest.approx(counts / counts.sum(), abs=1e-15)


def test_the_folder_holds_numbers_and_is_read_again(tmp_path):
    words = Words(np.array([0, 0, 0.25, 0, 0, 0.5, 0.25]), order=False, max_positions=9)
    save_words(tmp_path / "step-0", words, metadata={"step": 0})
    found = load_words(tmp_path / "step-0")
    assert (found.probabilities == words.probabilities).all() and found.probabilities.dtype == np.float64
    assert (found.order, found.max_positions, found.vocab_size) == (False, 9, 7)
    assert found.logs[5] == np.log(0.5) and found.logs[0] == -np.inf
    assert is_words(tmp_path / "step-0") and not is_words(tmp_path)
    assert {path.name for path in (tmp_path / "step-0").iterdir()} == {FILE, "masklab.json"}
    with pytest.raises(MaskLabError, match=r"words\.safetensors: no such file"):
        load_words(tmp_path)
    (tmp_path / "step-0" / FILE).write_bytes(b"nothing")
    with pytest.raises(MaskLabError, match=r"words\.safetensors: not the words of a corpus"):
        load_words(tmp_path / "step-0")


@pytest.mark.parametrize("order", [True, False])
def test_a_run_leaves_what_any_run_leaves(table, order):
    run = tablelaw.run_of(table.root, f"words-{order}", Encoder(kind="words", order=order, max_positions=8), steps=0)
    launch(run)
    step = run.output / "step-0"
    words = load_words(step)
    assert (words.order, words.max_positions) == (order, 8)
    manifest, wanted = (read_json(table.root / name / "manifest.json") for name in (run.name, "lookup"))
    assert set(manifest) == set(wanted) and manifest["steps"] == {"0": sha256(step / FILE)}
    assert set(manifest["config"]) == set(wanted["config"]) and manifest["config"]["encoder"]["kind"] == "words"
    assert read_json(step / "masklab.json")["config"] == manifest["config"]
    assert (step / "tokenizer.json").is_file() and (run.output / "metrics.parquet").is_file()
    ids = TokenStore(table.tokens, "train").ids
    counts = torch.bincount(torch.from_numpy(np.array(ids, np.int64)), minlength=9)[FIRST:].numpy() + 1
    assert words.probabilities[FIRST:] == pytest.approx(counts / (counts.sum() + 1), abs=1e-15)  # and <unk> once
