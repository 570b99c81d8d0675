"""Tables: cells from readings, and how they are written: tidy Parquet, wide CSV, wide Markdown."""

import math
from pathlib import Path

import pandas as pd

from masklab.config.nulls import LABEL as NULL
from masklab.files import atomic, write_csv, write_parquet
from masklab.markdown import escaped
from masklab.report import notes
from masklab.scores.estimate import Estimate
from masklab.scores.reading import FEWEST, RANKS, Reading
from masklab.scores.results import Results

TIDY = ["panel", "row", "recipe", "label", "step", "metric", "value", "half", "low", "high", "replicates", "items", "n",
        "sizes", "majority", "mark"]  # fmt: skip
TYPES = {"step": "int64", "value": "float64", "half": "float64", "low": "float64", "high": "float64",
         "replicates": "int64", "items": "bool", "n": "int64", "majority": "float64", "mark": "str"}  # fmt: skip
NAMES = {
    "mcc": "MCC",
    "f1": "F1",
    "exact": "exact match",
    "pearson": "Pearson's r",
    "spearman": "Spearman's ρ",
    "outside": "share outside",
    "outside beside": "share outside",
} | {rank.replace("_", " "): "entropy rank" if "entropy" in rank else "effective rank" for rank in RANKS}
# Metrics as they are written.
WHOLE = {"parameters", "hidden", "heads", "layers", "intermediate"}  # metrics that are counts
COARSE = {*(rank.replace("_", " ") for rank in RANKS), "trace", "trace embedded"}  # metrics that are tens and hundreds
OF_STATES = {*(rank.replace("_", " ") for rank in RANKS), "outside", "outside beside"}  # metrics of tokens' states
OF_LOSSES = {"loss", "floor", "gap", "share of the floor"}  # metrics of predicted tokens
APART = "difference"  # the mark of a cell that is a difference of two others
# Marks of cells that are no result -> what is said of them under the table: of several replicates, and of one.
MARKS = {
    "unlearned": (
        "†: not shown to be better than every null of its row (95 % interval of the difference within replicates).",
        "†: no better than some null of its row. Without †: better than all of them, which one replicate does not show"
        " to be more than chance.",
    ),
    "= majority": (
        "(= majority): what always giving one answer scores, in every replicate.",
        "(= majority): what always giving one answer scores.",
    ),
    "< majority": (
        "(< majority): below what always giving one answer scores, by that interval too.",
        "(< majority): below what always giving one answer scores.",
    ),
    "= chance": ("(= chance): what guessing scores, in every replicate.", "(= chance): what guessing scores."),
    "< chance": (
        "(< chance): below what guessing scores, by that interval too.",
        "(< chance): below what guessing scores.",
    ),
}


def cell(
    results: Results, reading: Reading, panel: str, row: str, label: str, metric: str, shared=None, beside=()
) -> dict:
    """A row of `TIDY` for one reading; an empty cell where it was not measured.

    shared: over these replicates alone. beside: readings of the row.
    """
    own, steps = results.values(reading), results.rows(reading)["step"]
    mean = results.estimated((own.at(shared) if shared and own.replicates else own).evidence.scalar, reading)
    step = int(steps.max()) if len(steps) else 0
    made = filled(mean, panel, row, reading.recipe, label, metric, step, results.items_behind(reading, shared))
    return made | {"sizes": averaged(results, reading, beside)}


def averaged(results: Results, reading: Reading, beside=()) -> str:
    """`Results.sizes` as `TIDY` has them; also a single one, where readings `beside` it are of others."""
    sizes = results.sizes(reading)
    if not sizes and reading.over != "train_size" and not results.are_alike([reading, *beside]):
        sizes = sorted({int(size) for *_, size in results.cells(reading)} - {0})
    return ", ".join(map(str, sizes))


def filled(mean: Estimate, panel, row, recipe, label, metric, step=0, n=0) -> dict:
    """A row of `TIDY` from an estimate."""
    return {"panel": panel, "row": row, "recipe": recipe, "label": label, "step": step, "metric": metric,
            "value": mean.value, "half": mean.half, "low": mean.low, "high": mean.high, "replicates": mean.replicates,
            "items": mean.items, "n": n, "sizes": "", "majority": math.nan, "mark": ""}  # fmt: skip


def tidy(rows: list[dict]) -> pd.DataFrame:
    """Rows as a frame with the columns and types of `TIDY`.

    half: half the width of the interval; low, high: its ends, within what the metric can be. sizes: training sizes that
    the value is the mean over, where there are several, "50, 200"; a single one only where recipes of its row
    have others. majority: what always giving one answer scores. mark: "best" or why a cell is no result
    (`masklab.report.rows`).
    """
    return pd.DataFrame(rows, columns=TIDY).astype(TYPES)


def write_table(frame: pd.DataFrame, stem) -> None:
    """Write `<stem>.parquet` (tidy), `.csv` and `.md` (wide); the same frame gives the same bytes."""
    write_parquet(frame, f"{stem}.parquet")
    write_csv(wide(frame), f"{stem}.csv")
    with atomic(f"{stem}.md") as temporary:
        Path(temporary).write_text(markdown(frame), encoding="utf-8")


def wide(frame: pd.DataFrame) -> pd.DataFrame:
    """One line per table row: row, metric, n (the fewest items), "<panel>: <label>" columns; missing cells are NaN.

    Where two of these names are one ("a: b" of "c", "a" of "b: c"), the later one has an asterisk.
    """
    rows, names = list(dict.fromkeys(frame["row"])), {}
    for panel, label in zip(frame["panel"], frame["label"], strict=True):
        name = f"{panel}: {label}"
        while names.setdefault(name, (panel, label)) != (panel, label):
            name += "*"
    lead = frame.groupby("row").agg(metric=("metric", "first"), n=("n", _fewest)).reindex(rows)
    values = frame.pivot(index="row", columns=["panel", "label"], values="value").reindex(index=rows)
    return lead.assign(**{name: values[column] for name, column in names.items()}).reset_index()


def markdown(frame: pd.DataFrame) -> str:
    """One Markdown table per panel, and a note that says what cells, bold type and marks are.

    Where rows are over unlike numbers of replicates, each panel says over how many its rows are, or each of these.
    Titles, rows and labels are a config's own text, and stand there as they are written.
    """
    told = frame.loc[frame["replicates"] > 0, ["row", "metric"]]  # facts need no metric, nor rows that are called so
    mixed = told["metric"].map(named).nunique() > 1 and (told["row"].str.lower() != told["metric"]).any()
    counted, over = frame["n"].any(), _unlike_replicates(frame)
    parts = []
    for index, (title, panel) in enumerate(frame.groupby("panel", sort=False)):
        names, own = list(dict.fromkeys(panel["label"])), over.get(title, {})
        counts = list(dict.fromkeys(own.values()))
        several, alike = len(counts) > 1, f", over {notes.replicates(counts[0])}" if len(counts) == 1 else ""
        lead = ["", *(["metric"] if mixed else []), *(["replicates"] if several else []), *(["n"] if counted else [])]
        lines = [
            f"**{f'({notes.letter_of(index)}) {escaped(title)}'.rstrip()}**{_steps(panel)}{alike}",
            "",
            "| " + " | ".join([*lead, *map(escaped, names)]) + " |",
            "| --- |" + " ---: |" * (len(lead) - 1 + len(names)),
        ]
        for row, cells in panel.groupby("row", sort=False):
            shown = {each.label: _cell(each) for each in cells.itertuples()}
            front = [escaped(row), *([escaped(named(cells["metric"].iloc[0]))] if mixed else [])]
            front += [" to ".join(map(str, own.get(row, "–")))] if several else []
            front += [f"{_fewest(cells['n']):,}" if cells["n"].any() else "–"] if counted else []
            lines.append("| " + " | ".join([*front, *(shown.get(name, "–") for name in names)]) + " |")
        parts.append("\n".join(lines) + "\n")
    if under := note(frame):
        parts.append(f"{under}\n")
    return "\n".join(parts)


def _unlike_replicates(frame) -> dict[str, dict[str, tuple[int, ...]]]:
    """Panel -> row -> its number of replicates, or the least and the most of its cells; {} if it is one for all."""
    told: dict[str, dict[str, tuple[int, ...]]] = {}
    for (panel, row), cells in _told(frame).groupby(["panel", "row"], sort=False):
        told.setdefault(panel, {})[row] = tuple(
            sorted({int(cells["replicates"].min()), int(cells["replicates"].max())})
        )
    return told if len({counts for rows in told.values() for counts in rows.values()}) > 1 else {}


def _told(frame):
    """The cells whose numbers of replicates a table tells: those of models, where there are any with an interval."""
    measured = frame[frame["replicates"] > 0]
    models = measured[~measured["label"].str.startswith(NULL)]
    varied = models[models["half"].notna()]  # a model in which nothing is drawn has one replicate beside several
    return next((each for each in (varied, models) if len(each)), measured)


def _fewest(counts) -> int:
    """The least count of items of some cells, those left out that are of nothing counted; 0 without any."""
    return int(counts[counts > 0].min()) if (counts > 0).any() else 0


def named(metric: str) -> str:
    """A metric as it is written."""
    return NAMES.get(metric, metric)


def _steps(panel):
    """When values were measured; nothing for facts, which were not."""
    if not panel["replicates"].any():
        return ""
    steps = sorted(panel.loc[(panel["recipe"] != "") & (panel["replicates"] > 0), "step"].unique())
    return f", after {steps[0]:,} updates" if len(steps) == 1 else ", each at its last checkpoint"


def note(frame: pd.DataFrame) -> str:
    """What stands under a table; "" under one of facts, which were not measured."""
    measured = frame[frame["replicates"] > 0]
    if measured.empty:
        return ""
    marks, labels = set(frame["mark"]), set(frame["label"])
    counts = _told(frame)["replicates"]
    said = [f"{notes.interval(counts, measured['items'].any()).capitalize()}."]
    if any(_uneven(each, _digits(each)) for each in measured.itertuples()):
        ranked = measured["metric"].isin({"pearson", "spearman"}).any()
        why = ", or of a correlation with ratings, which has it on Fisher's scale" if ranked else ""
        said.append(
            f"[a, b]: the interval where its ends do not lie ± half from the mean: cut to what a score can be{why}."
        )
    if measured["n"].any():
        counted = _counted(set(measured.loc[measured["n"] > 0, "metric"]))
        said.append(f"n: {counted} behind a value of one replicate{_least_of(measured)}.")
    of_recipes = measured[measured["recipe"] != ""]
    parts = (of_recipes["row"].map(escaped), of_recipes["label"].map(escaped), of_recipes["sizes"])
    said += [f"{mean[0].upper()}{mean[1:]}." for mean in notes.means_over_sizes(zip(*parts, strict=True))]
    if of_recipes.groupby(["panel", "row"])["sizes"].nunique().gt(1).any():
        said.append("Where the recipes of a row have unlike training sizes, they are not compared.")
    if measured["majority"].notna().any():
        if counts.max() < FEWEST:
            said.append(f"Nothing is bold with fewer than {FEWEST} replicates.")
        else:
            none = "" if "best" in marks else " (here none is)"
            said.append(
                f"Bold{none}: better than every other score of its row, nulls among them; the 95 % interval of each"
                f" difference within replicates, of which {FEWEST} or more are needed, lies above 0."
            )
        if measured.loc[measured["recipe"] != "", "majority"].isna().any():
            said.append("Only scores of tasks are bold or marked, losses, ranks and traces are not.")
    most = measured.groupby("mark")["replicates"].max()
    said += [texts[int(most[mark] < 2)] for mark, texts in MARKS.items() if mark in most]
    if APART in marks:
        said.append("A − B: the difference within replicates; an interval without 0 tells the two apart.")
    if any(label.startswith(NULL) for label in labels):
        said.append(
            "Null: what the same measurement gives where nothing was learned, the best of its kind for the recipes of a"
            " row."
        )
    if f"{NULL}majority" in labels:
        said.append(f"Majority: {_majority(set(frame['metric']))}.")
    if f"{NULL}chance" in labels:
        said.append("Chance: guessing which of a pair is the better one, or which of several options is the best.")
    if "score" in set(frame["metric"]):
        said.append("Score: the mean over tasks of different metrics, each in its own.")
    return " ".join(said)


def _counted(metrics) -> str:
    """What the numbers n of these metrics count."""
    if metrics <= OF_STATES:
        return "tokens (after fine-tuning: test items)"
    of_losses = metrics & OF_LOSSES
    if of_losses == metrics:
        return "predicted tokens"
    return "test items (of losses: predicted tokens)" if of_losses else "test items"


def _least_of(measured) -> str:
    """What is said of n where the cells of a row are of unlike numbers of items; "" else."""
    counted = measured[measured["n"] > 0]
    uneven = counted.groupby(["panel", "row"])["n"].nunique().gt(1).any()
    return ", of the cell of a row that has the fewest" if uneven else ""


def _majority(metrics) -> str:
    """What the column of majorities says, of these metrics."""
    said = ["always giving the most frequent answer"]
    said += ["the class that F1 looks for"] if "f1" in metrics else []
    said += ["a correlation of 0"] if metrics & {"mcc", "pearson", "spearman"} else []
    return ", ".join(said)


def _cell(each):
    if pd.isna(each.value):
        return "–"
    if each.metric in WHOLE:
        return f"{each.value:,.0f}"
    digits = _digits(each)
    value, low, high = (_number(number, digits, each.mark == APART) for number in (each.value, each.low, each.high))
    text = f"**{value}**" if each.mark == "best" else value
    if _uneven(each, digits):
        text += f" [{low}, {high}]"
    elif not pd.isna(each.half):
        text += f" ± {each.half:.{digits}f}"
    shown = {"": "", "best": "", APART: "", "unlearned": " †"}.get(each.mark, f" ({each.mark})")
    return text + shown


def _digits(each):
    return 1 if each.metric in COARSE else 3


def _number(value, digits, signed=False):
    """With so many digits, and no -0.000."""
    return f"{round(value, digits) + 0.0:{'+' if signed else ''}.{digits}f}"


def _uneven(each, digits) -> bool:
    """Whether an interval lies otherwise about its mean than "± half" says, to the last digit shown."""
    if pd.isna(each.half) or each.metric in WHOLE:
        return False
    ends = each.value - each.low, each.high - each.value
    return max(abs(end - each.half) for end in ends) > 0.6 * 10**-digits
