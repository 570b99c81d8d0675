"""The word that a causal model expects: against the whole model on every prefix, and on a corpus made from one."""

import itertools

import numpy as np
import pytest
import torch

from masklab import symbols
from masklab.config.schema import CausalCorpus, NextWord
from masklab.corpora.causal import generate
from masklab.corpora.causal.law import Law
from masklab.corpora.causal.restricted_model import Restricted, Rules
from masklab.errors import MaskLabError
from masklab.files import write_table
from masklab.tasks.next_word import most_probable, next_words

IDS = (7, 3, 9, 5)


@pytest.fixture(scope="module")
def model():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(5)
    causal = GPT2LMHeadModel(GPT2Config(vocab_size=11, n_embd=16, n_layer=2, n_head=2, n_positions=8)).eval().double()
    with torch.no_grad():
        for parameter in causal.parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=0.7)
    return causal


@pytest.mark.parametrize("position", [2, 3, 4])
def test_the_expected_word_is_the_most_probable_one(model, position):
    """Of all words, the end of the sentence and other tokens left out; within 1e-9 of the whole model's probability."""
    rules = Rules(ids=IDS, start=1, end=2, last=None, length=4, shortest=1, temperature=0.8)
    words = np.array(list(itertools.product(range(4), repeat=4)))
    expected, chance = most_probable(Law(Restricted(model, rules)), words, position)
    for sentence, label, p in zip(words, expected, chance, strict=True):
        prefix = torch.tensor([[1, *(IDS[word] for word in sentence[: position - 1])]])
        with torch.no_grad():
            logits = model(input_ids=prefix).logits[0, -1][list(IDS)] / 0.8
        assert label == int(logits.argmax()) and p == pytest.approx(float(logits.softmax(-1).max()), abs=1e-9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    """A causal model with a tokenizer of words, and a corpus drawn from it: (corpus's file, its config)."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    place = tmp_path_factory.mktemp("causal")
    words = ["<unk>", "<s>", "</s>", *"abcdefgh"]
    plain = Tokenizer(models.WordLevel({word: k for k, word in enumerate(words)}, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    model.config.bos_token_id, model.config.eos_token_id = 1, 2
    model.float().save_pretrained(place / "model")
    tokenizer.save_pretrained(place / "model")
    config = CausalCorpus(
        kind="causal", causal=str(place / "model"), vocabulary=6, length=5, sequences=50, valid=5, test=5
    )
    corpus = generate(config, "c", 1)["test"]
    write_table(corpus, place / "test.parquet")
    return place / "test.parquet"


def task(**more):
    return NextWord(**{"kind": "next-word", "corpus": "c", "position": 3, "train": 300, "valid": 20, "test": 40} | more)


def test_a_task_of_a_corpus(folder):
    splits, facts = next_words(task(), "t", 1, folder)
    assert facts["rows"] == {"train": 300, "valid": 20, "test": 40} and not facts["pair"]
    names = symbols.read_header(folder)["names"]
    assert set(facts["names"]) <= set(names) and facts["labels"] == len(facts["names"])
    for split, table in splits.items():
        rows, labels = table[symbols.COLUMN].to_pylist(), np.array(table["label"])
        assert min(map(len, rows)) >= 3 and labels.max() < facts["labels"]
        assert facts["majority"][split] == np.bincount(labels).max() / len(labels)
        assert 1 / 6 < facts["chance"][split] < 1
        beginnings = {}  # the label is a function of the words before
        for row, label in zip(rows, labels, strict=True):
            assert beginnings.setdefault(tuple(row[:2]), label) == label
    assert len({tuple(row) for row in splits["train"][symbols.COLUMN].to_pylist()}) > 20


def test_the_same_seed_gives_the_same_task_and_another_one_another(folder):
    (one, _), (same, _), (other, _) = (next_words(task(seed=seed), "t", 1, folder) for seed in (1, 1, 2))
    assert one["train"].equals(same["train"]) and not one["train"].equals(other["train"])
    assert not one["train"].slice(0, 40).equals(one["test"])


def test_sentences_that_are_never_so_long_are_an_error(folder, monkeypatch):
    monkeypatch.setattr("masklab.tasks.next_word.RARE", 0)
    with pytest.raises(MaskLabError, match=r"tasks\.t\.position: 5: of 1024 sentences of the corpus \d+ have so many"):
        next_words(task(position=5), "t", 1, folder)
