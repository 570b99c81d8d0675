"""Minimal pairs with more tokens than a model reads: what is left for jobs of pre-training, and what these refuse."""

import os
import time

import pandas as pd
import pytest

from masklab.config import layered, load, overlay, plain
from masklab.errors import MaskLabError
from masklab.probes.minimal_pairs import scored_ids
from masklab.subwords import train
from masklab.tasks import pair_facts, pair_lengths, write_task
from masklab.tokenizers import load_tokenizer, save_tokenizer

RAW = plain(layered())
LONG = "zyxw vuts rqpo nmlk jihg fedc"
GOOD = ["a cat runs", f"a cat {LONG} runs", "a dog runs", f"the dog {LONG} {LONG} runs"]
BAD = ["a cat run", f"a cat {LONG} run", f"a dog {LONG} run", "the dog run"]


def config_of(**models):
    """A study in which `narrow` is measured on `blimp` alone, and `wide`, which starts from `strict-phase1`, too."""
    raw = overlay(RAW, {"extends": []})
    raw["encoders"] |= {"narrow": {"like": "tiny", "max_positions": 48}}
    raw["models"] |= {"narrow": {"like": "strict-phase1", "encoder": "narrow"}, "later": {"like": "strict-mlm"}}
    raw["models"] |= models
    study = {"panels": {"p": ["narrow", "later"]}, "probes": {"minimal-pairs": "all"}, "nulls": ["one-hot"]}
    return load(raw | {"studies": {"mine": study}})


@pytest.fixture
def made(tmp_path):
    """Folders of a tokenizer and of tasks, of which `blimp` has four pairs."""
    tokenizer, tasks = tmp_path / "tokenizer", tmp_path / "tasks"
    tokenizer.mkdir()
    (tasks / "blimp").mkdir(parents=True)
    save_tokenizer(train([*GOOD, *BAD] * 20, 36, "unigram"), tokenizer, 32)  # hardly more than letters
    frame = pd.DataFrame({"phenomenon": "agreement", "paradigm": "agreement", "good": GOOD, "bad": BAD})
    write_task(tasks / "blimp", {"test": frame}, pair_facts(frame))
    return tokenizer, tasks


def lengths(tokenizer):
    """The tokens of each pair's longer sentence as the probe counts them, [CLS] and [SEP] among them."""
    tokenizer = load_tokenizer(tokenizer)
    counts = [[len(ids) + 2 for _, ids in scored_ids(tokenizer, texts)] for texts in (GOOD, BAD)]
    return list(map(max, zip(*counts, strict=True)))


def test_rows_that_are_too_long_are_those_that_the_probe_would_refuse(made):
    tokenizer, tasks = made
    known = lengths(tokenizer)
    for most in range(3, max(known) + 2):
        found = {row: tokens for tokens, row, _ in pair_lengths.too_long(tasks / "blimp/test.parquet", tokenizer, most)}
        assert found == {row: tokens for row, tokens in enumerate(known, 1) if tokens > most}, most
    first = pair_lengths.too_long(tasks / "blimp/test.parquet", tokenizer, 20)[0]
    assert first == (max(known), 4, GOOD[3])


def test_a_task_of_another_kind_is_passed_over(made, tmp_path):
    pd.DataFrame({"text_a": [LONG], "label": [0]}).to_parquet(tmp_path / "labels.parquet")
    assert pair_lengths.too_long(tmp_path / "labels.parquet", made[0], 3) == []


def test_what_is_measured_on_a_recipe_or_on_what_starts_from_it():
    found = pair_lengths.measured(config_of(later={"like": "strict-mlm", "encoder": "tiny"}))
    assert found["narrow"]["blimp"] == [48, "narrow", "minimal-pairs", "narrow"]
    assert found["strict-phase1"]["blimp"] == [64, "later", "minimal-pairs", "tiny"], "`later` starts from it"
    assert not [name for name in found if "one-hot" in name or "bag" in name], "words have no positions"


def test_pre_training_is_refused_with_task_row_tokens_and_what_is_allowed(made, monkeypatch):
    tokenizer, tasks = made
    monkeypatch.setenv(pair_lengths.VARIABLE, "")
    pair_lengths.leave(config_of())
    most, row = max(lengths(tokenizer)), tasks / "blimp/test.parquet"
    assert 48 < most < 64
    with pytest.raises(MaskLabError) as refused:
        pair_lengths.check("narrow", 1, tokenizer, tasks)
    assert str(refused.value) == (
        f"tasks.blimp: row 4 of {row} has {most} tokens, [CLS] and [SEP] counted ('{GOOD[3][:40]}...'), and 'narrow',"
        " which probes.minimal-pairs measures on it, reads 48 (encoders.narrow.max_positions); raise that number, or"
        " leave such rows out"
    )
    for recipe in ("later", "strict-phase1", "nobody"):
        pair_lengths.check(recipe, 1, tokenizer, tasks)
    monkeypatch.delenv(pair_lengths.VARIABLE)
    pair_lengths.check("narrow", 1, tokenizer, tasks)


def test_a_task_that_this_run_makes_anew_counts_once_it_is_made(made, monkeypatch):
    tokenizer, tasks = made
    monkeypatch.setenv(pair_lengths.VARIABLE, "")
    pair_lengths.leave(config_of(), anew={"blimp"})
    old, file = time.time() - 60, tasks / "blimp/test.parquet"
    os.utime(file, (old, old))
    pair_lengths.check("narrow", 1, tokenizer, tasks)  # it may have been mended meanwhile
    os.utime(file, (old + 120, old + 120))
    with pytest.raises(MaskLabError, match=r"tasks\.blimp: row 4"):
        pair_lengths.check("narrow", 1, tokenizer, tasks)
    file.write_bytes(b"half of a file")
    pair_lengths.check("narrow", 1, tokenizer, tasks)
    file.unlink()
    pair_lengths.check("narrow", 1, tokenizer, tasks)


def test_a_replicate_looks_at_its_own_task(made, monkeypatch):
    tokenizer, tasks = made
    monkeypatch.setenv(pair_lengths.VARIABLE, "")
    pair_lengths.leave(config_of())
    (tasks / "blimp").rename(tasks / "r2")
    (tasks / "blimp").mkdir()
    (tasks / "r2").rename(tasks / "blimp/r2")
    pair_lengths.check("narrow", 1, tokenizer, tasks)
    with pytest.raises(MaskLabError, match=r"blimp/r2/test\.parquet has"):
        pair_lengths.check("narrow", 2, tokenizer, tasks)
