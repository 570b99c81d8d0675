"""What a masked autoencoder asks of the config."""

from masklab.config.references import split_reference
from masklab.errors import MaskLabError

# Kinds of probes.
READ_PREDICTIONS = ("loss", "minimal_pairs", "prediction", "curvature", "landscape", "replaced", "paraphrased")


def check_autoencoder(config, where, model, encoder, objective):
    """The decoder and the objective of the entry `where` of `models` fit each other."""
    decoder, how = encoder.decoder, objective.get("mae")
    if decoder is None and how and (how.delta < 1 or how.reset):
        raise MaskLabError(
            f"config: {where}.encoder: objective {model.objective!r} needs an encoder with a `decoder`"
            " (without one mae.delta must be 1 and mae.reset false)"
        )
    if decoder is not None and how is None:
        raise MaskLabError(
            f"config: {where}.encoder: {model.encoder!r} has a decoder, but objective {model.objective!r} does not use"
            " one; give an encoder without decoder, or an objective with mae"
        )
    taught = objective.needs("teacher") or objective.needs("codes")
    if decoder is not None and decoder.attention == "causal+cross" and (taught or how.reset):
        raise MaskLabError(
            f"config: {where}.encoder: {model.encoder!r} has a causal decoder, which takes no term with a teacher (kd,"
            " mlsm) and no reset"
        )
    key = "init" if model.teacher is None else "teacher"
    if objective.needs("teacher") and (reference := getattr(model, key)) is not None:
        teacher = config.models[split_reference(reference, f"{where}.{key}")[0]]
        if config.encoders[teacher.encoder].decoder is not None:
            raise MaskLabError(
                f"config: {where}.{key}: {reference} is saved without its decoder: as a teacher it predicts no tokens"
            )


def check_head(config, probe, model, where):
    """A masked autoencoder predicts tokens through its decoder alone, which checkpoints leave out unless asked."""
    settings, trained = config.probes[probe], config.models[model]
    kind, decoder = settings.kind, config.encoders[trained.encoder].decoder
    if kind not in READ_PREDICTIONS or decoder is None:
        return
    how = config.objectives[trained.objective].get("mae")
    if not trained.keep_decoder or how.delta or not how.aligned or decoder.attention == "causal+cross":
        raise MaskLabError(
            f"config: {where}: a {kind} probe reads predictions, which {model!r} makes through its decoder: set"
            f" models.{model}.keep_decoder, and this only with delta 0, aligned positions and a decoder that is not"
            " causal"
        )
    if kind == "loss" and settings.masks == "training" and how.reset and trained.masking.mask < 1:
        raise MaskLabError(
            f"config: {where}: {model!r} was trained with mae.reset on hidden tokens that are not shown as [MASK]"
            f" (masking.mask below 1), which a loss probe does not reset; set probes.{probe}.masks: one"
        )
    if kind == "curvature" and settings.width is not None:
        raise MaskLabError(
            f"config: {where}: {model!r} has a decoder, and only an encoder without one is known in a larger width;"
            f" leave out the recipe, or probes.{probe}.width"
        )
