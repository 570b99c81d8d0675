"""What each rule makes, one class per rule: where it lies, what it reads, what it is made from.

Asked while the workflow is parsed and by `masklab plan` and `masklab why`: light imports only.
"""

import re

from masklab.config.masks import PATTERN as MASKS

INSTANCE = r"[^/]+(?:/r[1-9]\d*)?"  # an entry, or one replicate's draw of it
WILDCARDS = {
    **dict.fromkeys(("corpus", "tokenizer", "causal", "task"), INSTANCE),
    "replicate": r"[1-9]\d*",
    "masks": MASKS,
    "sequences": r"\d+",
    "unit": r"[^/]+?",
}


class Artifact:
    """What one rule makes.

    place: below the folder of results, with the rule's wildcards; the log, the state and the record of a job lie at
    the same place below `logs/`, `state/` and `made/`. ends: of its files, the first of them what it is known by; none:
    a folder. script: the rule's script.
    Methods take the values of the rule's wildcards by name.
    """

    place: str
    ends: tuple[str, ...] = ()
    script: str

    def __init__(self, paths):
        self.paths, self.config = paths, paths.config

    def inputs(self, **names) -> dict:
        """Name -> file or files that a job reads: artifacts, and under `sources` a user's files."""
        return {}

    def outputs(self, **names) -> list[str]:
        """Its files; none where it is a folder."""
        return [self.paths.result(self.place.format(**names) + end) for end in self.ends]

    def settings(self, **names) -> dict | None:
        """The part of the resolved config that a job's result depends on; JSON-able."""
        return None

    def roots(self, **names):
        """Code that a job uses and its script does not import, as `masklab.jobs.code.Sources.of` takes it."""
        return ()

    @classmethod
    def match(cls, path: str) -> dict | None:
        """Values of the wildcards for a path below the folder of results; None if it is no such artifact's."""
        matched = re.fullmatch(cls.pattern(), path)
        return matched and matched.groupdict()

    @classmethod
    def pattern(cls) -> str:
        place = re.sub(r"\{(\w+)\}", lambda m: f"(?P<{m[1]}>{WILDCARDS.get(m[1], '[^/]+')})", cls.place)
        return place + (f"(?:{'|'.join(map(re.escape, cls.ends))})" if cls.ends else "/.+")


def of_kind(kind) -> list[str]:
    """The code of a kind of entry: the modules that make it, the class of its settings, a user's file."""
    parts = [*kind.code()]
    if isinstance(kind.settings, str):
        parts.append(kind.settings)
    if kind.file:
        parts.append(kind.part())
    return parts
