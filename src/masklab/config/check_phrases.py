"""What a probe of paraphrases needs on this machine: parses, a WordNet, translation models.

Where something is missing a config is read all the same, with a note, and a run that would come to the probe is refused
before its first job.
"""

from importlib.util import find_spec
from pathlib import Path

from masklab import wordnet
from masklab.config.adopted import found
from masklab.config.data import JSON, head
from masklab.config.sources import expand
from masklab.errors import MaskLabError
from masklab.lines import format_of, parsed

# Packages that transformers cuts texts with, of translation models whose tokenizer is no file of its own.
CUT_BY = {"fsmt": "sacremoses", **dict.fromkeys(("marian", "m2m_100", "plbart"), "sentencepiece")}


def lacking(config, probes=None) -> list[str]:
    """A line for each probe that lacks something, with its key; probes: names of those that count, None: all."""
    found = []
    for name, probe in config.probes.items():
        if probe.kind == "paraphrased" and (probes is None or name in probes):
            try:
                _check(f"probes.{name}", probe)
            except MaskLabError as error:
                found.append(str(error))
    return found


def _check(where: str, probe) -> None:
    """MaskLabError, beginning with `where`, at the first thing that is missing."""
    for pattern in probe.parses:
        _check_parses(f"{where}.parses", pattern)
    if probe.wordnet is not None:
        try:
            wordnet.place_of(probe.wordnet)
            if find_spec("nltk") is None:
                raise MaskLabError(
                    f"{probe.wordnet}: WordNet is read by nltk, which is not installed; pip install nltk"
                )
        except MaskLabError as error:
            raise MaskLabError(f"{where}.wordnet: {error}") from None
    for key in ("there", "back"):
        if (model := getattr(probe, key)) is not None:
            try:
                _check_model(model)
            except MaskLabError as error:
                raise MaskLabError(f"{where}.{key}: {error}") from None


def _check_model(model: str) -> None:
    file = found(model) / "config.json"
    try:
        kind = parsed(file.read_text(encoding="utf-8")).get("model_type")
    except (OSError, ValueError, AttributeError):  # the probe says what is wrong with it
        return
    package = CUT_BY.get(kind) if isinstance(kind, str) else None
    if package and find_spec(package) is None:
        raise MaskLabError(f"{model}: its tokenizer needs {package}, which is not installed; pip install {package}")


def _check_parses(where, pattern):
    files = [file for file in expand(pattern) if Path(file).exists()]
    if not files:
        raise MaskLabError(f"{where}: no file matches {pattern}")
    for file in files:
        try:
            lines = [line for line in head(file).lines if line.strip()]
        except MaskLabError as error:
            raise MaskLabError(f"{where}: {error}") from None
        begins = {**dict.fromkeys(JSON, "{"), ".tsv": None}.get(format_of(file), "(")
        if begins is None and not any(column.endswith("parse") for column in lines[0].split("\t")):
            raise MaskLabError(f"{where}: {file}: has no column whose name ends in `parse`")
        if begins is not None and not lines[0].lstrip().startswith(begins):
            raise MaskLabError(
                f"{where}: {file}: begins with no {begins!r}: parses are in brackets, or fields of json lines"
            )
