"""Effects on fine-tuning curves as numbers: means over fine-tuning seeds.

Seeds pair: seed s has the same training rows, head, batches and dropout for every model of a set; across sets the
pairing is arbitrary, which leaves the test valid. Intervals cover fine-tuning and not pre-training, of which there
is one run per model. A claim that something is not there (equal, no more, no less) can only be decided by models
that learned the task: that one of those compared beats the majority class on the domain it was trained on, at the
largest size, is its premise.
"""

import pandas as pd

from masklab.claims.curve import MAJORITY, Curve, Curves
from masklab.claims.estimate import Estimate, of_seeds
from masklab.claims.spec import Claim
from masklab.config.schema import Study
from masklab.curves import TRAINED, curves
from masklab.intervals import mean_interval

ABSENCE = ("equal", "no more", "no less")  # regions that hold where nothing was learned


def estimates(claims: list[Claim], scores: pd.DataFrame, study: Study, metrics=None) -> list[Estimate]:
    """One estimate per claim; every set's curves are read once."""
    sets = {name: curves(scores, study, name) for claim in claims for name in claim.effect.sets}
    return [estimate(claim, sets) for claim in claims]


def estimate(claim: Claim, sets: dict[str, pd.DataFrame]) -> Estimate:
    """`sets`: set -> frame of `masklab.curves.curves`.

    Only seeds for which every needed cell was measured count; an effect that cannot be computed (a single
    size has no `large` half) is NaN with 0 seeds.
    """
    knows = claim.region not in ABSENCE or learned(claim.effect, sets)
    return of_seeds(seed_effects(claim.effect, sets).to_numpy(), knows)


def learned(effect: Curves, sets: dict[str, pd.DataFrame]) -> bool:
    """Whether, in every set of the effect, one of its models beats the majority class on the domain it was trained on.

    That is: the 95 % interval of its accuracy less the majority, at the largest size, lies above 0.
    """
    return all(_learned(sets[name], {curve.label for _, curve in effect.terms}) for name in effect.sets)


def _learned(rows, labels):
    rows = rows[rows["label"].isin(labels) & (rows["domain"] == TRAINED)]
    rows = rows[rows["train_size"] == rows.groupby("label")["train_size"].transform("max")]
    gains = (rows["accuracy"] - rows["majority"]).groupby(rows["label"])
    return any(mean_interval(gain.to_numpy())[1] > 0 for _, gain in gains)


def seed_effects(effect: Curves, sets: dict[str, pd.DataFrame]) -> pd.Series:
    """Effect per seed, over the seeds that every curve of it has, at the sizes that all of a set's have."""
    parts = []
    for weight, curve in effect.terms:
        rows = sets[curve.set]
        if curve.label == MAJORITY:
            levels = rows[rows["domain"].isin(curve.domains)].groupby("domain")["majority"].first()
            parts.append(weight * pd.Series(levels.mean(), index=sorted(rows["seed"].unique())))
            continue
        labels = {other.label for _, other in effect.terms if other.set == curve.set} - {MAJORITY}
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
