"""Facts: what a recipe, a task or a probe *is*, by key, resolved from the config.

Figures, tables and claims read facts and never names, so that a name is free text. Keys are those of the config with
dots: `objective.mae.delta`, `corpus.chains.synsets`, `masking.rate`, `task.mix`. What only a finished artifact knows
(parameters, tokens, FLOPs) lies in the manifest of a model and is joined in `masklab.scores.results`.
"""

import json
import math

from masklab.config.references import checkpoints, law_entry, named_law, phase
from masklab.config.replicates import is_redrawn

# Keys of a recipe that name entries: what the entries say follows under the same key with a dot.
NAMES = ("corpus", "tokenizer", "encoder", "objective", "dictionary", "embeddings", "init", "teacher")
WITHOUT_NETWORK = ("kind", "order", "max_positions")  # keys of an encoder that one without a network has
# Keys of a recipe that cannot change a result, but for rounding.
SPEED = ("log_every", "validate_every", "save_minutes", "micro_batch", "processes", "nodes", "compile", "stack")
SPEED += ("replicates",)


def base(task: str) -> str:
    """The task as the config has it: "blimp/anaphor_agreement" -> "blimp"."""
    return task.partition("/")[0]


def flat(value, prefix: str = "") -> dict:
    """Nested mappings as one, keys joined by dots; everything else is a value."""
    if not isinstance(value, dict):
        return {prefix: value}
    joined = {}
    for key, part in value.items():
        joined |= flat(part, f"{prefix}.{key}" if prefix else str(key))
    return joined


def names_corpus(key: str, value) -> bool:
    """Whether a fact says which corpus a recipe, its tokenizer, its dictionary, ... or a task is made from."""
    return key.rpartition(".")[2] == "corpus" and isinstance(value, str)


def _entry(prefix: str, name: str, entity) -> dict:
    return {prefix: name, **flat(entity.model_dump(mode="json"), prefix)}


def _encoder(name, encoder) -> dict:
    """Settings of an encoder; None for those that one without a network has no use for."""
    facts = _entry("encoder", name, encoder)
    used = {"encoder", *(f"encoder.{key}" for key in WITHOUT_NETWORK)}
    return facts if encoder.network else {key: value if key in used else None for key, value in facts.items()}


def _drawn(config, prefix: str, entity) -> dict:
    """Settings of a corpus or task, with those of the law it names below the law's key."""
    facts = flat(entity.model_dump(mode="json"), prefix)
    key, law = named_law(entity) or (None, None)
    if key is not None:
        facts |= {f"{prefix}.{key}": law if isinstance(law, str) else None}
        facts |= flat(law_entry(config, entity).model_dump(mode="json"), f"{prefix}.{key}")
    return facts


def recipe_facts(config, name: str) -> dict:
    """Facts of a recipe: its own keys, and those of all that it names."""
    model = config.models[name]
    objective = config.objectives[model.objective]
    facts = flat(model.model_dump(mode="json", exclude={*NAMES, *SPEED})) | {"phase": phase(config, name)}
    facts |= {"checkpoints": checkpoints(model)}
    facts |= {"corpus": model.corpus} | _drawn(config, "corpus", config.corpora[model.corpus])
    facts |= {"corpus.redrawn": is_redrawn(config, "corpora", model.corpus)}
    facts |= _entry("tokenizer", model.tokenizer, config.tokenizers[model.tokenizer])
    facts |= _encoder(model.encoder, config.encoders[model.encoder])
    facts |= _entry("objective", model.objective, objective) | {"objective.terms": list(objective.terms)}
    taught = objective.needs("teacher") or objective.needs("codes")
    facts |= {"init": model.init, "teacher": model.teacher or model.init if taught else None}
    facts |= {"embeddings": model.embeddings}
    if model.embeddings:
        facts |= _entry("embeddings", model.embeddings, config.embeddings[model.embeddings])
    if objective.needs("codes"):
        facts |= _entry("dictionary", model.dictionary, config.dictionaries[model.dictionary])
        del facts["dictionary.wordnet"]  # a page's alone
    return facts


def task_facts(config, name: str) -> dict:
    """Facts of a task; `metric` is the one it reports, `redrawn` whether every replicate has its own."""
    facts = _drawn(config, "task", config.tasks[name])
    facts = {key.removeprefix("task."): value for key, value in facts.items()}
    own = getattr(config.tasks[name], "own_metric", "accuracy")
    return {"metric": own} | facts | {"redrawn": is_redrawn(config, "tasks", name)}


def corpus_facts(config, name: str) -> dict:
    """Facts of a corpus."""
    drawn = _drawn(config, "corpus", config.corpora[name])
    return {key.removeprefix("corpus."): value for key, value in drawn.items()}


def probe_facts(config, name: str) -> dict:
    """Facts of a probe."""
    return flat(config.probes[name].model_dump(mode="json", exclude={"split", "pack"}))


COLUMNS = ("noun", "name", "replicate", "key", "value", "number")


def rows(noun: str, name: str, facts: dict, replicate: int = 0) -> list[dict]:
    """Facts as rows of `COLUMNS`: value as JSON, number where it is one (else NaN); replicate 0: of all of them."""
    return [
        {
            "noun": noun,
            "name": name,
            "replicate": replicate,
            "key": key,
            "value": json.dumps(value, ensure_ascii=False),
            "number": float(value) if isinstance(value, int | float) else math.nan,
        }
        for key, value in flat(facts).items()
    ]


def of_replicates(table) -> dict[tuple[str, int], dict]:
    """(recipe, replicate) -> what the manifests of its models said, from a frame of `COLUMNS`: `rows` undone."""
    found: dict[tuple[str, int], dict] = {}
    of_models = table[(table["noun"] == "recipe") & (table["replicate"] > 0)]
    for row in of_models.itertuples():
        *outer, key = row.key.split(".")
        facts = found.setdefault((row.name, int(row.replicate)), {})
        for part in outer:
            facts = facts.setdefault(part, {})
        facts[key] = json.loads(row.value)
    return found
