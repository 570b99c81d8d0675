"""Who multiplies fp32 matrices on a CPU, and in which precision a run computes.

Products with weights are made by `kernels.matmul` where that is ahead (`kernels.processor`), else by torch's library;
batched ones, of attention, by the faster of torch's two (`batched`). Those are MKL, with which torch multiplies fp32
matrices, and oneDNN, which is up to twice as fast on AMD's processors with AVX-512. torch hands fp32 products to oneDNN
only where those may be rounded to bf16 inside. A processor without units for that computes them in fp32 all the same;
whether this one does is tried, with numbers that bf16 does not hold, before it is relied on. The choice depends on the
processor alone: the same machine gives the same numbers.
"""

import functools

import torch

from masklab import cpu, inside_torch
from masklab.kernels.processor import faster_compiled
from masklab.models.stacked import in_fp32_alone


@functools.cache
def prefers_onednn() -> bool:
    """Whether oneDNN is faster here, and exact: AMD, AVX-512, no units for bf16 tiles."""
    if not {"AuthenticAMD", "avx512f"} <= cpu.features():
        return False
    return inside_torch.has_onednn_linear() and onednn_is_exact()


def onednn_is_exact() -> bool:
    """Whether products inside `onednn` are of fp32 numbers here: 1 + 2^-12 is one, and no bf16 number.

    They are not on a processor with units for bf16 tiles (AMX), which rounds to bf16 where it is allowed to.
    """
    if not torch.backends.mkldnn.is_available():
        return False
    one, many = torch.eye(64), torch.full((64, 64), 1 + 2.0**-12)
    try:
        with onednn(), torch.autocast("cpu", enabled=False):
            return bool(torch.equal(many.t() @ one, many) and torch.equal(torch.bmm(many[None], one[None])[0], many))
    except (AttributeError, RuntimeError):
        return False


def library() -> str:
    """Who makes fp32 products of a weight on this machine's CPU, by name: stands in the manifest of a run.

    Those of an LSTM in the ordinary loop, and all under `compile: true`, are made by torch's library all the same.
    """
    return "MaskLab" if faster_compiled(torch.float32) else "MKL" if torch.backends.mkl.is_available() else "BLAS"


def has_bf16() -> bool:
    """Whether this CPU multiplies bf16 numbers faster than fp32 ones: AVX-512 bf16 or AMX."""
    return torch.backends.mkldnn.is_available() and inside_torch.has_bf16()


def precision(asked: str, encoder, device: torch.device, narrowest: int) -> str:
    """fp32 or bf16, as `asked`; of `auto` the faster one: bf16 on a GPU that has it, and on a CPU that has it for
    transformers of `narrowest` units or more, but for those that compiled code takes in fp32 alone. A GPU older than
    Ampere only imitates it, more slowly than fp32."""
    if asked != "auto":
        return asked
    if device.type != "cpu":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    wide = encoder.kind == "transformer" and encoder.hidden >= narrowest
    return "bf16" if wide and not in_fp32_alone(encoder) and has_bf16() else "fp32"


class onednn:
    """fp32 products on CPUs, transposed and batched ones too, go to oneDNN. (No generator: a small product is as short
    as one's start.)"""

    def __enter__(self):
        settings = torch.backends.mkldnn.matmul
        self.before = settings.fp32_precision
        settings.fp32_precision = "bf16"

    def __exit__(self, *_):
        torch.backends.mkldnn.matmul.fp32_precision = self.before
