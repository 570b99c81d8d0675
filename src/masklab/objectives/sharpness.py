"""The trace of the Fisher information as a term: minima of equal loss made flatter, or sharper (after Liu et al. 2023).

The paper observes that among models of equal loss those with a smaller trace do better downstream. This term changes
the trace and leaves the loss as it is as far as it can, so that one can see whether the rest follows.

With u standard normal over all parameters, and p the model's distributions of one hidden token in each of some
sequences, the mean over these of

    [KL(p(psi) || p(psi + eps u)) + KL(p(psi) || p(psi - eps u))] / eps^2 = u' F u + O(eps^2),    E u' F u = Tr F,

F the Fisher information, which at saturation is the Hessian (lemma 3.2) and which probes of `curvature` measure
everywhere. It is never below 0, where the Hessian of a model that still learns may be; its gradient is that of the
trace in the mean and needs no second derivatives, so that it serves every encoder.
"""

import torch
from torch.func import functional_call

from masklab.curvature.trace import draw_places, hide
from masklab.errors import MaskLabError
from masklab.objectives.term import Term
from masklab.tokens import TokenStore

TINY = 1e-12  # no trace is smaller


def mean_divergence(there: torch.Tensor, here: torch.Tensor) -> torch.Tensor:
    """Mean over rows of KL(here || there); logits [N, V] -> a scalar in nats."""
    here, there = here.log_softmax(-1), there.log_softmax(-1)
    return (here.exp() * (here - there)).sum(-1).mean()


def fisher_trace(predict, values: dict[str, torch.Tensor], noise: dict[str, torch.Tensor], reach: float):
    """u' F u of parameters `values` along `noise` u: a scalar with a gradient for all `values`.

    predict: parameters by name -> logits [N, V].
    """

    def moved(by):
        return predict({name: value + by * noise[name] for name, value in values.items()})

    here = predict(values)
    return (mean_divergence(moved(reach), here) + mean_divergence(moved(-reach), here)) / reach**2


class Sharpness(Term):
    """Logarithm of the trace of the Fisher information on sequences of the training split, one hidden token each.

    Of the logarithm, since it pushes less the more it has raised, and has the same weight in models of any size.

    `prepare` raises a MaskLabError where no sequence has a token to hide.
    """

    full_precision = True  # what the noise changes is lost in bf16

    @property
    def maximised(self):
        return self.settings.raised

    def prepare(self, setup):
        self.store = TokenStore(setup.tokens, "train")
        if not (self.store.lengths > 2).any():
            raise MaskLabError(f"{self.name}: no training sequence has a token between [CLS] and [SEP]")

    def per_update(self, model, step, rng):
        if step % self.settings.every:
            return None
        ids, lengths, columns = self._drawn(rng)
        device = next(model.parameters()).device
        if device.type == "cuda":  # copies that nothing waits for
            ids, lengths, columns = (tensor.pin_memory() for tensor in (ids, lengths, columns))
        ids, lengths, columns = (tensor.to(device, non_blocking=True) for tensor in (ids, lengths, columns))
        hidden, at = hide(ids, columns)

        def predict(values):
            return functional_call(model, values, (hidden, lengths), {"at": at}).logits

        values = dict(model.named_parameters())
        noise = {name: torch.randn_like(value) for name, value in values.items()}
        model.eval()  # dropout would differ between the three passes, by more than the noise changes them
        found = fisher_trace(predict, values, noise, self.settings.reach)
        model.train()
        return found.clamp(min=TINY).log()

    def _drawn(self, rng):
        """ids [B, T], lengths [B] and the column [B] that is hidden in each row, drawn uniformly."""
        rows, columns = draw_places(self.store.lengths, self.settings.sequences, rng)
        return *self.store.batch(rows), torch.from_numpy(columns)
