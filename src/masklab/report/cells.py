"""Tables: cells from readings, and how they are written: tidy Parquet, wide CSV, wide Markdown."""

from pathlib import Path

import pandas as pd

from masklab.files import atomic, write_csv, write_parquet
from masklab.scores.estimate import Estimate, estimate
from masklab.scores.reading import Reading
from masklab.scores.results import Results

TIDY = ["panel", "row", "recipe", "label", "step", "metric", "value", "low", "high", "replicates", "items", "n"]
TYPES = {"step": "int64", "value": "float64", "low": "float64", "high": "float64", "replicates": "int64",
         "items": "bool", "n": "int64"}  # fmt: skip
NAMES = {"mcc": "MCC", "f1": "F1", "exact": "exact match"}  # metrics as they are written
WHOLE = {"parameters", "hidden", "heads", "layers", "intermediate"}  # metrics that are counts
NO_BEST = {"loss", "floor", "gap", "trace"} | WHOLE  # rows whose highest value is not the best
NULL = "null: "  # how the labels of columns of nulls begin


def cell(results: Results, reading: Reading, panel: str, row: str, label: str, metric: str) -> dict:
    """A row of `TIDY` for one reading; an empty cell where it was not measured."""
    mean, steps = results.estimate(reading), results.rows(reading)["step"]
    step = int(steps.max()) if len(steps) else 0
    return filled(mean, panel, row, reading.recipe, label, metric, step, results.items_behind(reading))


def null_cells(results: Results, readings, panel: str, row: str, metric: str) -> list[dict]:
    """One cell per kind of null: the highest of that kind among the nulls of the readings of a row."""
    kinds: dict[str, Estimate] = {}
    for reading in readings:
        for kind, values in results.nulls(reading).items():
            mean = estimate(values.data.mean(1), reading.rounding)
            if kind not in kinds or mean.value > kinds[kind].value:
                kinds[kind] = mean
    return [filled(mean, panel, row, "", f"{NULL}{kind}", metric, 0, 0) for kind, mean in kinds.items()]


def filled(mean: Estimate, panel, row, recipe, label, metric, step=0, n=0) -> dict:
    """A row of `TIDY` from an estimate."""
    return {"panel": panel, "row": row, "recipe": recipe, "label": label, "step": step, "metric": metric,
            "value": mean.value, "low": mean.low, "high": mean.high, "replicates": mean.replicates, "items": mean.items,
            "n": n}  # fmt: skip


def tidy(rows: list[dict]) -> pd.DataFrame:
    """Rows as a frame with the columns and types of `TIDY`."""
    return pd.DataFrame(rows, columns=TIDY).astype(TYPES)


def write_table(frame: pd.DataFrame, stem) -> None:
    """Write `<stem>.parquet` (tidy), `.csv` and `.md` (wide); the same frame gives the same bytes."""
    write_parquet(frame, f"{stem}.parquet")
    write_csv(wide(frame), f"{stem}.csv")
    with atomic(f"{stem}.md") as temporary:
        Path(temporary).write_text(markdown(frame), encoding="utf-8")


def wide(frame: pd.DataFrame) -> pd.DataFrame:
    """One line per table row: row, metric, n (items), then "<panel>: <label>" columns; missing cells are NaN."""
    rows = list(dict.fromkeys(frame["row"]))
    lead = frame.groupby("row").agg(metric=("metric", "first"), n=("n", "max")).reindex(rows)
    columns = [f"{panel}: {label}" for panel, label in zip(frame["panel"], frame["label"], strict=True)]
    values = frame.assign(column=columns).pivot(index="row", columns="column", values="value")
    return lead.join(values.reindex(index=rows, columns=list(dict.fromkeys(columns)))).reset_index()


def markdown(frame: pd.DataFrame, digits: int = 3) -> str:
    """One Markdown table per panel: `mean ± half the width of the 95 % interval`.

    The best value of a row is bold where its interval lies above those of all others in the row, nulls among them.
    """
    mixed = frame["metric"].nunique() > 1
    parts = []
    for index, (title, panel) in enumerate(frame.groupby("panel", sort=False)):
        names = list(dict.fromkeys(panel["label"]))
        lead = ["", "metric", "n"] if mixed else ["", "n"]
        lines = [
            f"**({chr(97 + index)}) {title}**{_about(panel)}",
            "",
            "| " + " | ".join([*lead, *names]) + " |",
            "| --- |" + " ---: |" * (len(lead) - 1 + len(names)),
        ]
        for row, cells in panel.groupby("row", sort=False):
            best = _best(cells)
            shown = {each.label: _cell(each, each.label == best, digits) for each in cells.itertuples()}
            front = [row, NAMES.get(cells["metric"].iloc[0], cells["metric"].iloc[0])] if mixed else [row]
            lines.append(
                "| " + " | ".join([*front, str(cells["n"].max()), *(shown.get(name, "–") for name in names)]) + " |"
            )
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _about(panel):
    """When and how often values were measured; nothing for facts, which were not measured."""
    return f", {_steps(panel)}; {_replicates(panel)}" if panel["replicates"].any() else ""


def _steps(panel):
    steps = sorted(panel.loc[panel["recipe"] != "", "step"].unique())
    return f"after {steps[0]:,} updates" if len(steps) == 1 else "each at its last checkpoint"


def _replicates(panel):
    counts = sorted({int(count) for count in panel["replicates"] if count})
    if counts in ([], [1]):
        return "one replicate, no intervals"
    how_many = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"mean ± half the width of the 95 % interval over {how_many} replicates{_items(panel)}"


def _items(panel):
    return " and test items" if panel["items"].any() else ""


def _best(cells) -> str | None:
    """Label of the cell whose interval lies above all others'."""
    if cells["metric"].iloc[0] in NO_BEST or cells["low"].isna().all() or len(cells) < 2:
        return None
    first = cells.loc[cells["value"].idxmax()]
    others = cells[cells["label"] != first["label"]]
    reach = others["high"].fillna(others["value"]).max()
    return first["label"] if first["low"] > reach and not first["label"].startswith(NULL) else None


def _cell(each, best, digits):
    if pd.isna(each.value):
        return "–"
    if each.metric in WHOLE:
        return f"{each.value:,.0f}"
    text = f"{each.value:.{digits}f}"
    text = f"**{text}**" if best else text
    return text if pd.isna(each.low) else f"{text} ± {(each.high - each.low) / 2:.{digits}f}"
