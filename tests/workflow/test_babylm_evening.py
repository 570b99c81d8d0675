"""presets/babylm-mlsm.yaml and the narrower one: what they will take, a shrunken form from files to claims; what is
tested again."""

import itertools
import json
import random

import pandas as pd
import pytest
import running

from masklab.config import load, read
from masklab.files import read_json
from masklab.plan import make_plan, read_assumptions
from masklab.plan.graph import checkout_paths
from masklab.plan.sizes import Sizes
from masklab.plan.text_sizes import _kept, _part
from masklab.scores.view import View
from masklab.studies import claims_of, every_claim

PRESET, AGAIN, NARROW, LATER, LAST = (
    running.ROOT / f"presets/babylm-mlsm{name}.yaml" for name in ("", "-again", "-narrow", "-rules", "-npi")
)
# Words of a line at every twentieth quantile of 290,982 lines of Simple English Wikipedia, children's books, speech to
# children and telephone speech, ten million words in all; lines under five words are left out.
WORDS = (5, 5, 5, 6, 6, 7, 8, 9, 11, 13, 17, 22, 27, 33, 39, 46, 55, 66, 82, 109, 1217)
NOUNS, VERBS = ("cat", "dog", "child", "king", "river", "stone"), ("see", "follow", "find", "like", "want", "hear")
ENDS = ("", "in the old house", "under a tree", "near the water", "at night", "with a friend")
RULES = ("subject_aux_inversion", "reflexive", "tense", "npi")  # a folder each, of Warstadt and Bowman (2020)
CROSSED = "exp=polar-src=0-highest={0}-last={1}-template={2}_aux_per_sentence"  # where the two rules part ways


def sentence(rng, plural=None, wrong=False) -> str:
    """A sentence of 5 words or more whose verb agrees with its subject, or does not."""
    many = rng.random() < 0.5 if plural is None else plural
    subject, verb = rng.choice(NOUNS) + "s" * many, rng.choice(VERBS) + "s" * (many == wrong)
    return " ".join(["the", subject, verb, "the", rng.choice(NOUNS), rng.choice(ENDS)]).strip() + " ."


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def lay_down(folder, text, rows, pairs, paradigms, say=sentence):
    """A folder as the preset wants it: lines of text, labelled rows, pairs in files of a paradigm each.

    Every other row of the test splits is one on which the two rules part ways.
    """
    rng = random.Random(1)
    write(folder / "babylm_10M/lines.txt", text)
    for rule, split in itertools.product(RULES, ("train", "dev", "test_full")):
        made = [{"sentence": say(rng), "linguistic_feature_label": n % 2} for n in range(rows)]
        for n, row in enumerate(made):
            crossed = split == "test_full" and n // 2 % 2
            row |= {"surface_feature_label": (n + crossed) % 2, "metadata": "exp=polar-src=1"}
            if crossed:
                row["metadata"] = CROSSED.format(n % 2, (n + 1) % 2, 1 + n // 4 % 2)
        write(folder / f"ambiguous/{rule}/{split}.jsonl", map(json.dumps, made))
    for number in range(paradigms):
        seeds = range(number * pairs, (number + 1) * pairs)
        both = [[sentence(random.Random(seed), wrong=wrong) for wrong in (False, True)] for seed in seeds]
        made = [{"sentence_good": good, "sentence_bad": bad, "UID": f"paradigm_{number}"} for good, bad in both]
        write(folder / f"full_eval/blimp_filtered/paradigm_{number}.jsonl", map(json.dumps, made))


@pytest.fixture
def data(tmp_path):
    _kept.cache_clear()
    _part.cache_clear()
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("preset", "task", "rows", "hours"),
    [
        (PRESET, "reflexive", 300, 2.5),
        (NARROW, "reflexive", 300, 2.5),
        (LATER, "reflexive", 500, 2.6),
        (LAST, "npi", 1000, 2.6),
    ],
    ids=["first", "narrow", "rules", "npi"],
)
def test_it_takes_an_evening_of_two_cores(data, tmp_path, monkeypatch, preset, task, rows, hours):
    """On lines as long as real ones, and labelled rows of 12 words, as those of the rules."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(1)
    lengths = [rng.randint(*bounds) for bounds in itertools.pairwise(WORDS) for _ in range(200)]
    lay_down(data, ("word " * length for length in lengths), 4400, pairs=300, paradigms=67, say=lambda _: "word " * 12)
    config = read(str(preset), values=[f"data={data}"])
    plan = make_plan(config, "cpu", ["mlsm", "dictionaries"])
    total = plan.total()
    assert max(total["chain"], 3600 * total["cpu_hours"] / 2) < hours * 3600
    trained = [recipe for recipe, model in config.models.items() if model.steps]
    tokens = {recipe: plan.costs["pretrain", recipe, "3"].tokens for recipe in trained}
    phase1 = tokens.pop("phase1")
    near = 1 if preset is PRESET else 0.95  # the other read 30.1 M and 10.1 M of the real text, of which this is like
    assert phase1 >= near * 30e6 and len(tokens) == 5 and min(tokens.values()) >= near * 10e6
    sizes = Sizes(checkout_paths(config), read_assumptions())
    assert sizes.pairs("blimp") == 67 * 200 and sizes.rows(task) == (rows, 2000, 2000)
    assert plan.costs["dictionary_page", "babylm"].seconds > 10


def test_what_it_found_is_tested_at_another_root_seed(data, tmp_path, monkeypatch):
    """By paradigms of BLiMP, each named once, on models that the first run did not train."""
    monkeypatch.chdir(tmp_path)
    lay_down(data, ["word " * 9], 2, pairs=2, paradigms=1)
    first, again = (read(str(path), values=[f"data={data}"]) for path in (PRESET, AGAIN))
    known, below = (again.studies["mlsm"].sets[f"blimp-{name}"] for name in ("known", "below-chance"))
    assert (len({*known}), len({*below}), len({*known, *below})) == (17, 18, 35)
    assert again.seed != first.seed and not {"blimp-known", "blimp-below-chance"} & {*first.studies["mlsm"].sets}
    assert {*again.models} & {"mlm", "mlsm", "mlsm+mlm", "kd", "kd+mlm"} == {"mlm", "mlsm", "mlsm+mlm"}
    assert {"forgets", "forgets-wrong", "forgets-more"} <= {
        claim.name for claim in claims_of("mlsm", again.studies["mlsm"], View.of(again, "mlsm"))
    }
    asked = checkout_paths(again).settings("study_claims", study="mlsm")
    assert {*asked["claims"]} <= {claim.name for claim in every_claim("mlsm", View(**asked["view"]))}  # in the job
    for name in ("phase1", "mlm", "mlsm", "mlsm+mlm"):
        assert again.models[name] == first.models[name]


SMALL = {
    "replicates": 2,
    "corpora": {"babylm": {"valid": 40, "test": 40}},
    "tokenizers": {"babylm": {"vocab_size": 90, "rarest_character": 1}},
    "encoders": {"small": {"hidden": 32, "heads": 2, "intermediate": 64}},
    "models": {
        "phase1": {"steps": 60, "checkpoints": [60]},
        **{
            name: {"init": "phase1@60", "steps": 20, "checkpoints": [5, 20]}
            for name in ("kd", "kd+mlm", "mlm", "mlsm", "mlsm+mlm")
        },
    },
    "dictionaries": {"babylm": {"model": "phase1@60", "atoms": 16, "sample": 500, "iterations": 5, "batch_size": 50}},
    "tasks": {
        "blimp": {"limit": 6},
        "control_main_verb": {"train": 40, "valid": 20, "test": 20},
        **{name: {"limit": 40, "limit_held_out": 20} for name in (*RULES[:3], "subject_aux_inversion_last")},
    },
    "probes": {name: {"max_steps": 4} for name in ("glue", "msgs", "last")},
}


@pytest.mark.workflow
def test_a_shrunken_form_runs_from_files_to_claims(data, tmp_path):
    rng = random.Random(2)
    lay_down(data, (sentence(rng) for _ in range(1200)), rows=60, pairs=8, paradigms=3)
    config = running.default_config("mlsm", preset="babylm-mlsm-rules")
    config = running.laid(config, SMALL | {"data": str(data), "run": ""})
    running.snakemake(tmp_path, config, "mlsm", "dictionaries")
    results, study = tmp_path / "results", load(config).studies["mlsm"]
    running.assert_drawn(results, "mlsm", {"figures": study.figures, "tables": study.tables})
    assert {f"figure{n}" for n in range(1, 7)} <= {*study.figures}
    assert {"table1", "table1_full_width", "table2", "table3"} == {*study.tables}
    claims = pd.read_parquet(results / "claims/mlsm.parquet")
    assert {"mlsm-lags", "pollution", "glue-on-par", "msgs-small-control"} <= {*claims["claim"]}
    assert claims["value"].notna().all() and {*claims["replicates"]} == {2}
    pairs = pd.read_parquet(results / "scores/minimal-pairs/mlsm/r2/all.parquet")
    assert {*pairs["metric"]} == {"accuracy", "accuracy_full_width"} and {*pairs["step"]} == {5, 20}
    assert pairs.groupby(["step", "metric"])["n"].sum().eq(3 * 6).all()
    assert len(pd.read_csv(results / "dictionaries/babylm/properties.csv")) == 16
    described = read_json(results / "dictionaries/babylm/r2/dictionary.json")
    assert described["held_out"] and described["vectors"] == 20 * 50
    assert (results / "dictionaries/babylm/index.html").stat().st_size
