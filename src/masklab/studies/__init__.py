"""Studies by name: whose figures, tables and claims a study of the config gets. Light: read at parse time."""

from collections.abc import Iterable

from masklab.errors import MaskLabError


def kind_of(study: str, registered: Iterable[str], what: str) -> str:
    """The registered name that a study has, or starts with before a dash: "mlsm" also serves "mlsm-tiny".

    what: what is looked for, in the plural ("claims"), for the MaskLabError where there is none of that name.
    """
    known = sorted(registered, key=len, reverse=True)
    kind = next((name for name in known if study == name or study.startswith(f"{name}-")), None)
    if kind is None:
        raise MaskLabError(
            f"config: studies.{study}: no {what} of that name; there are some for {', '.join(known)} (and names that"
            f" start so, {known[0]}-...)"
        )
    return kind
