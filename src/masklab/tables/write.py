"""Tables on disk: tidy Parquet, wide CSV, wide Markdown with the best value of each row and panel in bold."""

from pathlib import Path

import pandas as pd

from masklab.files import atomic, write_csv, write_parquet

NAMES = {"mcc": "MCC", "f1": "F1"}
WHOLE = {"parameters", "hidden", "heads", "layers", "intermediate"}  # metrics that are counts
NO_BEST = {"loss", "floor", "gap", "trace"} | WHOLE  # rows whose highest value is not the best


def write_table(frame: pd.DataFrame, stem) -> None:
    """Write `<stem>.parquet` (tidy), `.csv` and `.md` (wide); the same frame gives the same bytes.

    `frame` has the columns of `masklab.tables.cells.TIDY`.
    """
    write_parquet(frame, f"{stem}.parquet")
    write_csv(wide(frame), f"{stem}.csv")
    with atomic(f"{stem}.md") as temporary:
        Path(temporary).write_text(markdown(frame), encoding="utf-8")


def wide(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per table row: row, metric, n (items), then "<panel>: <label>" columns; missing cells are NaN."""
    rows = list(dict.fromkeys(frame["row"]))
    lead = frame.groupby("row").agg(metric=("metric", "first"), n=("n", "max")).reindex(rows)
    columns = [f"{panel}: {label}" for panel, label in zip(frame["panel"], frame["label"], strict=True)]
    values = frame.assign(column=columns).pivot(index="row", columns="column", values="value")
    return lead.join(values.reindex(index=rows, columns=list(dict.fromkeys(columns)))).reset_index()


def markdown(frame: pd.DataFrame, digits: int = 3) -> str:
    """One Markdown table per panel, `value ± std` (sample standard deviation over seeds) where there are seeds.

    The best value of a row is bold, and so is every value that prints the same.
    """
    mixed = frame["metric"].nunique() > 1
    parts = []
    for index, (title, panel) in enumerate(frame.groupby("panel", sort=False)):
        names = list(dict.fromkeys(panel["label"]))
        steps = sorted(panel["step"].unique())
        after = f"after {steps[0]:,} updates" if len(steps) == 1 else "each at its last checkpoint"
        lead = ["", "metric", "n"] if mixed else ["", "n"]
        lines = [
            f"**({chr(97 + index)}) {title}**, {after}",
            "",
            "| " + " | ".join([*lead, *names]) + " |",
            "| --- |" + " ---: |" * (len(lead) - 1 + len(names)),
        ]
        for row, cells in panel.groupby("row", sort=False):
            best = None if cells["metric"].iloc[0] in NO_BEST else cells["value"].round(digits).max()
            shown = {cell.label: _cell(cell, best, digits) for cell in cells.itertuples()}
            front = [row, NAMES.get(cells["metric"].iloc[0], cells["metric"].iloc[0])] if mixed else [row]
            lines.append(
                "| " + " | ".join([*front, str(cells["n"].max()), *(shown.get(name, "–") for name in names)]) + " |"
            )
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _cell(cell, best, digits):
    if pd.isna(cell.value):
        return "–"
    if cell.metric in WHOLE:
        return f"{cell.value:,.0f}"
    text = f"{cell.value:.{digits}f}"
    if round(cell.value, digits) == best:
        text = f"**{text}**"
    return text if pd.isna(cell.std) else f"{text} ± {cell.std:.{digits}f}"
