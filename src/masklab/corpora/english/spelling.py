"""From words to text: capitals, punctuation, and the article `a`/`an`.

The grammar knows one article, `a`; it is written `an` before a vowel letter
(and before no other word).
"""

_CONSONANT_SOUND = ("uni", "use")  # vowel letter, consonant sound
_VOWEL_SOUND = ("honest",)


def takes_an(word: str) -> bool:
    """Whether the article before `word` is `an`."""
    if word.startswith(_VOWEL_SOUND):
        return True
    return word[0].lower() in "aeiou" and not word.startswith(_CONSONANT_SOUND)


def write(words: list[str]) -> str:
    """The sentence of a list of words: capital first letter, punctuation attached, `a` -> `an`."""
    written = [
        "an" if word == "a" and takes_an(following) else word
        for word, following in zip(words, [*words[1:], "."], strict=True)
    ]
    text = " ".join(written)
    for mark in ".,?":
        text = text.replace(f" {mark}", mark)
    return text[:1].upper() + text[1:]
