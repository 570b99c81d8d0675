"""A corpus of the user's text against the config: enough sequences to hold out and to train on, characters, pieces."""

from collections import Counter

from masklab.config import data
from masklab.config.hints import counted
from masklab.config.sources import expand
from masklab.errors import MaskLabError
from masklab.errors import listed as names
from masklab.lines import format_of

LONGEST_PIECE = 16  # characters: those that the trainer of Unigram tokenizers takes
SPECIALS = 5  # tokens of every tokenizer
MANY = 5000  # different words whose pieces are not counted


def check_text(config, name, corpus) -> list[str]:
    """Whether the files of a corpus can be read, and whether it is as large as what is made from it asks for."""
    where, notes, files = f"config: corpora.{name}", [], _files(corpus)
    for pattern, file in files:
        try:
            _check_file(file, corpus)
        except MaskLabError as error:
            raise MaskLabError(f"{where}.files: {data.of_pattern(pattern, file, error)}") from None
        if format_of(file) in (".tsv", ".csv"):
            notes.append(f"corpora.{name}.files: {file}: lines are read as text, columns and all")
    held_out, batch, reader = _asked(config, name, corpus)
    kept = _Kept(corpus, held_out + batch)
    for pattern, file in {file: (pattern, file) for pattern, file in reversed(files)}.values():
        try:
            kept.read(file)
        except MaskLabError as error:
            raise MaskLabError(f"{where}.files: {data.of_pattern(pattern, file, error)}") from None
        if not kept.whole:
            break
    most = kept.most
    if most is not None and most <= held_out:
        few = f"; {kept.dropped} of {kept.lines} lines are shorter than" if kept.dropped else ""
        short = f"{few} min_words ({corpus.min_words}) or min_characters ({corpus.min_characters})" if few else ""
        cut = most == kept.affordable
        budget = f" in max_words ({corpus.max_words})" if cut else f" of packed_words ({corpus.packed_words})"
        budget = budget if cut or corpus.unit == "packed" else ""
        raise MaskLabError(
            f"{where}.valid: {corpus.valid} and test: {corpus.test} are held out, and the files give at most"
            f" {counted(most, 'sequence')}{budget}: none is left to train on{short}"
        )
    if most is not None and most - held_out < batch:
        raise MaskLabError(
            f"config: models.{reader}.batch_size: {batch} is more than the {most - held_out} training sequences of"
            f" {name!r}: of {most}, {held_out} are held out (corpora.{name}.valid and test)"
        )
    if kept.whole and (corpus.max_words is None or kept.words <= corpus.max_words):
        notes += _check_pieces(config, name, kept.texts, held_out)
    return notes


def _files(corpus) -> list[tuple[str, str]]:
    """(pattern, file) of a corpus, in order."""
    return [(pattern, file) for pattern in corpus.files for file in expand(pattern)]


def _asked(config, name, corpus) -> tuple[int, int, str | None]:
    """(sequences held out, sequences of the largest batch, the recipe that has it)."""
    readers = [
        (model.batch_size, recipe) for recipe, model in config.models.items() if model.corpus == name and model.steps
    ]
    batch, recipe = max(
        readers, default=(1, None), key=lambda one: one[0]
    )  # of several the first, which others are like
    return corpus.valid + corpus.test, batch, recipe


def _check_file(file, corpus):
    """The beginning of a file is what its name says."""
    kind = format_of(file)
    if kind == ".parquet":
        columns, rows = data.table(file).columns, data.table(file).rows
        _check_column(file, corpus.column, columns, rows, "row")
    elif kind in data.JSON:
        for number, row in data.objects(file, data.head(file, 1).lines).items():
            _check_column(f"{file}: line {number}", corpus.column, row, [row], "line")
    else:
        data.head(file)


def _check_column(where, column, columns, rows, what):
    if column not in columns:
        pairs = "; it looks like minimal pairs (a task of kind pair-files)" if "sentence_good" in columns else ""
        labels = "; it looks like a labelled task (kind label-files)" if "label" in columns else ""
        raise MaskLabError(f"{where}: no column {column!r}{pairs or labels}; columns: {names(columns)}")
    if [*columns].count(column) > 1:
        raise MaskLabError(f"{where}: several columns are called {column!r}; columns: {names(columns)}")
    for number, row in enumerate(rows, 1):
        if not isinstance(row[column], str):
            at = f"{where}: row {number}" if what == "row" else where
            raise MaskLabError(f"{at}: {column!r} must be text (got {row[column]!r})")


class _Kept:
    """Counts the sequences that a corpus keeps, until there are clearly more than `needed`.

    whole: whether all files were read to their end.
    """

    def __init__(self, corpus, needed):
        self.corpus, self.limit = corpus, 2 * needed + 1000
        self.lines = self.dropped = self.words = self.packed = 0
        self.counted, self.whole, self.texts = 0, True, []

    @property
    def most(self) -> int | None:
        """Most sequences that the files can give; None: more than were counted."""
        counted = min(self.counted, self.packed) if self.corpus.unit == "packed" else self.counted
        bounds = [counted if self.whole else None, self.affordable]
        return min((bound for bound in bounds if bound is not None), default=None)

    @property
    def affordable(self) -> int | None:
        """Most sequences within `max_words`; a packed one may be the end of a line, a single word."""
        corpus, least = self.corpus, 1 if self.corpus.unit == "packed" else max(self.corpus.min_words, 1)
        return None if corpus.max_words is None else corpus.max_words // least

    def read(self, file):
        before = self.words
        for line in _texts(file, self.corpus.column):
            if line is None or self.counted > self.limit:
                self.whole = False
                return
            text = line.rstrip()
            if not text:
                continue
            self.lines += 1
            words = len(text.split())
            if len(text) < self.corpus.min_characters or words < max(self.corpus.min_words, 1):
                self.dropped += 1
                continue
            self.counted += -(-words // self.corpus.packed_words) if self.corpus.unit == "packed" else 1
            self.words += words
            self.texts.append(text)
        # of each file: two neighbours together have more words than one may have
        self.packed += 2 * (self.words - before) // self.corpus.packed_words + 1


def _texts(file, column):
    """Lines of a file of any format; a last one of None: there are more."""
    kind = format_of(file)
    if kind not in (".parquet", *data.JSON):
        yield from data.lines(file)
        return
    found = data.table(file)
    for row in found.rows:
        yield from row[column].split("\n")
    if not found.whole:
        yield None


def _check_pieces(config, name, texts, held_out) -> list[str]:
    """Tokenizers of a small corpus: room for every character, and no more pieces than there are.

    texts: all lines, of which `held_out` are not trained on.
    """
    notes = []
    for tokenizer, entry in config.tokenizers.items():
        if entry.kind in ("symbols", "folder") or entry.corpus != name:
            continue
        read = [(text.lower() if entry.lowercase else text).replace("``", '"').replace("''", '"') for text in texts]
        most = max(Counter(char for text in read for char in text if not char.isspace()).values(), default=0)
        if most < entry.rarest_character:
            raise MaskLabError(
                f"config: tokenizers.{tokenizer}.rarest_character: {entry.rarest_character} leaves nothing to make"
                f" pieces of: no character of {name!r} occurs more than {most} times"
            )
        if entry.sample:
            continue
        seen = Counter(char for text in read for char in set(text))
        seen.pop(" ", None)
        mark = entry.kind != "wordpiece"  # of a word's beginning
        trained = {char for char, lines in seen.items() if lines > held_out}
        # WordPiece has no piece for any blank, and two for all else: at the beginning of a word, and within one
        characters = mark + len(trained) if mark else 2 * sum(not char.isspace() for char in trained)
        if entry.rarest_character == 1 and characters + SPECIALS > entry.vocab_size:
            twice = "" if mark else ", each at the beginning of a word and within one,"
            raise MaskLabError(
                f"config: tokenizers.{tokenizer}.vocab_size: {entry.vocab_size} is too small: the {SPECIALS} special"
                f" tokens and the characters of {name!r}{twice} take {characters + SPECIALS}; raise it, or"
                " rarest_character"
            )
        words = {f"\u2581{word}" for text in read for word in text.split(" ") if word}
        if len(words) > MANY or not mark:
            continue
        longest = LONGEST_PIECE if entry.kind == "unigram" else max(map(len, words))
        sizes, pieces = range(1, longest + 1), set()
        for piece in (word[a : a + size] for size in sizes for word in words for a in range(len(word) - size + 1)):
            pieces.add(piece)
            if len(pieces) + SPECIALS >= entry.vocab_size:  # enough; all those of a long word would fill the memory
                break
        else:
            notes.append(
                f"tokenizers.{tokenizer}.vocab_size: {entry.vocab_size} pieces are asked for; the {len(words)}"
                f" different words of {name!r} give at most {len(pieces) + SPECIALS}"
            )
    return notes
