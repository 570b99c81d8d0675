"""How often do claims come out where nothing is there? `python tests/null_studies.py`: simulated from a real study.

The scores of `implicit-bias`'s evening, with nothing changed but one measure of all trained recipes (their accuracies,
or their traces): every recipe gets the mean of them all, and keeps what its replicates differ from its own mean by. So
no recipe differs from another, while what was measured is as uneven, and as alike within replicates, as it really was.
By chance alone means then lie on one side of the truth or the other. A simulated study draws what its replicates differ
by, in one of two ways:

    normal   sums of the real differences with normal weights: of the covariance that was measured
    signs    the real differences, each replicate's times 1 or -1: as far out as those that were measured

Of differences that are equally large in all replicates a t-test at 5 % errs in 2.1 % (ten replicates), 5.7 % (fourteen)
or 7.0 % (eight) of all draws of `signs`, since few sums are possible. Claims are tested as the real ones are.

A verdict is false if it is supported where the truth lies outside its region or at its bound, contradicted where the
truth lies inside or at its bound, or negligible where what is true counts.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import pandas as pd

import synthetic
from masklab.claims.verdict import test_claims
from masklab.config import layered, load
from masklab.scores.results import Results
from masklab.scores.view import View
from masklab.studies import claims_of

STUDY = "implicit-bias"
ROOT = Path(__file__).parents[1]
SCORES = ROOT / "docs/results/implicit-bias/scores.parquet"
MEASURES = {"accuracy": ("accuracy",), "trace": ("trace", "trace_embedded")}
ROUNDING = 1e-9
DRAWN = {  # weights [R, R] of the differences of R replicates
    "normal": lambda rng, count: rng.standard_normal((count, count)),
    "signs": lambda rng, count: np.diag(rng.choice([-1.0, 1.0], count)),
}
SAME = ["recipe", "step", "probe", "task", "split", "train_size", "at", "layer", "seed", "metric"]


class Evening:
    """The evening's claims and committed scores, of which a measure can be made null."""

    def __init__(self, scores: pd.DataFrame):
        config = load(layered([str(ROOT / "presets/evening.yaml")]))
        self.view = View.of(config, STUDY)
        self.claims = claims_of(STUDY, config.studies[STUDY], self.view)
        self.scores = scores.reset_index(drop=True)
        self.models = synthetic.manifests(self.view)
        self.replicates = int(scores["replicate"].max())

    def results(self, values) -> Results:
        """Of scores whose values are these."""
        return Results(self.view, self.scores.assign(value=values), models=self.models)

    def tested(self, values) -> pd.DataFrame:
        return test_claims(self.claims, self.results(values))

    def null(self, measure: str, drawn: str = "normal"):
        """A function from weights [R, R], as `DRAWN`, to the values of all scores, with no recipe above another.

        What replicate r differs by is the sum, with the weights of row r, of what all replicates differ by.
        """
        nulls = {null for own in self.view.nulls.values() for null in own.values() if null}
        chosen = self.scores[
            self.scores["metric"].isin(MEASURES[measure]) & ~self.scores["recipe"].isin(nulls)
        ].index.to_numpy()
        rows, values = self.scores.loc[chosen], self.scores["value"].to_numpy(float)
        measured = rows["value"] if measure == "accuracy" else np.log(rows["value"])
        same = rows.assign(value=measured).groupby(SAME, dropna=False)["value"]
        off = measured - same.transform("mean")
        common = (measured - off).groupby([rows["task"], rows["metric"]]).transform("mean").to_numpy()
        row, number = same.ngroup().to_numpy(), rows["replicate"].to_numpy() - 1
        table = np.zeros((row.max() + 1, self.replicates))  # 0 where a recipe has no such replicate
        # so that normal sums have the variance that was measured
        table[row, number] = off / np.sqrt(same.transform("size") - 1) if drawn == "normal" else off

        def made(weights):
            values_of = values.copy()
            values_of[chosen] = common + (table @ weights.T)[row, number]
            if measure == "trace":
                values_of[chosen] = np.exp(values_of[chosen])
            return values_of

        return made


def about(table: pd.DataFrame, measure: str) -> pd.Series:
    """Which claims are about a measure: of those on both, correlations are about accuracy."""
    accuracy = table["comparison"].str.contains("accuracy")
    return accuracy if measure == "accuracy" else table["comparison"].str.contains("trace") & ~accuracy


def false(verdict: str, truth: float, bounds: tuple[float, float], least: float) -> bool:
    """Whether a verdict is false. bounds: of the region of its claim; least: the least difference that counts."""
    depth = min(truth - bounds[0], bounds[1] - truth)  # below 0: the truth lies outside
    if verdict == "negligible":
        return abs(truth) >= least
    return depth <= ROUNDING if verdict == "supported" else verdict == "contradicted" and depth >= -ROUNDING


def simulated(evening: Evening, measure: str, times: int, seed: int = 1, drawn: str = "normal") -> pd.DataFrame:
    """A row for each tested claim of each simulated study. `beside`: its interval misses the truth."""
    made, count = evening.null(measure, drawn), evening.replicates
    true = _truth(evening.tested(made(np.zeros((count, count)))).set_index("claim"))
    results = evening.results(evening.scores["value"])
    stated = {claim.name: (claim.bounds(results), claim.least_in(results)) for claim in evening.claims}
    rng, found = np.random.default_rng(seed), []
    for number in range(times):
        table = evening.tested(made(DRAWN[drawn](rng, count)))
        for row in table[about(table, measure)].itertuples():
            truth, decided = true.get(row.claim, math.nan), row.verdict != "inconclusive"
            if row.verdict == "untested" or math.isnan(row.low) or math.isnan(truth):
                continue
            found.append({
                "study": number, "claim": row.claim, "decided": decided,
                "false": decided and false(row.verdict, truth, *stated[row.claim]),
                "beside": not row.low - ROUNDING <= truth <= row.high + ROUNDING,
            })  # fmt: skip
    return pd.DataFrame(found)


def _truth(table: pd.DataFrame) -> pd.Series:
    """Effects where no replicate differs from the mean; correlations, which constants do not have, are then 0.

    Shares of variance (R squared) stay unknown: what chance alone explains is not 0.
    """
    correlation = table["value"].isna() & table["unit"].str.endswith("correlation")
    return table["value"].mask(correlation, 0.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=100, help="simulated studies of each measure")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drawn", choices=DRAWN, default="normal", help="how what replicates differ by is drawn")
    parser.add_argument("--scores", default=SCORES, help="scores.parquet of another run of the preset")
    asked = parser.parse_args()
    evening = Evening(pd.read_parquet(asked.scores))
    for measure in MEASURES:
        found = simulated(evening, measure, asked.times, asked.seed, asked.drawn)
        by_claim = found.groupby("claim")[["false", "beside"]].mean()
        print(
            f"{measure}: {asked.times} studies, {found['claim'].nunique()} claims, {len(found)} tested: "
            f"{found['decided'].mean():.1%} decided, {found['false'].mean():.2%} falsely; "
            f"{found['beside'].mean():.2%} of intervals miss the truth; worst claims: "
            + ", ".join(f"{name} {row.false:.0%} ({row.beside:.0%})" for name, row in
                        by_claim.sort_values(["false", "beside"]).tail(4)[::-1].iterrows()),
            flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
