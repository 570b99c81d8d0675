"""Claims tested on results: an effect with its interval, the premises, and what follows.

Verdicts: `supported`, if the whole 95 % interval lies inside the claim's region; `contradicted`, if it lies wholly
outside; `negligible`, if the claim is about the sign of a difference of scores, of a slope or of a correlation, and the
interval holds 0 but nothing as large as the study's margin (where the study's `below_margin` says so, whether it holds
0 or not); `inconclusive`, if none of these, or of fewer than three replicates; `untested`, if a premise fails or
something was not measured. For a claim of a difference that is the
two-sided test at 5 %; for one of equality, and for `negligible`, two one-sided tests at 2.5 % each (Schuirmann 1987).
Beside the plain verdict stands the one that survives Holm's correction for the number of claims that the study tests.
"""

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from masklab.claims.claim import Claim
from masklab.claims.of_seeds import SeedShares
from masklab.claims.power import MOST, Given, needed
from masklab.claims.premises import failing
from masklab.claims.values import at_equal_loss, effect_estimate, values
from masklab.scores.estimate import LEVEL, Estimate, two_sided
from masklab.scores.reading import FEWEST, leaves
from masklab.scores.results import Results

COLUMNS = {
    "study": "str",
    "claim": "str",
    "headline": "bool",
    "section": "str",
    "figure": "str",
    "text": "str",
    "comparison": "str",
    "region": "str",
    "margin": "float64",
    "value": "float64",
    "low": "float64",
    "high": "float64",
    "unit": "str",
    "replicates": "int64",
    "items": "bool",  # whether the interval covers the choice of test items too
    "p": "float64",  # least level at which the claim is decided; NaN if it is not tested
    "verdict": "str",
    "why": "str",
    "corrected": "str",  # the verdict after Holm's correction
    "needed": "int64",  # replicates that would decide an inconclusive claim (80 % power); MOST + 1: more; 0: unsaid
    "of_seeds": "float64",  # share of the spread that seeds of its probes make, of an inconclusive claim; NaN: unsaid
    "same_effect": "str",  # the first claim of the study with this very effect
}
VERDICTS = ("supported", "contradicted", "negligible", "inconclusive", "untested")
DECIDED = VERDICTS[:3]


def test_claims(claims: list[Claim], results: Results) -> pd.DataFrame:
    """One row of `COLUMNS` per claim, in order."""
    rows, levels, effects, seeds = [], [], {}, SeedShares(results)
    for claim in claims:
        row = tested(claim, results, seeds)
        levels.append(row.pop("levels"))
        rows.append(row | {"same_effect": effects.setdefault(claim.effect, claim.name)})
    frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)
    return frame.assign(corrected=_corrected(frame, levels))


test_claims.__test__ = False  # pytest collects by name


def tested(claim: Claim, results: Results, seeds: SeedShares | None = None) -> dict:
    """The row of one claim, without what depends on the others; `levels`: of its region, and of being negligible.

    seeds: of these results, if several claims are tested on them.
    """
    given = tuple(at_equal_loss(effect, results) for effect in claim.given)
    claim = replace(claim, effect=at_equal_loss(claim.effect, results), given=given)
    view, bounds, least = results.view, claim.bounds(results), claim.least_in(results)
    effect = effect_estimate(claim.effect, results)
    why, verdict = _judged(claim, results, effect)
    tested = verdict != "untested" and effect.replicates >= FEWEST
    undecided = verdict == "inconclusive" and effect.replicates >= 2
    levels = _levels(effect, bounds, least) if tested else (math.nan, math.nan)
    negligible = verdict == "negligible"
    return {
        "study": view.study,
        "claim": claim.name,
        "headline": claim.headline,
        "section": claim.section,
        "figure": claim.figure,
        "text": claim.text,
        "comparison": claim.effect.words(view),
        "region": claim.region,
        "margin": claim.margin_in(results),
        "value": effect.value,
        "low": effect.low,
        "high": effect.high,
        "unit": claim.effect.unit(view),
        "replicates": effect.replicates,
        "items": effect.items,
        "p": levels[1] if negligible else min(levels),
        "levels": levels,
        "verdict": verdict,
        "why": why,
        "corrected": verdict,
        "needed": _needed(effect, bounds, least) if undecided else 0,
        "of_seeds": (seeds or SeedShares(results)).share(claim.effect) if undecided else math.nan,
    }


def _judged(claim, results, effect) -> tuple[str, str]:
    lacking = [reading for reading in leaves(claim.effect) if not results.values(reading).replicates]
    if lacking:
        return f"not measured: {lacking[0].words(results.view)}", "untested"
    if not values(claim.effect, results).replicates:
        return "no replicate has all of it", "untested"
    if why := failing(claim, results):
        return why, "untested"
    if not effect.replicates:
        return "not a number in every replicate", "untested"
    if effect.replicates < FEWEST:
        if len(values(claim.effect, results).replicates) > 1 and values(claim.effect, results).is_one:
            return "nothing is drawn in its recipes: all replicates are one", "inconclusive"
        return f"{_count(effect.replicates)}; nothing is decided by fewer than {FEWEST}", "inconclusive"
    small = results.view.below_margin
    return decided(effect, claim.bounds(results), claim.least_in(results), small)


def decided(effect: Estimate, bounds: tuple[float, float], least: float = 0.0, small: str = "sign") -> tuple[str, str]:
    """(why, verdict) of an estimate with an interval, for an open region; least: the difference that counts, 0: any.

    small: what a difference is called that is shown to be less than that, and not 0: as `Study.below_margin`.
    """
    low, high = bounds
    nothing = -least < effect.low and effect.high < least
    if nothing and small == "negligible":
        return f"shown to be less than {least:g}", "negligible"
    if low < effect.low and effect.high < high:
        return "", "supported"
    exactly = effect.low == effect.high and effect.low in (low, high)  # of two curves, say, that both never arrive
    if (effect.high <= low or effect.low >= high) and not exactly:
        return "", "contradicted"
    if nothing:
        return f"shown to be less than {least:g}", "negligible"
    if exactly:
        return f"exactly {effect.low:g} in every replicate", "inconclusive"
    edge = low if effect.low <= low <= effect.high else high
    return f"the interval holds {edge:g}", "inconclusive"


def _levels(effect, bounds, least: float) -> tuple[float, float]:
    """The least levels at which the interval lies inside the region or wholly outside; and nearer to 0 than `least`.

    No number makes both null hypotheses true (that it is 0, that it is `least` or more), so that the smaller of the two
    is a level, too.
    """
    above, below = zip(*(two_sided(effect, bound) for bound in (-least, least)), strict=True)
    return _least_level(effect, bounds), max(above[0], below[1]) if least else 1.0


def _least_level(effect, bounds) -> float:
    """The least level at which the interval lies inside the region or wholly outside."""
    low, high = bounds
    above_low, below_low = two_sided(effect, low) if math.isfinite(low) else (0.0, 1.0)
    above_high, below_high = two_sided(effect, high) if math.isfinite(high) else (1.0, 0.0)
    return min(max(above_low, below_high), below_low, above_high)


def _needed(effect, bounds, least: float = 0.0) -> int:
    parts = [_given(part, bounds, least) for part in effect.of or (effect,)]
    return needed(parts, FEWEST) or MOST + 1


def _given(effect: Estimate, bounds, least) -> Given:
    over_items = max(effect.error**2 - effect.spread**2 / effect.replicates, 0.0) ** 0.5
    low, high = (float(effect.scale.to(bound)) if math.isfinite(bound) else bound for bound in bounds)
    least = float(effect.scale.to(least)) if least else 0.0  # 0 is not 0 on every scale
    return Given(effect.centre(), effect.spread, (low, high), over_items, least, effect.parts)


def _corrected(frame, levels) -> list[str]:
    """Verdicts at the levels that Holm's correction over all claims that were tested leaves to each.

    levels: of each row `_levels`. What is not shown to lie on one side of 0 at its level may be shown to be negligible.

    A claim that is decided no longer counts among those that the next level is shared by, except where it has two null
    hypotheses (the difference is 0; it is one that counts) and one of them may still be true: claims shown to be
    negligible would else leave the field to those that lie farther from 0 by chance.
    """
    verdicts, p = list(frame["verdict"]), frame["p"].to_numpy()
    tested = np.flatnonzero(~np.isnan(p))
    left, fails = len(tested), False
    for row in tested[np.argsort(p[tested], kind="stable")]:
        level, (region, near) = (1 - LEVEL) / left, levels[row]
        fails = fails or p[row] > level
        if verdicts[row] in DECIDED and fails:
            verdicts[row] = "inconclusive"
        elif verdicts[row] in DECIDED and region > level:
            verdicts[row] = "negligible"
        left -= near >= 1 or max(region, near) <= level
    return verdicts


def _count(replicates):
    return "one replicate" if replicates == 1 else f"{replicates} replicates"
