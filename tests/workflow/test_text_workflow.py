"""The real workflow on files of text: jobs killed while they read and while they encode; a tokenizer made elsewhere."""

import gzip
import json
import os
import random
import signal
import subprocess
import time

import pytest
import running
import yaml

WORDS = ["river", "stone", "a", "the", "green", "walks", "under", "old", "bridge", "café", ",", "sings", "never"]
MODEL = {"corpus": "t", "tokenizer": "t", "encoder": "tiny", "objective": "mlm", "batch_size": 8, "steps": 1}
CONFIG = {
    "extends": [],
    "threads": 2,
    "corpora": {"t": {"kind": "text", "files": ["a.txt", "b.txt.gz"], "max_words": 4_000_000}},
    "tokenizers": {"t": {"corpus": "t", "vocab_size": 80, "max_length": 32, "sample": 2000}},
    "encoders": {"tiny": {"layers": 1, "hidden": 32, "heads": 2, "max_positions": 32}},
    "objectives": {"mlm": {"mlm": 1}},
    "models": {"m": MODEL},
    "probes": {"loss": {"kind": "loss", "sequences": 10}},
    "studies": {"s": {"panels": {"all": ["m"]}, "probes": {"loss": "all"}}},
}
TARGET = "results/tokens/t/t/meta.json"

pytestmark = pytest.mark.workflow


def write(folder):
    stream = random.Random(1)
    block = "".join(" ".join(stream.choices(WORDS, k=12)) + "\n" for _ in range(10_000)).encode()
    folder.mkdir()
    with open(folder / "a.txt", "wb") as plain, gzip.open(folder / "b.txt.gz", "wb", 1) as packed:
        for number in range(40):
            plain.write(block.replace(b"never", b"w%d" % number))
        packed.write(block)


def killed(folder, sign):
    """Start the workflow; kill the job that holds the lock of a state once the file `sign` lies in it."""
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(CONFIG))
    command = [*running.COMMAND, TARGET, "--directory", str(folder), "--configfile", str(path)]
    run = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    state = folder / "results/state"
    while not list(state.glob(sign)) and run.poll() is None:
        time.sleep(0.005)
    assert run.poll() is None, f"the workflow ended before {sign} was there"
    lock = next(parent / "lock" for parent in next(state.glob(sign)).parents if (parent / "lock").exists())
    os.kill(int(lock.read_text()), signal.SIGKILL)
    assert run.wait() != 0


def test_a_killed_job_goes_on_with_what_it_had_read_and_encoded(tmp_path):
    for name in ("whole", "killed"):
        write(tmp_path / name)
    running.snakemake(tmp_path / "whole", CONFIG, TARGET)
    for sign in ("corpora/t/read.0.0.arrow", "tokens/t/t/arrays/.train/state.json"):
        killed(tmp_path / "killed", sign)
        assert list((tmp_path / "killed/results/state").glob(sign))
    running.snakemake(tmp_path / "killed", CONFIG, TARGET)
    for file in (tmp_path / "whole/results/tokens/t/t").iterdir():
        assert (tmp_path / "killed/results/tokens/t/t" / file.name).read_bytes() == file.read_bytes()
    for log in ("corpora/t.log", "tokens/t/t.log"):
        assert "going on after" in (tmp_path / "killed/results/logs" / log).read_text()
    left = {path.name for path in (tmp_path / "killed/results/state").rglob("*") if path.is_file()}
    assert left <= {"lock", "code", "run.json"}


def test_a_tokenizer_made_elsewhere_goes_all_the_way_to_a_model(tmp_path):
    from masklab.subwords import train
    from masklab.tokenizers import save_tokenizer

    (tmp_path / "a.txt").write_text("".join(f"the {word} walks under the old bridge\n" for word in WORDS * 20))
    save_tokenizer(train([" ".join(WORDS)], 60, "wordpiece"), tmp_path / "made", 16)
    made = json.loads((tmp_path / "made/tokenizer.json").read_text())
    corpus = {"kind": "text", "files": ["a.txt"], "valid": 20, "test": 20}
    config = CONFIG | {
        "corpora": {"t": corpus},
        "tokenizers": {"t": {"kind": "folder", "folder": "made", "max_length": 32}},
    }
    running.snakemake(tmp_path, config, "results/models/m/r1/manifest.json")
    taken = json.loads((tmp_path / "results/tokenizers/t/tokenizer.json").read_text())
    assert taken["model"]["vocab"] == made["model"]["vocab"]
    shape = json.loads((tmp_path / "results/models/m/r1/step-1/config.json").read_text())
    assert shape["vocab_size"] == len(made["model"]["vocab"])
    (tmp_path / "made/tokenizer.json").write_text(json.dumps(made | {"normalizer": {"type": "Lowercase"}}))
    assert "pre-training m r1" in running.snakemake(tmp_path, config, "results/models/m/r1/manifest.json")
