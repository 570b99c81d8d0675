"""Figures made small enough to lie in a page."""

import base64
import io

WIDTH, COLOURS = 880, 256  # twice as wide as they are shown; with fewer colours, those of curves shift


def thumbnail(path) -> tuple[str, int, int] | None:
    """(data URI, width, height) of a PNG; None if it is not there, no image, or larger than PIL takes for sound."""
    from PIL import Image

    try:
        with Image.open(path) as file:
            image = file.convert("RGB")
    except (OSError, Image.DecompressionBombError):  # no file, or one that PIL makes nothing of
        return None
    width = min(WIDTH, image.width)
    height = max(1, round(image.height * width / image.width))
    image = image.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=2.0)
    image = image.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    written = io.BytesIO()
    image.save(written, "png")
    return f"data:image/png;base64,{base64.b64encode(written.getvalue()).decode()}", width, height
