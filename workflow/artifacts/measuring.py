"""Scores: of one probe on one replicate of a recipe, and of all together."""

from pathlib import Path

from artifacts import Artifact, of_kind
from artifacts.training import WHOLE, codes_of, files_of_model, files_of_wordnet
from masklab.config import is_exact, kinds
from masklab.config.measured import replicates_of
from masklab.config.sources import existing, expand
from masklab.config.units import units
from masklab.jobs.store import FILES

LAWS = "masklab.corpora.laws"  # what imports it may ask for the law of a model's corpus


class Probe(Artifact):
    place, script = "scores/{probe}/{recipe}/r{replicate}/{unit}", "probe.py"
    ends = FILES["probe"]

    def inputs(self, probe, recipe, replicate, unit):
        settings, model, k = self.config.probes[probe], self.config.models[recipe], int(replicate)
        tokens = self.paths.tokens(model.corpus, model.tokenizer, k)
        files = {
            "manifest": self.paths.folder("models", recipe, k) + "/manifest.json",
            "tasks": [self.paths.task(task, k) for task in units(settings, model)[unit][1]],
        }
        if settings.kind == "prediction" and (codes := codes_of(self.paths, recipe, k)):
            files["codes"] = codes
        if settings.reads_tokens:
            files["tokens"] = tokens
        if read := _files_read(settings):
            files["sources"] = read
        if is_exact(self.config, probe, recipe):
            folder = tokens.replace("/tokens/", "/conditionals/").removesuffix("/meta.json")
            files["conditionals"] = f"{folder}/{settings.sequences}-{settings.positions}/conditionals.json"
        return files

    def settings(self, probe, recipe, replicate, unit):
        settings = self.config.probes[probe]
        steps, tasks = units(settings, self.config.models[recipe])[unit]
        plain = settings.model_dump(mode="json", exclude={"split", "pack", "replicates"})
        return self.paths.common(int(replicate)) | {"probe": plain | {"steps": steps, "tasks": tasks}}

    def roots(self, probe, recipe, replicate, unit):
        roots = of_kind(kinds.find("probes", self.config.probes[probe].kind))
        if LAWS in self.paths.checkout.of(self.script, *roots).modules:
            corpus = self.config.corpora[self.config.models[recipe].corpus]
            roots += kinds.find("corpora", corpus.kind).modules
        return roots


def _files_read(probe) -> list[str]:
    """A user's files that a probe reads, as far as they exist, each once.

    Those that paraphrases are made from (parses, a WordNet, translation models in folders), and those that a probe of
    a user's own names by the keys that corpora and tasks name theirs by. Of a user's kind a key may be anything.
    """

    def stated(key, kind=str):
        value = getattr(probe, key, None)
        return value if value and isinstance(value, kind) else None

    parses = [file for file in stated("parses", list) or () if isinstance(file, str)]
    found = existing(probe) + [path for file in parses for path in expand(file) if Path(path).is_file()]
    found += files_of_wordnet(stated("wordnet")) if stated("wordnet") else []
    models = [model for model in map(stated, ("there", "back", "folder")) if model]
    return list(dict.fromkeys(found + [file for model in models for file in files_of_model(model, WHOLE)]))


class Scores(Artifact):
    """All scores of all studies in one table."""

    place, script, ends = "scores", "scores.py", (".parquet", ".csv")

    def inputs(self):
        files = self.paths.study_scores().values()
        return {"scores": list(dict.fromkeys(file for listed in files for file in listed))}


def score_files(paths, study, pairs) -> list[str]:
    """Score files of the replicates of (probe, recipe) pairs that a study measures."""
    config = paths.config
    return [
        paths.result("scores", probe, recipe, f"r{replicate}", f"{unit}.parquet")
        for probe, recipe, replicate in replicates_of(config, study, pairs)
        for unit in units(config.probes[probe], config.models[recipe])
    ]
