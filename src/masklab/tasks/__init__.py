"""Tasks: labelled or paired sentences in one format, from files or from the grammar.

A new kind is one module with a builder and one entry in `BUILDERS`.
"""

from importlib import import_module
from pathlib import Path

from masklab.files import write_json, write_parquet, write_table

BUILDERS = {
    "english-pairs": ("masklab.tasks.generated", "english_pairs"),
    "pair-files": ("masklab.tasks.pairs", "pair_files"),
    "english-labels": ("masklab.tasks.generated", "english_labels"),
    "label-files": ("masklab.tasks.labels", "label_files"),
    "english-ratings": ("masklab.tasks.generated", "english_ratings"),
    "english-spans": ("masklab.tasks.squad", "english_spans"),
    "glue": ("masklab.tasks.glue", "glue"),
    "squad": ("masklab.tasks.squad", "squad"),
    "patterns": ("masklab.tasks.patterns", "patterns"),
    "hmm": ("masklab.tasks.hidden", "hidden_states"),
    "pcfg": ("masklab.tasks.nonterminals", "nonterminals"),
    "restricted-labels": ("masklab.tasks.restricted", "restricted_labels"),
}


def build(config, name: str, seed: int, **made) -> tuple[dict, dict]:
    """Task `name` as ({split: frame}, facts), the facts being the content of task.json.

    Labels: splits train, valid, test; columns text_a, text_b (missing for single sentences), label 0..n-1.
    Symbolic tasks have `symbols` (see `corpora.symbols`) instead of texts, and are Arrow tables.
    `made`: other artifacts that a task is made from, such as another task's folder.
    Ratings are labels that are numbers, between the facts `low` and `high`. Spans: columns question, context, answers
    and starts (lists; empty: no answer). Pairs: split test; columns phenomenon, paradigm, good, bad. MaskLabError
    names file and row of bad input.
    """
    module, function = BUILDERS[config.kind]
    return getattr(import_module(module), function)(config, name, seed, **made)


def write_task(folder, splits: dict, facts: dict) -> None:
    """Write `<split>.parquet` and, last, task.json into `folder`."""
    folder = Path(folder)
    for split, frame in splits.items():
        write = write_parquet if hasattr(frame, "to_parquet") else write_table
        write(frame, folder / f"{split}.parquet")
    write_json(facts, folder / "task.json")


def pair_facts(frame) -> dict:
    """task.json of a pairs task: pairs per phenomenon, in order of appearance."""
    return {
        "kind": "pairs",
        "phenomena": {str(k): int(n) for k, n in frame["phenomenon"].value_counts(sort=False).items()},
    }


def label_facts(splits, names, pair: bool, metric: str) -> dict:
    """task.json of a labels task; `names[i]` is what label i is called in the files."""
    rows = {split: len(frame) for split, frame in splits.items()}
    return {"kind": "labels", "labels": len(names), "names": names, "pair": pair, "metric": metric, "rows": rows}
