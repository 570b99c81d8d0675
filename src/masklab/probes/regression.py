"""What stands in the place of fine-tuning where there is no network: regression on words alone.

Labels by multinomial logistic regression, ratings by ridge regression, on `bags.word_features` of the same training
rows that a network is fine-tuned on. The strength of the L2 penalty is that of `STRENGTHS` that is best on the
validation split, by the metric that chooses the best evaluation of a fine-tuning (`select`); the strongest of equals.
Nothing is drawn, so there is one row per metric and size, and none per seed. Answer spans cannot be found this way:
tasks of spans are left out.
"""

import warnings
from pathlib import Path

import numpy as np

from masklab.files import fingerprint, sha256
from masklab.models.words import load_words
from masklab.probes.bags import word_features
from masklab.probes.goals import Classification, goal_of
from masklab.probes.outcomes import keep, kept
from masklab.tasks.encoding import encode_split, encode_units
from masklab.tokenizers import load_tokenizer

SPLITS = ("train", "valid", "test")
STRENGTHS = (100.0, 10.0, 1.0, 0.1, 0.01)  # lambda of lambda / 2 |w|^2 + sum of the losses of the rows
UPDATES = 1000  # at most, of a logistic regression
SLOPE = 1e-8  # of the mean loss at its end: at scikit-learn's 1e-4 some answers are still others


def measure(context) -> list[dict]:
    """Rows of each task's metrics as `finetune` has them, their items, and `chosen_l2`, of every size."""
    words, tasks = load_words(context.checkpoint), []
    for name in context.tasks:
        folder, facts = context.task(name, "labels", "ratings", "spans")
        if facts["kind"] != "spans":
            tasks.append((name, folder, facts, context.training_sizes(name)))
    rows, done, total = [], 0, sum(len(sizes) for *_, sizes in tasks)
    for name, folder, facts, sizes in tasks:
        loaded = None
        for size in sizes:
            record = _record(context, name, folder, facts, size)
            found = None if record is None else kept(record)
            if found is not None:
                rows += found
            else:
                loaded = loaded or _load(context, folder, words)
                measured = _rows(*loaded, goal_of(facts, context.probe), context.probe.select, size)
                measured = [{"task": name, "train_size": size, **row} for row in measured]
                if record is not None:
                    keep(measured, record)
                rows += measured
            done += 1
            context.progress(done, total, name)
    return rows


def _record(context, name, folder, facts, size):
    """Where the rows of one size are kept: a name made of all that they depend on; None: nowhere."""
    if context.state_folder is None:
        return None
    settings = [context.probe.select, context.probe.max_length, STRENGTHS, SLOPE]
    data = [sha256(folder / f"{split}.parquet") for split in SPLITS]
    return Path(context.state_folder) / f"{fingerprint([settings, data, facts, context.identity, name, size])}.json"


def _load(context, folder, words):
    """(splits, features of each) of a task."""
    has_tokenizer = (Path(context.checkpoint) / "tokenizer.json").is_file()
    tokenizer = load_tokenizer(context.checkpoint) if has_tokenizer else None
    limit = min(context.probe.max_length, words.max_positions)
    files = [folder / f"{split}.parquet" for split in SPLITS]
    if words.units:
        splits = [encode_units(file) for file in files]
    else:
        splits = [encode_split(file, tokenizer, limit, "cpu", words.vocab_size) for file in files]
    return splits, word_features(splits, words.order and not words.units)


def _rows(splits, features, goal, select, size):
    (train, valid, test), (x, x_valid, x_test) = splits, features
    fit = _classifier if isinstance(goal, Classification) else _ridge
    best = None
    for strength in STRENGTHS:
        predict = fit(x[:size], train.labels[:size], strength)
        value = goal.value(valid, predict(x_valid), select)
        if best is None or value > best[0]:
            best = value, strength, predict(x_test)
    _, strength, predictions = best
    chosen = {"split": "valid", "metric": "chosen_l2", "value": strength, "n": len(valid)}
    return [*goal.rows((test, predictions), (valid, None)), chosen]


def _classifier(x, labels, strength):
    if len(np.unique(labels)) == 1:  # a small training set may hold one class
        return lambda features: np.full(features.shape[0], labels[0])
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it then stands as it is after UPDATES
        return LogisticRegression(C=1 / strength, max_iter=UPDATES, tol=SLOPE).fit(x, labels).predict


def _ridge(x, labels, strength):
    from sklearn.linear_model import Ridge

    fitted = Ridge(alpha=strength, solver="sparse_cg", tol=1e-6).fit(x, labels)
    return lambda features: fitted.predict(features).astype(np.float32)
