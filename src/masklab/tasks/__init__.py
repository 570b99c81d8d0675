"""Tasks in one format: labels, ratings, answer spans and pairs of sentences, generated or from files.

A kind is a function that builds it, registered in `masklab.config.kinds`.
"""

from pathlib import Path

from masklab.config import kinds
from masklab.files import sha256, write_json, write_parquet, write_table

UNITS = "units"  # column of the numbers of what a row spells, where a task knows them


def build(config, name: str, seed: int, **work) -> tuple[dict, dict]:
    """Task `name` as ({split: frame}, facts), the facts being the content of task.json.

    Labels: splits train, valid, test; columns text_a, text_b (missing for single sentences), label 0..n-1.
    Symbolic tasks have `symbols` (see `masklab.symbols`) instead of texts, and are Arrow tables; where symbols spell
    something, such as synsets, `units` (list<uint16>) says what.
    `work`: other artifacts that a task is made from, such as another task's folder; the `law_seed` that a shared law
    is drawn under where `seed` is that of one replicate.
    Ratings are labels that are numbers, between the facts `low` and `high`. Spans: columns question, context, answers
    and starts (lists; empty: no answer). Pairs: split test; columns phenomenon, paradigm, good, bad. MaskLabError
    names file and row of bad input.
    """
    kind = kinds.find("tasks", config.kind)
    made = kind.function()(config, name, seed, **work)
    return _checked(kind, made) if kind.file else made


def _checked(kind, made) -> tuple[dict, dict]:
    """Splits and facts of a user's function; MaskLabError where it returns anything else."""
    import pyarrow as pa

    from masklab.tasks.own_tables import checked

    wanted = "two dictionaries: pandas or Arrow tables by split, and facts, `kind` among them"
    if not (isinstance(made, tuple | list) and len(made) == 2 and all(isinstance(each, dict) for each in made)):
        raise kind.refused(wanted, made)
    splits, facts = made
    for split, table in splits.items():
        if not hasattr(table, "to_parquet") and not isinstance(table, pa.Table):
            raise kind.refused(wanted, table, split)
    if not isinstance(facts.get("kind"), str):
        raise kind.refused(wanted, facts, "facts")
    return checked(kind, splits, facts), facts


def write_task(folder, splits: dict, facts: dict) -> None:
    """Write `<split>.parquet` and, last, task.json into `folder`: the facts, and the hashes of the splits.

    Jobs that read a task know it by its task.json, so that this must change with any row.
    """
    folder = Path(folder)
    for split, frame in splits.items():
        write = write_parquet if hasattr(frame, "to_parquet") else write_table
        write(frame, folder / f"{split}.parquet")
    hashes = {split: sha256(folder / f"{split}.parquet") for split in splits}
    write_json({**facts, "sha256": hashes}, folder / "task.json")


def pair_facts(frame) -> dict:
    """task.json of a pairs task: pairs per phenomenon, in order of appearance."""
    return {
        "kind": "pairs",
        "phenomena": {str(k): int(n) for k, n in frame["phenomenon"].value_counts(sort=False).items()},
    }


def label_facts(splits, names, pair: bool, metric: str) -> dict:
    """task.json of a labels task; `names[i]` is what label i is called in the files.

    Where the metric is F1 and there are two labels, `positive` is the one that it looks for, that of class 1.
    """
    rows = {split: len(frame) for split, frame in splits.items()}
    facts = {"kind": "labels", "labels": len(names), "names": names, "pair": pair, "metric": metric, "rows": rows}
    return facts | ({"positive": names[1]} if metric == "f1" and len(names) == 2 else {})


def majorities(splits) -> dict[str, float]:
    """Split -> share of its most frequent label, of Arrow tables of a labels task."""
    import numpy as np

    return {split: float(np.bincount(table["label"]).max() / len(table)) for split, table in splits.items()}
