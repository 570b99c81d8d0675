"""The adversarial term: representations that predict tokens and mislead a linear head (Liu et al. 2023, A.4).

minimise over psi  L(psi) - lambda / |D2| sum_{(x, y) in D2} loss(g_phi(psi)(h_psi(x)), y),
phi(psi) = argmin of the loss on D1,

D1 and D2 disjoint random subsets of a task's training split, drawn anew at every step. As in the fragment that was
released the head is ridge regression in closed form, without intercept, on features scaled to length 1, with targets
one-hot - 1 / classes, and the loss the squared error; here its sum over classes, so that predicting 0 costs
1 - 1 / classes whatever their number. The gradient passes through the head's solution.
"""

from pathlib import Path

import torch
from torch.nn import functional as F

from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.models.pooling import pooled
from masklab.objectives.term import Term
from masklab.tasks.encoding import encode_split
from masklab.tokenizers import load_tokenizer


def one_hot_centred(labels, classes: int):
    """labels [n] -> one-hot - 1 / classes, [n, classes] float64."""
    return F.one_hot(labels, classes).double() - 1 / classes


def ridge_predictions(support, targets, query, ridge: float):
    """What ridge regression from rows of length 1 predicts, in float64; differentiable.

    support [n, d], targets [n, c], query [m, d] -> [m, c]: argmin_W |Z W - Y|^2 + ridge |W|^2 in its dual form,
    K_query,support (K_support,support + ridge I)^-1 Y.
    """
    support, query = (F.normalize(x.double(), dim=1) for x in (support, query))
    gram = support @ support.T + ridge * torch.eye(len(support), dtype=torch.float64, device=support.device)
    factor, _ = torch.linalg.cholesky_ex(gram)  # without a look at whether it worked, for which a GPU is waited for
    return query @ support.T @ torch.cholesky_solve(targets, factor)


def meta_loss(features, labels, support: int, classes: int, ridge: float):
    """Mean squared error on D2, the rows from `support` on, of the head fitted on D1, the rows before: a scalar.

    features [n, d] of any float type; labels [n].
    """
    targets = one_hot_centred(labels, classes)
    predicted = ridge_predictions(features[:support], targets[:support], features[support:], ridge)
    return (predicted - targets[support:]).square().sum(1).mean()


class Adversarial(Term):
    """The squared error of a head on a task that the representations are trained to be bad for.

    `prepare` raises a MaskLabError where the task has no labels, or fewer training rows than D1 and D2 together.
    """

    maximised = True

    def prepare(self, setup):
        how, folder = self.settings, Path(setup.tasks[self.settings.task])
        facts, meta = read_json(folder / "task.json"), read_json(Path(setup.tokens) / "meta.json")
        if facts["kind"] != "labels":
            raise MaskLabError(f"{self.name}.task: {how.task!r} holds {facts['kind']}; it must hold labels")
        self.classes = facts["labels"]
        words = load_tokenizer(setup.tokenizer)
        path = folder / "train.parquet"
        self.split = encode_split(path, words, meta["max_length"], setup.device, meta["vocab_size"])
        if how.support + how.query > len(self.split):
            raise MaskLabError(
                f"{self.name}: support {how.support} + query {how.query} rows are more than the"
                f" {len(self.split)} training rows of {how.task!r}"
            )

    def per_update(self, model, step, rng):
        if step % self.settings.every:
            return None
        model.eval()  # else the states learn to carry dropout's noise, which no probe ever sees
        error = self.error(model, rng)
        model.train()
        return error

    def error(self, model, rng):
        """The head's loss on a D2 after a D1, drawn from the NumPy generator `rng`; a scalar."""
        how = self.settings
        rows = rng.choice(len(self.split), how.support + how.query, replace=False)
        ids, lengths, labels = self.split.batch(rows)
        if how.pooling == "cls":
            features = model.encode(ids, lengths, at=torch.arange(len(ids), device=ids.device) * ids.shape[1])
        else:
            features = pooled(model.encode(ids, lengths)[:, 1:-1], lengths - 2, how.pooling)
        return meta_loss(features, labels, how.support, self.classes, how.ridge)
