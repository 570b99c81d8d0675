"""Where artifacts lie, and what the job of each reads and is made from. Read at parse time: light imports only."""

import atexit
import functools
import os
import re
import sys
from pathlib import Path

from artifacts import Artifact, data, drawing, measuring, pages, training
from cluster import partitions
from masklab import studies
from masklab.config import kinds, read
from masklab.config.check_data import check_data
from masklab.config.faults import Faults
from masklab.config.fit import too_large
from masklab.config.measured import study_pairs
from masklab.config.notices import not_read, notices
from masklab.config.references import split_reference
from masklab.config.replicates import instance, is_redrawn, seed_of, split_instance
from masklab.errors import MaskLabError
from masklab.files import fingerprint
from masklab.jobs.code import Code, Sources
from masklab.jobs.provenance import input_mark
from submitted import change

HERE = Path(__file__).parent
RULES: dict[str, type[Artifact]] = {
    "corpus": data.Corpus,
    "tokenizer": data.Tokenizer,
    "tokens": data.Tokens,
    "embeddings": data.Embeddings,
    "causal_model": data.CausalModel,
    "conditionals": data.Conditionals,
    "task": data.Task,
    "pretrain": training.Pretrain,
    "dictionary": training.Dictionary,
    "codes": training.Codes,
    "masked_codes": training.MaskedCodes,
    "dictionary_page": training.DictionaryPage,
    "probe": measuring.Probe,
    "scores": measuring.Scores,
    "figure": drawing.Figure,
    "table": drawing.Table,
    "study_claims": drawing.StudyClaims,
    "claims": drawing.Claims,
    "facts": drawing.Facts,
    "pages": pages.Pages,
}


@functools.cache
def checkout() -> Sources:
    """The code of this checkout, read once; what this command found of it is left for the next."""
    sources = Sources(HERE.parent / "src", HERE / "scripts")
    atexit.register(sources.keep)
    return sources


class Paths:
    """Places of artifacts, and the inputs, parameters and code of their jobs, under one configuration.

    submitted, submitted_code: in a cluster job, the `Paths` of the configuration that it was submitted with, and the
    fingerprints of the code.
    """

    def __init__(self, config, submitted=None, submitted_code=None):
        kinds.load(config.code)  # another config may have been read meanwhile
        self.config, self.submitted, self.submitted_code = config, submitted, submitted_code
        self.checkout, self.notices = checkout(), []
        self.root = f"results/{config.run}" if config.run else "results"
        self.rules = {rule: kind(self) for rule, kind in RULES.items()}

    # --- of a job: a rule and the values of its wildcards -----------------------

    def inputs(self, rule: str, **names) -> dict:
        """Name -> file or files that a job reads; `sources` are a user's."""
        return self.rules[rule].inputs(**names)

    def outputs(self, rule: str, **names) -> list[str]:
        """Files of an artifact that is not all that lies in a folder, the first of them what it is known by."""
        return self.rules[rule].outputs(**names)

    def settings(self, rule: str, **names) -> dict | None:
        """Resolved config that a job depends on; in a job `{"changed": ...}` if it did since submission."""
        now = self.rules[rule].settings(**names)
        if self.submitted is None or now is None:
            return now
        try:
            changed = change(self.submitted.settings(rule, **names), now)
        except KeyError:
            changed = f"{rule} {' '.join(names.values())}: not declared when submitted"
        return {"changed": changed} if changed else now

    def code(self, rule: str, **names) -> Code:
        """Fingerprint of the code that a job is made by; in a job it says what `changed` since submission."""
        artifact = self.rules[rule]
        code = self.checkout.of(artifact.script, *artifact.roots(**names), files=self.config.code)
        code.files, then = list(self.config.code), self.submitted_code
        if then is not None:
            code.changed = [part for part, mark in code.modules.items() if then.get(part) != mark]
        return code

    def sources(self, rule: str, **names) -> str | None:
        """Fingerprint of the user's files that a job reads: Snakemake asks of a file only whether it is newer."""
        files = [file for file in self.inputs(rule, **names).get("sources", ()) if Path(file).exists()]
        return fingerprint({file: input_mark(file) for file in files}) if files else None

    def for_rules(self) -> list:
        """`inputs`, `settings`, `code` and `sources` as rules take them: rule -> a function of the job's wildcards."""
        methods = self.inputs, self.settings, self.code, self.sources
        return [lambda rule, of=of: lambda wildcards: of(rule, **dict(wildcards.items())) for of in methods]

    def labels(self, section: str):
        """Labels of figures or tables in Snakemake's report, as a function of the job's wildcards."""
        return lambda wildcards: drawing.labels(self.config, section, wildcards)

    def job_of(self, path: str) -> tuple[str, dict[str, str]]:
        """(rule, values of its wildcards) of the job that makes a file."""
        root = f"{self.root}/"
        for rule, kind in RULES.items() if path.startswith(root) else ():
            if (names := kind.match(path.removeprefix(root))) is not None:
                return rule, names
        raise MaskLabError(f"{path}: no rule makes it")

    def record(self, rule: str, **names) -> str:
        """The record of a job."""
        return self.of_job("made", rule, ".json", **names)

    def of_job(self, folder: str, rule: str, end: str = "", **names) -> str:
        """What a job leaves below `made`, `logs` or `state`, at the place of its artifact."""
        return self.result(folder, RULES[rule].place.format(**names) + end)

    def log(self, rule: str, **names) -> str:
        """The log of a job."""
        return self.result("logs", RULES[rule].place.format(**names) + ".log")

    # --- places -------------------------------------------------------------------

    def result(self, *parts) -> str:
        return "/".join([self.root, *parts])

    def folder(self, section: str, name: str, replicate: int | None) -> str:
        """Folder of the instance of an entry that a replicate reads."""
        return self.result(section, instance(self.config, section, name, replicate))

    def tokens(self, corpus: str, tokenizer: str, replicate: int | None) -> str:
        """meta.json of the token arrays of a corpus."""
        named = ("corpora", corpus), ("tokenizers", tokenizer)
        return self.result("tokens", *(instance(self.config, *entry, replicate) for entry in named), "meta.json")

    def tokenizer(self, name, replicate) -> str:
        return self.folder("tokenizers", name, replicate) + "/tokenizer.json"

    def task(self, name, replicate) -> str:
        return self.folder("tasks", name, replicate) + "/task.json"

    def dictionary(self, name, replicate) -> str:
        return self.folder("dictionaries", name, replicate) + "/dictionary.safetensors"

    def codes(self, name, replicate, masks: str | None = None) -> str:
        """Facts of the codes of a corpus: of all its tokens, or of those that some masks hide."""
        return self.folder("codes", f"{name}/{masks}" if masks else name, replicate) + "/codes.json"

    def manifest(self, reference: str, replicate: int) -> str:
        """Manifest of the model of `recipe@step`."""
        return self.folder("models", split_reference(reference, "reference")[0], replicate) + "/manifest.json"

    # --- parameters that many share ----------------------------------------------

    def seed(self, replicate: int | None) -> int:
        return seed_of(self.config, replicate)

    def is_causal(self, corpus: str) -> bool:
        """Whether an instance of a corpus is drawn from a causal model, which takes long."""
        return self.config.corpora[split_instance(corpus)[0]].kind == "causal"

    def is_long(self, corpus: str) -> bool:
        """Whether the job of an instance of a corpus may take so long that it keeps a state."""
        return self.config.corpora[split_instance(corpus)[0]].kind in ("causal", "text")

    def common(self, replicate: int | None) -> dict:
        return {"seed": self.seed(replicate), "device": self.config.device}

    # --- targets ------------------------------------------------------------------

    def study_scores(self) -> dict[str, list[str]]:
        """Study -> its score files. Studies that ask the same of the same recipe share a file."""
        return {
            study: measuring.score_files(self, study, study_pairs(self.config, study)) for study in self.config.studies
        }

    def items(self, study) -> dict[str, list[str]]:
        """Every figure and table of a study, and its claims: name -> files, the first of them what it is known by."""
        return drawing.items(self, study)

    def target(self, study) -> list[str]:
        """What is made where a study is asked for: its figures, tables and claims; where it has none, its scores."""
        if items := self.items(study):
            return [path for files in items.values() for path in files]
        stems = [file.removesuffix(".parquet") for file in self.study_scores()[study]]
        return [f"{stem}{end}" for stem in stems for end in measuring.Probe.ends]

    def everything(self) -> list[str]:
        """All that the pages of results show, and these."""
        return [*self.shown(), *self.outputs("pages")]

    def shown(self) -> list[str]:
        """Every figure and table of every study, all claims, all scores, all facts."""
        gathered = [*(["claims"] if self.inputs("claims")["claims"] else []), "scores", "facts"]
        listed = [files for study in self.config.studies for files in self.items(study).values()]
        return [path for files in listed + [self.outputs(rule) for rule in gathered] for path in files]

    def check(self):
        """Stop the run before any job where something asked for is impossible."""
        faults, targets = Faults(self.config.raw), set(RULES) | {"all", "dictionaries"}
        for study in self.config.studies:
            with faults.collect():
                for target in (study, *(f"{study}_{name}" for name in self.items(study))):
                    if target in targets:
                        raise MaskLabError(
                            f"config: studies.{study}: {target!r} is a target of the workflow already, a rule or"
                            " part of another study; choose another name"
                        )
                    targets.add(target)
        faults.stop()
        drawing.check(self)


def opened(files=(), values=(), data: bool = True) -> Paths:
    """The one way in: the checked configuration of config files, and where everything of it lies.

    Whatever the workflow refuses before its first job is refused here, and in the same words. data: look into the
    user's files that corpora and tasks name, too; what can be run, but perhaps not as meant, is in `notices`.
    Raises MaskLabError: mistakes with file, line and key, one a line.
    """
    config = read(*files, values=values, also=[drawing.check_names])
    _check_encoding(config)
    paths = Paths(config)
    paths.check()
    for place in map(Path, ("results", paths.root)):
        if place.exists() and not place.is_dir():
            raise MaskLabError(f"{place}: a file lies where the folder of results goes; move it away")
        if place.is_symlink() and not place.exists():
            raise MaskLabError(
                f"{place}: leads to {os.path.realpath(place)}, where there is no folder; make that folder, or mount its"
                " disk"
            )
    if data:
        paths.notices = check_data(config) + notices(config) + studies.notices(config) + too_large(config, partitions)
        paths.notices = ([] if files else not_read()) + paths.notices
    return paths


def _check_encoding(config) -> None:
    """MaskLabError where a name of an entry, and with it of files, is one thing to Python and another to libraries.

    Python goes by the locale. Arrow, safetensors and tokenizers write and look for UTF-8.
    """
    if (encoding := sys.getfilesystemencoding()).lower() == "utf-8":
        return
    sections = [section for section in config.raw.values() if isinstance(section, dict)]
    for name in (config.run, *(name for section in sections for name in section)):
        if not str(name or "").isascii():
            raise MaskLabError(
                f"{name}: files of that name are not found again, since this locale's names of files are {encoding};"
                " set PYTHONUTF8=1"
            )


def notices_of(paths) -> str:
    """What `opened` noticed, each in a line for a terminal."""
    return "".join(f"masklab: note: {line}\n" for line in paths.notices)


def pattern(names) -> str:
    """Wildcard constraint: exactly the declared names."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or "(?!)"


def instances(config, section: str) -> str:
    """Wildcard constraint: exactly the declared entries, with a replicate where each has its own."""
    names = getattr(config, section)
    shared = [name for name in names if not is_redrawn(config, section, name)]
    redrawn = [name for name in names if name not in shared]
    return rf"{pattern(shared)}|(?:{pattern(redrawn)})/r[1-9]\d*"
