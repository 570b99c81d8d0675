"""What can be a name: entries and runs become folders, targets and words of commands, and this is the one rule for all.

Letters (with their marks) and digits of any script and `_ . + -`, the first a letter, a digit or `_`: no name leaves
`results/`, hides, is read as an option or means anything to a shell.
"""

import re
import unicodedata

ALLOWED = "letters, digits and _ . + -"
LONGEST = 150  # bytes: file systems take 255, and nulls and temporary files make names longer
# Folders and files of results/ itself: a run of such a name would lie among the results of another.
TAKEN = (
    "corpora", "tokenizers", "tokens", "embeddings", "causal_models", "conditionals", "tasks", "models", "dictionaries",
    "codes", "scores", "figures", "tables", "claims", "facts", "report", "made", "logs", "state",
)  # fmt: skip


def _allowed(char: str) -> bool:
    return char in "_.+-" or unicodedata.category(char)[0] in "LMN"


def name_problem(name: str) -> str | None:
    """What is wrong with the name of an entry, or of a run that has one; None: nothing."""
    if not name:
        return "a name must not be empty"
    if wrong := dict.fromkeys(char for char in name if not _allowed(char)):
        hint = "; {...} is filled in where an entry has `for:`" if "{" in name else ""
        return f"a name may contain only {ALLOWED}; this one has {', '.join(map(_shown, wrong))}{hint}"
    if name[0] in ".+-" or unicodedata.category(name[0])[0] == "M":
        return f"a name must begin with a letter, a digit or _, not with {_shown(name[0])}"
    if (size := len(name.encode())) > LONGEST:
        return f"a name has at most {LONGEST} bytes; this one has {size}"
    if re.fullmatch(r"r[0-9]+", name):
        return "a name must not be r and a number: folders of replicates are called so"
    return None


def run_problem(name: str, cased: bool = True) -> str | None:
    """What is wrong with the name of a run, a folder below results/; None: nothing. It may be empty.

    cased: the file system tells capitals from small letters.
    """
    if name and (problem := name_problem(name)):
        return f"{problem} (got {name!r}); or leave it empty"
    if (name if cased else name.casefold()) in TAKEN:
        return f"{name!r} is a folder of the run without a name; choose another name"
    return None


def twins(names, cased: bool = True) -> dict[str, tuple[str, str]]:
    """Name -> an earlier one that looks the same, or means the same folder, and what alone they differ in.

    cased: the file system tells capitals from small letters.
    """
    first, found = {}, {}
    for name in names:
        plain = unicodedata.normalize("NFC", name)
        if (other := first.setdefault(plain if cased else plain.casefold(), name)) != name:
            same = unicodedata.normalize("NFC", other) == plain
            accents, capitals = "its accents are encoded differently", "for its capitals, which file names here ignore"
            found[name] = other, accents if same else capitals
    return found


def _shown(char: str) -> str:
    return "a space" if char == " " else repr(char)
