"""What decides which tokens a recipe hides in all its updates; recipes that share it share the codes of these tokens.

Randomness has an address, so the masks of a run are known before it begins. Light: asked while a workflow is parsed.
"""

from masklab.config.references import phase
from masklab.config.replicates import dictionary_of
from masklab.errors import MaskLabError
from masklab.files import fingerprint

DIGITS = 8
PATTERN = rf"masks-[0-9a-f]{{{DIGITS}}}"  # of a name


def masks_of(config, recipe: str) -> dict:
    """What the masks of a recipe depend on beside its corpus, tokenizer and seed; JSON-able.

    reader: the term that hides tokens in its own way, with its settings, and the encoder that it may look at; None: the
    ordinary way.
    """
    model = config.models[recipe]
    reader = None
    for name, term in config.objectives[model.objective].terms.items():
        if term.reads:
            encoder = config.encoders[model.encoder].model_dump(mode="json")
            reader = {"term": name, "settings": term.model_dump(mode="json"), "encoder": encoder}
    masking = model.masking.model_dump(mode="json")
    decided = {"steps": model.steps, "batch_size": model.batch_size, "masking": masking}
    return decided | {"phase": phase(config, recipe), "reader": reader}


def name_of(masks: dict) -> str:
    """A name for masks; others have another."""
    return f"masks-{fingerprint(masks)[:DIGITS]}"


def masks_called(config, dictionary: str, name: str) -> dict:
    """The masks of this name that the recipes of a dictionary have.

    Raises:
        MaskLabError: none of its recipes has them.
    """
    for recipe, model in config.models.items():
        coded = model.codes == "masked" and dictionary_of(config, recipe) == dictionary
        if coded and name_of(masks := masks_of(config, recipe)) == name:
            return masks
    raise MaskLabError(f"codes of {dictionary}, {name}: no recipe has these masks and `codes: masked`")
