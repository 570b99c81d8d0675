"""Encoders made elsewhere, with tokens numbered their own way, compute the same once they are adopted."""

import json

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from masklab.errors import MaskLabError
from masklab.models.adopt import adopt, is_foreign
from masklab.models.checkpoint import load_checkpoint
from masklab.tokenizers import load_tokenizer

NAMES = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
TEXTS = ["The old cat sees a [MASK] today.", "Dogs [MASK] far from here", "a zzz [MASK]"]


def trained(kind, sentences):
    """A tokenizer of transformers' kind, whose special tokens lie where its own trainer puts them."""
    specials = list(NAMES.values())
    if kind == "word pieces":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=specials, show_progress=False)
    elif kind == "byte pairs":
        tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        trainer = trainers.BpeTrainer(vocab_size=120, special_tokens=specials[1:], show_progress=False)
    else:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=100, unk_token="[UNK]", special_tokens=specials[:-1], show_progress=False
        )
    tokenizer.train_from_iterator(sentences, trainer)
    tokenizer.add_special_tokens([name for name in specials if tokenizer.token_to_id(name) is None])  # at the end
    ends = [(name, tokenizer.token_to_id(name)) for name in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*ends)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **NAMES)


CASES = [
    ("word pieces", "Bert", True),
    ("word pieces", "Bert", False),
    ("byte pairs", "Deberta", True),
    ("unigram", "Deberta", True),
    ("byte pairs", "Esm", False),
]


@pytest.mark.parametrize(("kind", "name", "tied"), CASES)
@torch.no_grad()
def test_an_adopted_model_predicts_what_transformers_does(kind, name, tied, tmp_path):
    lines = [f"the old cat number {n} sees dogs far from here, today a teacher runs" for n in range(50)]
    tokenizer = trained(kind, lines)
    extra = {"Deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False,
                         "type_vocab_size": 0, "max_relative_positions": -1},
             "Esm": {"position_embedding_type": "absolute", "token_dropout": False,
                     "mask_token_id": tokenizer.mask_token_id}}.get(name, {})  # fmt: skip
    config = getattr(transformers, f"{name}Config")(
        vocab_size=len(tokenizer) + 3, max_position_embeddings=160, pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.3, tie_word_embeddings=tied, **SIZES, **extra,
    )  # fmt: skip
    torch.manual_seed(1)
    theirs = getattr(transformers, f"{name}ForMaskedLM")(config).eval()
    theirs.save_pretrained(tmp_path / "theirs")
    tokenizer.save_pretrained(tmp_path / "theirs")
    assert is_foreign(tmp_path / "theirs")
    parameters = adopt(tmp_path / "theirs", tmp_path / "ours")
    assert not is_foreign(tmp_path / "ours")
    ours, read = load_checkpoint(tmp_path / "ours").eval(), load_tokenizer(tmp_path / "ours")
    assert parameters == sum(parameter.numel() for parameter in ours.parameters())
    for text in TEXTS:
        before = tokenizer(text, return_tensors="pt")
        after = read.encode(text)
        logits = theirs(input_ids=before["input_ids"], attention_mask=before["attention_mask"]).logits[0]
        again = ours(torch.tensor([after.ids]), torch.tensor([len(after.ids)])).logits
        new = {
            old: read.token_to_id(token) for token, old in tokenizer.get_vocab().items() if token not in NAMES.values()
        }
        new |= {tokenizer.convert_tokens_to_ids(NAMES[role]): at for at, role in enumerate(ROLES)}
        assert [new[old] for old in before["input_ids"][0].tolist()] == after.ids
        old, there = map(list, zip(*new.items(), strict=True))
        torch.testing.assert_close(again[:, there], logits[:, old], atol=1e-4, rtol=1e-4)


ROLES = ("cls_token", "sep_token", "unk_token", "pad_token", "mask_token")


def test_what_cannot_be_adopted_is_said_in_a_line(tmp_path):
    config = transformers.BertConfig(vocab_size=130, max_position_embeddings=40, **SIZES)
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    assert not is_foreign(tmp_path)  # no tokenizer: its ids are whatever they are
    tokenizer = trained("word pieces", ["some text " * 30])
    tokenizer.mask_token = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(MaskLabError, match="its tokenizer has no mask_token; it needs cls_token, sep_token, unk"):
        adopt(tmp_path, tmp_path / "out")
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(values | {"model_type": "roberta"}))
    with pytest.raises(MaskLabError, match="is no masked language model: it has no weights for"):
        adopt(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
