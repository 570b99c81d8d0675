"""Where artifacts lie and what each needs. Read at parse time: light imports only."""

import functools
import re
import sys
from pathlib import Path

from masklab.claims.spec import claim_needs
from masklab.config import is_exact, kinds, law_entry, resolved, split_reference, study_models
from masklab.config.references import phase
from masklab.config.schema import CorpusProbe
from masklab.config.sources import missing, source_files
from masklab.config.units import units
from masklab.figures.needs import drawn_corpora, find, given, needs
from masklab.figures.spec import metrics
from submitted import change


def pattern(names) -> str:
    """Wildcard constraint: exactly the declared names."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or "(?!)"


def parameters(method):
    """A method of `Paths` that resolves parameters; in a job `{"changed": ...}` if they did since submission."""

    @functools.wraps(method)
    def compared(self, *names):
        now = method(self, *names)
        if self.submitted is None:
            return now
        try:
            changed = change(method(self.submitted, *names), now)
        except KeyError:
            changed = f"{'.'.join(names)}: not declared when submitted"
        return {"changed": changed} if changed else now

    return compared


class Paths:
    """Artifact paths and resolved parameters of one configuration.

    submitted: in a cluster job, the `Paths` of the configuration that it was submitted with.
    """

    def __init__(self, config, submitted=None):
        self.config, self.submitted = config, submitted
        self.root = f"results/{config.run}" if config.run else "results"

    def result(self, *parts) -> str:
        return "/".join([self.root, *parts])

    def checkpoint(self, reference: str) -> str:
        """Folder of `model@step`."""
        model, step = split_reference(reference, "reference")
        return self.result("models", model, f"step-{step}")

    def causal_folder(self, name: str) -> str:
        """Hugging Face folder of an entry of `causal_models`."""
        return self.result("causal_models", name, "model")

    def manifest(self, reference: str) -> str:
        return self.result("models", split_reference(reference, "reference")[0], "manifest.json")

    # --- resolved parameters: exactly what an entity's result depends on ------

    def common(self) -> dict:
        return {"seed": self.config.seed, "device": self.config.device}

    @parameters
    def entity(self, section, name) -> dict:
        """Parameters of a corpus (`corpora`) or task (`tasks`), with the law it names.

        A corpus of a causal model also has the folder or hub id of that model, and the device it runs on.
        """
        entity = getattr(self.config, section)[name]
        found = {
            "seed": self.config.seed,
            {"corpora": "corpus", "tasks": "task"}[section]: resolved(self.config, entity),
        }
        if entity.kind == "causal":
            named = self.causal_folder(entity.causal) if entity.causal in self.config.causal_models else entity.causal
            found |= {"device": self.config.device, "model": named}
        return found

    @parameters
    def causal_model(self, name) -> dict:
        return self.common() | {"causal_model": self.config.causal_models[name].model_dump(mode="json")}

    @parameters
    def tokenizer(self, name) -> dict:
        return {"seed": self.config.seed, "tokenizer": self.config.tokenizers[name].model_dump(mode="json")}

    @parameters
    def encoding(self, name) -> dict:
        """Parameters of token arrays."""
        return {"max_length": self.config.tokenizers[name].max_length}

    @parameters
    def embeddings(self, name) -> dict:
        settings = self.config.embeddings[name].model_dump(mode="json")
        return {"seed": self.config.seed, "embeddings": settings}

    @parameters
    def model(self, name) -> dict:
        model = self.config.models[name]
        objective = self.config.objectives[model.objective]
        dictionary = self.config.dictionaries[model.dictionary] if objective.needs("codes") else None
        return self.common() | {
            "replicate": 1,
            "phase": phase(self.config, name),
            "model": model.model_dump(mode="json"),
            "encoder": self.config.encoders[model.encoder].model_dump(mode="json"),
            "objective": objective.model_dump(mode="json"),
            "dictionary": dictionary and dictionary.model_dump(mode="json"),
        }

    @parameters
    def probe(self, study, probe, model, unit) -> dict:
        steps, tasks = units(self.config.probes[probe], self.config.models[model])[unit]
        return self.common() | {
            "probe": self.config.probes[probe].model_dump(mode="json", exclude={"split", "pack"})
            | {"steps": steps, "tasks": tasks},
        }

    @parameters
    def dictionary(self, name) -> dict:
        return self.common() | {"dictionary": self.config.dictionaries[name].model_dump(mode="json")}

    # --- what an artifact needs -------------------------------------------------

    def tokens(self, name) -> str:
        """Folder of the token arrays a model is trained on."""
        model = self.config.models[name]
        return self.result("tokens", model.corpus, model.tokenizer)

    def corpus_inputs(self, name) -> dict:
        """{"model": manifest} of a corpus drawn from a causal model of the pipeline, else {}."""
        corpus = self.config.corpora[name]
        if corpus.kind != "causal" or corpus.causal not in self.config.causal_models:
            return {}
        return {"model": self.result("causal_models", corpus.causal, "manifest.json")}

    def causal_model_inputs(self, name) -> dict:
        model = self.config.causal_models[name]
        return {
            "tokens": self.result("tokens", model.corpus, model.tokenizer, "meta.json"),
            "tokenizer": self.result("tokenizers", model.tokenizer, "tokenizer.json"),
        }

    def task_inputs(self, name) -> dict:
        """What a task is made from besides user files: another task, and a corpus whose words it keeps."""
        task = self.config.tasks[name]
        if task.kind != "restricted-labels":
            return {}
        return {
            "task": self.result("tasks", task.task, "task.json"),
            "corpus": self.result("corpora", task.corpus, "test.parquet"),
        }

    def dictionary_inputs(self, name) -> dict:
        reference = self.config.dictionaries[name].model
        model, _ = split_reference(reference, f"dictionaries.{name}.model")
        return {"manifest": self.manifest(reference), "tokens": f"{self.tokens(model)}/meta.json"}

    def model_inputs(self, name) -> dict:
        model = self.config.models[name]
        found = {
            "tokens": f"{self.tokens(name)}/meta.json",
            "tokenizer": self.result("tokenizers", model.tokenizer, "tokenizer.json"),
        }
        if model.embeddings:
            found["embeddings"] = self.result("embeddings", model.embeddings, "vectors.npy")
        if model.init:
            found["init"] = self.manifest(model.init)
        objective = self.config.objectives[model.objective]
        if objective.tasks:
            found["tasks"] = [self.result("tasks", task, "task.json") for task in objective.tasks]
        if objective.needs("codes"):
            found["dictionary"] = self.result("dictionaries", model.dictionary, "dictionary.safetensors")
            if model.codes == "stored":
                found["codes"] = self.result("codes", model.dictionary, "train.values.npy")
        return found

    def model_code(self, name) -> list[str]:
        """Modules of the terms of a model's objective: what else it is trained by, the script imports."""
        terms = self.config.objectives[self.config.models[name].objective].terms
        return [module for term in terms for module in kinds.find("terms", term).code()]

    def probe_inputs(self, study, probe, model, unit) -> dict:
        settings = self.config.probes[probe]
        _, tasks = units(settings, self.config.models[model])[unit]
        found = {
            "manifest": self.result("models", model, "manifest.json"),
            "tasks": [self.result("tasks", task, "task.json") for task in tasks],
        }
        if settings.kind == "prediction":
            found |= {k: v for k, v in self.model_inputs(model).items() if k == "codes"}
        if isinstance(settings, CorpusProbe):
            found["tokens"] = f"{self.tokens(model)}/meta.json"
        if is_exact(self.config, probe, model):
            found["conditionals"] = self.conditionals(probe, model)
        return found

    def conditionals(self, probe, model) -> str:
        """The exact conditionals that a loss probe measures a model against: one file for all models of a corpus."""
        settings, trained = self.config.probes[probe], self.config.models[model]
        sample = f"{settings.sequences}-{settings.positions}"
        return self.result("conditionals", trained.corpus, trained.tokenizer, sample, "probabilities.npy")

    # --- scores, tables, figures --------------------------------------------------

    def score_files(self, study, pairs) -> list[str]:
        """Score files of (probe, model) pairs."""
        return [
            self.result("scores", study, probe, model, f"{unit}.parquet")
            for probe, model in pairs
            for unit in units(self.config.probes[probe], self.config.models[model])
        ]

    def study_scores(self, study) -> list[str]:
        declared = self.config.studies[study]
        members = study_models(declared)
        return self.score_files(
            study,
            [
                (probe, model)
                for probe, models in declared.probes.items()
                for model in (members if models == "all" else models)
            ],
        )

    def all_scores(self) -> list[str]:
        return [path for study in self.config.studies for path in self.study_scores(study)]

    def drawn_from(self, study, name) -> list[str]:
        """Score files that one figure or table reads."""
        return self.score_files(study, needs(study, name, self.config))

    def drawn_corpora(self, study, name) -> list[str]:
        """Training splits that one figure reads besides scores."""
        return [self.result("corpora", corpus, "train.parquet") for corpus in drawn_corpora(study, name, self.config)]

    @parameters
    def drawing(self, study, name) -> dict:
        """What a figure or table depends on besides scores: the study's declaration, labels and metrics."""
        declared = self.config.studies[study]
        plain = declared.model_dump(mode="json", exclude={"claims", "margin"})
        return {"study": plain, "arguments": given(study, name, self.config)}

    def figures(self, study) -> dict[str, str]:
        return {name: self.result("figures", study, f"{name}.pdf") for name in self.config.studies[study].figures}

    def tables(self, study) -> dict[str, str]:
        return {name: self.result("tables", study, f"{name}.csv") for name in self.config.studies[study].tables}

    def claims(self, study) -> dict[str, str]:
        """{"claims": file} of a study that declares some, else {}."""
        return {"claims": self.result("claims", f"{study}.csv")} if self.config.studies[study].claims else {}

    def claimed_from(self, study) -> list[str]:
        """Score files that the claims of a study read."""
        return self.score_files(study, claim_needs(study, self.config))

    @parameters
    def claiming(self, study) -> dict:
        """What the claims of a study depend on besides scores."""
        declared = self.config.studies[study]
        plain = declared.model_dump(mode="json", exclude={"figures", "tables", "extra"})
        return {"study": plain, "metrics": metrics(self.config, declared)}

    def all_claims(self) -> list[str]:
        files = [path for study in self.config.studies for path in self.claims(study).values()]
        return [file.removesuffix(".csv") + ".parquet" for file in files]

    def items(self, study) -> dict[str, str]:
        """Every figure and table of a study, and its claims: name -> file."""
        return self.figures(study) | self.tables(study) | self.claims(study)

    def everything(self) -> list[str]:
        """Every figure and table of every study, and all claims."""
        claims = [self.result("claims.parquet")] if self.all_claims() else []
        return [path for study in self.config.studies for path in self.items(study).values()] + claims

    def check(self):
        """Resolve what every figure and table needs, so that an impossible one stops the run before any job."""
        for study in self.config.studies:
            for name in [*self.config.studies[study].figures, *self.config.studies[study].tables]:
                needs(study, name, self.config)
            claim_needs(study, self.config)

    # --- sources outside the workflow ---------------------------------------------

    def sources(self, section, name) -> list[str]:
        """User files that a corpus or task is read from; missing ones are reported by the job that reads them."""
        entity = getattr(self.config, section)[name]
        files = source_files(entity) + source_files(law_entry(self.config, entity))
        return [file for file in files if Path(file).exists()]

    def warn_missing_sources(self):
        for section in ("corpora", "tasks"):
            for name, entity in getattr(self.config, section).items():
                for file in missing(entity) + missing(law_entry(self.config, entity)):
                    print(f"masklab: warning: {section}.{name}: no file matches {file}", file=sys.stderr)


def drawn_by(study, name) -> str:
    """Module that makes a figure or table."""
    return find(study, name).make.partition(":")[0]
