"""Claims on disk: Parquet, CSV, and Markdown that begins with the counts and the headlines."""

from pathlib import Path

import pandas as pd

from masklab.claims.effect_words import with_interval
from masklab.claims.power import MOST
from masklab.claims.summary import MEANING, counted, counts, effect, headlines, in_general, reasons, region
from masklab.claims.verdict import COLUMNS
from masklab.errors import MaskLabError
from masklab.files import atomic, read_table, write_csv, write_parquet
from masklab.markdown import escaped

EXPLAINED = (
    "Value: mean over replicates [95 % interval over replicates{items}]; beside the replicates those that would decide"
    " an inconclusive claim with 80 % power at the spread seen, and what share of that spread (as a variance) seeds of"
    " its probes make, if it is half or more: then more seeds do what more replicates would. † does not survive Holm's"
    " correction for the number of claims tested."
)
ITEMS = ", with (i) over replicates and test items"


def write_claims(frame: pd.DataFrame, stem) -> None:
    """Write `<stem>.parquet`, `.csv` and `.md`; the same frame gives the same bytes."""
    write_parquet(frame, f"{stem}.parquet")
    write_csv(frame, f"{stem}.csv")
    with atomic(f"{stem}.md") as temporary:
        Path(temporary).write_text(markdown(frame), encoding="utf-8")


def gather(paths) -> pd.DataFrame:
    """The claims of all studies in one frame; MaskLabError for a file that holds no claims, and without any file."""
    frames = []
    for path in paths:
        frame = read_table(path).to_pandas()
        if list(frame.columns) != list(COLUMNS):
            raise MaskLabError(f"{path}: not a file of claims: its columns are {', '.join(frame.columns)}")
        frames.append(frame.astype(COLUMNS))
    if not frames:
        raise MaskLabError("no study tests claims; a study does with `claims: all`")
    return pd.concat(frames, ignore_index=True)


def markdown(frame: pd.DataFrame) -> str:
    """Per study: verdicts counted, the claims that matter, why others are not decided; then a table a section."""
    return "\n".join(part for _, of_study in frame.groupby("study", sort=False) for part in _study(of_study))


def _study(frame):
    study, corrected = frame["study"].iloc[0], counted(frame["corrected"])
    yield f"# Claims of `{study}`: {counted(frame['verdict'])}\n"
    for row in headlines(frame).itertuples():
        told = "; ".join(part for part in (effect(row), in_general(row.why)) if part)
        yield f"- **{_verdict(row)}**: {escaped(row.text)}" + (f" ({escaped(told)})" if told else "")
    yield "\nOf its claims,\n"
    for verdict, count in counts(frame["verdict"]).items():
        if count:
            why = "; ".join(f"{escaped(reason)} ({number})" for reason, number in reasons(frame, verdict))
            verb = "is" if count == 1 else "are"
            yield f"- {count} {verb} {verdict}: {MEANING[verdict]}." + (f" Here: {why}." if why else "")
    explained = EXPLAINED.format(items=ITEMS if frame["items"].any() else "")
    yield f"\nAfter Holm's correction: {corrected}. {_shared(frame)}{explained}\n"
    if frame["headline"].any():
        yield _table("What it stands for", frame[frame["headline"]])
    for section, rows in frame[~frame["headline"]].groupby("section", sort=False):
        yield _table(section, rows)


def _shared(frame):
    """How many claims are about one and the same number."""
    twice = frame[frame["same_effect"] != frame["claim"]]
    if twice.empty:
        return "Every claim has an effect of its own. "
    effects = len(frame) - len(twice)
    share = "1 shares its own" if len(twice) == 1 else f"{len(twice)} share theirs"
    return f"{len(frame)} claims are about {effects} effect{'s' * (effects > 1)}: {share} with another. "


def _verdict(row):
    if row.corrected == row.verdict:
        return row.verdict
    return f"{row.verdict} †" + ("" if row.corrected == "inconclusive" else f" ({row.corrected} after it)")


def _table(title, rows) -> str:
    shown = (rows["figure"] != "").any()
    lines = [
        *([f"## {escaped(title)}\n"] if title else []),
        f"| verdict | the sentence |{' shown in |' if shown else ''} tested | claimed | value | replicates |",
        f"| --- | --- |{' --- |' if shown else ''} --- | --- | ---: | ---: |",
        *(_line(row, shown) for row in rows.itertuples()),
    ]
    return "\n".join(lines) + "\n"


def _line(row, shown):
    value = "–" if pd.isna(row.value) else with_interval(row.value, row.low, row.high, row.items)
    verdict = _verdict(row) + (f": {row.why}" if row.why else "")
    needs = f"more than {MOST}" if row.needed > MOST else f"{row.needed}"
    seeds = f"; seeds make {row.of_seeds:.0%}" if row.of_seeds >= 0.5 else ""
    count = str(row.replicates) + (f" (needs {needs}{seeds})" if row.needed else "")
    cells = (verdict, row.text, *([row.figure] if shown else []), row.comparison, region(row), value, count)
    return "| " + " | ".join(map(escaped, cells)) + " |"
