"""Synonyms of a word by WordNet, of its part of speech and in its inflection.

The released code of Chiang and Yogatama (2023) inflects by pyinflect. Here forms are made from WordNet's own lists of
irregular ones and by rule, and a form counts only if WordNet leads it back to the word that it was made of, so that
what no rule makes well is left out.
"""

from pathlib import Path

from masklab.wordnet import open_wordnet, place_of

PARTS = {"N": "n", "V": "v", "J": "a"}  # first letter of a tag of the Penn Treebank -> WordNet's part of speech
LISTS = {"n": "noun.exc", "v": "verb.exc", "a": "adj.exc"}
PLAIN = ("NN", "VB", "VBP", "JJ")  # tags of words that have the form of their lemma
VOWELS = "aeiou"


class Synonyms:
    """WordNet in a data folder of NLTK, or in the folder of the database itself; MaskLabError if there is none."""

    def __init__(self, folder):
        self.reader, place = open_wordnet(folder), place_of(folder)
        self.irregular = {part: _irregular(place / name) for part, name in LISTS.items()}

    def of(self, word: str, tag: str | None = None) -> list[str]:
        """Forms that may stand in a word's place, one for each sense that has them, in WordNet's order.

        tag: of the Penn Treebank, of a noun, verb or adjective; None: what WordNet says of the word first.
        """
        low = word.lower()
        tag = self._tag(low) if tag is None else tag
        part = PARTS.get((tag or "")[:1])
        if part is None or not low.isalpha() or tag.startswith("NNP"):
            return []
        lemma, found = self.reader.morphy(low, part), []
        for sense in self.reader.synsets(low, part):
            for name in sense.lemma_names():
                other = name.lower()
                if other != lemma and other.isalpha() and name.islower() and (form := self.inflected(other, tag)):
                    found += [form] if form != low else []
        return [_cased(form, word) for form in found]

    def inflected(self, lemma: str, tag: str) -> str | None:
        """A lemma in the form that a tag says; None where no form is known that WordNet leads back to it."""
        part = PARTS[tag[0]]
        form = lemma if tag in PLAIN else self._irregular_form(lemma, tag, part)
        form = _regular(lemma, tag) if form is None else form
        return form if form and (form == lemma or self.reader.morphy(form, part) == lemma) else None

    def _irregular_form(self, lemma, tag, part):
        """The one form of WordNet's list that a tag can mean; "" where it could be several; None: the list has none."""
        listed = self.irregular[part].get(lemma, ())
        ends = {"VBG": "ing", "JJR": "er", "JJS": "est"}.get(tag)
        if ends:
            forms = [form for form in listed if form.endswith(ends)]
            return forms[0] if forms else "" if part == "a" and listed else None
        if tag == "VBZ":
            forms = [form for form in listed if form.endswith("s") and form != "was"]  # the one past form in -s
        else:
            forms = [form for form in listed if not form.endswith("ing")]
        return (forms[0] if len(forms) == 1 else "") if forms else None

    def _tag(self, low):
        """The tag that a word most likely has, by its commonest sense that is a noun, a verb or an adjective."""
        parts = [sense.pos().replace("s", "a") for sense in self.reader.synsets(low)]
        part = next((part for part in parts if part in LISTS), None)
        if part is None:
            return None
        lemma = self.reader.morphy(low, part)
        plain = {"n": "NN", "v": "VB", "a": "JJ"}[part]
        others = {"n": ("NNS",), "v": ("VBZ", "VBG", "VBD"), "a": ("JJR", "JJS")}[part]
        return plain if lemma == low else next((tag for tag in others if self.inflected(lemma, tag) == low), None)


def _irregular(path: Path) -> dict[str, list[str]]:
    """Lemma -> its irregular forms, from one of WordNet's lists of exceptions."""
    found: dict[str, list[str]] = {}
    lines = path.read_text(encoding="utf-8").splitlines()
    for form, *lemmas in (line.split() for line in lines if line.strip()):
        for lemma in lemmas:
            found.setdefault(lemma, []).append(form)
    return found


def _regular(lemma, tag) -> str | None:
    """A form by rule; None: there is none, as of long adjectives, which take `more` and `most`."""
    y = lemma[-1] == "y" and len(lemma) > 1 and lemma[-2] not in VOWELS
    if tag in ("NNS", "VBZ"):
        # goes, echoes; of nouns in -o as many take -s (photos)
        goes = tag == "VBZ" and lemma[-1] == "o" and len(lemma) > 1 and lemma[-2] not in VOWELS
        es = goes or lemma.endswith(("s", "x", "z", "ch", "sh"))
        return lemma[:-1] + "ies" if y else lemma + ("es" if es else "s")
    mute = lemma.endswith("e") and not lemma.endswith(("ee", "ye", "oe"))
    if tag == "VBG":
        return (lemma[:-1] if mute else lemma) + "ing"
    ends = {"VBD": "ed", "VBN": "ed", "JJR": "er", "JJS": "est"}.get(tag)
    if ends is None or (tag[0] == "J" and sum(letter in "aeiouy" for letter in lemma.rstrip("e")) > 1 and not y):
        return None
    return lemma[:-1] + "i" + ends if y else lemma + (ends[1:] if lemma.endswith("e") else ends)


def _cased(form, word):
    return form.upper() if word.isupper() and len(word) > 1 else form.capitalize() if word[0].isupper() else form
