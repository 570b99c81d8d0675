"""Training subword tokenizers: Unigram (Kudo 2018), BPE (Sennrich et al. 2016), WordPiece, by Hugging Face's trainers.

The normaliser, special tokens and post-processor are those of the released code of `mlsm`: `` and '' become ", nothing
else of the text changes. Unigram and BPE mark the beginning of a word by U+2581, as SentencePiece does; WordPiece marks
what continues one by ##, as BERT does.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from masklab.errors import MaskLabError
from masklab.tokenizers import SPECIALS, UNK, special_tokens, template

log = logging.getLogger("masklab")

# Of Unicode's private use, which text exchanged between people does not hold.
END = "\uf8ff"
FEW = 0.9  # of the pieces that are asked for: where a corpus gives less, the run says so


def train(
    texts: Iterable[str],
    vocab_size: int,
    kind: str = "unigram",
    lowercase: bool = False,
    rarest_character: int = 1,
    candidates: str = "running",
) -> Tokenizer:
    """Train a tokenizer of a kind on strings; `vocab_size` counts the five special tokens (ids 0 to 4).

    Characters seen fewer than `rarest_character` times are left out of the training text and become <unk>: the
    trainers must keep a piece for every character they see, and real text has thousands that occur once.
    candidates: of Unigram, the strings that may become pieces: those that occur at least twice in the `running` text
    (Kudo 2018, section 3.2), or among its `distinct` words.
    A small corpus may give fewer pieces than asked for (logged; far fewer: also said by the log of the run). Equal
    texts give equal tokenizers. MaskLabError if there is no text, if `vocab_size` has no room for every character that
    occurs, or if no piece is left but special tokens and the mark of a word.
    """
    # Stripped: a line ending would become a piece that no encoded text contains.
    lines = [text.strip() for text in texts]
    if not any(lines):
        raise MaskLabError("tokenizer: the corpus has no text to train on")
    tokenizer = _untrained(kind, lowercase)
    if rarest_character > 1:
        normal = tokenizer.normalizer.normalize_str  # counted as the trainer sees them: "Z" may be "z"
        lines = _without_rare([normal(line) for line in lines], rarest_character)
        if not any(map(str.strip, lines)):
            raise MaskLabError(
                f"tokenizer: rarest_character: no character of the corpus occurs {rarest_character} times, so that"
                " nothing is left to make pieces of"
            )
    if kind == "unigram":
        _train_unigram(tokenizer, lines, vocab_size, candidates == "running")
    elif kind == "bpe":
        _check_room(_alphabet(tokenizer, lines), vocab_size)
        tokenizer.train_from_iterator(lines, _trainer(kind, vocab_size, special_tokens()))
    else:
        _train_wordpiece(tokenizer, lines, vocab_size)
    if (pieces := tokenizer.get_vocab_size()) < vocab_size:
        few = {"note": pieces < FEW * vocab_size}
        log.warning("tokenizer: the corpus gives %d pieces, vocab_size asks for %d", pieces, vocab_size, extra=few)
    tokenizer.post_processor = template()
    return tokenizer


def _untrained(kind, lowercase):
    unknown = SPECIALS[UNK]
    model = {
        "unigram": models.Unigram,
        "bpe": lambda: models.BPE(unk_token=unknown),
        "wordpiece": lambda: models.WordPiece(unk_token=unknown),
    }[kind]()
    tokenizer = Tokenizer(model)
    replacements = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    tokenizer.normalizer = normalizers.Sequence(replacements + [normalizers.Lowercase()] * lowercase)
    wordpiece = kind == "wordpiece"
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer() if wordpiece else pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.WordPiece(cleanup=False) if wordpiece else decoders.Metaspace()
    return tokenizer


def _trainer(kind, vocab_size, specials):
    common = {"vocab_size": vocab_size, "special_tokens": specials, "show_progress": False}
    if kind == "unigram":
        return trainers.UnigramTrainer(unk_token=SPECIALS[UNK], **common)
    return (trainers.BpeTrainer if kind == "bpe" else trainers.WordPieceTrainer)(**common)


def _words(tokenizer, line) -> list[str]:
    normal = tokenizer.normalizer.normalize_str(line)
    return [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal)]


def _train_unigram(tokenizer, lines, vocab_size, running):
    """Train, with every string that occurs twice in the running text among the candidates where `running` is true.

    The trainer looks for candidates among the distinct words, each counted once, so that a frequent word that is part
    of no other, such as `that`, is none. Given once more, with a sign at its end, it is part of another.
    """
    if not running:
        again = []
    else:
        counts = Counter(word for line in lines for word in _words(tokenizer, line))
        again = [word.removeprefix("▁") + END for word, count in counts.items() if count > 1]
    trainee = Tokenizer(models.Unigram())
    trainee.normalizer, trainee.pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
    try:
        trainee.train_from_iterator([*lines, *again], _trainer("unigram", vocab_size + bool(again), special_tokens()))
    except Exception as error:  # the library raises bare Exception
        if "not large enough" not in str(error):
            raise
        raise _too_small(vocab_size) from None
    pieces = _canonical(json.loads(trainee.to_str())["model"]["vocab"])
    tokenizer.model = models.Unigram([piece for piece in pieces if END not in piece[0]], UNK, False)
    tokenizer.add_special_tokens(special_tokens())


def _train_wordpiece(tokenizer, lines, vocab_size):
    """Train, with the characters that continue words given their ids beforehand.

    The trainer would number them in the order of its word counts, which changes from run to run, and a tie between
    pairs goes to the lower ids.
    """
    beginning = _alphabet(tokenizer, lines)
    continuing = sorted({"##" + character for character in beginning})
    _check_room([*beginning, *continuing], vocab_size)
    trainee = Tokenizer(models.WordPiece(unk_token=SPECIALS[UNK]))
    trainee.normalizer, trainee.pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
    trainee.train_from_iterator(lines, _trainer("wordpiece", vocab_size, [*special_tokens(), *continuing]))
    tokenizer.model = models.WordPiece(trainee.get_vocab(), unk_token=SPECIALS[UNK])
    tokenizer.add_special_tokens(special_tokens())


def _alphabet(tokenizer, lines) -> list[str]:
    """The characters of the words, which BPE and WordPiece begin with a piece for."""
    return sorted({character for line in lines for word in _words(tokenizer, line) for character in word})


def _check_room(pieces, vocab_size):
    if len(pieces) + len(SPECIALS) > vocab_size:
        raise _too_small(vocab_size, len(pieces))


def _too_small(vocab_size, pieces=None):
    needed = "" if pieces is None else f", which takes {len(SPECIALS) + pieces}"
    return MaskLabError(
        f"tokenizer: vocab_size: {vocab_size} is too small: it must hold {len(SPECIALS)} special tokens and"
        f" every character of the corpus{needed}"
    )


def _without_rare(texts, least):
    counts = Counter()
    for text in texts:
        counts.update(text)
    rare = str.maketrans(dict.fromkeys((c for c, count in counts.items() if count < least), " "))
    return [text.translate(rare) for text in texts]


def _canonical(pieces):
    """The trained pieces [(piece, log probability)] without the traces of the trainer's hash order.

    The trainer walks its word counts in an order that changes from run to run. The pieces it finds do not depend on
    it, but sums differ in their last bits, ties come out in any order, and characters that lost their piece get the
    scores min, min + 1e-4, min + 2e-4, ... in any order. What spells a special token, as WikiText's <unk> does, is no
    piece: it is that token.
    """
    specials, rest = pieces[: len(SPECIALS)], [(piece, round(score, 6)) for piece, score in pieces[len(SPECIALS) :]]
    rest = [(piece, score) for piece, score in rest if piece not in SPECIALS]
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
