"""Nulls: recipes that stand beside those of a study to say what its measures are worth where nothing was learned.

A study names the kinds it wants (`nulls:`). All but `majority` are recipes derived from those of its panels, trained
for no step and measured by the study's own probes:

    untrained.<recipe>      the same encoder with initial weights
    shuffled.<recipe>       the trained weights, permuted within each tensor; of each recipe that is trained
    one-hot.<recipe>        no network: the tokens in their order
    bag-of-words.<recipe>   no network: the tokens, counted
    bag-of-units.<recipe>   no network: what the tokens spell, counted, where the tasks say it

Recipes of a study for which a null is one and the same share it, and the first of them, in the order of the panels,
names it: `untrained` those of one corpus, tokenizer, encoder and masking; of words those of one corpus, tokenizer,
masking and longest sequence. The entries that nulls need besides begin with `null.`.
"""

from dataclasses import dataclass

from masklab.config.exact import measures_words
from masklab.config.references import checkpoints, study_models
from masklab.config.schema import Config, Encoder, Model, Objective
from masklab.config.schema.probes import UNITS, WORDS
from masklab.errors import MaskLabError

PREFIX = "null."
LABEL = "null: "  # how the labels of their columns begin in tables
# The objective of a recipe without steps: nothing is trained, `mae` is for encoders with a decoder.
OBJECTIVES = {f"{PREFIX}mlm": Objective(mlm=1), f"{PREFIX}mae": Objective(mae=1)}


@dataclass(frozen=True)
class _Null:
    """A null recipe of a study: its name, its kind, and the recipe that names it."""

    name: str
    kind: str
    recipe: str


def with_nulls(config: Config) -> Config:
    """The config with every null recipe of its studies, and the encoders and objectives that these need, added.

    Nothing else changes: studies name no null. Given its own result it returns an equal config.

    Raises:
        MaskLabError: an entry of the config has the name of a null and is another.
    """
    models, encoders, objectives = {}, {}, {}
    for declared in config.studies.values():
        for recipe, nulls in _nulls(config, declared).items():
            for null in nulls:
                model = _model(config, null, _replicates(config, declared, recipe))
                # shared by several recipes: as many replicates as the one with the most
                models[null.name] = max(models.get(null.name, model), model, key=lambda each: each.replicates)
                encoders |= _encoder(config, null)
                objectives[model.objective] = OBJECTIVES[model.objective]
    added = {"models": models, "encoders": encoders, "objectives": objectives}
    for section, entries in added.items():
        for name, entry in entries.items():
            if getattr(config, section).get(name, entry) != entry:
                raise MaskLabError(f"config: {section}.{name}: is the name of a null of a study; choose another")
    return config.model_copy(update={section: {**getattr(config, section), **new} for section, new in added.items()})


def null_recipes(config: Config, study: str) -> dict[str, dict[str, str | None]]:
    """The nulls of each recipe of a study's panels: {recipe: {kind: null recipe}}, kinds as the study lists them.

    `majority` is no recipe: None. A kind that a recipe has no null of is left out: what was never trained is not
    shuffled, and without a network there are no initial weights.
    """
    declared = config.studies[study]
    names = {}
    for recipe, nulls in _nulls(config, declared).items():
        named = {null.kind: null.name for null in nulls} | {"majority": None}
        names[recipe] = {kind: named[kind] for kind in dict.fromkeys(declared.nulls) if kind in named}
    return names


def null_measurements(config: Config, study: str) -> dict[str, list[str]]:
    """Probe -> the null recipes that a study measures with it, each once; probes that measure none are left out.

    A probe measures the nulls of the recipes that it measures, if its kind says that they mean something to it
    (`nulls` of its class). A null has one checkpoint: what a probe with listed checkpoints would ask of it is left to
    another probe that asks the same. config: with its nulls or without.
    """
    declared, nulls, measurements = config.studies[study], null_recipes(config, study), {}
    for probe in sorted(declared.probes, key=lambda name: isinstance(config.probes[name].steps, list)):
        listed = declared.probes[probe]
        measured = study_models(declared) if listed == "all" else listed
        names = [
            name
            for recipe in measured
            for kind, name in nulls.get(recipe, {}).items()
            if name is not None
            and _measures(config, probe, kind)
            and not any(name in others and _covers(config, other, probe) for other, others in measurements.items())
        ]
        if names:
            measurements[probe] = list(dict.fromkeys(names))
    return measurements


def _covers(config, other, probe) -> bool:
    """Whether another probe asks all that a probe with listed checkpoints would ask of a recipe with one checkpoint."""
    asks, own = config.probes[other], config.probes[probe]
    sizes, asked = getattr(own, "sizes", None), getattr(asks, "sizes", None)
    within = sizes == asked or bool(sizes and asked and set(sizes) <= set(asked))
    return asks.kind == own.kind and within and isinstance(own.steps, list) and set(own.tasks) <= set(asks.tasks)


def _measures(config, probe, kind) -> bool:
    meant = getattr(config.probes[probe], "nulls", ())
    return kind in meant and (kind not in WORDS or measures_words(config, probe, units=kind == UNITS))


def _nulls(config, study) -> dict[str, list[_Null]]:
    """Null recipes of each recipe of a study's panels, in the order of the panels."""
    first, nulls = {}, {}
    for recipe in dict.fromkeys(member for panel in study.members.values() for member in panel):
        model = config.models[recipe]
        encoder = config.encoders[model.encoder]
        text = model.corpus, model.tokenizer, model.masking
        shared = {"untrained": (*text, model.encoder), "shuffled": (recipe,)}
        shared |= dict.fromkeys(WORDS, (*text, encoder.max_positions))
        ours = encoder.network and encoder.kind != "folder"
        has = {"untrained": ours, "shuffled": ours and model.steps > 0}
        has |= dict.fromkeys(WORDS, encoder.kind != "words")
        nulls[recipe] = [
            _Null(f"{kind}.{namesake}", kind, namesake)
            for kind in dict.fromkeys(study.nulls)
            if has.get(kind) and (namesake := first.setdefault((kind, *shared[kind]), recipe))
        ]
    return nulls


def _model(config, null, replicates) -> Model:
    origin = config.models[null.recipe]
    decoder = config.encoders[origin.encoder].decoder is not None and null.kind not in WORDS
    trained = {"init": f"{null.recipe}@{checkpoints(origin)[-1]}", "shuffle": True} if null.kind == "shuffled" else {}
    return Model(
        corpus=origin.corpus,
        tokenizer=origin.tokenizer,
        encoder=next(iter(_encoder(config, null)), origin.encoder),
        objective=f"{PREFIX}mae" if decoder else f"{PREFIX}mlm",
        steps=0,
        masking=origin.masking,
        precision=origin.precision,
        keep_decoder=decoder,
        replicates=replicates,
        **trained,
    )


def _encoder(config, null) -> dict[str, Encoder]:
    """The entry of `encoders` that a null needs and its recipe does not have."""
    if null.kind not in WORDS:
        return {}
    longest = config.encoders[config.models[null.recipe].encoder].max_positions
    counted = {"order": null.kind == "one-hot", "units": null.kind == UNITS}
    encoder = Encoder(kind="words", max_positions=longest, **counted)
    return {f"{PREFIX}{null.kind}-{longest}": encoder}


def _replicates(config, study, recipe) -> int:
    return config.models[recipe].replicates or study.replicates or config.replicates
