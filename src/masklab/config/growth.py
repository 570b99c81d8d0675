"""Which encoders can grow without changing their function (see `masklab.models.grow`)."""

from masklab.errors import MaskLabError

LARGEST_EPS = 1e-6


def growth_problem(encoder, width, layers) -> str | None:
    """Why an `Encoder` cannot become `width` times as wide, with `layers` layers in all; None: it can."""
    if type(width) is not int or width < 1:
        return f"width: {width!r} must be an integer of at least 1: features are written a whole number of times"
    if type(layers) is not int or layers < encoder.layers:
        return f"layers: {layers!r} must be an integer of at least the model's {encoder.layers}"
    if encoder.decoder is not None:
        return "a model with a decoder does not grow; grow the encoder alone, from a folder without decoder.safetensors"
    if layers > encoder.layers and (encoder.norm == "post" or encoder.kind == "lstm"):
        kind = "an LSTM" if encoder.kind == "lstm" else "norm: post"
        return f"layers: {kind} normalises after each sum, where a layer of zeros changes the function; allowed: width"
    if width > 1 and (problem := head_problem(encoder)):
        return f"width: {problem}"
    if width > 1 and encoder.tied_head and encoder.eps > LARGEST_EPS:
        return f"width: norm_eps is {encoder.eps:g}; above {LARGEST_EPS:g} the function would change noticeably"
    return None


def head_problem(encoder) -> str | None:
    """Why the head of an `Encoder` is not known in any other width, whole number of times or not; None: it is."""
    if encoder.tied_head and not encoder.embedding_norm:
        return "a tied head needs embedding_norm: the embeddings are divided, and nothing would take that back"
    return None


def sized(encoder, width: int | None, layers: int | None) -> tuple[int, int]:
    """(times as wide, layers) that take an encoder to a hidden size and a number of layers; None: its own.

    Raises:
        ValueError: no whole number of times.
    """
    if width is not None and (width < encoder.hidden or width % encoder.hidden):
        raise ValueError(f"width: {width} is not a multiple of the encoder's {encoder.hidden}")
    return (width or encoder.hidden) // encoder.hidden, layers or encoder.layers


def check_growth(config, probe, model, where):
    """Refuse a probe of a grown model where the model cannot grow before it is trained, and not after."""
    settings, encoder = config.probes[probe], config.encoders[config.models[model].encoder]
    if settings.kind == "curvature" and encoder.kind != "folder":
        problem = None if settings.width in (None, encoder.hidden) else head_problem(encoder)
        if problem:
            raise MaskLabError(f"config: {where}: {model!r} is not known in width {settings.width}: {problem}")
    if settings.kind != "landscape":
        return
    try:
        problem = growth_problem(encoder, *sized(encoder, settings.width, settings.layers))
    except ValueError as error:
        problem = str(error)
    if problem and (settings.width or settings.layers):
        raise MaskLabError(f"config: {where}: {model!r} cannot grow: {problem}")
