"""Words without a network: their features by definition, regression on them in the place of fine-tuning."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from checked_run import items, run
from masklab import probes, tasks
from masklab.config.schema import Chains, FinetuneProbe, PatternsTask
from masklab.errors import MaskLabError
from masklab.models.words import Words, save_words
from masklab.probes import Context
from masklab.probes.bags import word_features, word_tables
from masklab.probes.regression import STRENGTHS, _classifier
from masklab.tasks.encoding import encode_split, encode_units
from masklab.tokenizers import CLS, SEP, load_tokenizer

PROBE = FinetuneProbe(kind="finetune", tasks=["t"], select="accuracy", max_length=40)
NOUNS = ("cat", "dog", "bird", "horse", "child", "teacher")


@pytest.fixture
def words(tmp_path, tokenizer_folder):
    """words(order): a checkpoint folder; how often tokens occur is of no interest here."""

    def make(order, max_positions=40):
        size = load_tokenizer(tokenizer_folder).get_vocab_size()
        folder = tmp_path / f"words-{order}-{max_positions}" / "step-0"
        save_words(folder, Words(np.full(size, 1 / size), order, max_positions), tokenizer_folder, {})
        return folder

    return make


def naive(split, order):
    """{(text, place or None, token): count} of every row, one token at a time."""
    found = []
    for ids, length in zip(split.ids.tolist(), split.lengths, strict=True):
        counts, text, place = {}, 0, 0
        for token in ids[1 : length - 1]:
            if token == SEP:
                text, place = 1, 0
                continue
            key = (text, place if order else None, token)
            counts[key] = counts.get(key, 0) + 1
            place += 1
        found.append(counts)
    return found


@pytest.mark.parametrize("order", [True, False])
@pytest.mark.parametrize("pair", [True, False])
def test_features_equal_a_loop_over_tokens(make_tokenizer, write_task, sentences, order, pair):
    texts = ["The cat sees the dog.", "The cats.", *sentences(58)]
    rows = [(a, b if pair else None, i % 2) for i, (a, b) in enumerate(zip(texts, texts[::-1], strict=True))]
    folder = write_task("t", rows[:40], 2, test=rows[30:])
    splits = [encode_split(folder / f"{name}.parquet", make_tokenizer(), 20) for name in ("train", "test")]
    assert (splits[0].ids[:, 0] == CLS).all() and splits[0].lengths.min() < splits[0].lengths.max()
    wanted = [counts for split in splits for counts in naive(split, order)]
    columns = {key: i for i, key in enumerate(sorted({key for counts in wanted for key in counts}, key=str))}
    table = np.zeros((len(wanted), len(columns)))
    for row, counts in zip(table, wanted, strict=True):
        for key, count in counts.items():
            row[columns[key]] = count
    found = word_features(splits, order)
    assert [each.shape[0] for each in found] == [40, 30]
    dense = np.concatenate([each.toarray() for each in found])
    # the same columns, in whatever order
    assert sorted(map(tuple, dense.T)) == sorted(map(tuple, table.T))
    assert dense.max() == (1 if order else 2)


def test_tables_are_projections_of_features(make_tokenizer, write_task, sentences):
    folder = write_task("t", [(text, None, 0) for text in sentences(20)], 2)
    splits = [encode_split(folder / "train.parquet", make_tokenizer(), 12)] * 2
    features = word_features(splits, True)[0].toarray()
    tables = word_tables(splits, True, 7, [torch.Generator().manual_seed(seed) for seed in (1, 2)], "here")
    assert [table.shape for table in tables] == [(20, 2, 7)] * 2
    matrix = torch.randn(features.shape[1], 7, generator=torch.Generator().manual_seed(2)) / features.shape[1] ** 0.5
    assert np.allclose(tables[0][:, 1].numpy(), features @ matrix.numpy(), atol=1e-5)
    plain = word_tables(splits, True, None, [], "here")
    assert plain[0].shape == (20, 1, features.shape[1]) and np.allclose(plain[1][:, 0].numpy(), features)


def test_a_table_too_large_is_refused(make_tokenizer, write_task, sentences, monkeypatch):
    folder = write_task("t", [(text, None, 0) for text in sentences(20)], 2)
    splits = [encode_split(folder / "train.parquet", make_tokenizer(), 12)] * 2
    monkeypatch.setattr("masklab.probes.bags.LARGEST", 100)
    with pytest.raises(MaskLabError, match=r"probes.p.projection: 40 rows of .* set a projection"):
        word_tables(splits, True, None, [], "probes.p.projection")


def rows_of(count, seed, label):
    """Sentences of three nouns; `label` of them."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        nouns = rng.permutation(NOUNS)[:3].tolist()
        found.append((f"The {nouns[0]} sees the {nouns[1]}.", f"The {nouns[2]} sleeps.", label(nouns)))
    return found


def test_a_pairs_two_sides_are_kept_apart(words, write_task):
    """The label is in which text a cat stands; there always is one."""

    def cats(count, seed):
        rows = rows_of(count * 3, seed, lambda nouns: int(nouns[2] == "cat") if "cat" in nouns else None)
        return [row for row in rows if row[2] is not None][:count]

    folder = write_task("t", cats(150, 1), 2, test=cats(80, 2))
    for order in (True, False):
        rows = run(Context(PROBE, words(order), {"t": folder}))
        values = {row["metric"]: row["value"] for row in rows}
        assert values["accuracy"] == 1 and values["majority"] < 0.8
        assert set(values) == {"accuracy", "mcc", "f1", "majority", "majority_f1", "chosen_l2"}
        assert values["chosen_l2"] in STRENGTHS and {row["train_size"] for row in rows} == {150}
        assert all("seed" not in row for row in rows)


def test_a_bag_of_synsets_reads_what_tokens_spell_and_not_their_order(tmp_path, tokenizer_folder):
    """Trained on forms a it knows forms b, which a bag of words does not; half of the labels are of their order."""
    config = PatternsTask(
        kind="patterns", chains=Chains(synsets=8, edges="released", features="multi", alphabet=8), length=6,
        patterns=1, set_size=3, train=600, valid=200, test=400, balanced=True,
    )  # fmt: skip
    folder = tmp_path / "patterns"
    tasks.write_task(folder, *tasks.build(config, "patterns", 1))
    accuracy = {}
    for units in (True, False):
        save_words(tmp_path / str(units), Words(np.full(21, 1 / 21), False, 40, units=units), None, {})
        context = Context(probe=PROBE, checkpoint=tmp_path / str(units), tasks={"t": folder}, name="p")
        values = {row["split"]: row["value"] for row in run(context) if row["metric"] == "accuracy"}
        accuracy |= {(units, domain): value for domain, value in values.items()}
    assert accuracy[True, "A-D1"] == accuracy[True, "B-D1"] > 0.6
    assert accuracy[True, "A-D1"] < 0.95  # synsets without their order do not tell
    assert abs(accuracy[False, "B-D1"] - 0.5) < 0.06 < accuracy[False, "A-D1"] - 0.5
    rows = pd.read_parquet(folder / "train.parquet").drop(columns="units")
    rows.to_parquet(folder / "train.parquet")
    with pytest.raises(MaskLabError, match=r"train.parquet: has no column 'units'"):
        encode_units(folder / "train.parquet")


def test_sizes_are_first_rows_and_records_are_kept(words, write_task, tmp_path):
    folder = write_task("t", rows_of(120, 1, lambda nouns: int("cat" in nouns)), 2)
    context = Context(PROBE.model_copy(update={"sizes": [30, 120]}), words(False), {"t": folder}, name="p")
    rows = run(context)
    assert [row["train_size"] for row in rows] == [30] * 6 + [120] * 6
    said = []
    kept = Context(**{**context.__dict__, "state_folder": tmp_path / "state", "progress": lambda *p: said.append(p)})
    assert run(kept) == rows and said == [(1, 2, "t"), (2, 2, "t")]
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "state").iterdir()}
    assert len(times) == 2 and items(probes.run(kept)) == items(probes.run(context))
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "state").iterdir()} == times
    train = pd.read_parquet(folder / "train.parquet")
    train[:30].to_parquet(folder / "train.parquet")
    assert run(Context(PROBE, words(False), {"t": folder})) == rows[:6]
    with pytest.raises(MaskLabError, match=r"probes.p.sizes: 120 is more than the 30 training rows of 't'"):
        run(context)


def test_training_rows_of_one_class_give_that_class(words, write_task):
    rows = rows_of(60, 1, lambda nouns: int("cat" in nouns))
    ones = sorted(rows, key=lambda row: -row[2])[:20]
    found = run(Context(PROBE, words(False), {"t": write_task("t", ones, 2, rows)}))
    values = {row["metric"]: row["value"] for row in found}
    assert values["accuracy"] == pytest.approx(sum(row[2] for row in rows) / 60)
    assert values["f1"] == values["majority_f1"]


def test_sequences_are_cut_as_the_encoder_would(words, write_task):
    """With room for [CLS], two tokens and [SEP]s the label is out of sight."""
    folder = write_task("t", rows_of(120, 1, lambda nouns: int(nouns[2] in NOUNS[:3])), 2)
    seen = {r["metric"]: r["value"] for r in run(Context(PROBE, words(True), {"t": folder}))}
    cut = {r["metric"]: r["value"] for r in run(Context(PROBE, words(True, 5), {"t": folder}))}
    assert seen["accuracy"] == 1 and cut["accuracy"] < 0.8


def test_ratings_by_ridge_and_spans_left_out(words, tmp_path):
    folder, spans = tmp_path / "ratings", tmp_path / "spans"
    for path in (folder, spans):
        path.mkdir()
    for seed, (split, count) in enumerate({"train": 160, "valid": 60, "test": 60}.items()):
        rows = rows_of(count, seed, lambda nouns: float(sum(noun in NOUNS[:3] for noun in nouns)))
        pd.DataFrame(rows, columns=["text_a", "text_b", "label"]).to_parquet(folder / f"{split}.parquet")
    facts = {"kind": "ratings", "low": 0.0, "high": 3.0, "metric": "spearman", "pair": True}
    (folder / "task.json").write_text(json.dumps(facts))
    (spans / "task.json").write_text(json.dumps({"kind": "spans", "metric": "f1"}))
    made = probes.run(Context(PROBE, words(False), {"spans": spans, "t": folder}))
    values = {row["metric"]: row["value"] for row in run(Context(PROBE, words(False), {"spans": spans, "t": folder}))}
    assert set(values) == {"pearson", "spearman", "chosen_l2"} and {row["task"] for row in made} == {"t"}
    assert values["spearman"] > 0.85 and values["pearson"] > 0.95  # truths tie, predictions do not
    (item,) = items(made)
    assert item["metrics"] == ["pearson", "spearman"] and len(item["predictions"]) == 60


@pytest.mark.parametrize("strength", [1.0, 0.01])
def test_labels_are_fitted_to_the_end(strength):
    """At scikit-learn's own tolerance 6 in 100 answers are others than those of the optimum, by Newton's method."""
    rng = np.random.default_rng(0)
    x, others = ((rng.random((rows, 150)) < 0.08) * rng.integers(1, 4, (rows, 150)) for rows in (200, 2000))
    labels = (x @ rng.normal(size=(150, 3)) + 2 * rng.gumbel(size=(200, 3))).argmax(1)
    there = LogisticRegression(C=1 / strength, solver="newton-cholesky", max_iter=1000, tol=1e-10).fit(x, labels)
    found = _classifier(csr_matrix(x.astype(float)), labels, strength)(csr_matrix(others.astype(float)))
    assert np.mean(found == there.predict(others)) > 0.999
