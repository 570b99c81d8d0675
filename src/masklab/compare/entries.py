"""The config that the artifacts of a run were really made from, entry by entry, from the records of its jobs."""

from pathlib import Path

import pandas as pd

from masklab.config.replicates import split_instance
from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.jobs.changes import changes, shown
from masklab.jobs.provenance import records
from masklab.rng import replicate_seed

# rule -> (section of the config, key of the entry in the job's config, wildcard that names it)
SECTIONS = {
    "corpus": ("corpora", "corpus", "corpus"),
    "tokenizer": ("tokenizers", "tokenizer", "tokenizer"),
    "embeddings": ("embeddings", "embeddings", "embeddings"),
    "causal_model": ("causal_models", "causal_model", "causal"),
    "task": ("tasks", "task", "task"),
    "dictionary": ("dictionaries", "dictionary", "dictionary"),
    "probe": ("probes", "probe", "probe"),
}
RESOLVED = ("steps", "tasks")  # of a probe: which of them depends on the recipe
ROOT = "root"  # among the seeds of a run: that of its config
DRAWN = ("corpora", "causal_models", "tasks")  # sections whose entries replicates share or have for themselves
NOUNS = {"models": "recipe", "corpora": "corpus", "tasks": "task", "probes": "probe"}


def config_changes(found, facts) -> tuple[pd.DataFrame, tuple[list[str], list[str]]]:
    """(entry, key, before, after) of every difference, and the entries that only one run has.

    found: `entries` of both runs. facts: their tables of facts or None, which say what a run's config declares: records
    stay.
    """
    before, after = (_declared(own, table) for own, table in zip(found, facts, strict=True))
    rows = [
        (entry, key or "config", shown(old), shown(new))
        for entry in before
        if entry in after
        for key, old, new in changes(before[entry], after[entry])
        if entry != "seed" or key in _told(before[entry], after[entry])
    ]
    only = tuple([entry for entry in one if entry not in two] for one, two in ((before, after), (after, before)))
    return pd.DataFrame(rows, columns=["entry", "key", "before", "after"]), only


def _told(before: dict, after: dict) -> set[str]:
    """Which seeds of two runs are told apart: the root that all follow from or, of one that is not known, replicates'.

    A run with more replicates than another has no other seed.
    """
    shared = before.keys() & after.keys()
    return {ROOT} if ROOT in shared else shared


def seeds_agree(before: dict, after: dict) -> bool:
    """Whether `entries` of two runs say that the replicates of both have the same seeds; not where one says nothing."""
    one, two = (found.get("seed", {}) for found in (before, after))
    shared = one.keys() & two.keys()
    return bool(shared) and all(one[k] == two[k] for k in shared)


def shared(root: Path, facts) -> set[str]:
    """What all replicates of a run share, by the records of its jobs: "c", or of a corpus of their own "the law of c".

    facts: the run's table of facts or None, which says what its config declares: records stay.
    """
    found = {}
    for section in DRAWN:
        folder = root / "made" / section
        for file in records(folder):
            name, replicate = split_instance(file.relative_to(folder).with_suffix("").as_posix())
            if replicate is None or _has_shared_law(file):
                found[f"{section}.{name}"] = name if replicate is None else f"the law of {name}"
    return set(_declared(found, facts).values())


def _has_shared_law(file: Path) -> bool:
    """Whether a record says that its replicate was drawn from a law that is drawn once for all."""
    try:
        return "law_seed" in read_json(file)["config"]
    except (MaskLabError, KeyError, TypeError):
        return False


def entries(root: Path) -> dict[str, dict]:
    """`section.name` -> its resolved config, as finished jobs of a run used it; `seed` -> that of each replicate.

    Also `seed` -> `ROOT`, where a record of what all replicates share holds it. A record that says none, such as one of
    another version, is passed over.
    """
    found: dict[str, dict] = {}
    seeds = set()
    for file in records(root / "made"):
        try:
            record = read_json(file)
            own = _said(record["rule"], record["wildcards"], record["config"]) if record["finished"] else {}
            seeds |= {record["config"]["seed"]} if "seed" in (record["config"] or {}) else set()
        except (MaskLabError, AttributeError, KeyError, TypeError):
            continue
        if seed := own.pop("seed", {}):
            found.setdefault("seed", {}).update(seed)
        for entry, settings in own.items():
            found.setdefault(entry, settings)
    if "seed" in found and (roots := [seed for seed in seeds if _is_root(seed, found["seed"])]):
        found["seed"][ROOT] = roots[0]
    return dict(sorted(found.items()))


def _is_root(seed, of_replicates: dict) -> bool:
    """Whether the seeds of all replicates follow from a seed."""
    return all(own == replicate_seed(seed, int(name.removeprefix("r"))) for name, own in of_replicates.items())


def _said(rule, names, config) -> dict[str, dict]:
    """What the record of one job says, as `entries` has it."""
    if rule == "pretrain":
        model = config["model"]
        said = {f"models.{names['recipe']}": model, "seed": {f"r{names['replicate']}": config["seed"]}}
        for section, key in (("encoders", "encoder"), ("objectives", "objective")):
            if isinstance(model.get(key), str):
                said[f"{section}.{model[key]}"] = config[key]
        return said
    if rule not in SECTIONS:
        return {}
    section, key, wildcard = SECTIONS[rule]
    drop = RESOLVED if rule == "probe" else ()
    settings = {name: value for name, value in config[key].items() if name not in drop}
    return {f"{section}.{names[wildcard].partition('/')[0]}": settings}


def _declared(found, facts) -> dict[str, dict]:
    """Entries without those that the config of the run no longer declares."""
    if facts is None:
        return found
    names = {noun: set(of_noun["name"]) for noun, of_noun in facts.groupby("noun")}
    kept = {}
    for entry, settings in found.items():
        section, _, name = entry.partition(".")
        noun = NOUNS.get(section)
        if noun not in names or name in names[noun] or "." in name:
            kept[entry] = settings
    return kept
