"""Fine-tuning gives what transformers' Trainer gives, within the noise of seeds."""

import numpy as np
import pytest
import torch
import transformers

from checked_run import run
from masklab.config.schema import FinetuneProbe
from masklab.files import read_table
from masklab.probes import Context

pytestmark = pytest.mark.workflow
SEEDS = (1, 2, 3, 4, 5)
PROBE = FinetuneProbe(
    kind="finetune",
    tasks=["agree"],
    seeds=list(SEEDS),
    lr=1e-3,
    batch_size=16,
    epochs=5,
    evaluate_every=10,
    patience=99,
    batches="random",
)


def rows(count, seed):
    """Acceptability: does the verb agree with the first noun?"""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        first, second = rng.choice(["cat", "dog", "bird", "horse", "teacher"], 2)
        plural, right = rng.integers(2, size=2)
        verb = rng.choice(["see", "follow", "like"]) + ("" if plural == right else "s")
        label = right if rng.random() > 0.1 else 1 - right  # nobody gets all of it
        yield f"The {'old ' * int(rng.integers(2))}{first}{'s' * int(plural)} {verb} the {second}.", None, int(label)


class Rows(torch.utils.data.Dataset):
    """A split for the Trainer."""

    def __init__(self, path, tokenizer):
        table = read_table(path)
        self.inputs = tokenizer(table["text_a"].to_pylist(), truncation=True, max_length=32)["input_ids"]
        self.labels = table["label"].to_pylist()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"input_ids": self.inputs[index], "labels": self.labels[index]}


def f1(predicted, wanted):
    right = ((predicted == 1) & (wanted == 1)).sum()
    return 2 * right / max(1, (predicted == 1).sum() + (wanted == 1).sum())


def trainers(folder, task, output, seed):
    """Accuracy on the test split of the model that was best on the validation split."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    train, valid, test = (Rows(task / f"{split}.parquet", tokenizer) for split in ("train", "valid", "test"))
    settings = transformers.TrainingArguments(
        str(output), seed=seed, use_cpu=True, report_to=[], disable_tqdm=True, learning_rate=PROBE.lr,
        per_device_train_batch_size=PROBE.batch_size, per_device_eval_batch_size=64, num_train_epochs=PROBE.epochs,
        eval_strategy="steps", eval_steps=PROBE.evaluate_every, save_strategy="steps", save_steps=PROBE.evaluate_every,
        save_total_limit=1, load_best_model_at_end=True, metric_for_best_model="f1", greater_is_better=True,
        logging_strategy="no",
    )  # fmt: skip
    transformers.logging.set_verbosity_error()
    transformers.set_seed(seed)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2)
    trainer = transformers.Trainer(
        model, settings, transformers.DataCollatorWithPadding(tokenizer), train, valid,
        compute_metrics=lambda found: {"f1": f1(found.predictions.argmax(-1), found.label_ids)},
    )  # fmt: skip
    trainer.train()
    return float((trainer.predict(test).predictions.argmax(-1) == np.array(test.labels)).mean())


@pytest.mark.parametrize("positions", ["absolute", "disentangled"])
def test_five_seeds_of_ours_and_of_the_trainer_tell_no_difference(positions, make_checkpoint, write_task, tmp_path):
    folder = make_checkpoint(positions)
    task = write_task("agree", list(rows(320, 1)), 2, test=list(rows(300, 3)))
    found = run(Context(probe=PROBE, checkpoint=folder, tasks={"agree": task}))
    ours = np.array([row["value"] for row in found if row["metric"] == "accuracy"])
    theirs = np.array([trainers(folder, task, tmp_path / str(seed), seed) for seed in SEEDS])
    noise = np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / len(SEEDS))
    print(f"{positions}: ours {ours.mean():.3f} {ours}, Trainer {theirs.mean():.3f} {theirs}, noise {noise:.3f}")
    assert 0.55 < theirs.mean() < 0.995 and noise > 0, "neither guessing nor perfect"
    assert abs(ours.mean() - theirs.mean()) < 2.5 * noise
