"""MSGS as it is scored: a model that reads the surface alone is wrong on every row where the features part."""

import json

import pytest

from checked_run import run
from masklab.config.schema import FinetuneProbe, entry
from masklab.models.words import Words, save_words
from masklab.probes import Context
from masklab.tasks import build, write_task
from masklab.tokenizers import load_tokenizer
from masklab.training.manifest import unigram

NOUNS = ("cat", "dog", "bird", "child", "horse", "teacher")


def rows():
    """Label: which noun comes first, which a bag of words cannot see; surface feature: the word `today`.

    In training they agree; `control` rows of the validation file agree too, and on those of `test` they part.
    """
    for first, second in [(a, b) for a in NOUNS for b in NOUNS if a < b]:
        for label, text in ((1, f"The {first} sees the {second}"), (0, f"The {second} sees the {first}")):
            for condition, surface in (("train", label), ("control", label), ("test", 1 - label)):
                sentence = f"{text} today." if surface else f"{text}."
                yield {"sentence": sentence, "label": label, "condition": condition}


@pytest.fixture
def msgs(tmp_path):
    """The folder of a release with one ambiguous task."""
    folder = tmp_path / "filter-data" / "msgs_filtered"
    folder.mkdir(parents=True)
    splits = {"train": [], "validation": []}
    for row in rows():
        splits["train" if row["condition"] == "train" else "validation"].append(row)
    for split, lines in splits.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"main_verb_lexical_content_the.{split}.json").write_text(text)
    return folder.parent


def test_a_surface_only_model_is_always_wrong_where_they_part_and_guesses_on_all_rows(msgs, tokenizer_folder, tmp_path):
    from masklab.tokens import TokenStore, write_tokens

    keys = {"kind": "babylm-labels", "task": "main_verb_lexical_content_the", "folder": str(msgs)}
    tasks = {}
    for name, more in (("parted", {}), ("all", {"where": {}})):
        tasks[name] = tmp_path / name
        write_task(tasks[name], *build(entry("tasks", keys | more), name, 1))
    tokenizer = load_tokenizer(tokenizer_folder)
    write_tokens([row["sentence"] for row in rows()], tokenizer, 32, tmp_path / "tokens", "train")
    words = Words(unigram(TokenStore(tmp_path / "tokens", "train"), tokenizer.get_vocab_size(), False), False, 32)
    save_words(tmp_path / "step-0", words, tokenizer_folder=tokenizer_folder, metadata={})
    probe = FinetuneProbe(kind="finetune", tasks=list(tasks), seeds=[1], batch_size=8, epochs=20)
    found = run(Context(probe=probe, checkpoint=tmp_path / "step-0", tasks=tasks))
    mcc = {row["task"]: (row["value"], row["n"]) for row in found if row["metric"] == "mcc"}
    assert mcc == {"parted": (-1.0, 30), "all": (0.0, 60)}
