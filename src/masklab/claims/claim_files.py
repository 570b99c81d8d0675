"""Claims on disk: Parquet, CSV, and Markdown that counts the verdicts, then lists headlines and sections."""

from pathlib import Path

import pandas as pd

from masklab.claims.power import MOST
from masklab.claims.verdict import COLUMNS, VERDICTS
from masklab.errors import MaskLabError
from masklab.files import atomic, read_table, write_csv, write_parquet

EXPLAINED = (
    "Value: mean over replicates [95 % interval over replicates, with (i) over replicates and test items]. Supported:"
    " the interval lies inside the claimed region; contradicted: wholly outside; inconclusive: neither, or fewer than"
    " three replicates, with the number of replicates that would decide it with 80 % power at the spread seen;"
    " untested: what the sentence presupposes does not hold. † does not survive Holm's correction for the number of"
    " claims tested."
)


def write_claims(frame: pd.DataFrame, stem) -> None:
    """Write `<stem>.parquet`, `.csv` and `.md`; the same frame gives the same bytes."""
    write_parquet(frame, f"{stem}.parquet")
    write_csv(frame, f"{stem}.csv")
    with atomic(f"{stem}.md") as temporary:
        Path(temporary).write_text(markdown(frame), encoding="utf-8")


def gather(paths) -> pd.DataFrame:
    """The claims of all studies in one frame; MaskLabError for a file that holds no claims."""
    frames = []
    for path in paths:
        frame = read_table(path).to_pandas()
        if list(frame.columns) != list(COLUMNS):
            raise MaskLabError(f"{path}: not a file of claims: its columns are {', '.join(frame.columns)}")
        frames.append(frame.astype(COLUMNS))
    return pd.concat(frames, ignore_index=True)


def counted(verdicts) -> str:
    """ "3 supported, 1 contradicted, 0 inconclusive, 5 untested"."""
    counts = pd.Series(list(verdicts)).value_counts()
    return ", ".join(f"{counts.get(name, 0)} {name}" for name in VERDICTS)


def markdown(frame: pd.DataFrame) -> str:
    """Per study: the verdicts counted, plain and corrected; the headlines; per section one table."""
    parts = []
    for study, of_study in frame.groupby("study", sort=False):
        parts.append(f"# Claims of `{study}`: {counted(of_study['verdict'])}\n")
        parts.append(f"After Holm's correction: {counted(of_study['corrected'])}. {_shared(of_study)}{EXPLAINED}\n")
        if of_study["headline"].any():
            parts.append(_table("What it stands for", of_study[of_study["headline"]]))
        for section, rows in of_study.groupby("section", sort=False):
            parts.append(_table(section, rows))
    return "\n".join(parts)


def _shared(frame):
    """How many claims are about one and the same number."""
    twice = frame[frame["same_effect"] != frame["claim"]]
    if twice.empty:
        return "Every claim has an effect of its own. "
    return f"{len(frame)} claims are about {len(frame) - len(twice)} effects: {len(twice)} share theirs with another. "


def _table(title, rows) -> str:
    lines = [
        f"## {title}\n",
        "| verdict | the sentence | shown in | tested | claimed | value | replicates |",
        "| --- | --- | --- | --- | --- | ---: | ---: |",
        *(_line(row) for row in rows.itertuples()),
    ]
    return "\n".join(lines) + "\n"


def _line(row):
    value = "–" if pd.isna(row.value) else f"{row.value:+.3f}"
    if not pd.isna(row.low):
        value += f" [{row.low:+.3f}, {row.high:+.3f}]" + (" (i)" if row.items else "")
    m = f"{row.margin:g}"
    region = {"equal": f"within ± {m}", "no more": f"at most {m}", "no less": f"at least -{m}"}.get(
        row.region, row.region
    )
    verdict = f"{row.verdict}{' †' if row.corrected != row.verdict else ''}"
    if row.why:
        verdict += f": {row.why}"
    needs = f"more than {MOST}" if row.needed > MOST else f"{row.needed}"
    count = str(row.replicates) + (f" (needs {needs})" if row.needed else "")
    return f"| {verdict} | {row.text} | {row.figure} | {row.comparison} | {region} | {value} | {count} |"
