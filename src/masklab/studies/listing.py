"""The names that a study's `figures`, `tables` and `claims` can hold, as a part of docs/config.md."""

from masklab.report import generic
from masklab.scores.view import View
from masklab.studies import WINGS, every_claim, items


def names(config) -> str:
    """Names by wing. config: one with a study of each wing, whose claims are listed: which there are depends on it."""
    lines = ["", "## Figures, tables and claims", ""]
    lines += [
        "A wing's figures and tables are named after those of its paper. Which claims can be tested depends on the"
    ]
    lines += ["recipes, tasks and probes of a study; those of the default run are listed."]
    common = {"figures": generic.FIGURES, "tables": generic.TABLES}
    lines += ["", "| wing | figures | tables |", "| --- | --- | --- |", f"| any | {_row(common)} |"]
    for wing in WINGS:
        own = {part: [name for name in items(part, wing) if name not in common[part]] for part in common}
        lines.append(f"| `{wing}` | {_row(own)} |")
    lines += ["", "| study of the default run | claims |", "| --- | --- |"]
    for study in WINGS:
        claims = [claim.name for claim in every_claim(study, View.of(config, study))]
        lines.append(f"| `{study}` | {_code(claims)} |")
    return "\n".join(lines) + "\n"


def _row(parts) -> str:
    return " | ".join(_code(parts[part]) for part in ("figures", "tables"))


def _code(listed) -> str:
    return ", ".join(f"`{name}`" for name in listed)
