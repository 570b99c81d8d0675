import pytest

from masklab.errors import MaskLabError
from masklab.phrases.parses import ADJECTIVE, NOUN, VERB
from masklab.phrases.queries import PHRASES, filled, query_ids, sentence_query, verbaliser_ids
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


def test_ids_have_one_mask_and_keep_what_is_next_to_it(tokenizer):
    whole, short = (query_ids(tokenizer, ["a film is [MASK] ."], size)[0] for size in (32, 5))
    assert whole[0] == CLS and whole[-1] == SEP and whole.count(MASK) == 1
    at = whole.index(MASK)
    assert short == [CLS, whole[at - 1], MASK, whole[at + 1], SEP]
    with pytest.raises(MaskLabError, match=r"must hold exactly one \[MASK\]"):
        query_ids(tokenizer, ["a film"], 32)


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
