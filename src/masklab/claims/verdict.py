"""Claims tested on scores: the mean of a per-seed effect, its 95 % t interval, and what follows.

Verdicts: `supported`, if the whole interval lies inside the claim's region; `contradicted`, if it lies wholly
outside; else `inconclusive`. Fewer than `FEWEST` seeds are always inconclusive. For a claim of a difference
this is the two-sided paired t test at 5 %; for a claim of equality, two one-sided tests (Schuirmann 1987) at
2.5 % each. A claim that something is not there (equal, no more, no less) can only be supported by models that
learned the task: where none of those compared beats the majority class on the domain it was trained on, at the
largest size, it is inconclusive. Seeds pair: seed s has the same training rows, head, batches and dropout for
every model of a set; across sets the pairing is arbitrary, which leaves the test valid. Intervals cover
fine-tuning and not pre-training, of which there is one run per model. No correction for the number of claims:
each stands alone.
"""

import math

import pandas as pd

from masklab.claims.spec import MAJORITY, Claim, Curve
from masklab.curves import TRAINED
from masklab.statistics import mean_interval

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
    "seeds": "int64",
    "learned": "bool",
    "verdict": "str",
}
FEWEST = 5  # seeds for a verdict
ABSENCE = ("equal", "no more", "no less")  # regions that hold where nothing was learned


def test_claims(claims: list[Claim], curves: dict[str, pd.DataFrame], margin: float, study: str) -> pd.DataFrame:
    """One row of `COLUMNS` per claim; `curves`: set -> frame of `masklab.curves.curves`.

    Only seeds for which every needed cell was measured count; an effect that cannot be computed (a single
    size has no `large` half) is NaN with 0 seeds.
    """
    rows = []
    for claim in claims:
        effects = seed_effects(claim, curves)
        mean, low, high = mean_interval(effects.to_numpy())
        knows = learned(claim, curves)
        found = verdict(low, high, len(effects), bounds(claim.region, margin))
        rows.append(
            {
                "study": study,
                "claim": claim.name,
                "section": claim.section,
                "figure": claim.figure,
                "text": claim.text,
                "comparison": claim.comparison,
                "region": claim.region,
                "margin": margin if claim.region in ABSENCE else 0.0,
                "effect": mean,
                "low": low,
                "high": high,
                "unit": "accuracy" if not any(curve.roughness for _, curve in claim.effect) else "roughness",
                "seeds": len(effects),
                "learned": knows,
                "verdict": found if knows or claim.region not in ABSENCE else "inconclusive",
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


test_claims.__test__ = False  # pytest collects by name


def bounds(region: str, margin: float) -> tuple[float, float]:
    """The open interval that a region stands for."""
    return {
        "above 0": (0.0, math.inf),
        "below 0": (-math.inf, 0.0),
        "equal": (-margin, margin),
        "no more": (-math.inf, margin),
        "no less": (-margin, math.inf),
    }[region]


def verdict(low: float, high: float, seeds: int, region: tuple[float, float]) -> str:
    """supported, contradicted or inconclusive, from an interval and an open region."""
    if seeds < FEWEST or math.isnan(low):
        return "inconclusive"
    if low > region[0] and high < region[1]:
        return "supported"
    if high < region[0] or low > region[1]:
        return "contradicted"
    return "inconclusive"


def learned(claim: Claim, curves: dict[str, pd.DataFrame]) -> bool:
    """Whether, in every set of the claim, one of its models beats the majority class on the domain it was trained on.

    That is: the 95 % interval of its accuracy less the majority, at the largest size, lies above 0.
    """
    return all(_learned(curves[name], {curve.label for _, curve in claim.effect}) for name in claim.sets)


def _learned(rows, labels):
    rows = rows[rows["label"].isin(labels) & (rows["domain"] == TRAINED)]
    rows = rows[rows["train_size"] == rows.groupby("label")["train_size"].transform("max")]
    gains = (rows["accuracy"] - rows["majority"]).groupby(rows["label"])
    return any(mean_interval(gain.to_numpy())[1] > 0 for _, gain in gains)


def seed_effects(claim: Claim, curves: dict[str, pd.DataFrame]) -> pd.Series:
    """Effect per seed, over the seeds that every curve of the claim has, at the sizes that all of a set's have."""
    parts = []
    for weight, curve in claim.effect:
        rows = curves[curve.set]
        if curve.label == MAJORITY:
            levels = rows[rows["domain"].isin(curve.domains)].groupby("domain")["majority"].first()
            parts.append(weight * pd.Series(levels.mean(), index=sorted(rows["seed"].unique())))
            continue
        labels = {other.label for _, other in claim.effect if other.set == curve.set} - {MAJORITY}
        measured = [set(rows.loc[rows["label"] == label, "train_size"]) for label in labels]
        parts.append(weight * _per_seed(rows, curve, chosen(sorted(set.intersection(*measured)), curve.sizes)))
    return pd.concat(parts, axis=1, join="inner").dropna().sum(axis=1)


def _per_seed(rows, curve: Curve, sizes):
    """Seed -> mean accuracy or roughness at `sizes`; seeds that lack a cell are left out."""
    rows = rows[(rows["label"] == curve.label) & rows["domain"].isin(curve.domains) & rows["train_size"].isin(sizes)]
    grid = rows.pivot_table(index="seed", columns=["domain", "train_size"], values="accuracy", aggfunc="mean").dropna()
    if not sizes or grid.shape[1] < len(curve.domains) * len(sizes) or (curve.roughness and len(sizes) < 3):
        return pd.Series(dtype="float64")
    if not curve.roughness:
        return grid.mean(axis=1)
    bends = [grid[domain].diff(axis=1).diff(axis=1).iloc[:, 2:].abs().mean(axis=1) for domain in curve.domains]
    return pd.concat(bends, axis=1).mean(axis=1)


def chosen(sizes: list[int], which: str) -> list[int]:
    """`small`: the smaller half of ascending sizes, the middle one with it; `large`: the rest; `all`."""
    half = -(-len(sizes) // 2)
    return {"all": sizes, "small": sizes[:half], "large": sizes[half:]}[which]
