"""WordNet from a database folder, read by nltk, which is imported when a database is."""

import warnings
from pathlib import Path

from masklab.errors import MaskLabError, in_one_line


def place_of(folder) -> Path:
    """Where the database of a data folder of NLTK lies, or of that folder itself; MaskLabError: there is none."""
    root = Path(folder).expanduser().resolve()
    root = root.parents[1] if root.parts[-2:] == ("corpora", "wordnet") else root
    place = root / "corpora" / "wordnet"
    if not (place / "data.noun").is_file():
        raise MaskLabError(f"{folder}: no WordNet database there; it must hold corpora/wordnet/data.noun")
    return place


def open_wordnet(folder):
    """nltk's reader of the database in a data folder of NLTK (corpora/wordnet/data.noun), or in that folder itself.

    Raises:
        MaskLabError: nltk is not installed, there is no database, or nltk cannot read it.
    """
    try:
        import nltk.data
        from nltk.corpus.reader.wordnet import WordNetCorpusReader
    except ImportError:
        raise MaskLabError(f"{folder}: WordNet is read by nltk, which is not installed; pip install nltk") from None
    place = place_of(folder)
    nltk.data.path.insert(0, str(place.parents[1]))  # nltk opens nothing that does not lie below one of these
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other languages
            reader = WordNetCorpusReader(str(place), None)
        reader.synsets("word")
    except Exception as error:  # the library raises its own, and bare ones of its parser
        raise MaskLabError(f"{place}: not a WordNet database that nltk reads ({in_one_line(error)})") from None
    return reader
