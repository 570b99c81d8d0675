"""Claims on disk: Parquet, CSV, and a Markdown table per section with the verdicts counted."""

from pathlib import Path

import pandas as pd

from masklab.claims.verdict import COLUMNS
from masklab.errors import MaskLabError
from masklab.files import atomic, read_table, write_csv, write_parquet

VERDICTS = ("supported", "contradicted", "inconclusive")


def write_claims(frame: pd.DataFrame, stem) -> None:
    """Write `<stem>.parquet`, `.csv` and `.md`; the same frame gives the same bytes."""
    write_parquet(frame, f"{stem}.parquet")
    write_csv(frame, f"{stem}.csv")
    with atomic(f"{stem}.md") as temporary:
        Path(temporary).write_text(markdown(frame), encoding="utf-8")


def gather(paths) -> pd.DataFrame:
    """The claims of all studies in one frame; a file that is none raises MaskLabError."""
    frames = []
    for path in paths:
        frame = read_table(path).to_pandas()
        if list(frame.columns) != list(COLUMNS):
            raise MaskLabError(f"{path}: not a file of claims: its columns are {', '.join(frame.columns)}")
        frames.append(frame.astype(COLUMNS))
    return pd.concat(frames, ignore_index=True)


def markdown(frame: pd.DataFrame) -> str:
    """Per study and section one table: verdict, sentence, comparison, effect with interval, seeds."""
    parts = []
    for study, own in frame.groupby("study", sort=False):
        counts = own["verdict"].value_counts()
        said = ", ".join(f"{counts.get(name, 0)} {name}" for name in VERDICTS)
        parts.append(f"# Claims of `{study}`: {said}\n")
        parts.append(
            "Effect: mean over seeds [95 % t interval], or over test items [95 % normal interval]. Supported: the"
            " interval lies inside the claimed region; contradicted: wholly outside; else, or with too few seeds,"
            " inconclusive; so too (*) where what the sentence presupposes does not hold (that some model learned the"
            " task, that losses are equal). Not corrected for the number of claims.\n"
        )
        for section, rows in own.groupby("section", sort=False):
            lines = [
                f"## {section}\n",
                "| verdict | the paper says | figure | tested | claimed | effect | seeds |",
                "| --- | --- | --- | --- | --- | ---: | ---: |",
                *(_line(row) for row in rows.itertuples()),
            ]
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _line(row):
    effect = "–" if pd.isna(row.effect) else f"{row.effect:+.3f}"
    if not pd.isna(row.low):
        effect += f" [{row.low:+.3f}, {row.high:+.3f}]"
    m = f"{row.margin:g}"
    region = {"equal": f"within ± {m}", "no more": f"at most {m}", "no less": f"at least -{m}"}.get(
        row.region, row.region
    )
    mark = "" if row.premise else " (*)"
    seeds = row.seeds if row.interval == "seeds" else row.interval
    return f"| {row.verdict}{mark} | {row.text} | {row.figure} | {row.comparison} | {region} | {effect} | {seeds} |"
