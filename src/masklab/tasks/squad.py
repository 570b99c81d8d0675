"""Answer spans: SQuAD's json files (1.1 and 2.0), the same by name, and generated ones."""

from pathlib import Path

import pandas as pd

from masklab.corpora.english.questions import question_task
from masklab.errors import MaskLabError
from masklab.lines import parsed
from masklab.rng import generator, seed_at
from masklab.tasks.hub import hub_split

HUB = "rajpurkar/squad_v2"


def span_facts(splits, metric: str) -> dict:
    """task.json of a task of answer spans."""
    return {"kind": "spans", "metric": metric, "rows": {split: len(frame) for split, frame in splits.items()}}


def squad(config, name, seed):
    """Build a task from SQuAD's files; the test split is the validation split unless it is given."""
    if config.train is None:
        train, valid = (_from_hub(hub_split(HUB, None, split, f"tasks.{name}")) for split in ("train", "validation"))
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
    """Questions of a file of SQuAD's format: columns question, context, answers, starts (both lists)."""
    rows = []
    try:
        for article in _parsed(file)["data"]:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    answers = [] if question.get("is_impossible", False) else question["answers"]
                    rows.append(_row(question["question"], paragraph["context"], answers))
                    if fault := _fault(rows[-1]):
                        raise MaskLabError(f"{file}: question {len(rows)}: {fault}")
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise MaskLabError(f"{file}: question {len(rows) + 1}: not SQuAD's format ({error!r})") from None
    if not rows:
        raise MaskLabError(f"{file}: no questions")
    return pd.DataFrame(rows)


def _parsed(file):
    try:
        return parsed(Path(file).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise MaskLabError(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise MaskLabError(f"{file}: not valid JSON ({error})") from None


def _row(question, context, answers):
    texts, starts = [answer["text"] for answer in answers], [answer["answer_start"] for answer in answers]
    # questions of the official files begin with spaces at times
    return {"question": question.strip(), "context": context, "answers": texts, "starts": starts}


def _fault(row) -> str | None:
    """Why a question cannot be read; None: it can. Some answers of the official files lie a character beside it."""
    if not isinstance(row["context"], str):
        return f"'context' must be text (got {row['context']!r})"
    for text, start in zip(row["answers"], row["starts"], strict=True):
        if not isinstance(text, str) or not text.strip():
            return f"'text' of an answer must be text (got {text!r})"
        if type(start) is not int or not 0 <= start < len(row["context"]):
            return f"'answer_start' must be a character of its context, 0 to {len(row['context']) - 1} (got {start!r})"
    return None


def _from_hub(rows) -> pd.DataFrame:
    texts, starts = ([list(answers[key]) for answers in rows["answers"]] for key in ("text", "answer_start"))
    columns = {"question": rows["question"].str.strip(), "context": rows["context"], "answers": texts, "starts": starts}
    return pd.DataFrame(columns)


def english_spans(config, name, seed):
    """Build a task of answer spans from the grammar."""
    sizes = {"train": config.train, "valid": config.valid, "test": config.test}
    splits = question_task(sizes, seed_at(seed, name, "spans", config.seed))
    return splits, span_facts(splits, config.metric)
