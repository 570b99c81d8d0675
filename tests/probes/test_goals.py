"""Ratings, searched settings, ranks after fine-tuning."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from checked_run import run
from masklab.config.schema import FinetuneProbe
from masklab.probes import Context
from masklab.probes.checkpoints import measure_checkpoints
from masklab.probes.finetune import chosen, combinations
from masklab.probes.goals import Classification, Regression, answers
from masklab.scores.items import items_path, read
from masklab.scores.reading import RANKS
from masklab.tasks.encoding import Split

QUICK = {"kind": "finetune", "tasks": ["t"], "lr": 3e-3, "batch_size": 16, "epochs": 12, "evaluate_every": "epoch"}
NOUNS = ("cat", "dog", "bird", "horse", "child", "teacher")


@pytest.fixture
def ratings(tmp_path):
    """How many of a sentence's three nouns are plural."""
    folder = tmp_path / "ratings"
    folder.mkdir()
    for seed, (split, count) in enumerate({"train": 160, "valid": 60, "test": 60}.items()):
        rng, rows = np.random.default_rng(seed), []
        for _ in range(count):
            plural = (rng.random(3) < 0.5).tolist()
            a, b, c = (noun + "s" * more for noun, more in zip(rng.permutation(NOUNS)[:3], plural, strict=True))
            rows.append((f"The {a} see the {b}.", f"The {c} sleep.", float(sum(plural))))
        pd.DataFrame(rows, columns=["text_a", "text_b", "label"]).to_parquet(folder / f"{split}.parquet")
    facts = {"kind": "ratings", "low": 0.0, "high": 3.0, "metric": "spearman", "pair": True}
    (folder / "task.json").write_text(json.dumps(facts))
    return folder


def test_learns_ratings(make_checkpoint, ratings):
    probe = FinetuneProbe(**QUICK | {"epochs": 20}, seeds=[1], rank=0.9)
    found = run(Context(probe, make_checkpoint("absolute"), {"t": ratings}))
    values = {row["metric"]: row["value"] for row in found}
    assert set(values) == {"pearson", "spearman", "best_step", "capped", *RANKS}
    assert values["spearman"] > 0.6 and values["pearson"] > 0.6


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_ratings_that_are_no_numbers_are_never_the_best(make_checkpoint, ratings, metric):
    """Of a fine-tuning that diverged, at the first rate of a grid."""
    (ratings / "task.json").write_text(json.dumps({"kind": "ratings", "low": 0.0, "high": 3.0, "metric": metric}))
    probe = FinetuneProbe(**QUICK | {"epochs": 2}, seeds=[1], grid={"lr": [1e10, 3e-3]})
    found = run(Context(probe, make_checkpoint("absolute"), {"t": ratings}))
    assert {row["metric"]: row["value"] for row in found}["chosen_lr"] == 3e-3
    split = Split(None, None, np.array([0.0, 1.0]), {})
    values = [Regression(0, 3, metric).value(split, np.array(given), "task") for given in ([1, np.nan], [2.0, 1.0])]
    assert values[0] < values[1] == pytest.approx(-1)


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_ratings_that_are_no_numbers_correlate_with_nothing(make_checkpoint, ratings, tmp_path, metric, caplog):
    """A seed that diverges, with no other rate to choose: it counts as 0, and the others are not lost with it."""
    (ratings / "task.json").write_text(json.dumps({"kind": "ratings", "low": 1.0, "high": 3.0, "metric": metric}))
    probe = FinetuneProbe(**QUICK | {"epochs": 1, "lr": 1e10}, seeds=[1])
    at = {"recipe": "a", "replicate": 1, "name": "p", "device": "cpu", "output": tmp_path / "scores.parquet"}
    checkpoints, tasks = [(1, make_checkpoint("absolute"))], {"t": ratings}
    found = measure_checkpoints(**at, probe=probe, checkpoints=checkpoints, tasks=tasks).to_pandas()
    assert found[found["metric"].isin(["pearson", "spearman"])]["value"].tolist() == [0, 0]
    assert "60 of 60 rows get ratings that are no numbers: training has diverged" in caplog.text
    assert np.ptp(read(items_path(tmp_path / "scores.parquet"))["predictions"][0].as_py()) == 0


def test_classes_of_logits_that_are_no_numbers_are_never_the_best(caplog):
    """And are counted as class 0, which is said."""
    given = answers(torch.tensor([[[1.0, 2.0], [3.0, 0.0]], [[float("nan")] * 2, [0.0, float("inf")]]])).numpy()
    assert given.tolist() == [[1, 0], [-1, -1]]
    goal = Classification(2)
    split = Split(torch.zeros(2, 1, dtype=torch.int32), np.ones(2, int), np.array([0, 0]), {})
    assert goal.value(split, given[0], "task") == 0.5 and goal.value(split, given[1], "task") == -np.inf
    found = {row["metric"]: row["value"] for row in goal.rows((split, given[1]), None) if "metric" in row}
    assert found["accuracy"] == 1.0 and "2 of 2 rows get logits that are no numbers" in caplog.text


@pytest.mark.parametrize(
    ("grid", "others", "said"),
    [
        ({"lr": []}, {}, "lr: needs at least 1 item"),
        ({"lr": [1e-3, -0.001]}, {}, r"lr: item 2: must be greater than 0 \(got -0.001\)"),
        ({"batch_size": [0]}, {}, r"batch_size: item 1: must be greater than or equal to 1 \(got 0\)"),
        ({"batch_size": [8, 16.5]}, {}, r"batch_size: item 2: must be a whole number \(got 16.5\)"),
        ({"epochs": [0]}, {}, r"epochs: item 1: must be greater than or equal to 1 \(got 0\)"),
        ({"warmup": [1.5]}, {}, r"warmup: item 1: must be less than or equal to 1 \(got 1.5\)"),
        ({"epochs": [2, 3]}, {"max_steps": 9}, "grid: epochs: idle beside max_steps"),
        ({"warmup": [0.1]}, {"warmup_steps": 9}, "grid: warmup: idle beside warmup_steps"),
    ],
)
def test_a_grid_holds_what_its_keys_can_be(grid, others, said):
    with pytest.raises(ValueError, match=said):
        FinetuneProbe(**QUICK | others, grid=grid)


def test_a_grid_of_whole_numbers_is_taken_however_they_are_written():
    probe = FinetuneProbe(**QUICK, grid={"batch_size": [8, 16.0], "epochs": [1], "lr": [1e-3], "warmup": [0, 1]})
    assert [each["batch_size"] for each in combinations(probe.grid)] == [8, 8, 16, 16]


def test_a_mean_of_gradients_forgets():
    """With 1 the correction for its beginning divides 0 by 0."""
    for betas in ((1.0, 0.999), (0.9, 1.0), (-0.1, 0.9)):
        with pytest.raises(ValueError, match="betas"):
            FinetuneProbe(**QUICK, betas=betas)
    assert FinetuneProbe(**QUICK, betas=(0.0, 0.98)).betas == (0.0, 0.98)


def test_a_grid_reports_the_best_combination(make_checkpoint, ratings, tmp_path):
    """The rows are those of that combination run alone; a resumed search repeats nothing."""
    checkpoint = make_checkpoint("absolute")
    grid = {"lr": [1e-6, 3e-3], "epochs": [8]}
    probe = FinetuneProbe(**QUICK, seeds=[1, 2], grid=grid)
    said = []
    context = {"tasks": {"t": ratings}, "state_folder": tmp_path / "state"}
    found = run(Context(probe, checkpoint, **context, progress=lambda *done: said.append(done[:2])))
    assert said[-1] == (4, 4)
    values = {row["metric"]: row["value"] for row in found if row["metric"].startswith("chosen")}
    assert values == {"chosen_lr": 3e-3, "chosen_epochs": 8}
    alone = run(Context(FinetuneProbe(**QUICK | {"epochs": 8}, seeds=[1, 2]), checkpoint, {"t": ratings}))
    assert [row for row in found if not row["metric"].startswith("chosen")] == alone
    assert len(list((tmp_path / "state").glob("*.json"))) == 4
    assert run(Context(probe, checkpoint, **context)) == found


def test_combinations_and_medians():
    assert combinations({}) == [{}]
    both = combinations({"batch_size": [16, 32], "lr": [1e-3, 2e-3]})
    assert both[1] == {"batch_size": 16, "lr": 2e-3} and len(both) == 4 and type(both[0]["batch_size"]) is int
    row = {"task": "t", "train_size": 9, "metric": "m"}
    found = [[{"rows": [{**row, "value": v}], "value": v} for v in values] for values in ([0.9, 0, 0], [0.5, 0.4, 0.5])]
    picked = chosen(found, [{"lr": 1}, {"lr": 2}])
    assert [r["value"] for r in picked] == [0.5, 0.4, 0.5, 2.0] and picked[-1]["metric"] == "chosen_lr"


def test_rank_of_a_classifier_is_that_of_its_encoder(make_checkpoint, write_task, make_tokenizer):
    """With no learning the encoder is the pre-trained one: states of the test split by hand, specials left out."""
    from masklab.models.checkpoint import load_checkpoint
    from masklab.tasks.encoding import encode_split
    from masklab.tokenizers import SPECIALS, UNK

    rows = [
        (f"The {noun}s {verb} the dog.", "The cat sleeps.", i % 2)
        for i, noun in enumerate(NOUNS)
        for verb in ("see", "like")
    ]
    folder, checkpoint = write_task("t", rows, 2), make_checkpoint("absolute")
    probe = FinetuneProbe(**QUICK | {"lr": 1e-12, "epochs": 1}, seeds=[1], rank=0.8)
    values = {row["metric"]: row["value"] for row in run(Context(probe, checkpoint, {"t": folder}))}
    model = load_checkpoint(checkpoint).eval()
    split = encode_split(folder / "test.parquet", make_tokenizer(), 32)
    ids, lengths, _ = split.batch(np.arange(len(split)))
    states = model.encode(ids, lengths)[(ids >= len(SPECIALS)) | (ids == UNK)].detach().double().numpy()
    for name, matrix in (("rank", states), ("rank_centred", states - states.mean(0))):
        energy = np.linalg.svd(matrix, compute_uv=False) ** 2
        assert values[name] == np.argmax(np.cumsum(energy) / energy.sum() >= 0.8) + 1
