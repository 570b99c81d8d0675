"""How many replicates decide: against statsmodels and against simulation."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from masklab.claims.power import MOST, Given, needed, power, power_of_least
from masklab.claims.verdict import decided
from masklab.scores.estimate import estimate, least

ABOVE, EQUAL = (0.0, math.inf), (-0.02, 0.02)


@pytest.mark.parametrize("count", [3, 5, 10, 40])
@pytest.mark.parametrize("size", [0.0, 0.5, 1.0, 2.0])
def test_a_difference_is_the_t_test(count, size):
    wanted = TTestPower().power(size, count, 0.05)
    assert power(count, size, 1.0, ABOVE) == pytest.approx(wanted, abs=2e-3)


@pytest.mark.parametrize("bounds", [ABOVE, EQUAL, (-math.inf, 0.02), (-0.02, math.inf)])
@pytest.mark.parametrize("effect", [0.0, 0.01, 0.03, 0.06])
@pytest.mark.parametrize("count", [3, 5, 10])
def test_power_is_the_share_of_experiments_that_decide(bounds, effect, count):
    rng, spread = np.random.default_rng(count), 0.02
    verdicts = [decided(estimate(effect + spread * rng.normal(size=count)), bounds)[1] for _ in range(1500)]
    share = np.mean([verdict != "inconclusive" for verdict in verdicts])
    assert share == pytest.approx(power(count, effect, spread, bounds), abs=0.05)


@pytest.mark.parametrize("least", [0.0, 0.06])
@pytest.mark.parametrize("effect", [-0.03, -0.01, 0.02])
def test_power_counts_that_the_least_was_looked_for(effect, least):
    """Of three numbers of which one is the least: its upper end is Bonferroni's."""
    rng, spread, count = np.random.default_rng(7), 0.02, 5
    found = (estimate(effect + spread * rng.normal(size=count), parts=3) for _ in range(3000))
    share = np.mean([decided(made, ABOVE, least)[1] != "inconclusive" for made in found])
    wanted = power(count, effect, spread, ABOVE, least=least, parts=3)
    assert share == pytest.approx(wanted, abs=0.03)
    alone = power(count, effect, spread, ABOVE, least=least)
    assert effect > 0 or least or alone > wanted + 0.06


@pytest.mark.parametrize("least", [0.01, 0.03, 0.06])
@pytest.mark.parametrize("effect", [0.0, 0.02])
@pytest.mark.parametrize("count", [3, 5, 10])
def test_power_counts_what_is_shown_to_be_negligible(least, effect, count):
    rng, spread = np.random.default_rng(count), 0.02
    verdicts = [decided(estimate(effect + spread * rng.normal(size=count)), ABOVE, least)[1] for _ in range(1500)]
    share = np.mean([verdict != "inconclusive" for verdict in verdicts])
    assert share == pytest.approx(power(count, effect, spread, ABOVE, least=least), abs=0.05)
    assert (
        needed([Given(0.0, spread, ABOVE, least=least)]) < needed([Given(0.0, spread, ABOVE, least=least / 2)]) <= MOST
    )
    assert power(3, 0.0, 0.0, ABOVE, least=least) == 1 and power(3, least, 0.0, (-math.inf, 0.0), least=least) == 1


@pytest.mark.parametrize(
    "effect, spread, bounds",
    [(0.03, 0.02, ABOVE), (0.02, 0.03, ABOVE), (0.05, 0.03, ABOVE), (0.0, 0.02, EQUAL), (0.05, 0.03, EQUAL)],
)
def test_the_replicates_promised_decide_in_four_of_five_experiments(effect, spread, bounds):
    rng, count = np.random.default_rng(3), needed([Given(effect, spread, bounds)])
    assert power(count, effect, spread, bounds) >= 0.8
    assert count == 3 or power(count - 1, effect, spread, bounds) < 0.8
    kept = [decided(estimate(effect + spread * rng.normal(size=count)), bounds)[1] for _ in range(2000)]
    share = np.mean([verdict != "inconclusive" for verdict in kept])
    assert share > 0.75 and share == pytest.approx(power(count, effect, spread, bounds), abs=0.05)


def test_what_cannot_be_decided_is_given_no_number():
    assert needed([Given(0.0, 0.02, ABOVE)]) is None  # no effect at all
    assert needed([Given(0.01, 0.02, ABOVE, items=0.02)]) is None  # the test set is too small, whatever the replicates
    assert needed([Given(0.02, 1e-9, ABOVE)]) == 3 and MOST >= 1000


def test_a_number_without_spread_is_still_one_of_few_items():
    assert needed([Given(0.01, 0.0, ABOVE, items=0.02)]) is None and needed([Given(0.01, 0.0, ABOVE)]) == 3
    assert needed([Given(0.01, 0.0, ABOVE, items=0.001)]) == 3


LEASTS = [[0.03, 0.03, 0.03], [0.02, 0.06, 0.1], [-0.03, 0.0, 0.05], [0.0, 0.05, 0.05], [0.01, 0.08, 0.08]]


@pytest.mark.parametrize("effects", LEASTS)
@pytest.mark.parametrize("bounds, margin", [(ABOVE, 0.0), (ABOVE, 0.04), ((-0.02, math.inf), 0.0), (EQUAL, 0.0)])
def test_power_of_a_least_promises_no_more_than_experiments_keep(effects, bounds, margin):
    """Whether its parts have nothing to do with each other or share half of their spread."""
    rng, count, spreads = np.random.default_rng(5), 8, np.array([0.02, 0.02, 0.05])
    parts = [Given(effect, spread, bounds, 0.0, margin, 3) for effect, spread in zip(effects, spreads, strict=True)]
    promised = power_of_least(count, parts)
    for shared in (0.0, 0.5):
        verdicts = []
        for _ in range(800):
            noise = rng.normal(size=(3, count)) * (1 - shared) ** 0.5 + rng.normal(size=count) * shared**0.5
            values = np.array(effects)[:, None] + spreads[:, None] * noise
            verdicts.append(decided(least([estimate(own, parts=3) for own in values]), bounds, margin)[1])
        assert np.mean([verdict != "inconclusive" for verdict in verdicts]) > promised - 0.04


def test_a_least_needs_as_much_as_the_part_that_spreads():
    steady, spread = Given(0.01, 0.004, ABOVE, parts=2), Given(0.02, 0.05, ABOVE, parts=2)
    alone = [needed([part]) for part in (steady, spread)]
    assert alone[0] < 10 < 40 < alone[1] <= needed([steady, spread]) <= alone[1] + 2
    below = Given(-0.05, 0.02, ABOVE, parts=2)  # one that is below 0 is enough
    assert needed([below, spread]) <= needed([below]) + 1 < 10


def test_items_count_in_the_power():
    rng, count, items = np.random.default_rng(2), 8, 0.01
    found = []
    for _ in range(1500):
        values = 0.03 + 0.02 * rng.normal(size=count) + items * rng.normal()
        columns = np.column_stack([values, values[:, None] + items * rng.normal(size=(1, 400))])
        found.append(decided(estimate(columns), ABOVE)[1] != "inconclusive")
    assert np.mean(found) == pytest.approx(power(count, 0.03, 0.02, ABOVE, items), abs=0.05)


@pytest.mark.parametrize("count", [3, 5, 10])
@pytest.mark.parametrize("bounds", [ABOVE, (-math.inf, 0.0)])
def test_no_effect_is_decided_at_the_stated_level(count, bounds):
    rng = np.random.default_rng(count)
    false = [decided(estimate(rng.normal(size=count)), bounds)[1] != "inconclusive" for _ in range(4000)]
    assert np.mean(false) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4000)
    assert stats.binomtest(sum(false), 4000, 0.05).pvalue > 0.001


@pytest.mark.parametrize("count", [3, 5, 10])
def test_an_effect_at_the_margin_is_called_equal_in_a_fortieth(count):
    rng = np.random.default_rng(count)
    false = [decided(estimate(0.02 + 0.01 * rng.normal(size=count)), EQUAL)[1] == "supported" for _ in range(4000)]
    assert np.mean(false) <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 4000)


@pytest.mark.parametrize(("count", "items"), [(3, 0.3), (3, 1.0), (6, 0.2)])
def test_a_power_that_is_given_by_many_draws(count, items):
    """Interval by interval as `estimate` makes it, of an estimated spread and a known error over items."""
    rng, dof, effect = np.random.default_rng(count), count - 1, 2.0
    s2 = rng.chisquare(dof, 300_000) / dof / count
    mean = effect + math.sqrt(1 / count + items**2) * rng.normal(size=len(s2))
    error = np.sqrt(s2 + items**2)
    half = np.maximum(stats.t.ppf(0.975, error**4 / (s2**2 / dof)) * error, stats.t.ppf(0.975, dof) * np.sqrt(s2))
    assert power(count, effect, 1.0, ABOVE, items) == pytest.approx(np.mean(abs(mean) > half), abs=3e-3)


def integrated(count, effect, spread, bounds, items):
    """The same probability by adaptive quadrature over the estimated spread, with SciPy's distributions."""
    from scipy.integrate import quad

    dof, true = count - 1, math.sqrt(spread**2 / count + items**2)

    def decides(q):
        s2 = spread**2 * stats.chi2.ppf(q, dof) / dof / count
        error = math.sqrt(s2 + items**2)
        half = max(stats.t.ppf(0.975, error**4 / (s2**2 / dof)) * error, stats.t.ppf(0.975, dof) * math.sqrt(s2))
        low, high = bounds
        law = stats.norm(effect, true)
        inside = max(law.cdf(high - half) - law.cdf(low + half), 0.0)
        return inside + law.cdf(low - half) + law.sf(high + half)

    return quad(decides, 1e-9, 1 - 1e-9, epsabs=1e-8, limit=400)[0]


@pytest.mark.parametrize("bounds", [ABOVE, (-math.inf, 0.4), (-0.5, 0.7)])
@pytest.mark.parametrize("case", [(2, 0.3, 0.5, 0.0), (3, 0.9, 0.2, 0.1), (7, 0.1, 0.3, 0.05), (30, 0.4, 1.0, 0.02)])
def test_a_power_that_is_given_by_quadrature(case, bounds):
    count, effect, spread, items = case
    wanted = integrated(count, effect, spread, bounds, items)
    assert power(count, effect, spread, bounds, items) == pytest.approx(wanted, abs=3e-4)


def test_the_power_given_no_spread():
    assert power(1, 5.0, 0.1, ABOVE) == 0 == power(0, 5.0, 0.1, ABOVE)
    assert [power(3, effect, 0.0, EQUAL) for effect in (-0.02, 0.0, 0.02, 0.03, -0.5)] == [0, 1, 0, 1, 1]


@pytest.mark.parametrize("fewest", [2, 3, 5])
@pytest.mark.parametrize("size", [0.2, 0.5, 0.8, 1.5, 6.0])
def test_the_fewest_replicates_given_one_by_one(size, fewest):
    found = needed([Given(size, 1.0, ABOVE)], fewest)
    assert power(found, size, 1.0, ABOVE) >= 0.8
    assert found == fewest or (found > fewest and power(found - 1, size, 1.0, ABOVE) < 0.8)
