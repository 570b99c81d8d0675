"""The words of the English-like language, by lexical category.

`LEXICON["N(x,food)"]` is the tuple of words of one category. Categories of one
family are aligned: position i of `V(food,past)` and of `V(food,part)` are forms
of the same lemma, so a minimal pair can change the form and keep the lemma.

Category arguments: agreement m, f, x (neuter singular), p (plural); verb forms
base, s, past, part, ing; noun classes hum, animal, food, ... (`CLASSES`).
`R`/`I` families (`NR`, `NI`, `VI`) are the regular or irregular members of a class.
"""

from masklab.corpora.english import word_lists

FORMS = ("base", "s", "past", "part", "ing")
CLASSES = ("hum", "animal", *word_lists.THINGS)
THINGS = tuple(word_lists.THINGS)

_VOWELS = "aeiou"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2] not in _VOWELS:
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def _noun(entry: str) -> tuple[str, str]:
    """`apple` -> (apple, apples); `knife/knives` is irregular."""
    singular, _, plural = entry.partition("/")
    return singular, plural or _plural(singular)


def _verb(entry: str) -> tuple[str, ...]:
    """The five forms of `walk`, `hug*` (doubles its consonant), `eat/ate/eaten` or `buy/bought`."""
    base, *irregular = entry.split("/")
    stem = base.removesuffix("*")
    doubled = stem + stem[-1] if base.endswith("*") else stem
    base = stem
    after_consonant_y = base.endswith("y") and base[-2] not in _VOWELS
    third = "goes" if base == "go" else _plural(base)
    if base.endswith("e"):
        past, ing = base + "d", (base if base.endswith(("ee", "ye")) else base[:-1]) + "ing"
    else:
        past, ing = (base[:-1] + "ied" if after_consonant_y else doubled + "ed"), doubled + "ing"
    if irregular:
        past = irregular[0]
    return base, third, past, irregular[-1] if irregular else past, ing


def _add_nouns(lexicon: dict, category: str, noun_class: str, entries: list[str]) -> None:
    forms = [_noun(entry) for entry in entries]
    for number, column in (("sg", 0), ("pl", 1)):
        lexicon[f"{category}({number},{noun_class})"] = tuple(form[column] for form in forms)


def _add_verbs(lexicon: dict, category: str, frame: str, entries: list[str]) -> None:
    rows = [_verb(entry) for entry in entries]
    for column, form in enumerate(FORMS):
        if rows:
            lexicon[f"{category}({frame},{form})"] = tuple(row[column] for row in rows)


def _build() -> dict[str, tuple[str, ...]]:
    lexicon = {category: tuple(text.split()) for category, text in word_lists.CLOSED.items()}
    both = word_lists.NEUTRAL.split()
    humans = {"m": word_lists.MALE.split() + both, "f": word_lists.FEMALE.split() + both}
    for gender, entries in humans.items():
        lexicon[f"N({gender},hum)"] = tuple(_noun(entry)[0] for entry in entries)
    nouns = {
        "hum": word_lists.MALE.split() + word_lists.FEMALE.split() + both,
        "animal": word_lists.ANIMAL.split(),
        **{name: text.split() for name, text in word_lists.THINGS.items()},
    }
    for name, entries in nouns.items():
        _add_nouns(lexicon, "NL", name, entries)
        _add_nouns(lexicon, "NR", name, [entry for entry in entries if "/" not in entry])
        _add_nouns(lexicon, "NI", name, [entry for entry in entries if "/" in entry])
        lexicon[f"N(p,{name})"] = lexicon[f"NL(pl,{name})"]
        if name != "hum":
            lexicon[f"N(x,{name})"] = lexicon[f"NL(sg,{name})"]
    for gender, text in (("m", word_lists.MALE), ("f", word_lists.FEMALE)):
        lexicon[f"NG({gender})"] = tuple(_noun(entry)[0] for entry in text.split())
    for gender, text in word_lists.NAMES.items():
        lexicon[f"Name({gender})"] = tuple(text.split())
    lexicon["NamePoss"] = tuple(name + "'s" for text in word_lists.NAMES.values() for name in text.split())
    for frame, text in word_lists.VERBS.items():
        _add_verbs(lexicon, "V", frame, text.split())
        _add_verbs(lexicon, "VI", frame, [entry for entry in text.split() if entry.count("/") == 2])
    for name, text in word_lists.ADJECTIVES.items():
        lexicon[f"Adj({name})"] = tuple(text.split())
    for name, text in word_lists.PARTICIPLES.items():
        pairs = [entry.split("/") for entry in text.split()]
        lexicon[f"PartAdj({name})"] = tuple(participle for participle, _ in pairs)
        lexicon[f"PartPast({name})"] = tuple(past for _, past in pairs)
    return {category: entries for category, entries in lexicon.items() if entries}


LEXICON = _build()
