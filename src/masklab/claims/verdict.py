"""Claims tested on scores: an effect, its 95 % interval, and what follows.

Verdicts: `supported`, if the whole interval lies inside the claim's region; `contradicted`, if it lies wholly
outside; else `inconclusive`. For a claim of a difference this is the two-sided test at 5 %; for a claim of
equality, two one-sided tests (Schuirmann 1987) at 2.5 % each. Effects are means over seeds with a t interval
(fewer seeds than the claim's `fewest` are always inconclusive; effective ranks, being whole numbers, vary by at
least their rounding) or means over test items with a normal one. A claim whose premise does not hold is
inconclusive: one that something is absent where no model learned the task, one about models of equal loss where the
losses differ. No correction for the number of claims: each stands alone.
"""

import importlib

import pandas as pd

from masklab.claims.estimate import bounds, verdict
from masklab.claims.spec import Claim
from masklab.config.schema import Study

COLUMNS = {
    "study": "str",
    "claim": "str",
    "section": "str",
    "figure": "str",
    "text": "str",
    "comparison": "str",
    "region": "str",
    "margin": "float64",
    "effect": "float64",
    "low": "float64",
    "high": "float64",
    "unit": "str",
    "interval": "str",
    "seeds": "int64",
    "premise": "bool",
    "verdict": "str",
}
MARGINAL = ("equal", "no more", "no less")  # regions that the margin is part of


def test_claims(claims: list[Claim], scores: pd.DataFrame, study: Study, name: str, metrics=None) -> pd.DataFrame:
    """One row of `COLUMNS` per claim of the study called `name`, in order.

    metrics: task -> the metric it reports. interval: what it is over, "seeds" or "items" (then seeds is 0).
    """
    modules = list(dict.fromkeys(claim.effect.estimator for claim in claims))
    found = {}
    for module in modules:
        own = [claim for claim in claims if claim.effect.estimator == module]
        made = importlib.import_module(module).estimates(own, scores, study, metrics)
        found |= dict(zip((id(claim) for claim in own), made, strict=True))
    rows = []
    for claim in claims:
        estimate = found[id(claim)]
        rows.append(
            {
                "study": name,
                "claim": claim.name,
                "section": claim.section,
                "figure": claim.figure,
                "text": claim.text,
                "comparison": claim.effect.comparison,
                "region": claim.region,
                "margin": study.margin if claim.region in MARGINAL else 0.0,
                "effect": estimate.effect,
                "low": estimate.low,
                "high": estimate.high,
                "unit": claim.effect.unit,
                "interval": "items" if estimate.seeds is None else "seeds",
                "seeds": estimate.seeds or 0,
                "premise": estimate.premise,
                "verdict": verdict(estimate, bounds(claim.region, study.margin), claim.fewest),
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


test_claims.__test__ = False  # pytest collects by name
