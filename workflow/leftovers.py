"""What lies in a run and its config no longer says: a line for the person, and claims that nobody makes are removed."""

import sys
from pathlib import Path

CLAIMS = (".parquet", ".csv", ".md", ".html")
SCORES, CLAIMED = "made/studies", "claims"  # folders of a run with a table per study


def look(paths, dry: bool) -> None:
    """Say which studies of the run are not in the config and which items of its studies it no longer declares.

    Figures and tables of old stay. Claims that a study no longer makes are removed, with the table of all claims, which
    is made again by what makes claims, since they would speak for the study as it is now.
    """
    root, studies = Path(paths.root), paths.config.studies
    held = {folder: other_studies(root, studies, folder) for folder in (SCORES, CLAIMED)}
    if others := sorted({study for of_folder in held.values() for study in of_folder}):
        one = others[0] if len(others) == 1 else "<study>"
        files = [f"{root}/{folder}/{one}.parquet" for folder, of_folder in held.items() if of_folder]
        print(
            f"masklab: {root} also holds {_named('study', 'studies', others)} of another config, which the tables of"
            f" the run keep; to drop {'it' if len(others) == 1 else 'one'}, remove {' and '.join(files)}",
            file=sys.stderr,
        )
    gone = [root / "claims" / f"{study}{end}" for study in studies if not studies[study].claims for end in CLAIMS]
    gone = [file for file in gone if file.exists()]
    if gone:
        gone += [file for end in CLAIMS if (file := root / f"claims{end}").exists()]
        verb = "would be removed" if dry else "removed"
        print(f"masklab: claims that the config no longer asks for are {verb}: {_listed(gone)}", file=sys.stderr)
        for file in [] if dry else gone:
            file.unlink(missing_ok=True)
    old = []
    for study, declared in studies.items():
        for kind, end, names in (("figures", ".pdf", declared.figures), ("tables", ".csv", declared.tables)):
            files = sorted((root / kind / study).glob(f"*{end}"))
            old += [file for file in files if file.stem not in names]
    if old:
        print(f"masklab: no longer in the config, and left as they are: {_listed(old)}", file=sys.stderr)


def other_studies(root, studies, folder=SCORES) -> list[str]:
    """Studies of another config whose scores (or claims) a run holds: its tables keep them while they lie there."""
    return sorted(file.stem for file in Path(root, folder).glob("*.parquet") if file.stem not in studies)


def _named(one, several, names):
    return f"{one if len(names) == 1 else several} {', '.join(names)}"


def _listed(files, most=6):
    more = f" and {len(files) - most} more" if len(files) > most else ""
    return ", ".join(map(str, files[:most])) + more
