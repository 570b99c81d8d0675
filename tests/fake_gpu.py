"""A GPU that computes nothing, for machines that have none: what a wrong device or dtype would break there breaks.

On a machine that has a GPU the same tests run on it, and `Strict` looks on. Elsewhere tensors are torch's fake ones on
the device `meta`, which has shapes and no data. Fake tensors of the device `cuda` would be nearer, but their gradients
need a torch that is built for CUDA. Three things are added. `Strict` looks at every operation, of backward passes too:
tensors of the CPU beside those of the GPU, products of unlike dtypes, and, where it is asked to, copies and numbers
that the host waits for. `Autocast` casts as torch.autocast does on CUDA. numpy gets zeros.
"""

import contextlib

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

REAL = torch.cuda.is_available()
GPU = torch.device("cuda", 0) if REAL else torch.device("meta")
# https://docs.pytorch.org/docs/stable/amp.html: what CUDA casts to bf16, to fp32, and to the widest type given
LOW = {"linear", "matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "addr", "lstm",
       "scaled_dot_product_attention"}  # fmt: skip
FULL = {"softmax", "log_softmax", "layer_norm", "cross_entropy", "nll_loss", "kl_div", "mse_loss", "normalize", "norm",
        "logsumexp", "exp", "log", "pow", "sum", "prod", "cumsum", "cdist", "cosine_similarity"}  # fmt: skip
WIDEST = {"addcmul", "cat", "stack", "dot", "tensordot", "scatter_add", "index_put"}
MOVES = {"aten::_to_copy", "aten::copy_"}
READS = {"aten::_local_scalar_dense"}
PRODUCTS = {"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::mv", "aten::dot"}


def _floats(values):
    return [value for value in tree_flatten(values)[0] if isinstance(value, torch.Tensor) and value.is_floating_point()]


class Casts(TorchFunctionMode):
    """torch.autocast("cuda", torch.bfloat16), of the operations that MaskLab uses."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(function, "__name__", "")
        dtype = None
        if name in LOW:
            dtype = torch.bfloat16
        elif name in FULL:
            dtype = torch.float32
        elif name in WIDEST and (given := _floats((args, kwargs))):
            dtype = max((value.dtype for value in given), key=lambda dtype: torch.finfo(dtype).bits)

        def cast(value):
            fits = isinstance(value, torch.Tensor) and value.device == GPU and value.is_floating_point()
            return value.to(dtype) if fits and value.dtype != torch.float64 else value

        if dtype is not None:
            args, kwargs = tree_map(cast, (args, kwargs))
        return function(*args, **kwargs)


def Autocast():
    """bf16 products on the GPU."""
    return torch.autocast("cuda", torch.bfloat16) if REAL else Casts()


class Strict(TorchDispatchMode):
    """Refuses what a GPU would; waits: whether the host may wait for it."""

    def __init__(self, waits: bool):
        super().__init__()
        self.waits, self.seen = waits, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, function._schema.name
        given = [value for value in tree_flatten((args, kwargs))[0] if isinstance(value, torch.Tensor)]
        on_gpu = [value.device == GPU for value in given]
        self.seen += any(on_gpu)
        if name in READS and REAL and not self.waits:  # of a fake tensor none can be read
            raise AssertionError(f"{name}: the host waits for a number")
        if name in MOVES:
            source, target = given[-1].device, kwargs.get("device") or given[0].device
            blocking = not kwargs.get("non_blocking") and not (len(args) > 2 and args[2])
            if source != target and blocking and not self.waits and given[-1].dim():
                raise AssertionError(f"{name}: the host waits for a copy of shape {list(given[-1].shape)}")
        elif any(on_gpu) and any(value.dim() for value, there in zip(given, on_gpu, strict=True) if not there):
            raise AssertionError(f"{name}: tensors of the CPU and of the GPU")
        if name in PRODUCTS and len({value.dtype for value in _floats((args, kwargs))}) > 1:
            raise AssertionError(f"{name}: a product of {[value.dtype for value in _floats((args, kwargs))]}")
        return function(*args, **kwargs)


def on_gpu(value):
    """A module, or the tensors of any structure, on the real GPU."""
    if isinstance(value, torch.nn.Module):
        return value.to(GPU, non_blocking=True)
    return tree_map(lambda part: part.to(GPU, non_blocking=True) if isinstance(part, torch.Tensor) else part, value)


@contextlib.contextmanager
def fake_gpu(monkeypatch, waits: bool = True):
    """Meanwhile tensors are fake; gives `to`, which puts a module, or the tensors of any structure, on the GPU."""
    if REAL:
        with Strict(waits) as strict:
            yield on_gpu
        assert strict.seen > 10, "nothing was computed on the GPU"
        return
    mode = FakeTensorMode()
    monkeypatch.setattr(
        FakeTensor, "numpy", lambda self: np.zeros(self.shape, str(self.dtype).removeprefix("torch.")), raising=False
    )

    def to(value):
        if isinstance(value, torch.nn.Module):
            for module in value.modules():
                for name, parameter in module._parameters.items():
                    if parameter is not None:
                        empty = torch.empty(parameter.shape, dtype=parameter.dtype, device=GPU)
                        module._parameters[name] = torch.nn.Parameter(empty)
                if isinstance(module, torch.nn.LSTM):
                    module._init_flat_weights()
            return value

        def move(part):
            if not isinstance(part, torch.Tensor):
                return part
            part = part if isinstance(part, FakeTensor) else mode.from_tensor(part)
            return part.to(GPU, non_blocking=True)

        return tree_map(move, value)

    tensor = torch.tensor  # at once on `meta` it is no fake one
    monkeypatch.setattr(torch, "tensor", lambda *given, device=None, **how: tensor(*given, **how).to(device or "cpu"))
    monkeypatch.setattr(torch.nn.Module, "to", lambda module, device: to(module))
    with mode, Strict(waits) as strict:
        yield to
    assert strict.seen > 10, "nothing was computed on the GPU"
