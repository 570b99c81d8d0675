"""What the pages show, gathered from the folder of results: what is there, and how to make what is not."""

import os
import re
import unicodedata
from pathlib import Path
from urllib.parse import quote

from masklab.claims.claim_files import gather
from masklab.claims.summary import MEANING, counts, effect, headlines, in_general, reasons, region
from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.markdown import html
from masklab.pages.columns import FILES
from masklab.pages.made import made
from masklab.pages.thumbnails import thumbnail
from masklab.pages.wording import command, title
from masklab.scores.kept import kept_rows

COLUMNS = Path(__file__).parents[3] / "docs/columns.md"
WORDS = "state/pages.json"  # study -> the title and the question that a page showed last
SHOWN = "comparison"  # the table that README.md has in full: of a question of a user's own the answer in numbers
ENDS = {
    "figures": {"pdf": "PDF", "png": "PNG", "csv": "CSV", "parquet": "Parquet"},
    "tables": {"md": "Markdown", "html": "HTML", "csv": "CSV", "parquet": "Parquet"},
    "claims": {"md": "Markdown", "html": "HTML", "csv": "CSV", "parquet": "Parquet"},
}


def gathered(root, outline: dict, options: str = "", outdated=(), job: bool = False) -> dict:
    """What the templates read. root: the folder of results; outline: `outline.outline`; options: `wording.options`.

    outdated: names of targets whose files were made from another configuration or by other code. job: whether a job
    writes them.
    """
    root = Path(root)
    declared = [_study(root, study, options, set(outdated)) for study in outline["studies"]]
    studies = [study for study in declared if study["begun"]]
    others = [study for name in _others(root, outline) if (study := _other(root, name))["begun"]]
    shown = [*studies, *others]
    anchors = _anchors([study["name"] for study in shown])
    return {
        "run": outline["run"],
        "folder": root.as_posix(),
        "command": command("", options),
        "scale": _scale_of_all(studies, others),
        "studies": [study | {"anchor": anchor} for study, anchor in zip(shown, anchors, strict=True)],
        "waiting": [study for study in declared if not study["begun"]],
        "made": made(root, job),
        "meaning": MEANING,
        "data": _data(root),
        "columns": FILES,
        "columns_link": quote(os.path.relpath(COLUMNS, root)) if COLUMNS.is_file() else "report.html#columns",
    }


def _anchors(names) -> list[str]:
    """What GitHub calls headings of these texts: of headings that it would call alike, the later ones are numbered."""
    counts, anchors = {}, []
    for name in names:
        kept = (c for c in name.lower() if re.match(r"[\w -]", c) or unicodedata.category(c)[0] == "M")
        anchor = "".join(kept).replace(" ", "-")
        before = counts[anchor] = counts.get(anchor, -1) + 1
        anchors.append(f"{anchor}-{before}" if before else anchor)
    return anchors


def _study(root, study, options, outdated):
    name = study["name"]
    about = {
        "name": name,
        "title": study["title"] or name,
        "question": study["question"],
        "scale": _scale(study["scale"]),
        "command": command(name, options),
        "claims": _claims(root, name, options, outdated) if study["claims"] else None,
        "other": False,
        "scores": kept_rows(root / "made", name),
    }
    for section in ("figures", "tables"):
        about[section] = [
            _part(root, section, name, item, said, options, outdated) for item, said in study[section].items()
        ]
    about["drawn"] = any(part["files"] for part in [*about["figures"], *about["tables"], about["claims"]] if part)
    about["begun"] = about["drawn"] or bool(about["scores"])
    return about


def _others(root, outline) -> list[str]:
    """Studies that the folder holds something of, and the config does not declare, by name."""
    found = {file.stem for folder in ("made/studies", "claims") for file in (root / folder).glob("*.parquet")}
    found |= {folder.name for section in ENDS for folder in (root / section).glob("*/") if any(folder.glob("*.*"))}
    return sorted(found - {study["name"] for study in outline["studies"]})


def _other(root, name):
    """A study of another config: what lies there of it, without commands, which that config would know."""
    sections = {section: _made_of(root, section, name) for section in ("figures", "tables")}
    words = words_kept(root).get(name, {})
    study = {"name": name, "title": "", "question": "", **words, "scale": "", "claims": True, **sections}
    about = _study(root, study, "", set()) | {"other": True, "command": ""}
    for part in [*about["figures"], *about["tables"], about["claims"]]:
        part["command"] = ""
    return about if about["claims"]["files"] else about | {"claims": None}


def _made_of(root, section, study) -> dict[str, str]:
    """Figures or tables of a study that lie in the folder; nobody says in words what they show."""
    first = next(iter(ENDS[section]))
    return {file.stem: "" for file in sorted((root / section / study).glob(f"*.{first}"))}


def words_kept(root) -> dict[str, dict[str, str]]:
    """`WORDS` of a folder of results; empty where none were kept, or they cannot be read."""
    try:
        kept = read_json(Path(root, WORDS))
    except MaskLabError:
        return {}
    return {name: words for name, words in kept.items() if isinstance(words, dict)} if isinstance(kept, dict) else {}


def _scale(text):
    """A scale such as "toy: two layers": its mark, and what it says."""
    mark, colon, said = text.partition(":")
    if not colon or len(mark) > 20:
        return {"mark": "", "said": text.strip(), "text": text}
    return {"mark": mark.strip(), "said": said.strip(), "text": text}


def _scale_of_all(studies, others) -> str:
    """The scales of all studies in a sentence or two: "Scale: toy." and what they all say last, of their verdicts."""
    if not studies:
        return "" if others else "Nothing was made yet."
    marks: dict[str, list[str]] = {}
    for study in studies:
        marks.setdefault(study["scale"]["mark"] or "not stated", []).append(study["name"])
    if len(marks) > 1:
        return "Scale: " + "; ".join(f"{mark} ({', '.join(names)})" for mark, names in marks.items()) + "."
    last = {re.split(r"(?<=\.)\s+", study["scale"]["said"])[-1] for study in studies}
    return " ".join([*(f"Scale: {mark}." for mark in marks), *(last if len(last) == 1 else ())]).strip()


def _part(root, section, study, name, said, options, outdated):
    target, files = f"{study}_{name}", _files(root, section, f"{section}/{study}/{name}")
    part = {
        "title": title(name),
        "caption": said,
        "target": target,
        "command": command(target, options),
        "files": files,
        "outdated": target in outdated,
    }
    if section == "figures":
        part["image"] = thumbnail(root / "figures" / study / f"{name}.png")
    else:
        text = root / "tables" / study / f"{name}.md"
        whole = text.read_text(encoding="utf-8") if text.is_file() else ""
        part |= {"html": html(whole), "text": whole.strip() if name == SHOWN else ""}
    return part


def _files(root, section, stem) -> dict[str, str]:
    """What the files of a part are called -> where they lie below `root`, as links; of those that are there."""
    there = {called: f"{stem}.{end}" for end, called in ENDS[section].items() if (root / f"{stem}.{end}").is_file()}
    return {called: quote(path) for called, path in there.items()}


def _claims(root, study, options, outdated):
    """Verdicts counted, headlines, commonest reasons; of claims that are not there only how to test them."""
    target = f"{study}_claims"
    about = {
        "target": target,
        "command": command(target, options),
        "files": _files(root, "claims", f"claims/{study}"),
        "outdated": target in outdated,
    }
    try:
        frame = gather([root / "claims" / f"{study}.parquet"])
    except MaskLabError:
        return about | {"counts": None}
    return about | {
        "total": len(frame),
        "counts": counts(frame["verdict"]),
        "corrected": counts(frame["corrected"]),
        "headlines": [_headline(row) for row in headlines(frame).itertuples()],
        "reasons": {verdict: reasons(frame, verdict) for verdict in ("inconclusive", "untested")},
    }


def _headline(row):
    return {
        "verdict": row.verdict,
        "survives": row.corrected == row.verdict,
        "text": row.text,
        "section": row.section,
        "effect": effect(row),
        "comparison": row.comparison,
        "claimed": region(row),
        "why": in_general(row.why),
    }


def _data(root):
    """The tables of all studies together: name, what it holds, its files."""
    held = {"scores": "every score", "facts": "what every recipe, corpus, task and probe is", "claims": "every claim"}
    ends = {"parquet": "Parquet", "csv": "CSV", "md": "Markdown"}
    found = []
    for name, what in held.items():
        files = {called: f"{name}.{end}" for end, called in ends.items() if (root / f"{name}.{end}").is_file()}
        found += [{"name": name, "what": what, "files": files}] if files else []
    return found
