"""The claims of a study on the replicates of several runs together, which had different root seeds."""

import re
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pandas as pd
import pyarrow as pa

from masklab.claims.summary import counted
from masklab.claims.verdict import test_claims
from masklab.compare.printed import named, sharing, valued
from masklab.compare.scores import KEY, NUMBERS, WORDS, check_columns
from masklab.config.measured import replicates_of, study_pairs
from masklab.config.references import named_law
from masklab.config.replicates import NAME, has_redrawn_law, is_redrawn
from masklab.config.units import units
from masklab.errors import MaskLabError
from masklab.files import read_json, read_table
from masklab.scores import items
from masklab.scores.facts import of_replicates
from masklab.scores.load import DRAWS
from masklab.scores.results import Results
from masklab.scores.schema import gather
from masklab.scores.view import View
from masklab.studies import claims_of, headed

SAME = 0.5  # share of equal measurements from which two replicates are one
# Metrics that the machine, the data or the settings of a probe decide, whatever was drawn.
GIVEN = r"seconds|tokens|flops|parameters|majority|majority_f1|rank_counted|floor|floor_se|best_step|capped|chosen_\w+"


def together(config, study: str, roots) -> pd.DataFrame:
    """Claims, as `claims.parquet` has them, of the replicates of all runs: the second's follow the first's.

    config: a checked config that declares the study. roots: folders of runs of it. Where every run has the files of its
    probes, test items are resampled as in its own claims; of a run of which `scores.parquet` alone was kept, intervals
    are over replicates.

    Raises:
        MaskLabError: no such study, or one without claims; a run has no scores of it; a replicate of one is a
            replicate of another.
    """
    if study not in config.studies:
        raise MaskLabError(f"{study}: no study of this config; it has {', '.join(config.studies)}")
    if not config.studies[study].claims:
        raise MaskLabError(f"{study}: the study tests no claims; it does with `claims: all`")
    view = View.of(config, study)
    runs = [_Run(Path(root), view, config) for root in roots]
    _check_different(runs, view)
    for before, run in pairwise(runs):
        run.renumber(max(before.replicates.values()))
    counts = {recipe: max(run.replicates.get(recipe, 0) for run in runs) for recipe in view.recipes}
    view = replace(view, replicates=counts)
    scores = pd.concat([run.scores for run in runs], ignore_index=True)
    draws = DRAWS if all(run.items is not None for run in runs) else 0
    results = Results(
        view,
        scores,
        pa.concat_tables([run.items for run in runs]) if draws else None,
        {key: facts for run in runs for key, facts in run.models.items()},
        draws,
    )
    declared = config.studies[study]
    return test_claims(headed(claims_of(study, declared, view), declared.headline), results)


def shares_data(config, study: str) -> str:
    """A line on what all replicates of a run share, so that those of each are a group; "" if that is nothing."""
    view = View.of(config, study)
    read = [("corpora", facts["corpus"]) for facts in view.recipes.values()] + [("tasks", name) for name in view.tasks]
    if not (shared := {what for section, name in read if (what := _shared(config, section, name))}):
        return ""
    return f"note: {sharing(sorted(shared))}: intervals over all of them cover less than 95 %"


def _shared(config, section: str, name: str) -> str | None:
    """What of a corpus or a task all replicates share: it, as the config calls it, or its law alone; None: nothing."""
    if not is_redrawn(config, section, name):
        return name
    entry = getattr(config, section)[name]
    return f"the law of {name}" if named_law(entry) and not has_redrawn_law(config, entry) else None


def leaves_out(config, study: str, roots) -> str:
    """A line on replicates that lie in the folders of runs and that the config does not ask for; "" if none does."""
    pairs, left = study_pairs(config, study), []
    asked = set(replicates_of(config, study, pairs))
    for root in map(Path, roots):
        found = [
            (probe, recipe, int(folder.name[1:]))
            for probe, recipe in pairs
            for folder in root.glob(f"scores/{probe}/{recipe}/r*")
            if re.fullmatch(NAME, folder.name)
        ]
        if others := sorted(set(found) - asked):
            left.append(f"{root}: {named([f'{probe}/{recipe}/r{k}' for probe, recipe, k in others])}")
    return f"note: left out are replicates that the config does not ask for: {'; '.join(left)}" if left else ""


def takes_on_trust(config, study: str, roots) -> str:
    """A line on runs without records of their models, so that what these learned is not asked; "" if all have them."""
    view = View.of(config, study)
    bare = [str(root) for root in map(Path, roots) if not _manifests(root, view) and not _kept_facts(root, view)]
    if not bare:
        return ""
    runs = bare[0] if len(bare) == 1 else f"{', '.join(bare[:-1])} and {bare[-1]}"
    have = "has" if len(bare) == 1 else "have"
    return (
        f"note: {runs} {have} scores alone and no records of models: that these learned their language is"
        " taken on trust"
    )


def _manifests(root: Path, view: View) -> dict[tuple[str, int], Path]:
    """(recipe, replicate) -> manifest, of the replicates that a study asks for."""
    files = {(recipe, k): root / f"models/{recipe}/r{k}/manifest.json" for recipe, k in view.instances()}
    return {key: file for key, file in files.items() if file.exists()}


def _kept_facts(root: Path, view: View) -> dict[tuple[str, int], dict]:
    """(recipe, replicate) -> facts of its models, of a run of which tables alone were kept."""
    file = root / "facts.parquet"
    if not file.exists():
        return {}
    table = read_table(file).to_pandas()
    check_columns(table, ("noun", "name", "key", "value"), ("replicate", "number"), str(file))
    return {key: facts for key, facts in of_replicates(table).items() if key[0] in view.recipes}


class _Run:
    """What a run's folder has of a study. items: None where it has no files of its probes. replicates: of recipes.

    seeds: of the replicates whose models have manifests.
    """

    def __init__(self, root: Path, view: View, config):
        self.root, self.models, self.seeds, self.items = root, {}, set(), None
        files = [  # what else lies there is left from an earlier config
            file
            for probe, recipe, k in replicates_of(config, view.study, study_pairs(config, view.study))
            for unit in units(config.probes[probe], config.models[recipe])
            if (file := root / f"scores/{probe}/{recipe}/r{k}/{unit}.parquet").exists()
        ]
        if files:
            self.scores = gather(files)
            self.items = items.gather(path for path in map(items.items_path, files) if path.exists())
            self._read_records(view)
        elif (table := root / "scores.parquet").exists():
            scores = read_table(table).to_pandas()  # of a run, or of one study, as made/studies/ has it
            of_study = scores["study"] == view.study if "study" in scores else slice(None)
            self.scores = scores[of_study].drop(columns="study", errors="ignore")
            check_columns(self.scores, WORDS, NUMBERS, str(table))
            self.models = _kept_facts(root, view)
        else:
            raise MaskLabError(f"{root}: has no scores")
        if self.scores.empty:
            raise MaskLabError(f"{root}: has no scores of the study {view.study}")
        self.replicates = {name: int(last) for name, last in self.scores.groupby("recipe")["replicate"].max().items()}

    def _read_records(self, view):
        for key, file in _manifests(self.root, view).items():
            manifest = read_json(file)
            self.models[key] = manifest.get("facts", {})
            self.seeds |= {manifest["config"]["seed"]} if "seed" in manifest.get("config", {}) else set()

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


def _check_different(runs, view):
    """MaskLabError if a replicate of one run is one of another.

    It has its seed; or, where a run keeps no manifests, most of what chance decides is equal.
    """
    drawn = [name for name in view.recipes if not view.is_given(name)]
    for one, two in combinations(runs, 2):
        if one.seeds and two.seeds:
            same = bool(one.seeds & two.seeds)
        else:
            scores = [
                run.scores[run.scores["recipe"].isin(drawn) & ~run.scores["metric"].str.fullmatch(GIVEN)]
                for run in (one, two)
            ]
            both = scores[0].merge(scores[1], on=[*KEY, "replicate", "seed"], suffixes=("_one", "_two"))
            same = len(both) > 0 and (both["value_one"] == both["value_two"]).mean() >= SAME
        if same:
            raise MaskLabError(
                f"{one.root} and {two.root} have the same replicates, which must not be counted twice: run one of"
                " them again with another `seed`"
            )


def told(frame: pd.DataFrame, alone: list[pd.DataFrame | None]) -> str:
    """In plain text: verdicts counted, and the claims whose verdict is not the same in every run and on all together.

    alone: claims of each run, as `claims.parquet` has them; None of a run that kept none.
    """
    all_of_them = "both" if len(alone) == 2 else f"all {len(alone)}"
    text = (
        f"claims of {frame['study'].iloc[0]} on the replicates of {all_of_them} together: {counted(frame['verdict'])}"
    )
    if any(claims is None for claims in alone):
        return text
    verdicts = [claims.set_index(["study", "claim"])["verdict"] for claims in alone]
    for row in frame.itertuples():
        each = [of_run.get((row.study, row.claim), "not tested") for of_run in verdicts]
        if {*each, row.verdict} - {"not tested"} != {row.verdict}:
            value = valued(row.value, row.low, row.high)
            text += f"\n  {row.claim}: {', '.join(each)}; together {row.verdict}, {value}"
    return text
