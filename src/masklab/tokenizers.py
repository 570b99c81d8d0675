"""Tokenizers: training, and the files that every release of the hub's libraries reads alike.

The tokenizer of symbols has one word per symbol. The Unigram tokenizers' normaliser, pre-tokenizer, special tokens
and post-processor are those of the paper's (Kudo 2018's Unigram model; `` and '' become "; words are marked by
U+2581).
"""

import json
import logging
from collections import Counter
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from masklab.errors import MaskLabError
from masklab.files import atomic_folder, write_json

log = logging.getLogger("masklab")

SPECIALS = ("[CLS]", "[SEP]", "<unk>", "<pad>", "[MASK]")
CLS, SEP, UNK, PAD, MASK = range(5)
ROLES = {"cls_token": CLS, "sep_token": SEP, "unk_token": UNK, "pad_token": PAD, "mask_token": MASK}


def train_unigram(texts, vocab_size: int, lowercase: bool = False, rarest_character: int = 1) -> Tokenizer:
    """Train on an iterable of strings; `vocab_size` counts the five special tokens (ids 0 to 4).

    Characters seen fewer than `rarest_character` times are left out of the training text and become <unk>: the
    trainer must keep a piece for every character it sees, and real text has thousands that occur once.
    A small corpus may give fewer pieces than asked for (logged). Equal texts give equal tokenizers.
    MaskLabError if there is no text, or if `vocab_size` has no room for every character that occurs.
    """
    tokenizer = Tokenizer(models.Unigram())
    replacements = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    tokenizer.normalizer = normalizers.Sequence(replacements + [normalizers.Lowercase()] * lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size, unk_token=SPECIALS[UNK], special_tokens=_specials(), show_progress=False
    )
    try:
        # Stripped: a line ending would become a piece that no encoded text contains.
        lines = (text.strip() for text in texts)
        tokenizer.train_from_iterator(
            _without_rare(lines, rarest_character) if rarest_character > 1 else lines, trainer
        )
    except Exception as error:  # the library raises bare Exception
        if "not large enough" not in str(error):
            raise
        raise MaskLabError(
            f"tokenizer: vocab_size: {vocab_size} is too small: it must hold {len(SPECIALS)} special tokens and"
            " every character of the corpus"
        ) from None
    pieces = json.loads(tokenizer.to_str())["model"]["vocab"]
    if len(pieces) == len(SPECIALS):
        raise MaskLabError("tokenizer: the corpus has no text to train on")
    if len(pieces) < vocab_size:
        log.warning("tokenizer: the corpus gives %d pieces, vocab_size asks for %d", len(pieces), vocab_size)
    tokenizer.model = models.Unigram(_canonical(pieces), UNK, False)
    tokenizer.post_processor = template()
    return tokenizer


def symbol_tokenizer(names) -> Tokenizer:
    """The fixed vocabulary of a symbolic corpus: words between spaces; the id of names[i] is i + 5."""
    words = [*SPECIALS, *names]
    if len(set(words)) < len(words):
        raise MaskLabError("tokenizer: two symbols, or a symbol and a special token, have the same name")
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, SPECIALS[UNK]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(_specials())
    tokenizer.post_processor = template()
    return tokenizer


def template():
    """What stands around a text, or two: [CLS] a [SEP], [CLS] a [SEP] b [SEP]."""
    return processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )


def _without_rare(texts, least):
    texts = list(texts)
    counts = Counter()
    for text in texts:
        counts.update(text)
    rare = str.maketrans(dict.fromkeys((c for c, count in counts.items() if count < least), " "))
    return [text.translate(rare) for text in texts]


def _canonical(pieces):
    """The trained pieces [(piece, log probability)] without the traces of the trainer's hash order.

    The trainer walks its word counts in an order that changes from run to run. The pieces it finds do not depend on
    it, but sums differ in their last bits, ties come out in any order, and characters that lost their piece get the
    scores min, min + 1e-4, min + 2e-4, ... in any order.
    """
    specials, rest = pieces[: len(SPECIALS)], [(piece, round(score, 6)) for piece, score in pieces[len(SPECIALS) :]]
    lowest = min(score for _, score in rest)
    readded, steps = [], 0  # characters on the ladder of such scores, and its steps seen so far
    for piece, score in sorted(rest, key=lambda item: item[1]):
        step = round((score - lowest) / 1e-4)
        if len(piece) == 1 and step <= steps and abs(score - lowest - step * 1e-4) < 2e-6:
            readded.append((piece, score))
            steps = step + 1
    scores = dict(rest)
    scores.update(zip(sorted(piece for piece, _ in readded), sorted(score for _, score in readded), strict=True))
    return [(piece, 0.0) for piece, _ in specials] + sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def _specials():
    # [MASK] swallows the space before it, else "a [MASK]" would hold a lone word mark.
    return [AddedToken(token, special=True, normalized=False, lstrip=token == "[MASK]") for token in SPECIALS]


def save_tokenizer(tokenizer: Tokenizer, folder, max_length: int) -> None:
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json into `folder`, atomically.

    The form is the one that transformers 4.27, 4.51 and 5 all read, giving the same ids and offsets: class
    PreTrainedTokenizerFast, and Metaspace described by `add_prefix_space` as in old releases.
    """
    content = json.loads(tokenizer.to_str())
    for part in ("pre_tokenizer", "decoder") if content["model"]["type"] == "Unigram" else ():
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
        write_json(config, temporary / "tokenizer_config.json")
        write_json({**roles, "mask_token": mask}, temporary / "special_tokens_map.json")


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
