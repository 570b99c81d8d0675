"""Words that are no synonyms: of one form and length, and never the feature's own."""

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from masklab.phrases.examples import Feature, Text
from masklab.phrases.others import Spelling, others, spelling
from masklab.phrases.parses import parse, places
from masklab.tokenizers import SPECIALS

PIECES = ("dog", "dogs", "hound", "hounds", "cat", "cats", "kitty", "bird", "fowl", "runs", "trots", "sees", "spots")


@pytest.fixture(scope="module")
def tokenizer():
    pieces = [*SPECIALS, *(f"▁{word}" for word in PIECES if word != "kitty"), "▁kit", "ty"]
    tokenizer = Tokenizer(models.Unigram([(piece, 0.0) for piece in pieces], 2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


def feature(old, new, tag):
    tree = parse(f"(S ({tag} {old}) (. .))")
    text = f"{old} ."
    own = Text(0, text, tree, places(tree, text)[1])
    return Feature(None, own, tree.nodes[1], new)


def drawn(features, tokenizer):
    """Every word that stands in a feature's place in some of many draws."""
    given = [others(features, tokenizer, np.random.default_rng(seed)) for seed in range(60)]
    return [{of[place] for of in given} for place in range(len(features))]


def test_others_are_of_one_form_and_length_and_no_synonyms(tokenizer):
    features = [
        feature("dog", "hound", "NN"), feature("bird", "fowl", "NN"), feature("dog", "bird", "NN"),
        feature("cat", "kitty", "NN"), feature("dogs", "hounds", "NNS"), feature("cats", "dogs", "NNS"),
        feature("runs", "trots", "VBZ"), feature("sees", "spots", "VBZ"),
    ]  # fmt: skip
    assert drawn(features, tokenizer) == [
        {"fowl"},  # not `bird`, which is a synonym of another dog
        {"hound"},  # not `bird`, the word itself
        {"fowl"},
        {None},  # of two pieces there is no other noun
        {None},  # `dogs` itself
        {"hounds"},
        {"spots"},
        {"trots"},
    ]


def test_others_are_spelt_like_the_word_where_its_synonym_is():
    """A word and its synonym share a piece; so does what comes in its place, or nothing does. All are of two pieces."""
    pieces = [*SPECIALS, *(f"▁{word}" for word in ("cat", "dog", "kit", "pot", "bird", "fowl")), "s", "ty"]
    tokenizer = Tokenizer(models.Unigram([(piece, 0.0) for piece in pieces], 2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    features = [
        feature("potty", "kitty", "NN"), feature("dogs", "cats", "NN"), feature("cat", "dogs", "NN"),
        feature("bird", "catty", "NN"), feature("fowl", "kits", "NN"), feature("kit", "kitty", "NN"),
    ]  # fmt: skip
    assert drawn(features, tokenizer) == [
        {"catty"},  # `ty` is theirs alone
        {"kits"},
        {"kitty", "kits"},  # neither `cats` nor `catty`
        {"kitty", "cats", "dogs", "kits"},
        {"kitty", "cats", "dogs", "catty"},
        {"kits"},
    ]
    assert spelling(features, tokenizer).shared("KIT", "Kits") == (1, False)


def test_words_that_begin_alike_are_spelt_alike(tokenizer):
    words = Spelling(["dog", "dogs", "hound", "hounds"], tokenizer)
    assert words.shared("hounds", "hound") == (0, True)  # a piece each, that begin with four letters ...
    assert words.shared("dogs", "dog") == (0, False)  # ... and with three
    assert words.shared("Dogs", "dogs") == (1, True)


def test_without_the_tree_s_categories_the_tag_decides(tokenizer):
    tree = parse("(2 (2 runs) (2 .))")
    own = Text(0, "runs .", tree, places(tree, "runs .")[1])
    features = [Feature(None, own, tree.nodes[1], new, tag) for new, tag in (("trots", "VBZ"), ("spots", "NNS"))]
    assert others(features, tokenizer, np.random.default_rng(1)) == [None, None]
    assert others([], tokenizer, np.random.default_rng(1)) == []
