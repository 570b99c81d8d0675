"""Questions about the English-like language: who did it, answered by words of a context, or by none (SQuAD 2.0's kind).

A context tells two or three events. Each question names a verb and one of the persons of an event and asks for the
other. A question without an answer mixes the verb of one event with the person of another, so that every word of it
occurs in the context all the same.
"""

import itertools
import re

import numpy as np
import pandas as pd

from masklab import rng
from masklab.corpora.english.templates import Templates
from masklab.errors import MaskLabError

# Events over slots: doer, verb, person it was done to.
EVENTS = ("the {a} {v}=V(hum,past) the {b} .", "the {b} was {v}=V(hum,part) by the {a} .")
DOER = "who {v}=V(hum,past) the {b} ?"
OTHER = "who was {v}=V(hum,part) by the {a} ?"
FILLER = "{a}=Name(?i) {v}=V(intr,past) ."
# Declares the persons and the verbs, so that no two are the same; not part of the context.
WORDS = "1=NL(sg,hum) 3=NL(sg,hum) 4=NL(sg,hum) 6=NL(sg,hum) 2=V(hum,past) 5=V(hum,past)"
SLOTS = ({"a": "1", "v": "2", "b": "3"}, {"a": "4", "v": "5", "b": "6"})


def question_cases(answerable: bool) -> list[tuple[str, ...]]:
    """Groups of templates: the words, two events, a filler, the question, and the answer's if there is one."""
    cases = []
    for forms in itertools.product(EVENTS, repeat=2):
        events = [form.format(**slots) for form, slots in zip(forms, SLOTS, strict=True)]
        told = (WORDS, *events, FILLER.format(a="7", v="8"))
        mixed = SLOTS[0] | {"a": SLOTS[1]["a"], "b": SLOTS[1]["b"]}
        for question, wanted in ((DOER, "a"), (OTHER, "b")):
            if answerable:
                cases.append((*told, question.format(**SLOTS[0]), "the " + SLOTS[0][wanted]))
            else:
                cases.append((*told, question.format(**mixed)))
    return cases


def question_task(sizes: dict[str, int], seed: int) -> dict[str, pd.DataFrame]:
    """{split: frame of question, context, answers (list), starts (list)}: half with an answer, no context twice."""
    seen, frames = set(), {}
    for split, count in sizes.items():
        random = rng.generator(seed, "english", "spans", split)
        rows = []
        for answerable in (True, False):
            drawers = [Templates(*texts) for texts in question_cases(answerable)]
            rows += _rows(drawers, (count + answerable) // 2, split, random, seen)
        order = rng.generator(seed, "english", "spans", split, "order").permutation(count)
        frames[split] = pd.DataFrame([rows[index] for index in order])
    return frames


def _rows(drawers, count, split, random, seen):
    rows = []
    for _ in range(200):
        quota = -(-(count - len(rows)) // len(drawers))
        for drawer in drawers:
            for texts in drawer.draw(quota, random)[:quota]:
                row = _row(texts[1:], random)
                if len(rows) < count and row["context"] not in seen:
                    seen.add(row["context"])
                    rows.append(row)
        if len(rows) == count:
            return rows
    raise MaskLabError(f"{split}: too few distinct contexts for {count} rows")


def _row(texts, random: np.random.Generator) -> dict:
    """texts: two events, a filler (told half of the time), the question, and the answer if the first event has it."""
    sentences = texts[: 2 + int(random.integers(2))]
    told = [sentences[i] for i in random.permutation(len(sentences))]
    context, answers, starts = " ".join(told), [], []
    if len(texts) == 5:
        words = re.search(rf"\b{texts[4]}\b", texts[0], re.IGNORECASE)
        at = context.index(texts[0]) + words.start()
        answers, starts = [words[0]], [at]
    return {"question": texts[3], "context": context, "answers": answers, "starts": starts}
