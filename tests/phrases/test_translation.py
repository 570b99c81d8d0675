"""Translations by a tiny encoder-decoder that the test saves to disk: what is forced holds token by token."""

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


def test_positions_that_are_computed_may_be_missing(tmp_path):
    """As in the files of facebook/wmt19-en-de, the paper's own model."""
    file = save(tmp_path / "there", WORDS, 1) / "model.safetensors"
    sizes = {f"{part}_{size}": n for part in ("encoder", "decoder")
             for size, n in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))}  # fmt: skip
    words = {"src_vocab_size": 20, "tgt_vocab_size": 20, "langs": ["en", "de"]}
    model = FSMTForConditionalGeneration(FSMTConfig(d_model=16, max_position_embeddings=40, **words, **sizes))
    model.save_pretrained(file.parent)
    kept = {key: tensor for key, tensor in load_file(file).items() if "embed_positions" not in key}
    save_file(kept, file, {"format": "pt"})
    read = Translator(file.parent).model.model.encoder.embed_positions.weight
    assert torch.equal(read, model.model.encoder.embed_positions.weight) and read[2:].any(1).all()


def test_edit_distance_and_full_stops():
    assert edit_distance("kitten", "sitting") == 3 and edit_distance([], [1, 2]) == 2 and edit_distance([1], [1]) == 0
    assert tidied("a film .", "the film") == "a film" and tidied("a film.", "it ends .") == "a film."
    assert tidied("it isn 't", "is") == "it isn't"
