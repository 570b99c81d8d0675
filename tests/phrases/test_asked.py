"""What of a distance is a matter of form: the numbers that are held fixed, counted by hand."""

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers

from masklab.phrases.asked import nuisances
from masklab.phrases.examples import Feature, Text
from masklab.phrases.parses import parse, places
from masklab.phrases.reader import Reader
from masklab.tokenizers import SPECIALS


def feature(text, tree, new):
    tree = parse(tree)
    own = Text(0, text, tree, places(tree, text)[1])
    return Feature(None, own, next(node for node in tree.candidates if len(node) == 1), new)


def test_the_form_of_words_is_what_it_is_said_to_be():
    """Words, tokens, their inverses; tokens of both words, whether as many; what they share; part of speech."""
    pieces = [
        *SPECIALS,
        *(f"▁{word}" for word in ("the", "dog", "dogs", "sings", "old", "so", "kit", "kitten")),
        "s",
        "ty",
    ]
    tokenizer = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], 2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    features = [
        feature("the kitten", "(NP (DT the) (NN kitten))", "kitty"),
        feature("it sings .", "(S (NP (PRP it)) (VP (VBZ sings)) (. .))", "dogs"),
        feature("the kitty so old", "(ADJP (DT the) (UH kitty) (RB so) (JJ old))", "so"),
    ]
    wanted = np.array([
        [np.log(2), np.log(2), 1 / 2, 1 / 2, 1, 2, 1, 0, 1, 1, 0],
        [np.log(3), np.log(3), 1 / 3, 1 / 3, 1, 1, 0, 0, 0, 0, 1],
        [np.log(4), np.log(5), 1 / 4, 1 / 5, 1, 1, 0, 0, 0, 0, 0],
    ])  # fmt: skip
    assert [(of.old, of.category) for of in features] == [("kitten", "noun"), ("sings", "verb"), ("old", "adjective")]
    assert np.allclose(nuisances(features, Reader(tokenizer, 64, "cpu")), wanted)
