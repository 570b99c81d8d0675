"""What we use of torch's inside, which no interface promises: each with a guard, and a plain form without it.

A kernel counts as there if it gives what its plain form gives: an upgrade that renames one, or changes its arguments,
costs time and no result. `lacking` names those that are not; a test holds it empty for the versions that we allow.
"""

import copy
import functools

import torch
from torch.nn import functional as F

from masklab import cpu


def adamw_(values, gradient, mean, square, updates, lr, beta1, beta2, weight_decay, eps) -> None:
    """One update of AdamW; changes `values`, `mean` and `square` [n]. updates []: of this one, from 1.

    torch's fused kernel called directly: making a `torch.optim.AdamW` imports 800 modules of torch's compiler.
    """
    (_fused_adamw_ if has_fused_adamw() else _plain_adamw_)(
        values, gradient, mean, square, updates, lr, beta1, beta2, weight_decay, eps
    )


def add_each_(into, tensors) -> None:
    """Add each of `tensors` to that of `into`, in one operation where torch has it."""
    if hasattr(torch, "_foreach_add_"):
        torch._foreach_add_(into, tensors)
        return
    for tensor, more in zip(into, tensors, strict=True):
        tensor.add_(more)


def onednn_linear(x, weight, bias):
    """x [N, K] weight' [K, M] + bias by oneDNN; for those alone who have asked `has_onednn_linear`."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def version(tensor) -> object:
    """A mark that changes when a tensor is written to; always another one where torch counts no writes."""
    try:
        return tensor._version
    except (AttributeError, RuntimeError):  # not there; a tensor made under inference_mode
        return object()


def has_bf16() -> bool:
    """Whether this CPU has units for bf16 numbers: AVX-512 bf16 or AMX."""
    try:
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    except AttributeError:
        return bool({"avx512_bf16", "amx_tile"} & cpu.features())


def shallow_copy(module):
    """A module of the same weights, whose submodules may be replaced without a change of the given one's."""
    if not isinstance(getattr(module, "_modules", None), dict):
        return copy.deepcopy(module)
    copied = copy.copy(module)
    copied._modules = dict(module._modules)
    return copied


def allow_forms(count: int) -> None:
    """Have torch.compile make at least `count` forms of a function before it gives up: 8 are its own limit."""
    from torch._dynamo import config

    if isinstance(getattr(config, "recompile_limit", None), int):
        config.recompile_limit = max(count, config.recompile_limit)


@functools.cache
def has_fused_adamw() -> bool:
    """Whether torch's fused kernel updates as the plain form does."""

    def update(kernel):
        values, gradient, mean, square = (torch.linspace(start, start + 1, 4) for start in (-1.0, -0.5, 0.25, 0.5))
        kernel(values, gradient, mean, square, torch.tensor(3.0), 0.1, 0.9, 0.99, 0.01, 1e-8)
        return torch.stack([values, mean, square])

    return _same(lambda: update(_fused_adamw_), lambda: update(_plain_adamw_))


@functools.cache
def has_onednn_linear() -> bool:
    """Whether torch offers oneDNN's linear map of fp32 and bf16 numbers."""
    x, weight, bias = torch.eye(32), torch.linspace(-1, 1, 32 * 32).view(32, 32), torch.ones(32)
    return torch.backends.mkldnn.is_available() and _same(
        lambda: onednn_linear(x, weight, bias), lambda: F.linear(x, weight, bias)
    )


def lacking() -> list[str]:
    """What of torch's inside this version lacks, or has in another form."""
    from torch._dynamo import config

    given = torch.zeros(1)
    there = {
        "torch._fused_adamw_": has_fused_adamw(),
        "torch._foreach_add_": hasattr(torch, "_foreach_add_"),
        "torch.ops.mkldnn._linear_pointwise": has_onednn_linear() or not torch.backends.mkldnn.is_available(),
        "torch.Tensor._version": isinstance(version(given), int) and version(given) < version(given.add_(1)),
        "torch.cpu._is_avx512_bf16_supported": hasattr(torch.cpu, "_is_avx512_bf16_supported"),
        "torch.cpu._is_amx_tile_supported": hasattr(torch.cpu, "_is_amx_tile_supported"),
        "torch._dynamo.config.recompile_limit": isinstance(getattr(config, "recompile_limit", None), int),
        "torch.nn.Module._modules": isinstance(getattr(torch.nn.Module(), "_modules", None), dict),
    }
    return [name for name, is_there in there.items() if not is_there]


def _same(one, other) -> bool:
    try:  # asked for first in the midst of a bf16 update, where one of the two would be rounded
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            return torch.allclose(one(), other(), rtol=1e-5, atol=1e-6)
    except (AttributeError, TypeError, RuntimeError):
        return False


def _fused_adamw_(values, gradient, mean, square, updates, lr, beta1, beta2, weight_decay, eps):
    settings = {"lr": lr, "beta1": beta1, "beta2": beta2, "weight_decay": weight_decay, "eps": eps}
    moments = ([mean], [square], [], [updates])
    torch._fused_adamw_([values], [gradient], *moments, **settings, amsgrad=False, maximize=False)


def _plain_adamw_(values, gradient, mean, square, updates, lr, beta1, beta2, weight_decay, eps):
    values.mul_(1 - lr * weight_decay)
    mean.lerp_(gradient, 1 - beta1)
    square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    updates = updates.double()  # 1 - beta2 has few digits left in fp32
    scale = (square / (1 - beta2**updates)).sqrt_().add_(eps)
    values.sub_(mean / (1 - beta1**updates) / scale * lr)
