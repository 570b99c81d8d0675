"""The real workflow, every rule, in a temporary folder at the smallest scale."""

import os
import re
import resource
import signal
import subprocess
import time

import pandas as pd
import pytest
import running
from running import ROOT, jobs

from masklab.config import overlay
from masklab.files import read_json

TRACKS = {"track": ["strict", "strict-small"]}
SMALL = {
    "corpora": {
        "strict": {"sentences": 1500, "valid": 100, "test": 100},
        "strict-small": {"sentences": 500, "valid": 50, "test": 50},
    },
    "encoders": {"tiny": {"hidden": 32}},
    "models": {
        "{track}-phase1": {"for": TRACKS, "steps": 40, "checkpoints": [40]},
        "{track}-{objective}": {
            "for": [
                {"track": ["strict"], "objective": ["kd", "kd+mlm", "mlm", "mlsm", "mlsm+mlm"]},
                {"track": ["strict-small"], "objective": ["kd+mlm", "mlm", "mlsm+mlm"]},
            ],
            "init": "{track}-phase1@40",
            "steps": 20,
            "checkpoints": [4, 8, 12, 16, 20],
        },
    },
    "dictionaries": {
        "{track}": {"for": TRACKS, "model": "{track}-phase1@40", "atoms": 32, "sample": 1000, "iterations": 10}
    },
    "tasks": {"blimp": {"pairs": 4}},
    "probes": {
        "finetune": {
            "tasks": ["acceptability", "control_main_verb", "main_verb_lexical_content"],
            "steps": [4, 12, 20],
            "seeds": [1, 2],
            "epochs": 1,
        }
    },
    "studies": {
        "mlsm": {
            "replicates": 1,
            "sets": {
                "glue": ["acceptability"],
                "msgs-control": ["control_main_verb"],
                "msgs-ambiguous": ["main_verb_lexical_content"],
            },
        }
    },
}


def small():
    config = running.laid(running.default_config("mlsm"), SMALL)
    for task in config["tasks"].values():
        if task["kind"] == "english-labels":
            task.update(train=64, valid=32, test=32)
    return config


def snakemake(folder, *arguments, config=None, check=True):
    """Run Snakemake in `folder`, on the small configuration unless another is given."""
    return running.snakemake(folder, config or small(), *arguments, check=check)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder in which the small run has ended, up to all scores."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "said.txt").write_text(snakemake(folder, SCORES, "--verbose"))
    return folder


pytestmark = pytest.mark.workflow
SCORES = "results/scores.parquet"


def test_everything_is_measured(done):
    study = small()["studies"]["mlsm"]
    scores = pd.read_parquet(done / SCORES)
    recipes = {*study["extra"], *(m for panel in study["panels"].values() for m in panel.values())}
    nulls = {f"{null}.{track}-kd" for null in ("untrained", "bag-of-words") for track in ("strict", "strict-small+mlm")}
    nulls = {name.replace("small+mlm-kd", "small-kd+mlm") for name in nulls}
    assert set(scores["recipe"]) == recipes | nulls and set(scores["replicate"]) == {1}
    majority = scores[scores["metric"] == "majority"]
    assert set(majority["task"]) == {"acceptability", "control_main_verb", "main_verb_lexical_content"}
    assert set(majority["recipe"]) == recipes | nulls
    assert not list((done / "results/state").rglob("*.safetensors")), "states are removed on success"


def test_jobs_are_selected_once_for_each_job_that_ends(done):
    said = (done / "said.txt").read_text()
    ended = said.count("Finished jobid: ")
    assert ended > 40 and said.count("Ready jobs: ") <= ended + 1


def test_a_checkpoint_is_a_hugging_face_model(done):
    """AutoModelForMaskedLM and AutoTokenizer read it, and its logits are ours to 1e-4."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    from masklab.models.checkpoint import load_checkpoint
    from masklab.tokenizers import load_tokenizer

    folder = done / "results/models/strict-mlsm+mlm/r1/step-20"
    texts = pd.read_parquet(done / "results/corpora/strict/test.parquet")["text"].tolist()[:20]
    encoded = AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")
    assert [e.ids for e in load_tokenizer(folder).encode_batch(texts)] == [
        ids[mask.bool()].tolist() for ids, mask in zip(encoded["input_ids"], encoded["attention_mask"], strict=True)
    ]
    lengths = encoded["attention_mask"].sum(1)
    with torch.no_grad():
        theirs = AutoModelForMaskedLM.from_pretrained(folder).eval()(**encoded).logits
        ours = load_checkpoint(folder).eval()(encoded["input_ids"], lengths).logits.view_as(theirs)
    real = encoded["attention_mask"].bool()
    assert (ours[real] - theirs[real]).abs().max() < 1e-4


def test_a_second_run_has_nothing_to_do_within_ten_seconds(done):
    def spent():  # of the processor: what the clock says depends on what else runs here
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = spent()
    assert "Nothing to be done" in snakemake(done, SCORES)
    assert spent() - before < 10


def test_learning_rate_of_fine_tuning_re_runs_fine_tuning_and_below_only(done):
    config = overlay(small(), {"probes": {"finetune": {"lr": 1e-4}}})
    assert jobs(snakemake(done, SCORES, "--dry-run", config=config)) == {"probe": 14, "scores": 1}


def test_lambda_re_runs_the_dictionary_and_below_only(done):
    config = running.laid(small(), {"dictionaries": {"{track}": {"for": TRACKS, "penalty": 0.06}}})
    output = snakemake(done, SCORES, "--dry-run", config=config)
    counts = jobs(output)
    assert (counts["dictionary"], counts["codes"], counts["pretrain"]) == (2, 2, 3)
    assert not {"corpus", "tokenizer", "tokens", "task"} & set(counts)
    trained = set(re.findall(r"pre-training (\S+)", output))
    assert trained == {"strict-mlsm", "strict-mlsm+mlm", "strict-small-mlsm+mlm"}
    probed = set(re.findall(r"probe \S+ on (\S+)", output))
    assert probed == trained


def test_reverting_a_value_re_runs_nothing(done):
    assert "Nothing to be done" in snakemake(done, SCORES, "--dry-run")


def test_one_figure_needs_only_its_own_chain(tmp_path):
    output = snakemake(tmp_path, "--dry-run", "mlsm_figure2")
    assert jobs(output) == {
        "corpus": 1, "tokenizer": 1, "tokens": 1, "task": 1, "pretrain": 5, "dictionary": 1, "codes": 1, "probe": 4,
        "figure": 1, "mlsm_figure2": 1,
    }  # fmt: skip
    by_path = snakemake(tmp_path, "--dry-run", "results/figures/mlsm/figure2.pdf")
    assert {**jobs(by_path), "mlsm_figure2": 1} == jobs(output)


def test_killed_phase_2_resumes_to_the_same_weights(done, tmp_path):
    """kill -9 of the training process in the middle of phase 2, then the same command again."""
    target = "results/models/strict-mlsm+mlm/r1/manifest.json"
    wanted = read_json(done / target)["steps"]
    config = small()
    config["models"]["strict-mlsm+mlm"]["save_minutes"] = 0.0005
    state = tmp_path / "results/state/models/strict-mlsm+mlm/r1"
    snakemake(tmp_path, "results/models/strict-phase1/r1/manifest.json", config=config)
    command = [*running.COMMAND, target, "--directory", str(tmp_path), "--configfile", str(tmp_path / "config.yaml")]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while not (state / "state.safetensors").exists():
        assert child.poll() is None, "it ended before a state was saved"
        time.sleep(0.005)
    os.kill(int((state / "lock").read_text()), signal.SIGKILL)
    assert child.wait() != 0
    assert (state / "state.safetensors").exists() and not (tmp_path / target).exists()
    snakemake(tmp_path, target, config=config)
    log = (tmp_path / "results/logs/models/strict-mlsm+mlm/r1.log").read_text()
    assert "resuming at step" in log
    assert read_json(tmp_path / target)["steps"] == wanted


def test_minutes_between_states_make_nothing_again(done):
    config = small()
    for model in filter(None, config["models"].values()):
        model["save_minutes"] = 7
    assert "Nothing to be done" in snakemake(done, SCORES, "--dry-run", config=config)


def test_a_wrong_value_stops_before_any_job_with_one_line(tmp_path):
    config = overlay(small(), {"probes": {"finetune": {"lerning_rate": 1}}})
    result = snakemake(tmp_path, config=config, check=False)
    said = [line for line in result.stderr.splitlines() if "masklab" in line]
    assert result.returncode == 1 and not (tmp_path / "results").exists()
    assert len(said) == 1 and re.match(r"masklab: config.yaml:\d+: probes.finetune.lerning_rate: unknown key", said[0])


def test_a_broken_source_file_is_one_line_in_the_log(tmp_path):
    config = overlay(small(), {"corpora": {"strict": None, "strict-small": None}})
    for name in ("strict", "strict-small"):
        config["corpora"][name] = {"kind": "text", "files": ["missing/*.txt"]}
    result = snakemake(tmp_path, "results/corpora/strict/train.parquet", config=config, check=False)
    assert result.returncode == 1
    assert "missing/*.txt" in (tmp_path / "results/logs/corpora/strict.log").read_text().strip().splitlines()[-1]


def test_the_paper_preset_dry_runs():
    command = [*running.COMMAND, "--dry-run", "mlsm", "--configfile", "presets/paper.yaml"]
    output = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    counts = jobs(output)
    # three replicates of 10 recipes and 4 nulls; of the recipes in two dictionaries
    assert counts["pretrain"] == 3 * 14 and counts["dictionary"] == 3 * 2
    # 8 phase-2 models x 5 checkpoints, 2 phase-1, 4 nulls; (8 x 3 + 2 + 4) x 22 fine-tuned tasks; 2 of one replicate
    assert counts["probe"] == 3 * (8 * 5 + 2 + 4 + (8 * 3 + 2 + 4) * 22) + 2


def test_of_models_that_have_learned_nothing_no_claim_is_decided(tmp_path):
    config = running.unlearned(small())
    study = config["studies"]["mlsm"]
    panels = {"strict-small": study["panels"]["strict-small"]}
    probes = {"minimal-pairs": "all", "finetune": "all"}
    study |= {"panels": panels, "extra": [], "probes": probes, "figures": [], "tables": []}
    snakemake(tmp_path, "results/claims.parquet", config=config)
    claims = pd.read_parquet(tmp_path / "results/claims.parquet")
    assert len(claims) > 10 and set(claims["verdict"]) == {"untested"} and (claims["why"] != "").all()


def test_every_figure_and_table_is_drawn(done):
    """Last: it adds to the folder."""
    snakemake(done)
    running.assert_drawn(done / "results", "mlsm", small()["studies"]["mlsm"])
    claims = pd.read_parquet(done / "results/claims/mlsm.parquet")
    assert set(claims["verdict"]) <= {"untested", "inconclusive"}, "one replicate decides nothing"
    assert "Nothing to be done" in snakemake(done)
