"""Nulls on real data: what shuffled, untrained and word models, and the majority, score where it is known."""

import math

import numpy as np
import pandas as pd
import pytest

import tablelaw
from checked_run import run
from masklab.conditionals import Conditionals, write_conditionals
from masklab.config import load, probe_steps
from masklab.config.nulls import null_measurements, null_recipes, with_nulls
from masklab.config.references import phase
from masklab.config.schema import Encoder, LinearProbe, LossProbe
from masklab.files import read_json, write_json
from masklab.masking import mask_batch
from masklab.models.words import load_words
from masklab.probes import Context
from masklab.probes.checkpoints import measure_checkpoints
from masklab.rng import generator
from masklab.scores.items import gather as gather_items
from masklab.scores.schema import gather
from masklab.symbols import FIRST
from masklab.tokenizers import load_tokenizer
from masklab.tokens import TokenStore
from masklab.training.launch import launch
from masklab.training.run import Run

NULLS = ["untrained", "shuffled", "one-hot", "bag-of-words", "majority"]
CONFIG = {
    "corpora": {"c": {"kind": "english", "sentences": 3000}},
    "tokenizers": {"t": {"corpus": "c", "vocab_size": 500, "max_length": 40}},
    "encoders": {"e": {"layers": 2, "hidden": 32, "heads": 2, "max_positions": 64}},
    "objectives": {"mlm": {"mlm": 1}},
    "models": {
        "a": {
            "corpus": "c", "tokenizer": "t", "encoder": "e", "objective": "mlm", "steps": 60, "batch_size": 64,
            "optimiser": {"lr": 0.005},
        },
    },
    "tasks": {
        "occurs": {"kind": "english-labels", "recipe": "acceptability"},
        "place": {"kind": "english-labels", "recipe": "acceptability"},
        "pairs": {"kind": "english-pairs"},
    },
    "probes": {
        "tune": {
            "kind": "finetune", "tasks": ["occurs", "place"], "seeds": [1, 2], "lr": 0.001, "epochs": 2,
            "evaluate_every": "epoch", "select": "accuracy",
        },
        "linear": {"kind": "linear_probe", "tasks": ["occurs", "place"], "seeds": [1, 2], "epochs": 60,
                   "batch_size": 32, "lr": 0.01},
        "pairs": {"kind": "minimal_pairs", "tasks": ["pairs"]},
        "loss": {"kind": "loss", "floor": False, "sequences": 150},
        "rank": {"kind": "rank", "sequences": 50},
    },
    "studies": {
        "s": {
            "panels": {"all": ["a"]}, "nulls": NULLS,
            "probes": {"tune": "all", "linear": "all", "pairs": "all", "loss": "all", "rank": "all"},
        },
    },
}  # fmt: skip
SIZES = {"train": 400, "valid": 120, "test": 200}


@pytest.fixture(scope="module")
def tasks(english, tmp_path_factory):
    """Folders of tasks in words that are one token each.

    occurs: whether one word is among six drawn; place: six words in some order, whether the first is one of three;
    pairs: a frequent word for a rare one, and a sentence turned round.
    """
    root = tmp_path_factory.mktemp("tasks")
    tokenizer, store = load_tokenizer(english / "tokenizer"), TokenStore(english / "tokens", "train")
    counts = np.bincount(store.ids, minlength=tokenizer.get_vocab_size())
    common = [tokenizer.id_to_token(token)[1:] for token in np.argsort(-counts, kind="stable").tolist()
              if tokenizer.id_to_token(token).startswith("▁") and len(tokenizer.id_to_token(token)) > 3]  # fmt: skip
    words, rare = common[:12], common[-3:]
    for word in words + rare:
        assert len(tokenizer.encode(word, add_special_tokens=False).ids) == 1
    for name in ("occurs", "place"):
        (root / name).mkdir()
        write_json({"kind": "labels", "labels": 2, "metric": "accuracy"}, root / name / "task.json")
        for seed, (split, count) in enumerate(SIZES.items()):
            rng, rows = np.random.default_rng(seed), []
            for number in range(count):
                label = number % 2
                if name == "occurs":
                    drawn = rng.permutation(words[1:])[:6].tolist()
                    if label:
                        drawn[rng.integers(6)] = words[0]
                else:
                    drawn = rng.permutation(words[:6]).tolist()
                    label = int(drawn[0] in words[:3])
                rows.append((" ".join(drawn), None, label))
            pd.DataFrame(rows, columns=["text_a", "text_b", "label"]).to_parquet(root / name / f"{split}.parquet")
    (root / "pairs").mkdir()
    rng, rows = np.random.default_rng(9), []
    for _ in range(40):
        drawn = rng.permutation(words)[:5].tolist()
        rows.append(("frequent", " ".join(drawn), " ".join([*drawn[:-1], rare[0]])))
        rows.append(("order", " ".join(drawn), " ".join(drawn[::-1])))
    pd.DataFrame(rows, columns=["phenomenon", "good", "bad"]).to_parquet(root / "pairs" / "test.parquet")
    write_json({"kind": "pairs"}, root / "pairs" / "task.json")
    return {name: root / name for name in ("occurs", "place", "pairs")}


@pytest.fixture(scope="module")
def world(english, tasks, tmp_path_factory):
    """(config with nulls, folder of each recipe, scores, items) of the recipe and its nulls, all made and measured."""
    root = tmp_path_factory.mktemp("nulls")
    config = with_nulls(load(CONFIG))
    folders, files = {}, []
    for name, model in config.models.items():  # the recipe itself first
        training = Run(
            name=name, seed=1, model=model, encoder=config.encoders[model.encoder],
            objective=config.objectives[model.objective], tokens=english / "tokens", tokenizer=english / "tokenizer",
            output=root / "models" / name, state=root / "state" / name,
            init=folders["a"] / "step-60" if model.init else None, phase=phase(config, name),
        )  # fmt: skip
        launch(training)
        folders[name] = training.output
    measured = null_measurements(config, "s")
    for probe, settings in config.probes.items():
        for name in ["a", *measured[probe]]:
            output = root / "scores" / probe / name / "all.parquet"
            steps = probe_steps(settings, config.models[name])
            measure_checkpoints(
                recipe=name, replicate=1, name=probe, probe=settings, output=output, device="cpu",
                checkpoints=[(step, folders[name] / f"step-{step}") for step in steps],
                tasks={task: tasks[task] for task in settings.tasks}, tokens=english / "tokens",
            )  # fmt: skip
            files.append(output)
    items = gather_items([file.with_name("all.items.parquet") for file in files]).to_pandas()
    return config, folders, gather({"s": files}), items


def value(scores, recipe, probe, metric, task=None):
    """Mean over seeds."""
    rows = scores[(scores["recipe"] == recipe) & (scores["probe"] == probe) & (scores["metric"] == metric)]
    rows = rows if task is None else rows[rows["task"] == task]
    assert len(rows), (recipe, probe, metric, task)
    return float(rows["value"].mean())


def test_every_null_of_the_study_is_measured(world):
    config, _, scores, items = world
    nulls = null_recipes(config, "s")["a"]
    assert nulls == {kind: f"{kind}.a" for kind in NULLS[:-1]} | {"majority": None}
    measured = set(zip(scores["probe"], scores["recipe"], strict=True))
    for probe in ("tune", "linear", "pairs", "loss"):
        assert {recipe for name, recipe in measured if name == probe} == {"a", *(n for n in nulls.values() if n)}
    assert {recipe for name, recipe in measured if name == "rank"} == {"a", "untrained.a", "shuffled.a"}
    assert set(scores.loc[scores["recipe"] != "a", "step"]) == {0} and set(scores["study"]) == {"s"}
    assert set(items["probe"]) == {"tune", "linear", "pairs", "loss"}


@pytest.mark.parametrize("probe", ["tune", "linear"])
def test_words_solve_what_lies_in_words(world, probe):
    """Which words occur: both; which stands first: those in order alone, and the others know nothing at all."""
    _, _, scores, _ = world
    found = {(recipe, task): value(scores, recipe, probe, "accuracy", task)
             for recipe in ("one-hot.a", "bag-of-words.a") for task in ("occurs", "place")}  # fmt: skip
    assert found["bag-of-words.a", "occurs"] > 0.95
    assert found["one-hot.a", "place"] > 0.95
    majority = value(scores, "a", probe, "majority", "place")
    assert majority < 0.6 and found["bag-of-words.a", "place"] <= majority + 1e-9
    for recipe in ("untrained.a", "shuffled.a"):
        for task in ("occurs", "place"):
            assert 0.3 < value(scores, recipe, probe, "accuracy", task) <= 1
    assert value(scores, "untrained.a", probe, "majority", "place") == majority


def test_the_majority_is_the_same_whoever_is_measured(world):
    _, _, scores, _ = world
    for metric in ("majority", "majority_f1"):
        rows = scores[(scores["metric"] == metric) & scores["probe"].isin(["tune", "linear"])]
        assert (rows.groupby("task")["value"].nunique() == 1).all()
    assert value(scores, "a", "tune", "majority", "occurs") == 0.5
    assert value(scores, "a", "tune", "majority_f1", "occurs") == pytest.approx(2 / 3)


def test_pairs_that_differ_in_order_alone_tie_and_count_half(world):
    _, _, scores, items = world
    for recipe in ("one-hot.a", "bag-of-words.a"):
        for metric in ("accuracy", "accuracy_full_width"):
            assert value(scores, recipe, "pairs", metric, "pairs/order") == 0.5
            assert value(scores, recipe, "pairs", metric, "pairs/frequent") == 1
    mine = items[(items["recipe"] == "one-hot.a") & (items["task"] == "pairs/order")]
    assert len(mine) == 2 and all((predictions == 0.5).all() for predictions in mine["predictions"])
    for recipe in ("a", "untrained.a", "shuffled.a"):
        assert 0 <= value(scores, recipe, "pairs", "accuracy", "pairs/order") <= 1


def test_the_loss_of_words_is_that_of_their_distribution(world, english):
    config, folders, scores, _ = world
    words, store = load_words(folders["one-hot.a"] / "step-0"), TokenStore(english / "tokens", "test")
    picked = np.linspace(0, len(store) - 1, 150).astype(int)
    losses = []
    for start in range(0, 150, 64):
        ids, lengths = (part.numpy() for part in store.batch(picked[start : start + 64]))
        rng = generator(1, "loss", "masks", start)
        size = read_json(english / "tokens" / "meta.json")["vocab_size"]
        _, rows, columns = mask_batch(ids, lengths, config.models["a"].masking, size, rng)
        losses += [-math.log(words.probabilities[token]) for token in ids[rows, columns]]
    for recipe in ("one-hot.a", "bag-of-words.a"):
        assert value(scores, recipe, "loss", "loss") == pytest.approx(np.mean(losses), abs=1e-9)
        assert value(scores, recipe, "loss", "parameters") == 0
    size = words.vocab_size
    assert value(scores, "untrained.a", "loss", "loss") == pytest.approx(np.log(size), abs=0.3)
    assert value(scores, "one-hot.a", "loss", "loss") < np.log(size) < value(scores, "shuffled.a", "loss", "loss") + 1
    assert value(scores, "a", "loss", "loss") < value(scores, "untrained.a", "loss", "loss")
    assert value(scores, "untrained.a", "loss", "parameters") == value(scores, "a", "loss", "parameters") > 0


@pytest.fixture(scope="module")
def symbolic(table):
    """Checkpoints of the words of a corpus of four symbols."""
    found = {}
    for name, order in (("one-hot", True), ("bag-of-words", False)):
        training = tablelaw.run_of(table.root, name, Encoder(kind="words", order=order, max_positions=8), steps=0)
        launch(training)
        found[name] = training.output / "step-0"
    return found


def test_the_gap_of_words_is_the_divergence_of_their_distribution(table, symbolic, tmp_path):
    write_conditionals(table.tokens, tmp_path / "all", 120, "all", 1, tmp_path)
    stored, words = Conditionals(tmp_path / "all"), load_words(symbolic["one-hot"])
    divergences = {}
    for pair in range(len(stored)):
        exact = stored.distributions([pair])[0]
        divergence = sum(p * math.log(p / q) for p, q in zip(exact, words.probabilities[FIRST:], strict=True) if p)
        divergences.setdefault(int(stored.rows[pair]), []).append(divergence)
    wanted = np.mean([np.mean(values) for values in divergences.values()])
    probe = LossProbe(kind="loss", masks="one")
    for folder in symbolic.values():
        rows = run(Context(probe, folder, tokens=table.tokens, conditionals=tmp_path / "all"))
        found = {row["metric"]: row["value"] for row in rows}
        assert found["gap"] == pytest.approx(wanted, abs=1e-9) and found["parameters"] == 0
        assert found["loss"] == pytest.approx(found["floor"] + found["gap"], abs=1e-12)


@pytest.mark.parametrize("projection", [40, None])
def test_linear_probes_of_symbols_whatever_the_pooling(table, symbolic, projection):
    probe = LinearProbe(kind="linear_probe", tasks=["task"], seeds=[1, 2], projection=projection, epochs=40,
                        batch_size=32, lr=0.02)  # fmt: skip
    found = {}
    for name, folder in symbolic.items():
        rows = [
            run(Context(probe.model_copy(update={"pooling": pooling}), folder, {"task": table.task}, name="p"))
            for pooling in ("concat", "mean", "cls")
        ]
        assert rows[0] == rows[1] == rows[2]
        found[name] = rows[0]
        values = {row["metric"]: row["value"] for row in rows[0]}
        assert values["accuracy"] > max(0.9, values["majority"] + 0.2)
    assert found["one-hot"] != found["bag-of-words"]
