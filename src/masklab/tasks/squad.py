"""Answer spans: SQuAD's json files (1.1 and 2.0), the same by name, and generated ones."""

import pandas as pd

from masklab.corpora.english.questions import question_task
from masklab.errors import MaskLabError, in_one_line
from masklab.lines import READ_ERRORS, open_bytes, parsed
from masklab.rng import generator, seed_at
from masklab.tasks.generated import asked_of
from masklab.tasks.hub import hub_split

HUB = "rajpurkar/squad_v2"
BESIDE = 2  # characters between an answer and where a file says that it stands, at most


def span_facts(splits, metric: str) -> dict:
    """task.json of a task of answer spans."""
    return {"kind": "spans", "metric": metric, "rows": {split: len(frame) for split, frame in splits.items()}}


def squad(config, name, seed):
    """Build a task from SQuAD's files; the test split is the validation split unless it is given."""
    if config.train is None:
        train, valid = (
            _from_hub(hub_split(HUB, None, split, f"tasks.{name}"), split) for split in ("train", "validation")
        )
        test = valid
    else:
        train, valid = read_squad(config.train), read_squad(config.valid)
        test = read_squad(config.test) if config.test else valid
    if config.limit and config.limit < len(train):
        order = generator(seed, name, "limit", config.seed).permutation(len(train))
        train = train.iloc[sorted(order[: config.limit])].reset_index(drop=True)
    splits = {"train": train, "valid": valid, "test": test}
    return splits, span_facts(splits, config.metric)


def read_squad(file) -> pd.DataFrame:
    """Questions of a file of SQuAD's format: columns question, context, answers, starts (both lists).

    MaskLabError naming the file and the question: it cannot be read, or an answer does not stand in its context.
    """
    rows = []
    try:
        for article in _parsed(file)["data"]:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    where, none = f"{file}: question {len(rows) + 1}", question.get("is_impossible")
                    if none not in (None, False, True):  # Python takes "false" for true
                        raise MaskLabError(f"{where}: 'is_impossible' must be true or false (got {none!r})")
                    answers = [] if none else question["answers"]
                    rows.append(_row(question["question"], paragraph["context"], answers, where))
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise MaskLabError(f"{file}: question {len(rows) + 1}: not SQuAD's format ({error!r})") from None
    if not rows:
        raise MaskLabError(f"{file}: no questions")
    return pd.DataFrame(rows)


def _parsed(file):
    try:
        with open_bytes(file) as source:
            return parsed(source.read().decode("utf-8-sig"))
    except READ_ERRORS as error:
        raise MaskLabError(f"{file}: cannot be read ({in_one_line(error)})") from None
    except ValueError as error:
        raise MaskLabError(f"{file}: not valid JSON ({error})") from None


def _row(question, context, answers, where: str) -> dict:
    """A question with the places where its answers stand; MaskLabError, beginning with `where`: it cannot be read."""
    texts, starts = [answer["text"] for answer in answers], [answer["answer_start"] for answer in answers]
    # questions of the official files begin with spaces at times
    row = {"question": question.strip(), "context": context, "answers": texts}
    if not isinstance(context, str):
        raise MaskLabError(f"{where}: 'context' must be text (got {context!r})")
    return row | {"starts": [_start(context, *answer, where) for answer in zip(texts, starts, strict=True)]}


def _start(context, text, start, where) -> int:
    """Where an answer stands: some of the official files lie a character or two beside it."""
    if not isinstance(text, str) or not text.strip():
        raise MaskLabError(f"{where}: 'text' of an answer must be text (got {text!r})")
    if type(start) is not int or not 0 <= start < len(context):
        raise MaskLabError(
            f"{where}: 'answer_start' must be a character of its context, 0 to {len(context) - 1} (got {start!r})"
        )
    near = range(max(0, start - BESIDE), start + BESIDE + 1)
    found = min((at for at in near if context.startswith(text, at)), key=lambda at: abs(at - start), default=None)
    if found is None:
        raise MaskLabError(
            f"{where}: the answer {text!r} does not stand within {BESIDE} characters of 'answer_start', {start}"
        )
    return found


def _from_hub(rows, split: str) -> pd.DataFrame:
    found = []
    columns = (rows[column].tolist() for column in ("question", "context", "answers"))
    for number, (question, context, answers) in enumerate(zip(*columns, strict=True), 1):
        given = [
            {"text": text, "answer_start": int(start)}  # of numpy
            for text, start in zip(answers["text"], answers["answer_start"], strict=True)
        ]
        found.append(_row(question, context, given, f"{HUB}: {split}: row {number}"))
    return pd.DataFrame(found)


def english_spans(config, name, seed):
    """Build a task of answer spans from the grammar."""
    sizes = {"train": config.train, "valid": config.valid, "test": config.test}
    with asked_of(name):
        splits = question_task(sizes, seed_at(seed, name, "spans", config.seed))
    return splits, span_facts(splits, config.metric)
