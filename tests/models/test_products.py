"""fp32 products by oneDNN are fp32 products, and the choice of the library leaves nothing behind."""

from types import SimpleNamespace

import pytest
import torch

from masklab import cpu
from masklab.config.schema import Encoder
from masklab.models import products


@pytest.fixture
def preferred():
    if not products.prefers_onednn():
        pytest.skip("MKL is the faster library here")


def test_products_hold_what_bf16_does_not(preferred):
    torch.manual_seed(1)
    x, y = torch.randn(96, 80), torch.randn(96, 64)
    exact = (x.double().t() @ y.double()).float()
    with products.onednn():
        found = x.t() @ y
    assert (found - exact).abs().max() < 1e-4 < (x.bfloat16().t() @ y.bfloat16() - exact).abs().max()


def test_the_setting_is_put_back_after_an_error(preferred):
    before = torch.backends.mkldnn.matmul.fp32_precision
    with pytest.raises(ZeroDivisionError), products.onednn():
        assert torch.backends.mkldnn.matmul.fp32_precision != before
        raise ZeroDivisionError
    assert torch.backends.mkldnn.matmul.fp32_precision == before


@pytest.mark.parametrize(
    "known", ["vendor_id : GenuineIntel\nflags : avx512f", "vendor_id : AuthenticAMD\nflags : avx2"]
)
def test_other_processors_keep_torchs_choice(known, monkeypatch):
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_, **__: known)
    monkeypatch.setattr("masklab.cpu.features", cpu.features.__wrapped__)
    assert not products.prefers_onednn.__wrapped__()


@pytest.mark.parametrize(("major", "found"), [(7, "fp32"), (8, "bf16"), (9, "bf16")])
def test_auto_is_bf16_on_a_gpu_that_has_units_for_it(major, found, monkeypatch):
    """torch counts a V100 or a T4, too: it makes bf16 tensors there, and multiplies them as fp32 ones."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(major=major))
    monkeypatch.setattr(torch.cuda, "_check_bf16_tensor_supported", lambda device: True)
    encoder = Encoder(layers=1, hidden=64, heads=1, max_positions=8)
    assert products.precision("auto", encoder, torch.device("cuda"), 128) == found
