"""Counted operations against torch's own counter, and against the published arithmetic."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from masklab.config.schema import Encoder, Masking
from masklab.masking import hide
from masklab.models.attention import Attention
from masklab.models.encoder import MaskedLM
from masklab.models.flops import count_parameters, forward_flops, mean_masks, training_flops

V, SIZE, LENGTH, MASKED = 50, 4, 16, 3
SMALL = {"layers": 3, "hidden": 24, "heads": 3, "intermediate": 40, "max_positions": 16, "dropout": 0.0}
FORMS = {
    "disentangled": {},
    "absolute": {"positions": "absolute"},
    "relative": {"positions": "relative", "norm": "pre", "tied_head": False},
    "decoder": {"positions": "relative", "decoder": {"layers": 2}},
    "narrow-decoder": {"positions": "absolute", "decoder": {"layers": 1, "hidden": 16, "heads": 2}},
    "linear": {"head": "linear"},
    "linear-decoder": {"head": "linear", "positions": "absolute", "decoder": {"layers": 1, "hidden": 16, "heads": 2}},
    "self+cross": {"positions": "absolute", "decoder": {"layers": 2, "attention": "self+cross"}},
    "cross": {"positions": "relative", "decoder": {"layers": 2, "hidden": 16, "heads": 2, "attention": "cross"}},
}


def batch():
    """Rows of equal length with MASKED [MASK]s each."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, V, (SIZE, LENGTH), generator=generator)
    at = torch.stack([torch.randperm(LENGTH, generator=generator)[:MASKED].sort().values for _ in range(SIZE)])
    at = (at + torch.arange(SIZE)[:, None] * LENGTH).flatten()
    ids.view(-1)[at] = 4
    return ids, torch.full((SIZE,), LENGTH), at


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_exactly_what_torch_counts(form, monkeypatch):
    """Forward without tolerance; with the backward, which we call twice the forward, to 3 %."""
    monkeypatch.setattr("masklab.models.products.prefers_onednn", lambda: False)  # nor oneDNN's linear map
    monkeypatch.setattr("masklab.models.linear.faster_compiled", lambda _: False)  # nor ours
    explicit = Attention.attend_explicitly  # torch's counter does not know the fused kernel of CPUs
    monkeypatch.setattr(Attention, "attend", lambda self, q, k, v, terms, mask: explicit(self, q, k, v, terms, mask, 0))
    config = Encoder(**SMALL | form)
    model = MaskedLM(config, V, latent=7)
    ids, lengths, at = batch()
    with FlopCounterMode(display=False) as forward:
        output = model(ids, lengths, at)
    assert forward.get_total_flops() == forward_flops(config, V, SIZE, LENGTH, MASKED, latent=7)
    with FlopCounterMode(display=False) as backward:
        (output.logits.sum() + output.latent.sum()).backward()
    both = forward.get_total_flops() + backward.get_total_flops()
    assert both == pytest.approx(training_flops(config, V, SIZE, LENGTH, MASKED, latent=7), rel=0.03)


def test_lstm():
    """torch counts no LSTM, so one is unrolled into cells."""
    config = Encoder(kind="lstm", norm="pre", positions="absolute", hidden=24, layers=2, max_positions=16)
    cell = nn.LSTMCell(24, 12)
    with FlopCounterMode(display=False) as counter:
        state = torch.zeros(SIZE, 12), torch.zeros(SIZE, 12)
        for _ in range(LENGTH):
            state = cell(torch.zeros(SIZE, 24), state)
    head = 2 * SIZE * MASKED * (24 * 24 + 24 * V)
    assert forward_flops(config, V, SIZE, LENGTH, MASKED) == 2 * 2 * counter.get_total_flops() + head


def test_mae_lm_base():
    """Training FLOPs per token of MAE-LM base: .652 GFLOP (512 tokens, 32,768 words, 15 % masked) to 1 %.

    Matrix products by hand, with the last decoder layer's feed-forward and queries at masked positions alone.
    """
    hidden, ffn, length, masked, vocab = 768, 3072, 512, 77, 32_768
    layer, attention = 4 * hidden * hidden + 2 * hidden * ffn, 2 * hidden
    short = length - masked
    encoder = 12 * short * (layer + attention * short)
    decoder = 3 * length * (layer + attention * length)
    last = length * 2 * hidden * hidden + masked * (layer - 2 * hidden * hidden + attention * length)
    head = masked * (hidden * hidden + hidden * vocab)
    by_hand = 6 * (encoder + decoder + last + head) / length
    assert by_hand == pytest.approx(0.652e9, rel=0.01)
    config = Encoder(positions="relative", decoder={"layers": 4})
    assert training_flops(config, vocab, 64, length, masked) / (64 * length) == pytest.approx(by_hand, rel=0.01)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_parameters(form):
    config = Encoder(**SMALL | form)
    counted = sum(parameter.numel() for parameter in MaskedLM(config, V, latent=7).parameters())
    assert count_parameters(config, V, latent=7) == counted
    assert count_parameters(Encoder(), 25_000) == 119_815_336


@pytest.mark.parametrize("specials", [False, True])
@pytest.mark.parametrize("count", ["floor", "rounded", "bernoulli", "one"])
def test_mean_masks_are_as_many_as_are_hidden(count, specials):
    """To the next whole number, of 4,000 sequences of 19 tokens; of short sequences one at least."""
    masking = Masking(rate=0.3, count=count, specials=specials)
    hidden = hide(np.full(4000, 19), 19, masking, V, np.random.default_rng(1))
    assert abs(mean_masks(masking, 19) - len(hidden.all_rows) / 4000) < 0.5
    assert mean_masks(masking, 3) == 1
