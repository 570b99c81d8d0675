import pytest

from masklab.errors import MaskLabError
from masklab.phrases.examples import Feature, Text
from masklab.phrases.parses import ADJECTIVE, NOUN, VERB, parse, places
from masklab.phrases.queries import (
    PHRASES,
    by_template,
    filled,
    in_its_text,
    query_ids,
    sentence_query,
    verbaliser_ids,
)
from masklab.subwords import train
from masklab.tokenizers import CLS, MASK, SEP, load_tokenizer, save_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    texts = ["a film is great .", "a film is terrible .", "it was with means the dog"] * 20
    save_tokenizer(train(texts, 60, candidates="running"), folder, 32)
    return load_tokenizer(folder)


def test_queries_of_the_paper():
    assert filled(PHRASES[NOUN], "the film") == "the film [MASK]"
    assert filled(PHRASES[VERB], "saw it") == "[MASK] saw it"
    assert filled(PHRASES[ADJECTIVE], "great") == "[MASK] is great"
    assert sentence_query("with", "A film is great .") == "A film is great with [MASK]."
    assert sentence_query("means", "A film.") == '"A film." means [MASK]'
    assert filled("{a} ? [MASK] , {b}", "p {b}", "h") == "p {b} ? [MASK] , h"
    assert filled("{} It was [MASK] .", "s") == "s It was [MASK] ."


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        ("dog", [("The [MASK] dog barks.", "The [MASK] wolf barks."), ("The old dog [MASK].", "The old wolf [MASK].")]),
        ("The", [("The [MASK] dog barks.", "wolf [MASK] dog barks.")]),
        ("old dog", [("[MASK] old dog barks.", "[MASK] wolf barks."), ("The old dog [MASK].", "The wolf [MASK].")]),
        (".", [("The old dog [MASK].", "The old dog [MASK]wolf")]),
    ],
)  # fmt: skip
def test_in_its_own_text_the_words_beside_a_feature_are_hidden(part, wanted):
    text, tree = "The old dog barks.", parse("(S (NP (DT The) (NX (JJ old) (NN dog))) (VP (VBZ barks)) (. .))")
    own = Text(0, text, tree, places(tree, text)[1])
    node = next(node for node in tree.nodes if own.part(node) == part)
    feature = Feature(None, own, node, "cat")
    assert in_its_text(feature, "wolf") == wanted
    assert [old for old, _ in in_its_text(feature, "cat")] == [old for old, _ in wanted]


def test_by_template_each_is_asked_as_its_part_of_speech():
    tree = parse("(S (NN dog) (VBZ barks))")
    own = Text(0, "dog barks", tree, places(tree, "dog barks")[1])
    _, noun, verb = tree.nodes
    assert by_template(Feature(None, own, noun, "cat"), "wolf") == [("dog [MASK]", "wolf [MASK]")]
    assert by_template(Feature(None, own, verb, "cat"), "bites") == [("[MASK] barks", "[MASK] bites")]
    bare = parse("(2 (2 dog) (2 barks))")
    text = Text(0, "dog barks", bare, places(bare, "dog barks")[1])
    assert by_template(Feature(None, text, bare.nodes[2], "", "VBZ"), "bites") == [("[MASK] barks", "[MASK] bites")]


def test_ids_have_one_mask_and_keep_what_is_next_to_it(tokenizer):
    whole, short = (query_ids(tokenizer, ["a film is [MASK] ."], size)[0] for size in (32, 5))
    assert whole[0] == CLS and whole[-1] == SEP and whole.count(MASK) == 1
    at = whole.index(MASK)
    assert short == [CLS, whole[at - 1], MASK, whole[at + 1], SEP]
    with pytest.raises(MaskLabError, match=r"must hold exactly one \[MASK\]"):
        query_ids(tokenizer, ["a film"], 32)


@pytest.mark.parametrize("size", range(3, 14))
@pytest.mark.parametrize("text", ["[MASK] a film is great .", "a [MASK] film is great .", "a film is great [MASK]"])
def test_a_query_that_is_too_long_is_cut_on_both_sides_of_its_mask(tokenizer, text, size):
    (whole,), (cut,) = query_ids(tokenizer, [text], 64), query_ids(tokenizer, [text], size)
    assert len(cut) == min(size, len(whole)) and cut[0] == CLS and cut[-1] == SEP
    at, own = whole.index(MASK), cut.index(MASK)
    front, behind = own - 1, len(cut) - own - 2
    assert cut[1:-1] == whole[at - front : at + behind + 1], "what is next to the mask, in order"
    assert abs(front - behind) <= 1 or front == at - 1 or behind == len(whole) - at - 2, "half on each side"


def test_verbalisers_are_one_token_each(tokenizer):
    ids = verbaliser_ids(tokenizer, ["great", "terrible"], "probes.p.verbalisers")
    assert len(set(ids)) == 2
    with pytest.raises(MaskLabError, match=r"probes\.p\.verbalisers: 'wonderful' is \d+ tokens of the model"):
        verbaliser_ids(tokenizer, ["great", "wonderful"], "probes.p.verbalisers")
    with pytest.raises(MaskLabError, match="two of great, great are one token"):
        verbaliser_ids(tokenizer, ["great", "great"], "probes.p.verbalisers")


def test_a_verbaliser_that_the_model_does_not_know_is_refused():
    """By word pieces a word with an unknown character is one token, <unk>, of which a probability says nothing."""
    pieces = train(["a film is great ."] * 20, 60, "wordpiece")
    with pytest.raises(MaskLabError, match=r"probes\.p\.verbalisers: the model does not know 'Größe'"):
        verbaliser_ids(pieces, ["great", "Größe"], "probes.p.verbalisers")
