"""The claims of a study on the replicates of two runs together, which had different root seeds."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa

from masklab.claims.summary import counted
from masklab.claims.verdict import test_claims
from masklab.compare.scores import KEY
from masklab.config.units import units
from masklab.errors import MaskLabError
from masklab.files import read_json, read_table
from masklab.scores import items
from masklab.scores.load import DRAWS
from masklab.scores.results import Results
from masklab.scores.schema import gather
from masklab.scores.view import View
from masklab.studies import claims_of, headed

SAME = 0.5  # share of equal measurements from which two replicates are one


def together(config, study: str, roots) -> pd.DataFrame:
    """Claims, as `claims.parquet` has them, of the replicates of both runs: the second's follow the first's.

    config: a checked config that declares the study. roots: folders of two runs of it. Where a run has the files of its
    probes, test items are resampled as in its own claims; of a run of which `scores.parquet` alone was kept, intervals
    are over replicates.

    Raises:
        MaskLabError: no such study; a run has no scores of it; a replicate of one is a replicate of the other.
    """
    if study not in config.studies:
        raise MaskLabError(f"{study}: no study of this config; it has {', '.join(config.studies)}")
    view = View.of(config, study)
    runs = [_Run(Path(root), view, config) for root in roots]
    _check_different(runs)
    first = max(runs[0].replicates.values())
    runs[1].renumber(first)
    counts = {recipe: max(run.replicates.get(recipe, 0) for run in runs) for recipe in view.recipes}
    view = replace(view, replicates=counts)
    scores = pd.concat([run.scores for run in runs], ignore_index=True)
    draws = DRAWS if all(run.items is not None for run in runs) else 0
    results = Results(
        view,
        scores,
        pa.concat_tables([run.items for run in runs]) if draws else None,
        runs[0].models | runs[1].models,
        runs[0].tasks,
        draws,
    )
    declared = config.studies[study]
    return test_claims(headed(claims_of(study, declared, view), declared.headline), results)


def shares_data(config, study: str) -> str:
    """A line on what all replicates of a run share, so that those of two runs are two groups; "" if that is nothing."""
    view = View.of(config, study)
    shared = {facts["corpus"] for facts in view.recipes.values() if not facts.get("corpus.redrawn")}
    shared |= {name for name, facts in view.tasks.items() if not facts["redrawn"]}
    if not shared:
        return ""
    return (
        f"note: all replicates of a run share {', '.join(sorted(shared))} (no `redraw`), and the other run may have"
        " others: intervals over both together cover less than 95 %"
    )


def takes_on_trust(config, study: str, roots) -> str:
    """A line on runs without records of their models, so that what these learned is not asked; "" if all have them."""
    recipes = View.of(config, study).recipes
    bare = [str(root) for root in roots if not any(_manifests(Path(root), name) for name in recipes)]
    if not bare:
        return ""
    have = "has" if len(bare) == 1 else "have"
    return (
        f"note: {' and '.join(bare)} {have} scores alone and no records of models: that these learned their language is"
        " taken on trust"
    )


def _manifests(root, recipe) -> list[Path]:
    return sorted(root.glob(f"models/{recipe}/r*/manifest.json"))


class _Run:
    """What a run's folder has of a study. items: None where it has no files of its probes. replicates: of recipes."""

    def __init__(self, root: Path, view: View, config):
        self.root, self.models, self.tasks, self.items = root, {}, {}, None
        files = [
            path
            for probe, facts in view.probes.items()
            for recipe in facts["recipes"]
            for unit in units(config.probes[probe], config.models[recipe])  # others are left from an earlier config
            for path in sorted(root.glob(f"scores/{probe}/{recipe}/r*/{unit}.parquet"))
        ]
        if files:
            self.scores = gather(files)
            self.items = items.gather(path for path in map(items.items_path, files) if path.exists())
            self._read_records(view)
        elif (table := root / "scores.parquet").exists():
            scores = read_table(table).to_pandas()  # of a run, or of one study, as made/studies/ has it
            of_study = scores["study"] == view.study if "study" in scores else slice(None)
            self.scores = scores[of_study].drop(columns="study", errors="ignore")
        else:
            raise MaskLabError(f"{root}: has no scores")
        if self.scores.empty:
            raise MaskLabError(f"{root}: has no scores of the study {view.study}")
        self.replicates = {name: int(last) for name, last in self.scores.groupby("recipe")["replicate"].max().items()}

    def _read_records(self, view):
        for recipe in view.recipes:
            for file in _manifests(self.root, recipe):
                self.models[recipe, int(file.parent.name[1:])] = read_json(file).get("facts", {})
        found = {task: self.root / "tasks" / task / "task.json" for task in view.tasks}
        self.tasks = {task: read_json(file) for task, file in found.items() if file.exists()}

    def renumber(self, by: int):
        """Let replicate k be k + by."""
        self.scores = self.scores.assign(replicate=self.scores["replicate"] + by)
        self.models = {(recipe, k + by): facts for (recipe, k), facts in self.models.items()}
        self.replicates = {recipe: count + by for recipe, count in self.replicates.items()}
        if self.items is not None:
            column = self.items.column_names.index("replicate")
            numbers = [k + by for k in self.items["replicate"].to_pylist()]
            field = self.items.schema.field("replicate")
            self.items = self.items.set_column(column, field, pa.array(numbers, field.type))


def _check_different(runs):
    """MaskLabError if most of what both runs measured is equal: then they are draws of one seed."""
    one, two = (run.scores[run.scores["metric"] != "seconds"] for run in runs)
    both = one.merge(two, on=[*KEY, "replicate", "seed"], suffixes=("_one", "_two"))
    if len(both) and (both["value_one"] == both["value_two"]).mean() >= SAME:
        raise MaskLabError(
            f"{runs[0].root} and {runs[1].root} have the same replicates, which must not be counted twice: run one of"
            " them again with another `seed`"
        )


def told(frame: pd.DataFrame, alone: pd.DataFrame | None) -> str:
    """In plain text: verdicts counted, and the claims whose verdict is not the same on one run, the other, and both.

    alone: claims of each run as `Comparison.claims` has them; None where a run kept none.
    """
    text = f"claims of {frame['study'].iloc[0]} on the replicates of both together: {counted(frame['verdict'])}"
    if alone is None:
        return text
    joined = frame.merge(alone, on=["study", "claim"], suffixes=("", "_alone"))
    for row in joined.itertuples():
        verdicts = (row.verdict_before, row.verdict_after, row.verdict)
        if len(set(verdicts)) > 1:
            value = "none" if pd.isna(row.value) else f"{row.value:+.4g} [{row.low:+.4g}, {row.high:+.4g}]"
            text += f"\n  {row.claim}: {verdicts[0]}, {verdicts[1]}; together {verdicts[2]}, {value}"
    return text
