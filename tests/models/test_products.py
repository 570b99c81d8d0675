"""fp32 products by oneDNN are fp32 products, and the choice of the library leaves nothing behind."""

import pytest
import torch

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
    assert not products.prefers_onednn.__wrapped__()
