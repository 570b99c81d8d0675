"""Two runs side by side: what differs in config, facts, scores and claims. Differences: second less first."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from masklab.claims.claim_files import gather as gather_claims
from masklab.compare.entries import config_changes, entries, seeds_agree, shared
from masklab.compare.scores import NUMBERS, WORDS, check_columns, score_changes
from masklab.errors import MaskLabError, in_one_line
from masklab.files import read_table, write_csv
from masklab.scores.schema import gather

TABLES = ("facts", "scores", "claims")
FACT, CLAIM = ["noun", "name", "key"], ["study", "claim"]  # columns that tell facts, and claims, from others
VALUES = ("value", "low", "high", "replicates")  # of a claim, numbers
SHOWN = ("verdict", "corrected", *VALUES, "why")


@dataclass
class Comparison:
    """Frames of what differs; None where a run lacks the table. names: of the two runs, as they were asked for.

    config: entry, key, before, after. facts: noun, name, key, before, after (means of numbers, each text).
    alike: how many facts both have that do not differ. scores: see `score_changes`; rows that are equal too. claims:
    study, claim, text, and `SHOWN` of both runs.
    shared: what all replicates of a run share though the seeds of the runs differ, so that they may differ in it by
    luck; empty where replicates are paired, None where nobody knows, without records.
    only: table -> (what only the first run has, what only the second has). lacking: table -> the runs that lack it;
    `config`: those that keep no records of their jobs, so that nothing is known of their configs and seeds.
    """

    names: tuple[str, str]
    config: pd.DataFrame
    facts: pd.DataFrame | None
    alike: int
    scores: pd.DataFrame | None
    claims: pd.DataFrame | None
    shared: list[str] | None
    only: dict[str, tuple[list[str], list[str]]]
    lacking: dict[str, list[str]]

    def tables(self) -> dict[str, pd.DataFrame]:
        """Name -> frame of all that both runs have."""
        frames = {name: getattr(self, name) for name in ("config", *TABLES)}
        return {name: frame for name, frame in frames.items() if frame is not None}


def write(tables: dict[str, pd.DataFrame], folder) -> list[Path]:
    """Write each table as CSV into a folder; the files."""
    files = [Path(folder, f"{name}.csv") for name in tables]
    for file, frame in zip(files, tables.values(), strict=True):
        write_csv(frame, file)
    return files


def compare(first: str, second: str, results="results") -> Comparison:
    """Compare two runs: names below `results` (`results` itself: the run without a name), or folders.

    Raises:
        MaskLabError: a folder holds no run, or a table is not one of this version.
    """
    roots = [run_folder(name, results) for name in (first, second)]
    if roots[0].resolve() == roots[1].resolve():
        raise MaskLabError(f"{first} and {second} are one run: {roots[0]}")
    facts, scores = ([_table(root, name) for root in roots] for name in ("facts", "scores"))
    claims = [claims_of_run(root) for root in roots]
    wanted = {"facts": ((*FACT, "value"), ("replicate", "number")), "scores": (WORDS, NUMBERS)}
    for name, tables in (("facts", facts), ("scores", scores)):
        for root, table in zip(roots, tables, strict=True):
            if table is not None:
                check_columns(table, *wanted[name], str(root / f"{name}.parquet"))
    made = [entries(root) for root in roots]
    lacking = {"config": [name for name, own in zip((first, second), made, strict=True) if not own]}
    config, apart = config_changes(made, facts)
    only = {"entries": ([], []) if lacking["config"] else apart}
    compared = {"facts": None, "alike": 0, "scores": None, "claims": None}
    if all(table is not None for table in facts):
        compared["facts"], compared["alike"] = _fact_changes(*facts)
    paired = seeds_agree(*made)
    if all(table is not None for table in scores):
        compared["scores"], apart = score_changes(*scores, shared_seeds=paired)
        only |= apart
    if all(table is not None for table in claims):
        compared["claims"], only["claims"] = _claim_changes(*claims)
    tables = zip(TABLES, (facts, scores, claims), strict=True)
    lacking |= {
        name: [run for run, table in zip((first, second), pair, strict=True) if table is None] for name, pair in tables
    }
    common = set() if paired else set().union(*map(shared, roots, facts))
    known = None if lacking["config"] else sorted(common)
    return Comparison((first, second), config, **compared, shared=known, only=only, lacking=lacking)


def run_folder(name: str, results="results") -> Path:
    """Folder of a run: `<results>/<name>`, or `name` itself. MaskLabError if no run lies there."""
    # `../results` is a folder beside this one, and not `results/../results`, which is `results`
    places = [Path(name)] if name.startswith(".") else list(dict.fromkeys([Path(results, name), Path(name)]))
    for place in places:
        if any((place / part).exists() for part in ("made", *(f"{table}.parquet" for table in TABLES), "claims.csv")):
            return place
    here = sorted(path.parent.name for path in Path(results).glob("*/made")) if Path(results).is_dir() else []
    named = f" (runs below {results}/: {', '.join(here)})" if here else ""
    raise MaskLabError(f"{name}: no run lies in {' or '.join(map(str, places))}{named}")


def claims_of_run(root) -> pd.DataFrame | None:
    """`claims.parquet` of a run's folder, or those of its studies, or `claims.csv` if that alone was kept; else None.

    Raises:
        MaskLabError: a table that is none of this version.
    """
    texts = (*CLAIM, "text", "verdict", "corrected", "why")
    table, file = _table(root, "claims"), root / "claims.parquet"
    if table is None and (file := root / "claims.csv").exists():
        as_text = dict.fromkeys(texts, str)
        try:
            table = pd.read_csv(file, dtype=as_text, keep_default_na=False, na_values={key: [""] for key in VALUES})
        except (ValueError, OSError) as error:  # pandas' own, and what is no UTF-8, are ValueErrors
            raise MaskLabError(f"{file}: cannot be read ({in_one_line(error)})") from None
    if table is not None:
        check_columns(table, texts, VALUES, str(file))
    return table


def _table(root, name):
    """A table of a run; what nobody has gathered yet from the files of probes or of studies. None: it has none."""
    file = root / f"{name}.parquet"
    if file.exists():
        return read_table(file).to_pandas()
    if name == "claims" and (tested := sorted(root.glob("claims/*.parquet"))):
        return gather_claims(tested)
    probed = [path for path in sorted(root.glob("scores/*/*/r*/*.parquet")) if not path.stem.endswith(".items")]
    return gather(probed) if name == "scores" and probed else None


def _fact_changes(before, after) -> tuple[pd.DataFrame, int]:
    """Facts whose value differs, of replicates the mean of numbers and each text; how many others both runs have."""
    one, two = (_facts(frame) for frame in (before, after))
    joined = one.join(two.rename(columns={"value": "after"}), how="inner").rename(columns={"value": "before"})
    differ = joined["before"] != joined["after"]
    return joined[differ].reset_index(), int((~differ).sum())


def _facts(frame) -> pd.DataFrame:
    of_replicates = frame["replicate"] > 0
    means = (
        frame[of_replicates & frame["number"].notna()].groupby(FACT)["number"].mean().map(lambda mean: f"{mean:.6g}")
    )
    plain = frame[~of_replicates].groupby(FACT)["value"].first()
    found = pd.concat([plain, means[~means.index.isin(plain.index)]])
    # what is no number, such as the precision that a model was trained in
    texts = frame[of_replicates].groupby(FACT)["value"].agg(lambda values: " or ".join(sorted(set(values))))
    return pd.concat([found, texts[~texts.index.isin(found.index)]]).to_frame("value")


def _claim_changes(before, after):
    """(claims that both runs test, with verdicts and values of both; claims that only one tests)."""
    joined = before.merge(after, on=CLAIM, suffixes=("_before", "_after"))
    joined["text"] = joined["text_after"]
    joined["changed"] = joined["verdict_before"] != joined["verdict_after"]
    columns = [f"{name}_{when}" for name in SHOWN for when in ("before", "after")]
    sets = [set(frame[CLAIM].itertuples(index=False, name=None)) for frame in (before, after)]
    only = tuple(sorted("/".join(names) for names in one - two) for one, two in (sets, sets[::-1]))
    return joined[[*CLAIM, "text", "changed", *columns]], only
