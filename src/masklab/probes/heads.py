"""Linear classifiers trained side by side: the same rows, several seeds, one matrix product for all.

The gradient of softmax regression is written by hand: an update is three batched products and one fused AdamW.
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from masklab.optim.flat import FlatParameters, rate_at


class Heads:
    """S classifiers from P features to C classes: `weight` [S, C, P], `bias` [S, C, 1].

    Weights begin uniform in +-1/sqrt(P), as torch's, classifier s from generators[s]; biases at 0.
    """

    def __init__(self, features: int, classes: int, generators, device="cpu"):
        bound = features**-0.5
        drawn = [torch.empty(classes, features).uniform_(-bound, bound, generator=g) for g in generators]
        self.weight = nn.Parameter(torch.stack(drawn).to(device))
        self.bias = nn.Parameter(torch.zeros(len(drawn), classes, 1, device=device))
        self.flat = FlatParameters([self.weight, self.bias])

    @torch.no_grad()
    def logits(self, x):
        """x [S, B, P] -> [S, C, B]: torch's softmax over a last dimension of 3 or 12 takes ten times as long."""
        return torch.baddbmm(self.bias, self.weight, x.transpose(1, 2))

    @torch.no_grad()
    def update(self, x, labels, lr: float, weight_decay: float) -> None:
        """One AdamW step of every classifier on the mean cross-entropy of its batch: x [S, B, P], labels [S, B]."""
        g = torch.softmax(self.logits(x), 1)
        g.scatter_add_(1, labels[:, None], g.new_full((), -1.0).expand(len(labels), 1, labels.shape[1]))
        g /= labels.shape[1]
        torch.bmm(g, x, out=self.weight.grad)
        torch.sum(g, 2, keepdim=True, out=self.bias.grad)
        self.flat.step(lr, weight_decay)

    @torch.no_grad()
    def predictions(self, features) -> np.ndarray:
        """Classes of features [N, S, P], [S, N]; S may be 1, for all classifiers alike."""
        x = features.transpose(0, 1).expand(len(self.weight), -1, -1)
        return self.logits(x).argmax(1).cpu().numpy()


def standardised(train, *others):
    """The splits [N, S, P] shifted and scaled so that each dimension of `train` has mean 0 and variance 1.

    A dimension that does not vary in `train` becomes 0.
    """
    mean, std = train.mean(0), train.std(0, correction=0)
    # below float32's rounding of the mean a spread is no spread
    flat = std <= 1e-6 * mean.abs()
    scale = torch.where(flat, 0.0, 1 / torch.where(flat, 1.0, std))
    return [(split - mean) * scale for split in (train, *others)]


def train_heads(heads: Heads, features, labels, orders, probe, validate=None) -> int:
    """Train on features [N, S or 1, P] and labels [S or 1, N]; returns the updates that the classifiers kept have made.

    orders: per classifier a function epoch -> permutation of the N rows. probe: lr, epochs, batch_size, schedule,
    warmup and weight_decay. validate: None, or a function heads -> [S] values, after each epoch; each classifier
    then ends as it was when its own value was largest (the first time).

    Returns updates [S].
    """
    count, copies = len(features), len(heads.weight)
    size = min(probe.batch_size, count)
    epoch_steps = -(-count // size)
    steps = probe.epochs * epoch_steps
    labels = torch.from_numpy(np.asarray(labels)).to(features.device).expand(copies, count)
    flat = features.reshape(-1, features.shape[2])  # classifier s reads row n at n S + s, or at n if all read the same
    stride = features.shape[1]
    offset = torch.arange(copies if stride > 1 else 1, device=features.device)[:, None]
    best, kept, best_steps = np.full(copies, -np.inf), None, np.full(copies, steps)
    for step in range(steps):
        epoch, at = divmod(step, epoch_steps)
        if at == 0:
            order = torch.from_numpy(np.stack([draw(epoch) for draw in orders])).to(features.device)
        rows = order[:, at * size : (at + 1) * size]
        x = F.embedding(rows * stride + offset, flat)  # four times as fast as indexing with two tensors
        heads.update(x, labels.gather(1, rows), rate_at(step, steps, probe), probe.weight_decay)
        if validate is None or at < epoch_steps - 1:
            continue
        values = np.asarray(validate(heads))
        better = np.flatnonzero(values > best)
        kept = kept or [heads.weight.detach().clone(), heads.bias.detach().clone()]
        for mine, now in zip(kept, (heads.weight, heads.bias), strict=True):
            mine[better] = now.detach()[better]
        best[better], best_steps[better] = values[better], step + 1
    if kept:
        for mine, now in zip(kept, (heads.weight, heads.bias), strict=True):
            now.data.copy_(mine)
    return best_steps
