from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import (
    BertForSequenceClassification,
    DebertaForSequenceClassification,
    EarlyStoppingCallback,
    TrainerControl,
)

from masklab.config.schema import FinetuneProbe
from masklab.models.checkpoint import load_checkpoint
from masklab.probes import Context, run
from masklab.probes.finetune import Classifier, EarlyStopping, FlatParameters
from masklab.tokenizers import PAD, load_tokenizer

PROBE = FinetuneProbe(
    kind="finetune", tasks=["number"], seeds=[1, 2], lr=3e-3, batch_size=16, epochs=4, evaluate_every=10, patience=4
)


def number_rows(count, seed, pair=False):
    """Label 1: plural verb; separable from the tokens alone."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        noun, label = rng.choice(["cat", "dog", "bird", "horse"]), int(rng.integers(2))
        text = f"The {noun}s run." if label else f"The {noun} runs today."
        rows.append((f"The {noun}.", text, label) if pair else (text, None, label))
    return rows


@pytest.fixture
def context(make_checkpoint, write_task):
    def make(pair=False, **changes):
        folder = write_task("number", number_rows(160, 1, pair), 2, test=number_rows(60, 2, pair))
        values = {"probe": PROBE, "checkpoint": make_checkpoint(), "tasks": {"number": folder}, "name": "glue"}
        return Context(**(values | changes))

    return make


@pytest.mark.parametrize("pair", [False, True])
def test_learns_a_separable_task(context, pair):
    rows = run(context(pair=pair))
    assert [(row["seed"], row["metric"]) for row in rows] == [
        (seed, metric) for seed in (1, 2) for metric in ("accuracy", "mcc", "f1", "best_step")
    ]
    for row in rows:
        assert (row["task"], row["split"], row["train_size"], row["n"]) == ("number", "test", 160, 60)
        if row["metric"] == "best_step":
            assert row["value"] in (10, 20, 30, 40)
        else:
            assert row["value"] > 0.95


def test_same_seed_twice_gives_identical_rows_and_seeds_do_not_touch_each_other(context):
    hard = PROBE.model_copy(update={"lr": 2e-4, "epochs": 1})
    first = run(context(probe=hard))
    assert run(context(probe=hard)) == first
    alone = run(context(probe=hard.model_copy(update={"seeds": [2]})))
    assert alone == first[4:]
    values = [[row["value"] for row in rows] for rows in (first[:4], first[4:], run(context(probe=hard, seed=7))[:4])]
    assert values[0] != values[1]
    assert values[0] != values[2]


def test_tasks_start_from_the_checkpoint_not_from_each_other(context, write_task):
    hard = PROBE.model_copy(update={"lr": 5e-4, "epochs": 1, "seeds": [1]})
    rows = [(a, None, label * 2) for a, _, label in number_rows(64, 5)]
    other = write_task("other", rows, 3)
    number = context(probe=hard)
    both = run(context(probe=hard, tasks={"other": other, **number.tasks}))
    assert both[4:] == run(number)


def test_resumes_at_the_next_fine_tuning(context, tmp_path):
    whole = run(context())
    state, killed = tmp_path / "state", context(state_folder=tmp_path / "state")

    def kill(done, total, note=""):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(context(state_folder=state, progress=kill))
    (kept,) = state.iterdir()
    before = kept.stat().st_mtime_ns
    assert run(killed) == whole
    assert kept.stat().st_mtime_ns == before
    assert len(list(state.iterdir())) == 2
    # Another learning rate does not take up these results.
    run(context(state_folder=state, probe=PROBE.model_copy(update={"lr": 1e-4, "epochs": 1, "seeds": [1]})))
    assert len(list(state.iterdir())) == 3


@pytest.mark.parametrize("positions", ["disentangled", "absolute"])
def test_equals_the_transformers_classifier(make_checkpoint, positions):
    folder = make_checkpoint(positions)
    theirs_class = DebertaForSequenceClassification if positions == "disentangled" else BertForSequenceClassification
    theirs = theirs_class.from_pretrained(folder, num_labels=3).eval()
    ours = Classifier(load_checkpoint(folder), 3).eval()
    dense = theirs.pooler.dense if positions == "disentangled" else theirs.bert.pooler.dense
    with torch.no_grad():
        for layer in (dense, theirs.classifier):
            layer.weight.normal_(0, 0.3, generator=torch.Generator().manual_seed(1))
            layer.bias.normal_(0, 0.3, generator=torch.Generator().manual_seed(2))
    ours.dense.load_state_dict(dense.state_dict())
    ours.classifier.load_state_dict(theirs.classifier.state_dict())
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(5, load_tokenizer(folder).get_vocab_size(), (6, 11), generator=generator)
    lengths = torch.tensor([11, 4, 7, 3, 11, 9])
    mask = torch.arange(11) < lengths[:, None]
    ids = ids.where(mask, PAD)
    with torch.no_grad():
        wanted = theirs(input_ids=ids, attention_mask=mask.long()).logits
        assert wanted.std() > 0.05
        torch.testing.assert_close(ours(ids, lengths), wanted, atol=1e-4, rtol=0)


def test_fresh_head_has_the_encoders_initialisation(make_checkpoint):
    model = Classifier(load_checkpoint(make_checkpoint()), 2)
    model.reset_head(torch.Generator().manual_seed(0))
    assert model.dense.weight.std().item() == pytest.approx(0.15, rel=0.1)
    assert not model.dense.bias.any()
    assert not model.classifier.bias.any()


def test_flat_steps_equal_torchs_adamw_on_separate_parameters(make_checkpoint):
    folder = make_checkpoint()
    ids, lengths = torch.randint(5, 50, (4, 8), generator=torch.Generator().manual_seed(0)), torch.tensor([8, 8, 5, 6])
    models = []
    for kind in ("flat", "torch"):
        model = Classifier(load_checkpoint(folder), 2).eval()
        model.reset_head(torch.Generator().manual_seed(0))
        models.append(model)
        parameters = model.used_parameters()
        flat = FlatParameters(parameters) if kind == "flat" else None
        optimiser = torch.optim.AdamW(parameters, weight_decay=0.1)
        for lr in (1e-2, 5e-3, 1e-3):
            torch.nn.functional.cross_entropy(model(ids, lengths), torch.tensor([0, 1, 1, 0])).backward()
            if flat:
                flat.step(lr, weight_decay=0.1, clip=0.5)
            else:
                torch.nn.utils.clip_grad_norm_(parameters, 0.5)
                optimiser.param_groups[0]["lr"] = lr
                optimiser.step()
                optimiser.zero_grad()
    start = Classifier(load_checkpoint(folder), 2).get_parameter("encoder.embeddings.word")
    assert (models[0].get_parameter("encoder.embeddings.word") - start).abs().max() > 1e-3
    for name, parameter in models[0].named_parameters():
        torch.testing.assert_close(parameter, models[1].get_parameter(name), atol=1e-5, rtol=0, msg=name)


def test_early_stopping_equals_transformers():
    rng = np.random.default_rng(0)
    for trial in range(200):
        patience, threshold = int(rng.integers(1, 5)), float(rng.choice([0.0, 0.001, 0.02]))
        values = np.round(rng.random(30) * rng.choice([0.01, 0.1, 1]), 3) + np.linspace(0, 0.1, 30) * (trial % 2)
        theirs = EarlyStoppingCallback(patience, threshold)
        arguments = SimpleNamespace(greater_is_better=True, metric_for_best_model="f1")
        state, control = SimpleNamespace(best_metric=None), TrainerControl()
        ours = EarlyStopping(patience, threshold)
        for value in values:
            theirs.on_evaluate(arguments, state, control, {"eval_f1": value})
            # Trainer keeps the best after the callback has looked at it: any strictly greater value.
            better = state.best_metric is None or value > state.best_metric
            if better:
                state.best_metric = value
            assert ours.update(value) == (better, control.should_training_stop)
            if control.should_training_stop:
                break


def test_best_model_is_measured_and_patience_ends_the_run(context, monkeypatch):
    probe = PROBE.model_copy(update={"lr": 3e-3, "epochs": 30, "patience": 2, "seeds": [1], "schedule": "constant"})
    evaluations, update = [], EarlyStopping.update

    def watch(self, value):
        evaluations.append(value)
        return update(self, value)

    monkeypatch.setattr(EarlyStopping, "update", watch)
    rows = {row["metric"]: row["value"] for row in run(context(probe=probe))}
    assert len(evaluations) < 30  # 300 steps would be 30 evaluations
    assert rows["best_step"] == 10 * (int(np.argmax(evaluations)) + 1)
    assert rows["f1"] == pytest.approx(max(evaluations))  # validation and test rows are the same here
