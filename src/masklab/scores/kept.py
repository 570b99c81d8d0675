"""Studies that a run holds and today's config does not declare: their rows stay in the tables that gather a run.

Two configs may share a run. What each study's scores were when they were last gathered lies below the run's
`made/studies/`, a file per study, and its claims in `claims/`; whoever wants to be rid of a study removes these files.
"""

import json
from pathlib import Path

import pandas as pd

from masklab.errors import MaskLabError
from masklab.files import read_table, write_parquet
from masklab.scores.facts import base, names_corpus
from masklab.scores.schema import GATHERED

FOLDER = "studies"  # below `made/`
FACTS = "facts.parquet"  # likewise


def held(made, declared) -> list[str]:
    """Studies of a run that a config does not declare. made: the run's folder of records."""
    return sorted(file.stem for file in Path(made, FOLDER).glob("*.parquet") if file.stem not in declared)


def kept_rows(made, study) -> int:
    """How many scores of a study its run holds; 0 where none were gathered."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_metadata(Path(made, FOLDER, f"{study}.parquet")).num_rows
    except (OSError, pa.ArrowException):
        return 0


def with_kept_scores(frame, made, declared):
    """Scores of the declared studies with those of the others; remembers the former for configs to come."""
    made, columns = Path(made), list(frame.columns)
    for study in declared:
        write_parquet(frame[frame["study"] == study], made / FOLDER / f"{study}.parquet")
    others = [_read(made / FOLDER / f"{study}.parquet", columns) for study in held(made, declared)]
    return pd.concat([frame, *(other.astype(frame.dtypes.to_dict()) for other in others if other is not None)],
                     ignore_index=True)  # fmt: skip


def with_kept_facts(frame, made, declared):
    """Facts of the config with those of what its run's other studies measured; remembers all of them."""
    made, columns = Path(made), list(frame.columns)
    before = _read(made / FACTS, columns)
    if before is not None:
        scores = [_read(made / FOLDER / f"{study}.parquet", list(GATHERED)) for study in held(made, declared)]
        scores = [table for table in scores if table is not None]
        used = {("recipe", name) for table in scores for name in table["recipe"]}
        used |= {("probe", name) for table in scores for name in table["probe"]}
        used |= {("task", base(name)) for table in scores for name in table["task"]}
        keys = pd.Series(list(zip(before["noun"], before["name"], strict=True)), index=before.index, dtype=object)
        while more := _referred(before[keys.isin(used)], set(keys)) - used:
            used |= more
        stated = before[keys.isin(used)]
        values = zip(stated["key"], map(json.loads, stated["value"]), strict=True)
        used |= {("corpus", value) for key, value in values if names_corpus(key, value)}
        now = set(zip(frame["noun"], frame["name"], strict=True))
        frame = pd.concat([frame, before[keys.isin(used - now)]], ignore_index=True)
    write_parquet(frame, made / FACTS)
    return frame


def _referred(facts, known) -> set[tuple[str, str]]:
    """Recipes, among those known, whose checkpoints some facts name: what a recipe starts from, or is taught by."""
    texts = (value for value in map(json.loads, facts["value"]) if isinstance(value, str))
    return {("recipe", text.rpartition("@")[0]) for text in texts if "@" in text} & known


def kept_claims(folder, declared, columns) -> list[Path]:
    """Files of claims, in `folder`, of the run's other studies that have these columns."""
    files = [file for file in sorted(Path(folder).glob("*.parquet")) if file.stem not in declared]
    return [file for file in files if _read(file, list(columns)) is not None]


def _read(file, columns):
    """A remembered table; None where there is none, or it is of another version."""
    try:
        frame = read_table(file).to_pandas()
    except MaskLabError:
        return None
    return frame if list(frame.columns) == columns else None
