"""Data that changes while its counts do not, and a workflow killed just after the small file for it was made again."""

import json
import os

import pytest
import running
from running import messages

LABELS = [("she sees the red cat again", 0), ("he hears a small dog now", 1)] * 8
CONFIG = {
    "corpora": {"text": {"kind": "text", "files": ["words.txt"], "min_words": 1, "valid": 5, "test": 5}},
    "tokenizers": {"text": {"corpus": "text", "vocab_size": 60, "max_length": 12}},
    "encoders": {"tiny": {"positions": "absolute", "layers": 1, "hidden": 16, "heads": 2, "max_positions": 16}},
    "objectives": {"mlm": {"mlm": 1}},
    "models": {"m": {"corpus": "text", "tokenizer": "text", "encoder": "tiny", "objective": "mlm", "steps": 3,
                     "batch_size": 8}},
    "tasks": {"t": {"kind": "label-files", "train": "t.jsonl", "valid": "t.jsonl"}},
    "probes": {"p": {"kind": "finetune", "tasks": ["t"], "seeds": [1], "epochs": 1, "max_length": 12}},
    "studies": {"s": {"panels": {"all": ["m"]}, "probes": {"p": "all"}}},
}  # fmt: skip
SCORES = "results/scores.parquet"
pytestmark = pytest.mark.workflow


def write(folder, labels=LABELS, words="the red cat sees a small dog"):
    lines = [" ".join(words.split()[k % 2 : k % 2 + 6]) for k in range(60)]
    (folder / "words.txt").write_text("\n".join(lines) + "\n")
    rows = [json.dumps({"sentence": sentence, "label": label}) for sentence, label in labels]
    (folder / "t.jsonl").write_text("\n".join(rows) + "\n")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("content")
    write(folder)
    running.snakemake(folder, CONFIG, SCORES)
    return folder


def test_flipped_labels_are_noticed_by_a_workflow_that_was_killed_after_the_task(done):
    assert "Nothing to be done" in running.snakemake(done, CONFIG, SCORES, "-n")
    write(done, [(sentence, 1 - label) for sentence, label in LABELS])
    running.snakemake(done, CONFIG, "results/tasks/t/task.json")  # and then it was killed
    below = messages(running.snakemake(done, CONFIG, SCORES, "-n"))
    assert "probe p on m r1 (all)" in below and "all scores in one table" in below
    assert not [job for job in below if "pre-training" in job]
    running.snakemake(done, CONFIG, SCORES)


def test_other_words_are_noticed_by_a_workflow_that_was_killed_after_their_tokens(done):
    write(done, [(sentence, 1 - label) for sentence, label in LABELS], "the red dog sees a small cat")
    running.snakemake(done, CONFIG, "results/tokens/text/text/meta.json")
    below = messages(running.snakemake(done, CONFIG, SCORES, "-n"))
    assert {"pre-training m r1", "probe p on m r1 (all)"} <= below


def test_a_file_that_is_replaced_by_an_older_one_is_noticed(done):
    """`mv`, `cp -p` and `tar x` keep a file's time, and Snakemake asks of a time only whether it is newer."""
    write(done, LABELS)
    running.snakemake(done, CONFIG, SCORES)
    assert "Nothing to be done" in running.snakemake(done, CONFIG, SCORES, "-n")
    write(done, LABELS, "the old dog sees a small bird")
    os.utime(done / "words.txt", (1e9, 1e9))
    os.utime(done / "t.jsonl", (1e9, 1e9))  # of the same content
    below = messages(running.snakemake(done, CONFIG, SCORES, "-n"))
    assert {"corpus text", "pre-training m r1"} <= below and "task t" not in below
