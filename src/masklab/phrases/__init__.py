"""Features of an example (words, phrases, sentences), what they are replaced by, and how much a model minds.

Light: figures and claims name with `split` what a probe of replaced features measured.
"""

SYNONYMS, OTHERS, LAW, COURSE = "synonyms", "others", "law", "course"
REPLACED = "replaced"  # the part whose metrics are texts, each with the feature that was replaced: examples to look at
WORD, SHORT, LONG = "word", "short phrase", "long phrase"
WITH, MEANS, EXAMPLE = "sentence, with", "sentence, means", "example"
DRAWN = " drawn"  # what the levels of features that were drawn are called, too
IN_TEXT = ", in its text"  # how the levels of features end that are asked in the text itself
HELD = ", form held fixed"  # ... and of what is left of distances without length, spelling and part of speech
UNTAUGHT = ", by initial weights"  # ... and where D_f0 is that of initial weights, D_f the same as before
FRESH = ", classifier never pre-trained"  # ... and where D_f is that of fine-tuned initial weights
TOLD = "told"  # the part that says how often synonyms lie nearer than other features; its metric
DRAWN_WORD = WORD + DRAWN
WORDS = (WORD, DRAWN_WORD)  # levels of single words, which have synonyms
LEVELS = (WORD, SHORT, LONG, WITH, MEANS, EXAMPLE)  # of features of text, as in the paper


def level(synsets: int, drawn: bool = False) -> str:
    """Features of so many synsets, as a split of scores: the most salient ones, or drawn ones."""
    return f"{synsets} synset" + ("s" if synsets > 1 else "") + (DRAWN if drawn else "")


def is_drawn(level: str) -> bool:
    """Whether it is a level of features that were drawn."""
    return DRAWN in level


def in_text(level: str) -> str:
    """The same features, asked in the text itself and not by the paper's query."""
    return level + IN_TEXT


def held_fixed(level: str) -> str:
    """The same features, and what is left of both distances when length, spelling and part of speech are held fixed."""
    return level + HELD


def untaught(level: str) -> str:
    """The same features, with distances before fine-tuning of what initial weights predict."""
    return level + UNTAUGHT


def fresh(level: str) -> str:
    """The same level, and the changes of a classifier that was fine-tuned from initial weights."""
    return level + FRESH


def is_in_text(level: str) -> bool:
    """Whether it is a level of features that were asked in the text itself."""
    return IN_TEXT in level


def is_held_fixed(level: str) -> bool:
    """Whether it is a level of which length, spelling and part of speech are held fixed."""
    return HELD in level


def is_untaught(level: str) -> bool:
    """Whether it is a level whose distances before fine-tuning are those of initial weights."""
    return level.endswith(UNTAUGHT)


def split(level: str, part: str | None = None) -> str:
    """What was measured of a level: all its features (None), true synonyms or others alone, the `LAW`'s own distance in
    the model's place, all features in the `COURSE` of fine-tuning, texts that were `REPLACED`, or how often synonyms
    were `TOLD` from others.
    """
    return level if part is None else f"{level}, {part}"
