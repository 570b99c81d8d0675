"""Estimates of the trace of the Hessian of the masked-language-model loss at saturation.

At saturation the Hessian is the Fisher information (Liu et al. 2023, lemma 3.2 and appendix B), so that

    Tr H = E over x_-t of E over y ~ p of || grad log p_y ||^2,   p = f(x_-t),

over all parameters that the loss has gradients for. Two changes leave the mean as it is and the noise smaller.
grad log p_y = J' (e_y - p), and any v with E v v' = diag p - p p', the covariance of e_y, serves as well as e_y - p:
random signs s give v = sqrt(p) s - p (sqrt(p) . s), whose length hardly varies, where that of a drawn label does.
And v has mean zero, so that the squared norm of a sum of gradients is the sum of the squared norms in the mean:
models that `per_example` does not cover take one ordinary backward pass per small batch.
"""

import numpy as np
import torch

from masklab.curvature.per_example import SquaredNorms, along, counted, covers
from masklab.curvature.width import EXPONENTS, exponent
from masklab.errors import MaskLabError
from masklab.models.encoder import MaskedLM
from masklab.tokenizers import MASK

SUMMED = 8  # sentences whose gradients are summed where norms are not taken one by one


def label_scores(logits: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """e_y - p [B, V] for a label y ~ p of each row, by inversion of uniforms [B]: the paper's draw."""
    p = logits.softmax(-1)
    y = torch.searchsorted(p.cumsum(-1), uniforms[:, None].to(p.dtype) * p.sum(-1, keepdim=True), right=True)
    return -p.scatter_add(1, y.clamp(max=p.shape[1] - 1), p.new_full((len(p), 1), -1.0))


def sign_scores(logits: torch.Tensor, signs: torch.Tensor) -> torch.Tensor:
    """v [B, V] with E v v' = diag p - p p' from signs [B, V] of +-1."""
    p = logits.softmax(-1)
    v = p.sqrt() * signs
    return v - p * v.sum(-1, keepdim=True)


def random_signs(rng: np.random.Generator, count: int, width: int) -> torch.Tensor:
    """[count, width] of +-1, a bit of the generator each."""
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-count * width // 8)), np.uint8), count=count * width)
    return torch.from_numpy(bits.astype(np.float32) * 2 - 1).view(count, width)


def draw_places(lengths: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sequences with a token inside [CLS] and [SEP], and the column of one such token of each; [count], uniform.

    Raises:
        MaskLabError: there is none.
    """
    eligible = np.flatnonzero(lengths > 2)
    if not len(eligible):
        raise MaskLabError("no sequence of the split has a token between [CLS] and [SEP] that could be hidden")
    rows = eligible[rng.integers(len(eligible), size=count)]
    return rows, rng.integers(1, lengths[rows] - 1)


def hide(ids: torch.Tensor, columns: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """ids [B, T] with [MASK] at one column [B] of each row, and those flat positions [B]."""
    return ids.scatter(1, columns[:, None], MASK), torch.arange(len(ids), device=ids.device) * ids.shape[1] + columns


def squared_norms(model: MaskedLM, batches) -> torch.Tensor:
    """Estimates of E || grad log p ||^2, whose mean is the trace: [n, 3] by `width.EXPONENTS`, float64.

    Args:
        model: in eval mode.
        batches: of (ids [B, T] with one token hidden, lengths [B], at [B], signs [B, V]), on the model's device.

    Returns:
        One row per sentence, or, where `per_example.covers(model)` is false, per SUMMED sentences, their mean.
    """
    if not covers(model):
        return torch.cat([summed_norms(model, *part) for batch in batches for part in _split(batch)])
    with SquaredNorms(model) as norms:
        return torch.cat([
            norms(ids, lengths, at, lambda logits, s=signs: [sign_scores(logits, s)])[0].double().cpu()
            for ids, lengths, at, signs in batches
        ])  # fmt: skip


def summed_norms(model: MaskedLM, ids, lengths, at, signs, scores=sign_scores) -> torch.Tensor:
    """|| sum of gradients ||^2 / B of one batch, [1, 3] float64: one backward pass of any `MaskedLM`."""
    parameters = counted(model)
    logits = model(ids, lengths, at=at).logits
    score = along(logits, scores(logits.detach(), signs))
    gradients = torch.autograd.grad(score, parameters.values(), allow_unused=True)
    norms = torch.zeros(1, len(EXPONENTS), dtype=torch.float64)
    for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True):
        if gradient is not None:
            place = EXPONENTS.index(exponent(name, parameter.dim(), model.config.tied_head))
            norms[0, place] += gradient.detach().square().sum().item() / len(ids)
    return norms


def _split(batch):
    ids, lengths, at, signs = batch
    columns = at - torch.arange(len(ids), device=ids.device) * ids.shape[1]
    for start in range(0, len(ids), SUMMED):
        part = slice(start, start + SUMMED)
        rows = torch.arange(len(ids[part]), device=ids.device)
        yield ids[part], lengths[part], rows * ids.shape[1] + columns[part], signs[part]
