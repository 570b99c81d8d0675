"""A comparison of two runs as plain text for a terminal."""

from functools import partial

import pandas as pd

from masklab.claims.claim_files import counted
from masklab.compare.scores import KEY, has_width

LINES = 40  # of one table
WIDTH = 60  # characters of a cell
COST = ("seconds", "tokens", "flops", "n")  # what a measurement cost is no result,
SPREAD = ("_se", "_std")  # nor is how sure it is


def told(comparison) -> str:
    """The tables in words: what differs in cost or in standard errors alone is left out."""
    first, second = comparison.names
    parts = [f"{first} (before) and {second} (after)"]
    parts.append(_config(comparison.config, comparison.lacking["config"]))
    for what, (one, two) in comparison.only.items():
        for name, names in ((first, one), (second, two)):
            if names:
                parts.append(f"{what} only in {name}: {named(names)}")
    tells = {
        "facts": partial(_facts, comparison.alike),
        "scores": partial(_scores, comparison.shared),
        "claims": _claims,
    }
    for name, tell in tells.items():
        frame = getattr(comparison, name)
        parts.append(_lacking(name, comparison.lacking[name]) if frame is None else tell(frame))
    return "\n\n".join(parts)


def _lacking(table, runs) -> str:
    have, its, makes = ("have", "their configs", "make") if len(runs) > 1 else ("has", "its config", "makes")
    return (
        f"{table}: not compared; {' and '.join(runs)} {have} no {table}.parquet. `snakemake {table} --cores all` with"
        f" {its} {makes} it, and before that whatever the studies lack"
    )


def _config(frame, without):
    if without:
        keep, their = ("keep", "their") if len(without) > 1 else ("keeps", "its")
        return f"config: not compared; {' and '.join(without)} {keep} no records of {their} jobs"
    if frame.empty:
        return "config: what both runs made was made from the same config"
    return f"config: {len(frame)} {'key differs' if len(frame) == 1 else 'keys differ'}\n" + _lines(frame)


def _facts(alike, frame):
    if frame.empty:
        return f"facts: all {alike:,} of both runs are the same" if alike else "facts: the runs have none in common"
    return f"facts: {len(frame)} {'differs' if len(frame) == 1 else 'differ'}\n" + _lines(frame)


def _scores(shared, frame):
    if frame.empty:
        return "scores: the runs measured nothing in common"
    results = _once(frame[~(frame["metric"].isin(COST) | frame["metric"].str.endswith(SPREAD))])
    if results.empty:
        return "scores: the runs have nothing in common but what measuring cost"
    text = f"scores: {results['equal'].sum():,} of {len(results):,} measurements are equal"
    changed = results[~results["equal"]]
    if changed.empty:
        return text
    latest = frame.groupby(["recipe", "probe"])["step"].transform("max")
    last = changed[changed["step"] == latest[changed.index]]
    clear = int(changed["clear"].sum())
    text += f"; {_clearly(len(changed), clear, shared)}."
    if last.empty:
        none = "None of them is at the last checkpoint of a recipe that both measured"
        return f"{text} {none}; --output writes all of them"
    text += " At each recipe's last checkpoint that both measured (step):\n"
    last = last.assign(size=last["difference"].abs()).sort_values(["clear", "size"], ascending=False, kind="stable")
    rows = pd.DataFrame(
        {
            "recipe": last["recipe"],
            "step": last["step"],
            "task": last["task"],
            "split": last["split"],
            "size": [size or "" for size in last["train_size"]],
            "layer": [layer if layer >= 0 else "" for layer in last["layer"]],
            "at": ["" if pd.isna(at) else f"{at:g}" for at in last["at"]],
            "metric": last["metric"],
            "before": last["before"].map("{:.4f}".format),
            "after": last["after"].map("{:.4f}".format),
            "difference [95 %]": [_interval(row) for row in last.itertuples()],
            "r": last["replicates"],
        }
    )
    return text + _lines(rows.loc[:, [name for name in rows if (rows[name].astype(str) != "").any()]])


def _once(results):
    """Without accuracies of the full width that repeat the plain ones, as those of models without latent logits do."""
    plain = results[results["metric"] == "accuracy"].assign(metric="accuracy_full_width")
    same = [*KEY, "before", "after"]
    repeated = results[same].merge(plain[same], how="left", indicator=True)["_merge"] == "both"
    return results[~repeated.to_numpy()]


def _clearly(changed: int, clear: int, shared: list[str] | None) -> str:
    """How many measurements differ, and how many of these by more than replicates do; what luck has to do with it.

    shared: as `Comparison` has it.
    """
    interval = "95 % interval over replicates"
    if not clear:
        none = "1 differs, not" if changed == 1 else f"{changed:,} differ, none"
        return f"{none} clearly: no {interval} leaves out 0"
    luck = f"; by luck alone about {changed // 20:,} would" if changed >= 20 and shared is not None else ""
    if shared:
        luck += f"{', or more:' if luck else ';'} {sharing(shared)}: of that luck the intervals say nothing"
    if changed == 1:
        return f"1 differs, clearly (*): its {interval} leaves out 0{luck}"
    return f"{changed:,} differ, {clear:,} of them clearly (*): the {interval} leaves out 0{luck}"


def sharing(names: list[str]) -> str:
    """That two runs of other seeds may differ in what all replicates of each share."""
    return f"all replicates of a run share {named(names)} (no `redraw`), and another run may have others"


def _interval(row):
    if pd.isna(row.difference):
        return "none [no number in some replicate]"
    if pd.isna(row.low):
        return f"{row.difference:+.4f} [one replicate]"
    if not has_width(row.low, row.high):
        return f"{row.difference:+.4f} [replicates alike]"
    return f"{row.difference:+.4f} [{row.low:+.4f}, {row.high:+.4f}]{' *' if row.clear else ''}"


def _claims(frame):
    counts = [counted(frame[f"verdict_{when}"]) for when in ("before", "after")]
    text = f"claims: {len(frame)} tested by both\n  before: {counts[0]}\n  after:  {counts[1]}"
    for row in frame[frame["changed"]].itertuples():
        values = [valued(row.value_before, row.low_before, row.high_before)]
        values.append(valued(row.value_after, row.low_after, row.high_after))
        text += f"\n\n  {row.study}/{row.claim}: {row.verdict_before} -> {row.verdict_after}\n    {row.text}"
        text += f"\n    value {values[0]} -> {values[1]}"
        for when, why in (("before", row.why_before), ("after", row.why_after)):
            text += f"\n    {when}: {why}" if why else ""
    return text


def valued(value, low, high) -> str:
    """A value with its interval, if it has one: "+0.03 [+0.01, +0.05]"; "none" without a value."""
    if pd.isna(value):
        return "none"
    return f"{value:+.4g}" + ("" if pd.isna(low) else f" [{low:+.4g}, {high:+.4g}]")


def _lines(frame) -> str:
    shown = frame.head(LINES).map(lambda cell: text if len(text := str(cell)) <= WIDTH else f"{text[: WIDTH - 3]}...")
    lines = shown.to_string(index=False, justify="left").splitlines()
    more = len(frame) - LINES
    return "\n".join(f"  {line.rstrip()}" for line in lines) + (
        f"\n  ... and {more:,} more; --output writes all of them" if more > 0 else ""
    )


def named(names) -> str:
    """The first of some names in a line, and how many more there are."""
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return ", ".join(names[:12]) + more
