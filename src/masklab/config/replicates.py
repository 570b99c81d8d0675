"""Replicates: what is drawn anew for each of them, how many there are, and under which seed each is drawn.

An *instance* is one draw of an entry, written as it lies on disk: `<name>` where all replicates share it, `<name>/r2`
where replicate 2 has its own. Models, embeddings, dictionaries, codes and probes always have their own. Laws, corpora,
causal models and tasks have where their entry says `redraw: true`; these and tokenizers also have where anything that
they are made from has.
"""

from masklab.config.references import LAWS, OF_CORPUS, named_law, recipe_of_dictionary, split_reference, study_models
from masklab.rng import replicate_seed

NAME = r"r[1-9]\d*"  # of a replicate's folder; no entry may be called so
SHARED = ("corpora", "tokenizers", "causal_models", "tasks")  # sections whose entries can be shared by all replicates


def instance(config, section: str, name: str, replicate: int) -> str:
    """The instance of an entry that replicate 1, 2, ... of a recipe reads."""
    return f"{name}/r{replicate}" if is_redrawn(config, section, name) else name


def split_instance(text: str) -> tuple[str, int | None]:
    """`name/r2` -> (name, 2); `name` -> (name, None), which all replicates share."""
    name, _, replicate = text.partition("/r")
    return name, int(replicate) if replicate else None


def is_redrawn(config, section: str, name: str) -> bool:
    """Whether each replicate has its own instance of an entry."""
    if section not in SHARED:
        return True
    entry = getattr(config, section)[name]
    if getattr(entry, "redraw", False) or has_redrawn_law(config, entry):
        return True
    return any(is_redrawn(config, *source) for source in _sources(config, section, entry))


def has_redrawn_law(config, entry) -> bool:
    """Whether a corpus or task names a law that is drawn anew for each replicate."""
    key, law = named_law(entry) or (None, None)
    return law is not None and (getattr(config, LAWS[key])[law] if isinstance(law, str) else law).redraw


def _sources(config, section, entry):
    """(section, name) of the entries that an entry is made from, laws left out."""
    if section == "tokenizers" and entry.kind == "folder":
        return
    if section in ("tokenizers", "causal_models") or (section == "tasks" and entry.kind in OF_CORPUS):
        yield "corpora", entry.corpus
    if section == "causal_models":
        yield "tokenizers", entry.tokenizer
    if section == "corpora" and entry.kind == "causal" and entry.causal in config.causal_models:
        yield "causal_models", entry.causal
    if section == "tasks" and entry.kind == "restricted-labels":
        yield "tasks", entry.task


def seed_of(config, replicate: int | None) -> int:
    """Seed of what replicate 1, 2, ... draws for itself; for None the config's own, of what all share."""
    return config.seed if replicate is None else replicate_seed(config.seed, replicate)


# --- how many -----------------------------------------------------------------


def measured_replicates(config, study: str, recipe: str) -> int:
    """How many replicates of a recipe a study measures: what the recipe says, else the study, else the top level."""
    return config.models[recipe].replicates or config.studies[study].replicates or config.replicates


def trained_replicates(config) -> dict[str, int]:
    """Recipe -> how many replicates it has: as many as any study measures, or as anything that starts from it has."""
    counts = {recipe: model.replicates or 0 for recipe, model in config.models.items()}
    for study, declared in config.studies.items():
        for recipe in study_models(declared):
            counts[recipe] = max(counts[recipe], measured_replicates(config, study, recipe))
    counts = {recipe: count or config.replicates for recipe, count in counts.items()}
    changed = True
    while changed:
        changed = False
        for recipe in config.models:
            for source in sources_of(config, recipe):
                if counts[source] < counts[recipe]:
                    counts[source], changed = counts[recipe], True
    return counts


def sources_of(config, recipe: str) -> list[str]:
    """Recipes whose replicate k the replicate k of a recipe is made from: of `init`, teacher and dictionary."""
    model, dictionary = config.models[recipe], dictionary_of(config, recipe)
    links = {key: getattr(model, key) for key in ("init", "teacher")}
    recipes = [split_reference(link, f"models.{recipe}.{key}")[0] for key, link in links.items() if link]
    if dictionary:
        recipes.append(recipe_of_dictionary(config, dictionary))
    return recipes


def dictionary_of(config, recipe: str) -> str | None:
    """The dictionary whose codes the objective of a recipe reads; None if it reads none."""
    model = config.models[recipe]
    return model.dictionary if config.objectives[model.objective].needs("codes") else None
