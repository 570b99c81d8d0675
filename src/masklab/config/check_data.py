"""The config against the user's files that it names: what would stop a job, found before the first one."""

import re
from itertools import islice

from masklab.config import data, kinds
from masklab.config.check_corpora import check_text
from masklab.config.check_phrases import lacking
from masklab.config.check_tasks import check_sizes
from masklab.config.check_tokenizers import check_folder
from masklab.config.faults import Faults
from masklab.config.inherit import choices, hint, listed
from masklab.config.located import spelt
from masklab.config.measured import study_pairs
from masklab.config.pair_rows import BLIMP, item_of
from masklab.config.places import noted
from masklab.config.references import law_entry
from masklab.config.sources import expand, is_glob, missing, named
from masklab.errors import MaskLabError
from masklab.errors import listed as names
from masklab.lines import COMPRESSED, format_of, parsed, stem_of

# Columns of GLUE's own files; CoLA's have no header line.
GLUE = {
    "sst2": ("sentence", "label"),
    "mrpc": ("#1 String", "#2 String", "Quality"),
    "stsb": ("sentence1", "sentence2", "score"),
    "qqp": ("question1", "question2", "is_duplicate"),
    "mnli": ("sentence1", "sentence2", "gold_label"),
    "qnli": ("question", "sentence", "label"),
    "rte": ("sentence1", "sentence2", "label"),
}
TABLES = (".jsonl", ".json", ".tsv", ".csv", ".parquet")

LONGEST = 255  # bytes of a name in a path, which file systems take


def check_data(config) -> list[str]:
    """Look into every file that corpora and tasks name and that exists; returns what is worth a note.

    Little is read of each: the schema of Parquet, the first lines of others, of corpora as many as their sizes ask
    for. Raises MaskLabError: what is wrong with them, a line for each.
    """
    faults, notes = Faults(config.raw), []
    for name, corpus in config.corpora.items():
        with faults.collect():
            _check_files(f"corpora.{name}", corpus)
            if corpus.kind == "text" and not missing(corpus):
                notes += check_text(config, name, corpus)
    for name, task in config.tasks.items():
        with faults.collect():
            _check_files(f"tasks.{name}", task)
            check = _CHECKS.get(task.kind)
            if check and not missing(task):
                notes += check(config, f"tasks.{name}", task) or []
    for name, tokenizer in config.tokenizers.items():
        with faults.collect():
            if tokenizer.kind == "folder":
                check_folder(f"tokenizers.{name}", tokenizer)
    faults.stop()
    return [noted(note, config.raw) for note in notes + lacking(config)] + list(lost(config))


def lost(config):
    """Notes on the files that entries name and that do not exist; jobs that read them would fail."""
    absent = {}
    for section in ("corpora", "tokenizers", "tasks", "probes"):
        for name, entry in getattr(config, section).items():
            law = None if section == "probes" else law_entry(config, entry)
            for file in missing(entry) + missing(law):
                absent.setdefault(file, (section, name, entry))
    for file, (section, name, entry) in list(absent.items())[:5]:
        where, law = f"{section}.{name}", file not in named(entry)
        yield noted(f"{where if law else _key(where, entry, file)}: no file matches {file}", config.raw)
    if len(absent) > 5:
        yield f"... and {len(absent) - 5} more files that corpora, tokenizers, tasks and probes name are missing"


def _check_files(where, entry):
    """What a pattern names are files, not folders or nothing at all."""
    files = named(entry)
    ours = entry.kind in kinds.OURS[where.partition(".")[0]]  # others may do without
    if ours and hasattr(entry, "files") and not files and entry.kind != "glue":
        raise MaskLabError(f"config: {where}.files: names no file; give paths or globs such as data/*.txt")
    for pattern in files:
        if not pattern.strip():
            raise MaskLabError(f"config: {_key(where, entry, pattern)}: a path must not be empty")
        if any(len(part.encode()) > LONGEST for part in data.Path(pattern).parts):
            raise MaskLabError(f"config: {_key(where, entry, pattern)}: names in a path have at most {LONGEST} bytes")
        if ours and not hasattr(entry, "files") and is_glob(pattern):
            raise MaskLabError(f"config: {_key(where, entry, pattern)}: {pattern!r} is a pattern; name one file")
        for file in expand(pattern):
            if data.Path(file).is_dir():
                raise MaskLabError(
                    f"config: {_key(where, entry, pattern)}: {file!r} is a folder; name its files, such as"
                    f" {file.rstrip('/')}/*"
                )


def _key(where, entry, pattern) -> str:
    """The key that names a file."""
    if hasattr(entry, "folder"):
        return f"{where}.folder"
    return f"{where}." + ("files" if hasattr(entry, "files") else _split_of(entry, pattern))


def _split_of(entry, pattern) -> str:
    return next(split for split in ("train", "valid", "test", "file") if getattr(entry, split, None) == pattern)


# --- tasks ------------------------------------------------------------------------------------------------------------


def _check_pairs(config, where, task):
    """Minimal pairs have two sentences each, which a model that is to score them can read; and parts that sets name.

    Notes on parts that the first lines of its files lack.
    """
    seen, whole = set(), not task.limit
    scored = [] if task.limit else _positions(config, where.partition(".")[2])  # which lines it leaves is not known yet
    for pattern in task.files:
        for file in expand(pattern):
            key = _key(f"config: {where}", task, pattern)
            try:
                if format_of(file) not in data.JSON:
                    raise MaskLabError(f"{file}: pair-files are json lines (.jsonl, .json), one pair a line")
                first = data.head(file, 1)
                for number, row in data.objects(file, first.lines).items():
                    seen.add(item_of(file, number, row, stem_of(file), task.group_by).phenomenon)
                whole = whole and first.whole
                if scored:
                    _check_long(config, task, file, *min(scored, key=lambda each: each[0]))
            except MaskLabError as error:
                raise MaskLabError(f"{key}: {data.of_pattern(pattern, file, error)}") from None
    return list(_unseen(config, where.partition(".")[2], seen, whole)) if task.kind == "pair-files" else []


def _unseen(config, name, seen, whole):
    """Parts of a task, `pairs/agreement`, that sets of studies name and that are none of its phenomena.

    seen: those in what was read of its files; whole: that is all, and one that is not there is a mistake.
    """
    for study, declared in config.studies.items():
        for key, members in declared.sets.items():
            for member in members:
                task, slash, part = member.partition("/")
                if task != name or not slash or part in seen:
                    continue
                where, there = f"studies.{study}.sets.{spelt(key)}: {member!r}", hint(part, sorted(seen))
                if whole:
                    raise MaskLabError(f"config: {where}: {name!r} has no {part!r}{there}")
                yield f"{where}: the first lines of the files of {name!r} have no {part!r}{there}"


def _check_long(config, task, file, most: int, model: str, probe: str):
    """No sentence has more words than a model that is to score it has positions: it would be found after training.

    A word is a token at least, for tokenizers that are trained here. most: positions of `model`, measured by `probe`.
    """
    for number, line in enumerate(data.lines(file), 1):
        if line is None or line.count(" ") + 4 <= most:  # of most lines no more need be known
            continue
        try:
            item = item_of(file, number, parsed(line), stem_of(file), task.group_by)
        except (ValueError, TypeError, MaskLabError):
            return  # the job says what is wrong with a line so far down
        tokens = max(sum(map(bool, text.split(" "))) for text in (item.good, *item.bad)) + 2
        if tokens > most:
            encoder = config.models[model].encoder
            raise MaskLabError(
                f"{file}: line {number}: a sentence has {tokens} tokens at least, and {model!r}, which probes.{probe}"
                f" measures on it, reads {most} (encoders.{encoder}.max_positions)"
            )


def _positions(config, task: str) -> list[tuple[int, str, str]]:
    """(positions, recipe, probe) of every network with a tokenizer of ours whose minimal pairs a task holds."""
    found = []
    for probe, recipe in dict.fromkeys(pair for study in config.studies for pair in study_pairs(config, study)):
        entry, model = config.probes[probe], config.models[recipe]
        encoder = config.encoders[model.encoder]
        ours = encoder.network and "folder" not in (encoder.kind, config.tokenizers[model.tokenizer].kind)
        if ours and entry.kind == "minimal_pairs" and task in entry.tasks:
            found.append((encoder.max_positions, recipe, probe))
    return found


def _check_labels(config, where, task):
    """Columns, and labels as far as they are seen, of the rows that are kept; `valid` doubles as a missing `test`."""
    labels, whole, named_by = {}, {}, {"train": task.train, "valid": task.valid, "test": task.test or task.valid}
    for split, file in named_by.items():
        kept = task.where.get(split, {})
        if split == "test" and (file, kept) == (task.valid, task.where.get("valid", {})):
            continue
        key = _key(f"config: {where}", task, file)
        try:
            if format_of(file) not in TABLES:
                raise MaskLabError(
                    f"{file}: label-files end in {', '.join(TABLES)}, with {', '.join(COMPRESSED)} on top if compressed"
                )
            found = data.table(file, task.columns)
        except MaskLabError as error:
            raise MaskLabError(f"{key}: {error}") from None
        rows = {number: row for number, row in enumerate(found.rows, 1) if data.is_kept(row, kept)}
        for column in ("text_a", "text_b", "label"):
            _check_columns(f"config: {where}", column, getattr(task, column), file, found, rows, task)
        for column in kept:
            _check_there(f"config: {where}.where.{split}", column, file, found, task)
        if found.whole and not found.rows:
            raise MaskLabError(f"{key}: {file}: has a header line and no rows")
        if found.whole and not rows:
            raise MaskLabError(f"config: {where}.where.{split}: {file}: no row is kept")
        labels[split] = {number: _label(key, file, number, row, task.label) for number, row in rows.items()}
        whole[split] = found.whole
    if wrong := data.mixed(labels["train"]):
        raise MaskLabError(f"{_key(f'config: {where}', task, task.train)}: {task.train}: {wrong}")
    seen = len(labels["train"]) if whole["train"] else None
    _check_sizes(config, where, "folder" if hasattr(task, "folder") else "train", task.train, not task.columns, seen)
    known = set(labels["train"].values())
    if whole["train"] and len(known) < 2:
        raise MaskLabError(
            f"config: {where}.train: {task.train}: every row has the label {known.pop()!r}; a task needs at least two"
        )
    if whole["train"]:
        try:
            data.classes(known, task.positive)
        except MaskLabError as error:
            raise MaskLabError(f"config: {where}.positive: {task.train}: {error}") from None
    for split in ("valid", "test"):
        for number, label in labels.get(split, {}).items():
            if whole["train"] and label not in known:
                raise MaskLabError(
                    f"{_key(f'config: {where}', task, named_by[split])}: {named_by[split]}: row {number}: label"
                    f" {label!r} does not occur in training; labels: {names(sorted(known, key=str))}"
                )
    if task.train in (task.valid, task.test) and not task.where:
        return [f"{where}: trains on the file that it is measured on, {task.train}"]
    return []


def _check_sizes(config, where, key, file, header: int, rows: int | None = None):
    """No probe asks for more training rows of a task than it has, or its file, of which no more are counted than that.

    header: lines above the rows, of a TSV or CSV; rows: how many there are, None: not known.
    """
    task = where.partition(".")[2]
    for name, probe in config.probes.items():
        if task in probe.tasks and (sizes := getattr(probe, "sizes", None)):
            try:
                counted = rows if rows is not None else sum(1 for _ in islice(_rows(file, header), max(sizes)))
            except MaskLabError as error:
                raise MaskLabError(f"config: {where}.{key}: {error}") from None
            check_sizes(name, probe, task, counted)


def _rows(file, header: int):
    """Something for each row of a table."""
    kind = format_of(file)
    if kind == ".parquet":
        yield from range(data.row_count(file))
        return
    texts = (line for line in data.lines(file) if line is not None and line.strip())
    texts = data.csv_cells(file, texts) if kind == ".csv" else texts
    yield from islice(texts, 0 if kind in data.JSON else header, None)


def _check_columns(where, key, template, file, found, rows, task):
    """The columns that a key names, as a name or within a template, are there, with a value in each of `rows`."""
    if template is None:
        return
    try:
        columns = data.template_parts(template)[1::2]
    except MaskLabError as error:
        raise MaskLabError(f"{where}.{key}: {error}") from None
    for column in columns:
        _check_there(f"{where}.{key}", column, file, found, task)
        for number, row in rows.items():
            if row.get(column) is None or (key != "label" and not str(row[column]).strip()):
                raise MaskLabError(f"{where}.{key}: {file}: row {number}: {column!r} is empty")
            if key != "label" and (got := data.not_text(row[column])):
                raise MaskLabError(f"{where}.{key}: {file}: row {number}: {column!r} must be text (got {got})")


def _check_there(where, column, file, found, task):
    """A column is there, once."""
    if column not in found.columns:
        there = choices(column, found.columns, "columns", 30)
        if BLIMP in found.columns:
            there = "; the file looks like minimal pairs (kind: pair-files)" + listed(found.columns, what="columns")
        elif format_of(file) in (".csv", ".tsv") and (other := _other_separator(found.columns)):
            there = f"; its cells seem to be separated by {other!r}: .csv is read with commas, .tsv with tabs"
        elif any(_is_value(name) for name in found.columns) and task.columns is None:
            there = "; the first line looks like data: name the columns with `columns:`"
        raise MaskLabError(f"{where}: {file}: no column {column!r}{there}")
    if found.columns.count(column) > 1:
        raise MaskLabError(f"{where}: {file}: several columns are called {column!r}; columns: {names(found.columns)}")


def _other_separator(columns) -> str | None:
    """What separates the cells of a table that seems to have one column; None: it has several, or one."""
    return next((mark for mark in ";,\t|" if len(columns) == 1 and mark in str(columns[0])), None)


def _is_value(name) -> bool:
    """Whether a cell of a header line is no name of a column: a number or nothing."""
    return bool(re.fullmatch(r"-?\d+(\.\d+)?|", str(name)))


def _label(key, file, number, row, column):
    """A label as label-files reads it: a whole number or a word."""
    label = data.label_of(row[column])
    if label == -1:
        raise MaskLabError(f"{key}: {file}: row {number}: no label (-1): GLUE withholds those of its test files")
    if label is None:
        what = f"label {row[column]!r} is not a class (a word or a whole number)"
        raise MaskLabError(f"{key}: {file}: row {number}: {what}")
    return label


def _check_glue(config, where, task):
    """The header of GLUE's files."""
    for file in task.files:
        try:
            texts, _ = data.head(file)
        except MaskLabError as error:
            raise MaskLabError(f"config: {where}.folder: {error}") from None
        columns = [column.strip() for column in texts[0].split("\t")]
        if task.task == "cola" and len(columns) != 4:
            raise MaskLabError(
                f"config: {where}.folder: {file}: CoLA's files have 4 columns; this one has {len(columns)}"
            )
        if lacks := [column for column in GLUE.get(task.task, ()) if column not in columns]:
            others = [other for other, names in GLUE.items() if set(names) <= set(columns)]
            hint = f"; the file looks like {' or '.join(others)}" if others else ""
            raise MaskLabError(
                f"config: {where}.folder: {file}: no column {lacks[0]!r}; {task.task} reads"
                f" {', '.join(GLUE[task.task])}{hint}; columns: {names(columns)}"
            )
    if task.files:
        _check_sizes(config, where, "folder", task.files[0], 0 if task.task == "cola" else 1)


def _check_squad(config, where, task):
    """The outside of SQuAD's json."""
    for split in ("train", "valid", "test"):
        if file := getattr(task, split):
            try:
                texts, _ = data.head(file)
            except MaskLabError as error:
                raise MaskLabError(f"config: {where}.{split}: {error}") from None
            start = "\n".join(texts).lstrip()
            if not start.startswith("{") or not re.search(r'"(data|version)"', start):
                raise MaskLabError(
                    f"config: {where}.{split}: {file}: not SQuAD's format, a JSON object with `data`, a list of"
                    " articles"
                )


_CHECKS = {"pair-files": _check_pairs, "label-files": _check_labels, "glue": _check_glue, "squad": _check_squad}
_CHECKS |= {"babylm-pairs": _check_pairs, "babylm-labels": _check_labels}
