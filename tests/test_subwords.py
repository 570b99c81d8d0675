import itertools
import json
from collections import Counter

import pytest

from masklab.config.schema import entry
from masklab.corpora.english import generate
from masklab.errors import MaskLabError
from masklab.rng import generator
from masklab.subwords import END, train
from masklab.tokenizers import (
    CLS,
    MASK,
    PAD,
    SEP,
    SPECIALS,
    UNK,
    load_tokenizer,
    save_tokenizer,
)

WORDS = [
    "the",
    "The",
    "DOG",
    "dog",
    "cat",
    "sees",
    "Sees",
    "a",
    "garden",
    ",",
    ".",
    "runs",
    "running",
    "quickly",
    "and",
    "Mary",
    "John",
    "``hello''",
    "isn't",
    "42",
    "café",
    "was",
    "were",
    "apples",
    "apple",
    "soup",
    "delicious",
    "picked",
    "she",
    "He",
    "slowly",
    "because",
    "if",
    "can't",
]


def sentences(count=400, address="sentences"):
    stream = generator(1, address)
    return [" ".join(stream.choice(WORDS, stream.integers(3, 12))) for _ in range(count)]


@pytest.fixture(scope="module")
def tokenizer():
    return train(sentences(), 60)


def vocabulary(tokenizer):
    return json.loads(tokenizer.to_str())["model"]["vocab"]


def test_special_tokens_come_first(tokenizer):
    assert [tokenizer.id_to_token(i) for i in (CLS, SEP, UNK, PAD, MASK)] == list(SPECIALS)
    assert tokenizer.get_vocab_size() == 60


def test_encoding_adds_specials_and_types(tokenizer):
    single, pair = tokenizer.encode("the dog"), tokenizer.encode("the dog", "a cat")
    assert single.tokens[0] == "[CLS]" and single.tokens[-1] == "[SEP]" and set(single.type_ids) == {0}
    border = pair.tokens.index("[SEP]") + 1
    assert pair.ids[:border] == single.ids and pair.tokens[-1] == "[SEP]"
    assert set(pair.type_ids[:border]) == {0} and set(pair.type_ids[border:]) == {1}


def test_normaliser_and_case(tokenizer):
    assert tokenizer.decode(tokenizer.encode("``hello''").ids) == '"hello"'
    assert tokenizer.decode(tokenizer.encode("The DOG").ids) == "The DOG"
    lower = train(sentences(), 60, lowercase=True)
    assert lower.decode(lower.encode("The DOG").ids) == "the dog"


def test_mask_in_text_leaves_no_lone_word_mark(tokenizer):
    tokens = tokenizer.encode("she picked a [MASK]").tokens
    assert tokens[-2].strip() == "[MASK]" and tokens[-3] != "▁"
    assert tokenizer.encode("she picked a [MASK]").ids[-2] == MASK


@pytest.mark.parametrize(("kind", "lowercase"), [("unigram", False), ("unigram", True), ("bpe", False),
                                                 ("wordpiece", False)])  # fmt: skip
def test_special_tokens_that_a_corpus_spells_have_one_id_each(tmp_path, kind, lowercase):
    """WikiText has <unk> for every rare word; Unigram made a piece of it, with an id of its own, or another's."""
    spelt = [f"{text} {special} ({special}). <UNK>" for text, special in zip(sentences(), itertools.cycle(SPECIALS))]
    made = train(spelt, 150, kind, lowercase)
    save_tokenizer(made, tmp_path / "tokenizer", 64)
    for own in (made, load_tokenizer(tmp_path / "tokenizer")):
        names = [own.id_to_token(number) for number in range(own.get_vocab_size())]
        assert len(set(names)) == len(names) and names[: len(SPECIALS)] == list(SPECIALS)
        assert [own.token_to_id(special) for special in SPECIALS] == [CLS, SEP, UNK, PAD, MASK]
        text = own.encode("the <unk> dog", add_special_tokens=False)
        assert text.ids.count(UNK) == 1 and text.tokens.count("<unk>") == 1


def test_line_endings_become_no_piece():
    pieces = vocabulary(train((line + "\n" for line in sentences()), 60))
    assert not any("\n" in piece for piece, _ in pieces)
    assert pieces == vocabulary(train(sentences(), 60))


def test_training_is_deterministic():
    # Random syllables: many rare words that segment equally well in several ways, and letters of equal counts.
    stream = generator(1, "syllables")
    words = ["".join(stream.choice(list("bdfgklmnprstäöü"), 5)) for _ in range(150)]
    lines = [" ".join(stream.choice(words, 8)) for _ in range(300)] + ["q", "x", "z", "Q X Z"]
    for size in (60, 150):
        first, *others = (train(lines, size).to_str() for _ in range(4))
        assert all(other == first for other in others)


def test_scores_are_the_trainers():
    """Against an independent likelihood: the best segmentation of a word is that of a brute-force search."""
    tokenizer = train(sentences(), 60)
    scores = dict(vocabulary(tokenizer)[len(SPECIALS) :])
    for word in ("running", "delicious", "apples", "quickly"):
        text = "▁" + word
        found = []
        for cuts in itertools.product((False, True), repeat=len(text) - 1):
            borders = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(text)]
            pieces = [text[a:b] for a, b in itertools.pairwise(borders)]
            if all(piece in scores for piece in pieces):
                found.append(sum(scores[piece] for piece in pieces))
        tokens = tokenizer.encode(word, add_special_tokens=False).tokens
        assert sum(scores[token] for token in tokens) == pytest.approx(max(found), abs=1e-9)


def test_small_corpus_gives_fewer_pieces(caplog):
    small = train(["a b", "b a"], 100)
    assert 5 < small.get_vocab_size() < 100
    assert "vocab_size asks for 100" in caplog.text and caplog.records[-1].note


@pytest.mark.parametrize("kind", ["unigram", "bpe", "wordpiece"])
@pytest.mark.parametrize(("texts", "size", "said"), [(["abc def ghi"], 8, "too small"), ([" ", ""], 50, "no text")])
def test_untrainable(texts, size, said, kind):
    with pytest.raises(MaskLabError, match=said):
        train(texts, size, kind)


@pytest.mark.parametrize("kind", ["unigram", "bpe", "wordpiece"])
def test_a_vocabulary_of_special_tokens_alone_is_an_error(kind):
    with pytest.raises(MaskLabError, match="no character of the corpus occurs 9 times"):
        train(["abc abc", "cab"], 50, kind, rarest_character=9)


def frequent_words_in_pieces(tokenizer, texts, count=60):
    """The most frequent words that are more than one piece."""
    words = Counter(word for text in texts for word in text.split())
    return [w for w, _ in words.most_common(count) if len(tokenizer.encode(w, add_special_tokens=False).tokens) > 1]


def test_a_frequent_word_is_one_piece():
    """Also one that is part of no other word, which Hugging Face's trainer alone does not consider."""
    config = entry("corpora", {"kind": "english", "sentences": 5000})
    texts = generate(config, "english", 1)["train"]["text"].to_pylist()
    words = Counter(word for text in texts for word in text.split())
    alone = [word for word, _ in words.most_common(60) if not any(word in other for other in words if other != word)]
    assert len(alone) > 10
    running, distinct = train(texts, 2000), train(texts, 2000, candidates="distinct")
    assert frequent_words_in_pieces(running, texts) == []
    assert set(alone) <= set(frequent_words_in_pieces(distinct, texts))
    assert running.get_vocab_size() == 2000 and not [piece for piece in running.get_vocab() if END in piece]


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_other_kinds_are_those_of_the_library(kind):
    """Merges of the most frequent pair, by a plain count; the same each time, special tokens first, text comes back."""
    texts = ["low " * 5 + "lower " * 2 + "newest " * 6 + "widest " * 3]
    first, *others = (train([*texts, *sentences()], 150, kind).to_str() for _ in range(4))
    assert all(other == first for other in others)
    tokenizer = train(texts, 40, kind)
    assert [tokenizer.id_to_token(i) for i in range(5)] == list(SPECIALS)
    assert "est" in {piece.removeprefix("##") for piece in tokenizer.get_vocab()}  # e s (9 times), then es t (9)
    assert tokenizer.decode(tokenizer.encode("low lowest").ids) == "low lowest"


@pytest.mark.parametrize(("kind", "lowercase"), [("unigram", False), ("unigram", True), ("bpe", False),
                                                 ("wordpiece", True)])  # fmt: skip
def test_transformers_reads_the_folder_alike(tmp_path, kind, lowercase):
    from transformers import AutoTokenizer

    own = train(sentences(), 150, kind, lowercase)
    save_tokenizer(own, tmp_path / "tokenizer", 64)
    reloaded = load_tokenizer(tmp_path / "tokenizer")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "tokenizer")
    roles = [theirs.cls_token_id, theirs.sep_token_id, theirs.unk_token_id, theirs.pad_token_id, theirs.mask_token_id]
    assert roles == [CLS, SEP, UNK, PAD, MASK]
    assert theirs.model_max_length == 64 and len(theirs) == own.get_vocab_size()
    assert theirs.model_input_names == ["input_ids", "attention_mask"]
    cases = ["The DOG", "", " two  spaces ", "she picked a [MASK] .", "unseen Ωmega ``x''", *sentences(200, "other")]
    for text in cases:
        ours, again = own.encode(text), reloaded.encode(text)
        other = theirs(text, return_offsets_mapping=True)
        assert ours.ids == again.ids == other["input_ids"]
        assert ours.offsets == again.offsets == other["offset_mapping"]
    pair = theirs("The DOG", "a cat")["input_ids"]
    assert pair == own.encode("The DOG", "a cat").ids


def test_saved_form_is_the_compatible_one(tokenizer, tmp_path):
    save_tokenizer(tokenizer, tmp_path, 128)
    content = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    old = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
    assert content["pre_tokenizer"] == content["decoder"] == old
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert json.loads((tmp_path / "special_tokens_map.json").read_text())["pad_token"] == "<pad>"


def test_load_errors(tokenizer, tmp_path):
    with pytest.raises(MaskLabError, match="no such file"):
        load_tokenizer(tmp_path / "absent")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(MaskLabError, match="not a tokenizer"):
        load_tokenizer(tmp_path)
    save_tokenizer(tokenizer, tmp_path, 128)
    text = (tmp_path / "tokenizer.json").read_text(encoding="utf-8")
    (tmp_path / "tokenizer.json").write_text(text.replace("<pad>", "<PAD>"), encoding="utf-8")
    with pytest.raises(MaskLabError, match="id 3 is '<PAD>'"):
        load_tokenizer(tmp_path)


def test_rare_characters_get_no_piece():
    texts = ["the cat sat on the mat"] * 50 + ["the cat § sat", "the dog ß sat ß"]
    kept, dropped = train(texts, 60), train(texts, 60, rarest_character=2)
    assert kept.token_to_id("§") is not None and kept.token_to_id("ß") is not None
    assert dropped.token_to_id("§") is None and dropped.token_to_id("ß") is not None


@pytest.mark.parametrize("kind", ["unigram", "bpe", "wordpiece"])
def test_a_character_is_as_rare_as_the_trainer_sees_it(kind):
    texts = ["the cat"] * 50 + ["Zoe", "zoe"]
    assert train(texts, 60, kind, lowercase=True, rarest_character=2).token_to_id("z") is not None
    assert train(texts, 60, kind, rarest_character=2).token_to_id("z") is None
