"""Synonyms of a word by WordNet, of its part of speech and in its inflection.

The released code of Chiang and Yogatama (2023) inflects by pyinflect. Here forms are made from WordNet's own lists of
irregular ones and by rule, and a form counts only if WordNet leads it back to the word that it was made of. What the
lists do not tell stands below, for common words.
"""

from pathlib import Path

from masklab.phrases.closed_class import CLOSED
from masklab.wordnet import open_wordnet, place_of

PARTS = {"N": "n", "V": "v", "J": "a"}  # first letter of a tag of the Penn Treebank -> WordNet's part of speech
LISTS = {"n": "noun.exc", "v": "verb.exc", "a": "adj.exc"}
PLAIN = ("NN", "VB", "VBP", "JJ")  # tags of words that have the form of their lemma
TAGS = {"n": ("NNS",), "v": ("VBZ", "VBG", "VBD", "VBN"), "a": ("JJR", "JJS")}  # of the other forms
VOWELS = "aeiou"
# What WordNet's lists do not say, or say of words as they once were.
ONE_FORM = """
beset bet bid broadcast burst cast cost cut forecast hit hurt knit let offset outbid preset put quit read recast reread
reset rid set shed shut slit split spread sublet thrust typecast undercut upset wed wet
"""  # verbs whose past and participle are the lemma
KNOWN = {(tag, verb): verb for tag in ("VBD", "VBN") for verb in ONE_FORM.split()} | {("VBD", "beat"): "beat"}
KNOWN |= {("VBN", verb): verb for verb in ("become", "come", "outrun", "overcome", "overrun", "rerun", "run")}
KNOWN |= {
    ("NNS", noun): f"{noun}s" for noun in ("epoch", "eunuch", "loch", "matriarch", "monarch", "patriarch", "stomach")
}
UNUSUAL = {"addrest", "blest", "bypast", "curst", "dove", "snuck", "wrought"}
NO_DEGREES = {"far", "many", "much", "little", "less", "wrong"}
NO_MAN = {"brahman", "caiman", "cayman", "desman", "dolman", "german", "hetman", "human", "norman", "ottoman", "roman",
          "shaman", "talisman"}  # fmt: skip


class Synonyms:
    """WordNet in a data folder of NLTK, or in the folder of the database itself; MaskLabError if there is none."""

    def __init__(self, folder):
        self.reader, place = open_wordnet(folder), place_of(folder)
        self.irregular = {part: _irregular(place / name) for part, name in LISTS.items()}
        self.degrees = {form for forms in self.irregular["a"].values() for form in forms}

    def of(self, word: str, tag: str | None = None) -> list[str]:
        """Forms that may stand in a word's place, one for each sense that has them, in WordNet's order.

        tag: of the Penn Treebank, of a noun, verb or adjective; None: as `tag` gives it, and nothing of a word of the
        closed classes (`in` is no inch). No other form of the word is its synonym.
        """
        low = word.lower()
        tag = self.tag(word) if tag is None else tag
        part = PARTS.get((tag or "")[:1])
        if part is None or not low.isalpha() or tag.startswith("NNP"):
            return []
        lemma, found = self.reader.morphy(low, part), []
        for sense in dict.fromkeys(self.reader.synsets(low, part)):  # a sense of `years` and `year` comes twice
            for name in sense.lemma_names():
                other = name.lower()
                akin = other == lemma or low in self._forms(other, part) or other in self._forms(low, part)
                if other.isalpha() and name.islower() and not akin:
                    found.append(self.inflected(other, tag))
        return [_cased(form, word) for form in found if form and form != low]

    def inflected(self, lemma: str, tag: str) -> str | None:
        """A lemma in the form that a tag says; None where no form is known that WordNet leads back to it."""
        form = self._form(lemma, tag)
        return form if form and (form == lemma or self.reader.morphy(form, PARTS[tag[0]]) == lemma) else None

    def _form(self, lemma, tag) -> str | None:
        """A lemma in the form that a tag says, by the words above, by WordNet's lists or by rule; "" or None: none."""
        if tag in PLAIN:
            return "" if (lemma, tag) == ("be", "VBP") else lemma  # am, are
        form = KNOWN.get((tag, lemma)) or self._irregular_form(lemma, tag, PARTS[tag[0]])
        return _regular(lemma, tag) if form is None else form

    def _forms(self, lemma, part) -> set:
        """A lemma and all that it can become."""
        return {lemma, *self.irregular[part].get(lemma, ()), *(self._form(lemma, tag) for tag in TAGS[part])}

    def _irregular_form(self, lemma, tag, part):
        """The one form of WordNet's list that a tag can mean; "" where it could be several; None: the list has none."""
        listed = [form for form in self.irregular[part].get(lemma, ()) if form not in UNUSUAL]
        if part == "a" and (lemma in NO_DEGREES or lemma in self.degrees):
            return ""
        ends = {"VBG": "ing", "JJR": "er", "JJS": "est"}.get(tag)
        if ends:
            forms = [form for form in listed if form.endswith(ends)]
            return forms[0] if forms else "" if part == "a" and listed else None
        if tag == "VBZ":
            forms = [form for form in listed if form.endswith("s") and form != "was"]  # the one past form in -s
        else:
            forms = [form for form in listed if not form.endswith("ing")]
            if tag == "VBD" and all(form.endswith(("en", "wn")) for form in forms):  # a participle, beside showed
                forms = []
        return (forms[0] if len(forms) == 1 else "") if forms else None

    def tag(self, word: str) -> str | None:
        """The tag that a word most likely has: of the part of speech in which WordNet's texts have it most often.

        None of words of the closed classes, of adverbs, and of those that WordNet does not know.
        """
        low = word.lower()
        if low in CLOSED:
            return None
        counts: dict[str, int] = {}
        for sense in dict.fromkeys(self.reader.synsets(low)):
            part = sense.pos().replace("s", "a")
            lemma = self.reader.morphy(low, part)
            own = sum(each.count() for each in sense.lemmas() if each.name().lower() == lemma)
            counts[part] = counts.get(part, 0) + own
        part = max(counts, key=counts.get, default=None)  # of equals the first in WordNet's order
        if part not in LISTS:  # an adverb
            return None
        lemma = self.reader.morphy(low, part)
        if lemma == low:
            return {"n": "NN", "v": "VB", "a": "JJ"}[part]
        return next((tag for tag in TAGS[part] if self.inflected(lemma, tag) == low), None)


def _irregular(path: Path) -> dict[str, list[str]]:
    """Lemma -> its irregular forms, from one of WordNet's lists of exceptions."""
    found: dict[str, list[str]] = {}
    lines = path.read_text(encoding="utf-8").splitlines()
    for form, *lemmas in (line.split() for line in lines if line.strip()):
        for lemma in lemmas:
            found.setdefault(lemma, []).append(form)
    return found


def _regular(lemma, tag) -> str | None:
    """A form by rule; None: there is none, as of long adjectives, which take `more` and `most`, and of `means`."""
    if tag == "NNS" and (lemma.endswith("s") and not lemma.endswith("ss")):
        return None
    if tag == "NNS" and lemma.endswith("man") and lemma not in NO_MAN:
        return lemma[:-3] + "men"
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
