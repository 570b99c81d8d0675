import numpy as np
import pytest
import torch

from masklab.config.schema import Encoder
from masklab.models.encoder import MaskedLM
from masklab.phrases.distances import (
    correlation_over_features,
    mask_predictions,
    template_distances,
    total_variation,
    without,
)
from masklab.tokenizers import CLS, MASK, SEP


def test_total_variation_of_distributions_made_by_hand():
    assert total_variation([0.5, 0.5, 0], [0.5, 0.5, 0]) == 0
    assert total_variation([1, 0, 0], [0, 0.4, 0.6]) == 1
    assert total_variation([0.7, 0.2, 0.1], [0.1, 0.2, 0.7]) == pytest.approx(0.6)
    # the largest difference of the probability of any set of outcomes
    p, q = np.array([0.1, 0.4, 0.25, 0.25]), np.array([0.3, 0.1, 0.35, 0.25])
    sets = [[bool(number >> bit & 1) for bit in range(4)] for number in range(16)]
    assert total_variation(p, q) == pytest.approx(max(p[chosen].sum() - q[chosen].sum() for chosen in sets))
    both = total_variation([[1, 0], [0.5, 0.5]], [[0, 1], [0.25, 0.75]])
    assert both.tolist() == [1, 0.25]


@pytest.fixture(scope="module")
def model():
    config = Encoder(positions="disentangled", layers=2, hidden=32, heads=2, max_positions=32, init_range=0.3)
    return MaskedLM(config, 40, generator=torch.Generator().manual_seed(2)).eval()


def row(*ids):
    return [CLS, *ids, MASK, SEP]


def test_templates_are_compared_at_their_masks(model):
    pairs = [(row(5), row(6, 7, 8)), (row(9), row(9)), (row(10, 11), [CLS, MASK, 12, SEP])]
    found = template_distances(model, pairs)
    assert found[1] == pytest.approx(0, abs=1e-6)
    for (left, right), distance in zip(pairs, found, strict=True):
        alone = [
            model(torch.tensor([ids]), torch.tensor([len(ids)])).logits[ids.index(MASK)].double().softmax(-1)
            for ids in (left, right)
        ]
        assert distance == pytest.approx(float((alone[0] - alone[1]).detach().abs().sum() / 2), abs=1e-6)


def test_verbalisers_are_distributions_of_their_own(model):
    (given,) = mask_predictions(model, [row(5)], among=(7, 9))
    (whole,) = mask_predictions(model, [row(5)])
    assert given == pytest.approx(whole[[7, 9]] / whole[[7, 9]].sum())


def test_a_correlation_has_its_interval_over_features():
    rng = np.random.default_rng(3)
    covered = 0
    for number in range(60):
        x = rng.normal(size=80)
        value, low, high = correlation_over_features(
            x, 0.5 * x + rng.normal(size=80) * 0.75**0.5, 1, "bootstrap", number
        )
        assert low < value < high
        covered += low < 0.5 < high
    assert covered >= 50
    assert correlation_over_features(x, np.ones(80), 1, "bootstrap") == (0, 0, 0)


def test_what_is_left_without_covariates_has_the_partial_correlation():
    """As the inverse of the covariance matrix of all has it, which is the closed form."""
    rng = np.random.default_rng(4)
    fixed = rng.normal(size=(200, 3)) + 2
    x = fixed @ [1.0, -2, 0.5] + rng.normal(size=200)
    y = fixed @ [1.5, 0.3, -1] + 0.4 * x + rng.normal(size=200)
    inverse = np.linalg.inv(np.cov(np.stack([x, y, *fixed.T])))
    partial = -inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1])
    left = [without(values, fixed) for values in (x, y)]
    assert np.corrcoef(*left)[0, 1] == pytest.approx(partial, abs=1e-12)
    assert abs(partial - np.corrcoef(x, y)[0, 1]) > 0.05
    assert left[0].mean() == pytest.approx(x.mean()) and np.abs(fixed.T @ (left[0] - x.mean())).max() < 1e-9
    twice = np.concatenate([fixed, fixed[:, :1], np.ones((200, 1))], 1)  # says nothing that was not said
    assert without(x, twice) == pytest.approx(left[0], abs=1e-9)
    assert without(x, np.ones((200, 1))) == pytest.approx(x)
