"""Models without a network: words that are counted, and the table of a law's conditionals."""

from masklab.errors import MaskLabError
from masklab.models.lookup import is_lookup
from masklab.models.words import is_words


def check_network(folder) -> None:
    """MaskLabError for the folder of a model without a network, which only the probes of a run know how to ask."""
    if is_words(folder) or is_lookup(folder):
        raise MaskLabError(f"{folder}: holds no weights; a model without a network cannot be loaded")
