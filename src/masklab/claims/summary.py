"""The claims of a study in few words: the verdicts counted, the claims that matter, why the others were not decided."""

import re

import pandas as pd

from masklab.claims.effect_words import with_interval
from masklab.claims.verdict import DECIDED, VERDICTS

MEANING = {
    "supported": "the whole interval of the effect lies where the sentence says that it should",
    "contradicted": "the whole interval lies outside",
    "negligible": "the interval holds nothing as large as the study's margin: no difference that counts",
    "inconclusive": "the interval lies on both sides, or of fewer than three replicates: more of them could decide it",
    "untested": "what the sentence takes for granted does not hold or was not measured: its number means nothing",
}
MOST = 3  # headlines of a study that marks none


def counted(verdicts) -> str:
    """ "3 supported, 1 contradicted, 0 negligible, 0 inconclusive, 5 untested"."""
    return ", ".join(f"{count} {name}" for name, count in counts(verdicts).items())


def counts(verdicts) -> dict[str, int]:
    """Verdict -> how many, of all of them in their order."""
    found = pd.Series(list(verdicts)).value_counts()
    return {name: int(found.get(name, 0)) for name in VERDICTS}


def headlines(frame: pd.DataFrame) -> pd.DataFrame:
    """The claims that stand for a study, which is a frame of `claims.verdict.COLUMNS`.

    Those that are marked and, where none of these is decided, the clearest of the others; of a study with few claims,
    where there are none of either, all.
    """
    marked = frame[frame["headline"]]
    if marked["verdict"].isin(DECIDED).any():
        return marked
    found = pd.concat([marked, _clearest(frame[~frame["headline"]], bool(len(marked)))])
    return frame if found.empty and len(frame) <= MOST else found


def _clearest(frame, decided_only):
    """Claims with effects of their own: decided ones first, those that survive the correction before others."""
    single = frame[frame["p"].notna()].drop_duplicates("same_effect")
    decided, survives = single["verdict"].isin(DECIDED), single["verdict"] == single["corrected"]
    order = single.assign(_decided=~decided, _survives=~survives)
    order = order[decided] if decided_only else order
    order = order.sort_values(["_decided", "_survives", "p"], kind="stable")
    return order.head(2 if decided_only else MOST)[list(frame.columns)]


def reasons(frame: pd.DataFrame, verdict: str) -> list[tuple[str, int]]:
    """The commonest reasons why claims have a verdict, with how many have each; what they say of one claim left out.

    Where there are more than three, the last is "others".
    """
    said = frame.loc[frame["verdict"] == verdict, "why"].map(in_general)
    found = said[said != ""].value_counts(sort=False).sort_values(ascending=False, kind="stable")
    listed = [(why, int(count)) for why, count in found.head(3).items()]
    rest = int(found.iloc[3:].sum())
    return [*listed, ("others", rest)] if rest else listed


# A premise's reason with the names of its own claim -> without them.
NAMED = {
    "no other recipe is at the loss of .*": "no other recipe is at the same loss",
    "the loss of .* converges at its last checkpoint": "the loss converges at the last checkpoint",
    "the loss of .* against its floor was not measured": "a loss against its floor was not measured",
}


def in_general(why: str) -> str:
    """A reason without names and numbers of its own claim."""
    for named, said in NAMED.items():
        if re.fullmatch(named, why, re.DOTALL):
            return said
    why = re.sub(r" \(.*\)$", "", why, flags=re.DOTALL).partition(": ")[0].rstrip(":")
    return re.sub(r"^\d+ points; ", "too few points; ", why)


def effect(row) -> str:
    """ "-0.009 [-0.032, +0.014] accuracy" of a claim; empty if it has none."""
    if pd.isna(row.value):
        return ""
    return f"{with_interval(row.value, row.low, row.high, row.items)} {row.unit}".rstrip()


def region(row) -> str:
    """Where a claim says that its effect lies, in words."""
    margin = f"{row.margin:g}"
    words = {"equal": f"within ± {margin}", "no more": f"at most {margin}", "no less": f"at least -{margin}"}
    return words.get(row.region, row.region)
