"""The lookup table of true conditionals as a model (Liu et al. 2023, section 2.3, appendix A.4).

Its representation of token t is the exact conditional Pr(. | x_-t) itself, one number per symbol, and its loss is the
entropy by construction. It has no weights: the folder holds the facts of the corpus's law, from which the law is
made, and the tokenizer.
"""

from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import atomic_folder, read_json, write_json
from masklab.models.companions import write_companions

FACTS = "lookup.json"


def is_lookup(checkpoint) -> bool:
    """Whether a checkpoint folder holds a lookup table."""
    return (Path(checkpoint) / FACTS).is_file()


def save_lookup(folder, facts: dict, tokenizer_folder=None, metadata: dict | None = None) -> None:
    """Write the lookup table of the corpus with these `facts` (`masklab.symbols.read_header`), atomically."""
    with atomic_folder(folder) as temporary:
        write_json(facts, temporary / FACTS, lasting=False)
        write_companions(temporary, metadata, tokenizer_folder)


def load_lookup(folder):
    """The law of a lookup table: `symbols` and `conditionals`; MaskLabError if the law is not known exactly."""
    from masklab.corpora.laws import law_of

    law = law_of(read_json(Path(folder) / FACTS))
    if not hasattr(law, "conditionals"):
        raise MaskLabError(f"{folder}: the exact conditionals of this corpus are not known")
    return law
