"""What a masked autoencoder asks of the config."""

from typing import NamedTuple

from masklab.config.references import split_reference
from masklab.config.schema import Decoder, Mae
from masklab.errors import MaskLabError

# Kinds of probes.
READ_PREDICTIONS = ("loss", "minimal_pairs", "prediction", "curvature", "landscape", "replaced", "paraphrased")


def check_autoencoder(config, where, model, encoder, objective):
    """The decoder and the objective of the entry `where` of `models` fit each other."""
    decoder, how = encoder.decoder, objective.get("mae")
    if decoder is None and how and needs_decoder(how):
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
    """A probe reads no predictions of a masked autoencoder that its checkpoints do not make."""
    settings, trained = config.probes[probe], config.models[model]
    decoder, how = config.encoders[trained.encoder].decoder, config.objectives[trained.objective].get("mae")
    masks = trained.masking.mask
    if problem := probe_problem(settings, probe, model, Autoencoder(trained.keep_decoder, decoder, how, masks)):
        raise MaskLabError(f"config: {where}: {problem}")


class Autoencoder(NamedTuple):
    """What predictions of a masked autoencoder depend on.

    kept: whether its checkpoints keep the decoder; decoder: of its encoder, None: it has none; how: its objective's
    `mae`, None of another model; mask: the share of hidden tokens that are shown as [MASK].
    """

    kept: bool
    decoder: Decoder | None
    how: Mae | None
    mask: float


def probe_problem(settings, probe: str, model: str, made: Autoencoder) -> str | None:
    """Why a probe cannot read what a recipe predicts; None: it can, or reads no predictions."""
    if settings.kind not in READ_PREDICTIONS:
        return None
    if problem := prediction_problem(f"a {settings.kind} probe", model, made):
        return problem
    if made.decoder is None:
        return None
    if settings.kind == "loss" and settings.masks == "training" and made.how.reset and made.mask < 1:
        return (
            f"{model!r} was trained with mae.reset on hidden tokens that are not shown as [MASK]"
            f" (masking.mask below 1), which a loss probe does not reset; set probes.{probe}.masks: one"
        )
    if settings.kind == "curvature" and settings.width is not None:
        return (
            f"{model!r} has a decoder, and only an encoder without one is known in a larger width;"
            f" leave out the recipe, or probes.{probe}.width"
        )
    return None


def prediction_problem(reader: str, model: str, made: Autoencoder) -> str | None:
    """Why what a recipe predicts cannot be read; None: it can.

    A masked autoencoder predicts through its decoder alone, which checkpoints leave out unless asked. One that the
    encoder no longer has, as in a grown folder, is known by the objective.
    """
    how = made.how
    if made.decoder is None and not (how and needs_decoder(how)):
        return None
    if made.kept and how and not how.delta and how.aligned and made.decoder.attention != "causal+cross":
        return None
    return (
        f"{reader} reads predictions, which {model!r} makes through its decoder: set models.{model}.keep_decoder, and"
        " this only with delta 0, aligned positions and a decoder that is not causal"
    )


def needs_decoder(how: Mae) -> bool:
    """Whether a masked autoencoder predicts through a decoder."""
    return how.delta < 1 or how.reset
