"""Tokenizers: special tokens, symbols as words, and the files that every release of the hub's libraries reads alike."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors

from masklab.errors import MaskLabError
from masklab.files import atomic_folder, write_json

SPECIALS = ("[CLS]", "[SEP]", "<unk>", "<pad>", "[MASK]")
CLS, SEP, UNK, PAD, MASK = range(5)
MARKS = "▁Ġ"  # of a word's beginning: ours, and that of byte pairs
METASPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
ROLES = {"cls_token": CLS, "sep_token": SEP, "unk_token": UNK, "pad_token": PAD, "mask_token": MASK}


def symbol_tokenizer(names) -> Tokenizer:
    """The fixed vocabulary of a symbolic corpus: words between spaces; the id of names[i] is i + 5."""
    words = [*SPECIALS, *names]
    if len(set(words)) < len(words):
        raise MaskLabError("tokenizer: two symbols, or a symbol and a special token, have the same name")
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, SPECIALS[UNK]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(special_tokens())
    tokenizer.post_processor = template()
    return tokenizer


def template():
    """What stands around a text, or two, with types 0 and 1: [CLS] a [SEP], [CLS] a [SEP] b [SEP]."""
    return processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )


def special_tokens() -> list[AddedToken]:
    """The special tokens, in the order of their ids."""
    # [MASK] swallows the space before it, else "a [MASK]" would hold a lone word mark.
    return [AddedToken(token, special=True, normalized=False, lstrip=token == "[MASK]") for token in SPECIALS]


def save_tokenizer(tokenizer: Tokenizer, folder, max_length: int) -> None:
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json into `folder`, atomically.

    The form is the one that transformers 4.27, 4.51 and 5 all read, giving the same ids and offsets: class
    PreTrainedTokenizerFast, and Metaspace described by `add_prefix_space` as in old releases, which knew no other than
    `METASPACE`.
    """
    content = json.loads(tokenizer.to_str())
    for part in ("pre_tokenizer", "decoder"):
        if content[part] and METASPACE | content[part] == METASPACE:
            content[part] = {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True}
    tokens = {token["content"]: token for token in content["added_tokens"]}
    roles = {role: SPECIALS[index] for role, index in ROLES.items()}
    mask = {key: tokens["[MASK]"][key] for key in ("content", "lstrip", "normalized", "rstrip", "single_word")}
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        **roles,
        "mask_token": {"__type": "AddedToken", **mask},
    }
    with atomic_folder(folder) as temporary:
        (temporary / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        write_json(config, temporary / "tokenizer_config.json", lasting=False)
        write_json({**roles, "mask_token": mask}, temporary / "special_tokens_map.json", lasting=False)


def load_tokenizer(folder) -> Tokenizer:
    """Read a folder written by `save_tokenizer`; MaskLabError if it is missing, broken or of other special tokens."""
    path = Path(folder) / "tokenizer.json"
    if not path.is_file():
        raise MaskLabError(f"{path}: no such file")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise MaskLabError(f"{path}: not a tokenizer ({error})") from None
    for index, token in enumerate(SPECIALS):
        if tokenizer.id_to_token(index) != token:
            raise MaskLabError(f"{path}: id {index} is {tokenizer.id_to_token(index)!r}, must be {token!r}")
    return tokenizer
