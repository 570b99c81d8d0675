"""What a run of the real workflow says, and what its jobs keep to their logs."""

import pytest
import running

pytestmark = pytest.mark.workflow
MODEL = {"corpus": "words", "tokenizer": "symbols", "encoder": "tiny", "objective": "mlm", "steps": 4,
         "batch_size": 16, "checkpoints": [4], "optimiser": {"lr": 2.0e-3, "warmup": 0.0}}  # fmt: skip
CONFIG = {
    "seed": 1,
    "device": "cpu",
    "corpora": {"words": {"kind": "markov", "chains": "words", "distributional": True, "sequences": 200, "valid": 20,
                          "test": 20, "length": 20}},
    "chains": {"words": {"synsets": 20}},
    "tokenizers": {"symbols": {"kind": "symbols", "corpus": "words", "max_length": 22}},
    "encoders": {"tiny": {"positions": "absolute", "layers": 1, "hidden": 32, "heads": 2, "max_positions": 24}},
    "objectives": {"mlm": {"mlm": 1}},
    "models": {"good": MODEL, "bad": MODEL | {"optimiser": {"lr": 1.0e9, "warmup": 0.0}, "steps": 400,
                                              "checkpoints": [400]}},
    "studies": {},
}  # fmt: skip
TARGETS = [f"results/models/{name}/r1/manifest.json" for name in ("good", "bad")]


def test_a_line_a_job_and_the_error_last(tmp_path):
    done = running.snakemake(tmp_path, CONFIG, *TARGETS, "--keep-going", check=False)
    said = done.stderr.splitlines()
    ends = [line for line in said if "/5  " in line]
    assert done.returncode == 1 and done.stdout == ""
    assert len(ends) == 4 and "pre-training good r1: " in "".join(ends)
    assert len(said) < 16 and not [line for line in said if "Error in rule" in line or "masklab/" in line], said
    at = next(number for number, line in enumerate(said) if line.startswith("1 of 5 jobs failed, 4 are done"))
    name, why, log = [line for line in said[at + 1 :] if line]
    assert name == "pre-training bad r1 (rule pretrain)" and why.startswith("  error: bad: the loss ")
    assert log == "  log: results/logs/models/bad/r1.log"
    kept = (tmp_path / "results/logs/models/bad/r1.log").read_text()
    assert kept.count(why.strip()) == 1


def test_dry_runs_and_other_settings_are_snakemakes_own(tmp_path):
    assert "Job 0: pre-training good r1" in running.snakemake(tmp_path, CONFIG, TARGETS[0], "-n")
    quiet = running.snakemake(tmp_path, CONFIG, "results/corpora/words/train.parquet", "--quiet", "all")
    assert "corpus" not in quiet
    quiet = running.snakemake(tmp_path, CONFIG, "results/tokenizers/symbols/tokenizer.json", "--quiet", "rules")
    assert "tokenizer symbols" not in quiet and "1 of 1 jobs done" in quiet
    again = running.snakemake(tmp_path, CONFIG, "results/tokenizers/symbols/tokenizer.json")
    assert "Nothing to be done" in again
    forced = ("--forcerun", "tokenizer", "--workflow-profile", "none")
    other = running.snakemake(tmp_path, CONFIG, "results/tokenizers/symbols/tokenizer.json", *forced)
    assert "Finished jobid: " in other, "without profiles/default the log is Snakemake's own"
