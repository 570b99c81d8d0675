"""Translations by a tiny encoder-decoder that the test saves to disk: what is forced holds token by token."""

import json
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import FSMTConfig, FSMTForConditionalGeneration

from masklab.errors import MaskLabError
from masklab.phrases.translation import Translator, edit_distance, paraphrases, tidied
from small_translation import SPECIALS, save

WORDS = ["the", "a", "film", "movie", "is", "was", "very", "so", "great", "good", "warm", "small", "ende", "gut", "der"]


@pytest.fixture(scope="module", params=[None, 0])
def pair(request, tmp_path_factory):
    root = tmp_path_factory.mktemp("translation")
    return [Translator(save(root / name, WORDS, seed, request.param)) for seed, name in enumerate(("there", "back"), 1)]


TEXTS = ["der film ende gut", "gut", "der film", "ende"]
PREFIXES = ["the film is very", "", "a", "the movie was so great the film"]


def test_forced_prefixes_hold_token_by_token(pair):
    _, back = pair
    prefixes = [back.ids(prefix) for prefix in PREFIXES]
    assert [len(prefix) for prefix in prefixes] == [4, 0, 1, 7]
    found = back.translate(TEXTS, prefixes, 5)
    free = back.translate(TEXTS, None, 5)
    for prefix, candidates, others in zip(prefixes, found, free, strict=True):
        assert len(candidates) == 5
        for _, tokens in candidates:
            for place, token in enumerate(prefix):
                assert tokens[place] == token
        assert (candidates == others) == (not prefix)  # without being forced they would not begin so
    scores = [[score for score, _ in candidates] for candidates in found]
    assert scores == [sorted(own, reverse=True) for own in scores]


def test_a_prefix_with_an_unknown_word_is_cut_off_whole_and_nothing_else(pair):
    """What is no word of the model is forced as <unk>, a special token; the paraphrase begins right behind it all."""
    _, back = pair
    prefix = back.ids("the unheard is")
    assert len(prefix) == 3 and prefix[1] in back.tokenizer.all_special_ids
    for (found,) in back.translate(TEXTS, [prefix] * len(TEXTS)):
        assert found[1][:3] == prefix
        assert not {*found[1][3:]} & {*back.tokenizer.all_special_ids}


def test_texts_translated_together_are_those_translated_alone(pair):
    _, back = pair
    prefixes = [back.ids(prefix) for prefix in PREFIXES]
    together = back.translate(TEXTS, prefixes, 2)
    for text, prefix, candidates in zip(TEXTS, prefixes, together, strict=True):
        (alone,) = back.translate([text], [prefix], 2)
        assert [tokens for _, tokens in alone] == [tokens for _, tokens in candidates]
        assert [score for score, _ in alone] == pytest.approx([score for score, _ in candidates], abs=1e-4)


def test_forced_tokens_count_as_improbable_as_they_are(pair):
    """Also where a model's own settings have what is forced made certain, as those of Marian's do."""
    _, back = pair
    prefixes = [back.ids(prefix) for prefix in PREFIXES]
    found = back.translate(TEXTS, prefixes, 5)
    back.model.generation_config.renormalize_logits = True
    try:
        assert back.translate(TEXTS, prefixes, 5) == found
    finally:
        back.model.generation_config.renormalize_logits = None


def test_what_a_model_never_says_twice_can_be_forced_twice(pair):
    _, back = pair
    prefix = back.ids("the film the film the film")
    back.model.generation_config.no_repeat_ngram_size = 2
    try:
        ((*candidates,),) = back.translate(TEXTS[:1], [prefix], 5)
    finally:
        back.model.generation_config.no_repeat_ngram_size = None
    assert len(candidates) == 5 and all(tokens[:6] == prefix for _, tokens in candidates)
    assert all(score > -100 for score, _ in candidates)


def test_a_paraphrase_stands_behind_what_stood_before(pair):
    before, phrases = ["the film is", "", "a very"], ["very great", "the movie", "film"]
    found = paraphrases(*pair, before, phrases)
    assert len(found) == 3
    for phrase, new in zip(phrases, found, strict=True):
        assert new is None or (
            new.lower() != phrase and set(new.split()) <= {*WORDS, *SPECIALS} and not new.endswith(".")
        )
    assert any(new is not None for new in found)
    assert paraphrases(*pair, before, phrases) == found


def test_what_is_no_model_is_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in (tmp_path / "empty", tmp_path / "nothing", "nobody/nothing"):
        with pytest.raises(MaskLabError, match=f"{name}: no translation model") as said:
            Translator(name)
        assert "\n" not in str(said.value)


def test_weights_that_are_missing_or_broken_are_one_line(tmp_path):
    """transformers draws at random what a file lacks, and only warns."""
    file = save(tmp_path / "there", WORDS, 1) / "model.safetensors"
    weights = load_file(file)
    name = "model.decoder.layers.0.fc1.weight"
    save_file({key: tensor for key, tensor in weights.items() if key != name}, file, {"format": "pt"})
    with pytest.raises(MaskLabError, match=f"there: has no weights for {name} of its BartForConditionalGeneration$"):
        Translator(tmp_path / "there")
    file.write_bytes(b"broken")
    with pytest.raises(MaskLabError, match="there: no translation model"):
        Translator(tmp_path / "there")


def fsmt(source: int, target: int, languages):
    """Settings of a small model of the kind of facebook/wmt19-en-de."""
    sizes = {f"{part}_{size}": n for part in ("encoder", "decoder")
             for size, n in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))}  # fmt: skip
    words = {"src_vocab_size": source, "tgt_vocab_size": target, "langs": languages}
    return FSMTConfig(d_model=16, max_position_embeddings=40, **words, **sizes)


class Moses:
    """The little of sacremoses, which is not among our packages, that the tokenizer of FSMT asks for: only English has
    `'s` in one piece."""

    class MosesPunctNormalizer:
        def __init__(self, lang):
            self.normalize = str

    class MosesTokenizer:
        def __init__(self, lang):
            self.lang = lang

        def tokenize(self, text, **how):
            return text.replace("'", " '" if self.lang == "en" else " ' ").split()

    class MosesDetokenizer:
        def __init__(self, lang):
            self.detokenize = " ".join


def merges(word):
    """Pairs that make one piece of a word."""
    letters = [*word[:-1], f"{word[-1]}</w>"]
    return [f"{''.join(letters[:at])} {letters[at]}" for at in range(1, len(letters))]


def test_positions_that_are_computed_may_be_missing(tmp_path):
    """As in the files of facebook/wmt19-en-de, the paper's own model."""
    file = save(tmp_path / "there", WORDS, 1) / "model.safetensors"
    model = FSMTForConditionalGeneration(fsmt(20, 20, ["en", "de"]))
    model.save_pretrained(file.parent)
    kept = {key: tensor for key, tensor in load_file(file).items() if "embed_positions" not in key}
    save_file(kept, file, {"format": "pt"})
    read = Translator(file.parent).model.model.encoder.embed_positions.weight
    assert torch.equal(read, model.model.encoder.embed_positions.weight) and read[2:].any(1).all()


def test_edit_distance_and_full_stops():
    assert edit_distance("kitten", "sitting") == 3 and edit_distance([], [1, 2]) == 2 and edit_distance([1], [1]) == 0
    assert tidied("a film .", "the film") == "a film" and tidied("a film.", "it ends .") == "a film."
    assert tidied("it isn 't", "is") == "it isn't"


def test_what_stands_before_is_cut_and_numbered_as_the_target_language(tmp_path, monkeypatch):
    """transformers' tokenizer of FSMT, the paper's models, reads any text as of its source language."""
    monkeypatch.setitem(sys.modules, "sacremoses", Moses)
    languages = {"src": ["das", "ist", "gut", "'s"], "tgt": ["it", "'s", "good", "'", "s"]}
    for name, words in languages.items():
        ids = {word: at for at, word in enumerate([*SPECIALS, *(f"{word}</w>" for word in words)])}
        (tmp_path / f"vocab-{name}.json").write_text(json.dumps(ids))
    words = sorted({word for words in languages.values() for word in words if len(word) > 1})
    (tmp_path / "merges.txt").write_text("#\n" + "".join(f"{line} 1\n" for word in words for line in merges(word)))
    settings = {"langs": ["de", "en"], "tokenizer_class": "FSMTTokenizer"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    FSMTForConditionalGeneration(fsmt(8, 9, ["de", "en"])).save_pretrained(tmp_path)
    back = Translator(tmp_path)
    assert back.tokenizer("das ist gut", add_special_tokens=False)["input_ids"] == [4, 5, 6]
    assert back.ids("it's good") == [4, 5, 6]
    ((_, tokens), *_), *_ = back.translate(["das ist gut"], [back.ids("it's good")])
    assert tokens[:3] == [4, 5, 6] and back.text(tokens[:3]) == "it's good"
