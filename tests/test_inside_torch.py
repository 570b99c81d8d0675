"""What we use of torch's inside: there as we know it, and done without where it is not."""

import pytest
import torch

from masklab import inside_torch

KERNELS = {"_fused_adamw_": "has_fused_adamw"}


@pytest.fixture(autouse=True)
def asked_anew():
    names = ("has_fused_adamw", "has_onednn_linear")
    for name in names:
        getattr(inside_torch, name).cache_clear()
    yield
    for name in names:
        getattr(inside_torch, name).cache_clear()


def test_this_version_has_all_of_it():
    """An upgrade that fails here costs speed: look for what replaces the kernel before pyproject.toml allows it."""
    assert inside_torch.lacking() == []


def renamed(*given, **named):
    raise TypeError("unexpected arguments")


def other(*given, **named):
    return torch.ones(2, 3)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("changed", [None, renamed, other], ids=["gone", "renamed", "other"])
def test_a_kernel_that_changed_is_not_used(monkeypatch, name, changed):
    if changed is None:
        monkeypatch.delattr(torch, name)
    else:
        monkeypatch.setattr(torch, name, changed)
    assert not getattr(inside_torch, KERNELS[name])()
    assert f"torch.{name}" in inside_torch.lacking()


def updated(steps=5):
    torch.manual_seed(1)
    values, mean, square, updates = torch.randn(40), torch.zeros(40), torch.zeros(40), torch.zeros(())
    for _ in range(steps):
        updates += 1
        inside_torch.adamw_(values, torch.randn(40), mean, square, updates, 0.03, 0.8, 0.95, 0.1, 1e-3)
    return torch.stack([values, mean, square])


def test_adamw_is_torchs_own(monkeypatch):
    torch.manual_seed(1)
    parameter = torch.randn(40).requires_grad_()
    optimiser = torch.optim.AdamW([parameter], lr=0.03, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, foreach=False)
    for _ in range(5):
        parameter.grad = torch.randn(40)
        optimiser.step()
    state = optimiser.state[parameter]
    wanted = torch.stack([parameter.detach(), state["exp_avg"], state["exp_avg_sq"]])
    torch.testing.assert_close(updated(), wanted, rtol=1e-5, atol=1e-6)
    inside_torch.has_fused_adamw.cache_clear()
    monkeypatch.delattr(torch, "_fused_adamw_")
    torch.testing.assert_close(updated(), wanted, rtol=1e-5, atol=1e-6)


def test_each_is_added_to_its_own(monkeypatch):
    def added():
        into = [torch.zeros(2), torch.ones(2, 3)]
        inside_torch.add_each_(into, [torch.ones(2), torch.full((2, 3), 4.0)])
        return into

    one, other = added()
    assert one.tolist() == [1, 1] and other.eq(5).all()
    monkeypatch.delattr(torch, "_foreach_add_")
    assert torch.equal(added()[0], one) and torch.equal(added()[1], other)


def test_onednn_is_left_alone_where_it_changed(monkeypatch):
    monkeypatch.setattr(inside_torch, "onednn_linear", renamed)
    assert not inside_torch.has_onednn_linear()


def test_what_is_there_does_not_depend_on_who_asks_first():
    wanted = inside_torch.has_onednn_linear()
    inside_torch.has_onednn_linear.cache_clear()
    with torch.autocast("cpu", torch.bfloat16):  # as a bf16 update does where nothing has asked before
        assert inside_torch.has_onednn_linear() == wanted


def test_a_tensor_that_was_written_to_has_another_version():
    tensor = torch.zeros(2)
    before = inside_torch.version(tensor)
    assert inside_torch.version(tensor) == before
    tensor.add_(1)
    assert inside_torch.version(tensor) != before
    with torch.inference_mode():
        uncounted = torch.zeros(2)
    assert inside_torch.version(uncounted) != inside_torch.version(uncounted)


def test_bf16_is_known_from_the_flags_too(monkeypatch):
    known = inside_torch.has_bf16()
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
    assert inside_torch.has_bf16() == known


def test_a_copy_keeps_the_other_s_submodules():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    for made in (inside_torch.shallow_copy(model), inside_torch.shallow_copy(WithoutModules(model))):
        made[1] = torch.nn.Linear(2, 3)
        assert model[1].out_features == 2 and torch.equal(made[0].weight, model[0].weight)


class WithoutModules:
    """A module of another torch, that keeps its submodules elsewhere."""

    def __init__(self, model):
        self.model = model

    def __deepcopy__(self, memo):
        import copy

        return copy.deepcopy(self.model, memo)


def test_nothing_else_of_the_house_reaches_inside():
    """`torch._name` and its like stand in the one module."""
    import ast
    from pathlib import Path

    found = []
    for path in (Path(__file__).parents[1] / "src/masklab").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                text = ast.unparse(node)
                inside = text.startswith("torch.") or node.attr in ("_version", "_modules", "_buffers")
                found += [f"{path.name}: {text}"] if inside and path.name != "inside_torch.py" else []
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
                outside = path.name != "inside_torch.py"
                found += [f"{path.name}: {name}" for name in names if outside and name.startswith("torch._")]
                found += [path.name for name in names if name == "ctypes" and path.name != "inside_libc.py"]
    assert not found
