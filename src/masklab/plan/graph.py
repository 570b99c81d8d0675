"""The jobs of a configuration and what each needs, from where artifacts lie (`workflow/paths.py`)."""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from masklab.errors import MaskLabError

# Artifact below results/<run>/ -> rule and names. The names are those of the rule's wildcards.
PLACES = [
    (rule, re.compile(place))
    for rule, place in {
        "corpus": r"corpora/(?P<corpus>[^/]+)/.*",
        "tokenizer": r"tokenizers/(?P<tokenizer>[^/]+)/.*",
        "tokens": r"tokens/(?P<corpus>[^/]+)/(?P<tokenizer>[^/]+)/.*",
        "embeddings": r"embeddings/(?P<embeddings>[^/]+)/.*",
        "causal_model": r"causal_models/(?P<causal>[^/]+)/.*",
        "conditionals": r"conditionals/(?P<corpus>[^/]+)/(?P<tokenizer>[^/]+)/(?P<sample>[^/]+)/.*",
        "pretrain": r"models/(?P<model>[^/]+)/.*",
        "dictionary": r"dictionaries/(?P<dictionary>[^/]+)/.*",
        "codes": r"codes/(?P<dictionary>[^/]+)/.*",
        "task": r"tasks/(?P<task>[^/]+)/.*",
        "probe": r"scores/(?P<study>[^/]+)/(?P<probe>[^/]+)/(?P<model>[^/]+)/(?P<unit>[^/]+)\.parquet",
        "figure": r"figures/(?P<study>[^/]+)/(?P<figure>[^/]+)\.pdf",
        "table": r"tables/(?P<study>[^/]+)/(?P<table>[^/]+)\.csv",
        "study_claims": r"claims/(?P<study>[^/]+)\.(csv|parquet)",
        "claims": r"claims\.parquet",
        "scores": r"scores\.parquet",
    }.items()
]
LOCAL = ("scores", "claims", "study_claims", "table", "figure")  # run where Snakemake runs; never submitted


@dataclass
class Job:
    """One job: its rule, the values of its wildcards, and the keys of the jobs whose artifacts it reads."""

    rule: str
    names: dict[str, str]
    needs: list[tuple] = field(default_factory=list)

    @property
    def key(self) -> tuple:
        return (self.rule, *self.names.values())


def checkout_paths(config):
    """`Paths` of the checkout that this library lies in, or of the current folder."""
    for root in (Path(__file__).parents[3], Path.cwd()):
        if (root / "workflow/paths.py").is_file():
            sys.path.insert(0, str(root / "workflow"))
            from paths import Paths

            return Paths(config)
    raise MaskLabError("plan: workflow/paths.py not found; run it in a checkout")


def job_of(path: str, root: str) -> Job:
    """The job that makes an artifact."""
    inside = path.removeprefix(f"{root}/")
    for rule, place in PLACES:
        if match := place.fullmatch(inside):
            return Job(rule, match.groupdict())
    raise MaskLabError(f"plan: no rule makes {path}")


def graph(paths, targets: list[str]) -> dict[tuple, Job]:
    """Every job that the artifacts `targets` need, after those it needs itself."""
    jobs, visiting = {}, set()

    def visit(path):
        job = job_of(path, paths.root)
        if job.key not in jobs:
            if job.key in visiting:
                raise MaskLabError(f"config: {' '.join(job.key)} needs itself")
            visiting.add(job.key)
            job.needs = list(dict.fromkeys(visit(needed) for needed in inputs(paths, job)))
            jobs[job.key] = job
        return job.key

    for target in targets:
        visit(target)
    return jobs


def inputs(paths, job: Job) -> list[str]:
    """Artifacts that a job reads."""
    n, config, result = job.names, paths.config, paths.result
    match job.rule:
        case "corpus":
            found = paths.corpus_inputs(n["corpus"])
        case "tokenizer":
            found = [result("corpora", config.tokenizers[n["tokenizer"]].corpus, "train.parquet")]
        case "tokens":
            found = [result("corpora", n["corpus"], "train.parquet"), result("tokenizers", n["tokenizer"], "t")]
        case "embeddings":
            entry = config.embeddings[n["embeddings"]]
            found = [result("tokens", entry.corpus, entry.tokenizer, "meta.json")]
        case "causal_model":
            found = paths.causal_model_inputs(n["causal"])
        case "conditionals":
            found = [result("tokens", n["corpus"], n["tokenizer"], "meta.json")]
        case "pretrain":
            found = paths.model_inputs(n["model"])
        case "dictionary":
            found = paths.dictionary_inputs(n["dictionary"])
        case "codes":
            name = n["dictionary"]
            found = [*paths.dictionary_inputs(name).values(), result("dictionaries", name, "dictionary.safetensors")]
        case "task":
            found = paths.task_inputs(n["task"])
        case "probe":
            found = paths.probe_inputs(n["study"], n["probe"], n["model"], n["unit"])
        case "figure":
            name = n["study"], n["figure"]
            found = [*paths.drawn_from(*name), *paths.drawn_corpora(*name)]
        case "table":
            found = paths.drawn_from(n["study"], n["table"])
        case "study_claims":
            found = paths.claimed_from(n["study"])
        case "claims":
            found = paths.all_claims()
        case "scores":
            found = paths.all_scores()
    values = found.values() if isinstance(found, dict) else found
    return [path for value in values for path in ([value] if isinstance(value, str) else value)]
