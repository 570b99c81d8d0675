"""The real workflow on minimal pairs that are too long for a model in subwords, of which words alone do not tell."""

import json

import pytest
from running import jobs, snakemake

MODEL = {"corpus": "t", "tokenizer": "t", "encoder": "tiny", "objective": "mlm", "batch_size": 8, "steps": 2}
CONFIG = {
    "corpora": {"t": {"kind": "text", "files": ["text.txt"], "valid": 20, "test": 20}},
    "tokenizers": {"t": {"corpus": "t", "vocab_size": 60, "max_length": 16}},
    "encoders": {"tiny": {"layers": 1, "hidden": 32, "heads": 2, "max_positions": 24}},
    "objectives": {"mlm": {"mlm": 1}},
    "models": {"m": MODEL, "later": MODEL | {"init": "m@2"}},
    "tasks": {"mine": {"kind": "pair-files", "files": ["pairs.jsonl"]}},
    "probes": {"pairs": {"kind": "minimal_pairs", "tasks": ["mine"]}},
    "studies": {"s": {"panels": {"all": ["later"]}, "probes": {"pairs": "all"}}},
}

pytestmark = pytest.mark.workflow


def write(folder, words):
    pairs = [{"sentence_good": f"the {word} sees .", "sentence_bad": f"the {word} see ."} for word in words]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))


def test_too_long_a_pair_is_refused_before_any_pre_training_and_a_shorter_one_in_its_place_is_not(tmp_path):
    text = [f"the {a}{b}{c} sees the {c}{b} .\n" for a in "bcdfgh" for b in "aeiou" for c in "lmnrst"]
    (tmp_path / "text.txt").write_text("".join(text))
    write(tmp_path, ["bal", "hut", "balcemdifnorgushatbelcimdofnurgas"])
    done = snakemake(tmp_path, CONFIG, "s", check=False)
    said = done.stdout + done.stderr
    assert done.returncode != 0 and not list(tmp_path.glob("results/models/*/*/manifest.json"))
    assert not list(tmp_path.glob("results/state/models/*")), "it had begun"
    assert "tasks.mine: row 3 of results/tasks/mine/test.parquet has" in said, said
    assert "and 'later', which probes.pairs measures on it, reads 24 (encoders.tiny.max_positions)" in said
    write(tmp_path, ["bal", "hut", "gas"])
    assert jobs(snakemake(tmp_path, CONFIG, "s", "--dry-run"))["pretrain"] == 2
    manifest = "results/models/m/r1/manifest.json"
    snakemake(tmp_path, CONFIG, manifest, "results/tasks/mine/task.json")
    assert (tmp_path / manifest).is_file()
