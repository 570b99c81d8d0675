"""Answer extraction: windows hold the answer, the best span is the best one, and a model learns the task."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from checked_run import items, scores
from masklab.config.schema import FinetuneProbe
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint
from masklab.probes import Context
from masklab.probes.answer_spans import NEVER, Answers, Extraction, SpanModel, best_spans
from masklab.probes.finetune import measure
from masklab.probes.windows import encode_windows
from masklab.tasks.encoding import content_ids, joined
from masklab.tokenizers import CLS, MASK, SEP

NOUNS = ("cat", "dog", "bird", "horse", "child", "teacher")


def rows(count, seed, sentences=2):
    """Who runs today? The one of which it is said; nobody where it is said of none."""
    rng, found = np.random.default_rng(seed), []
    for number in range(count):
        first, *others = rng.permutation(NOUNS)[: sentences + 1]
        parts = [f"The {noun}s sleep." for noun in others]
        answerable = bool(number % 3)
        parts.insert(int(rng.integers(len(parts) + 1)), f"The {first} {'runs' if answerable else 'sees'} today.")
        context = " ".join(parts)
        answers = [f"The {first}"] if answerable else []
        found.append(
            {"question": "The horse runs today.", "context": context, "answers": answers,
             "starts": [context.index(answer) for answer in answers]}
        )  # fmt: skip
    return pd.DataFrame(found)


@pytest.fixture
def task(tmp_path):
    def write(name="spans", **frames):
        folder = tmp_path / name
        folder.mkdir()
        for split, frame in frames.items():
            frame.to_parquet(folder / f"{split}.parquet")
        facts = {"kind": "spans", "metric": "f1"}
        (folder / "task.json").write_text(json.dumps(facts))
        return folder

    return write


def test_what_spells_a_special_token_ends_no_question_and_no_context(make_tokenizer, task):
    row = {"question": "The [SEP] cat [MASK]", "context": "A dog [SEP] runs [MASK] today.", "answers": ["runs"]}
    frame = pd.DataFrame([row | {"starts": [row["context"].index("runs")]}])
    tokenizer = make_tokenizer()
    windows = encode_windows(task(train=frame) / "train.parquet", tokenizer, 64, 10, 32)
    ids, (begin, end, first) = windows.ids[0].tolist(), windows.labels[0]
    assert ids == joined(*content_ids(tokenizer, [row["question"], row["context"]]), 64)
    assert [at for at, token in enumerate(ids) if token == SEP] == [first - 1, len(ids) - 1] and MASK not in ids
    where = windows.spans[0][[begin - first, end - first]]
    assert row["context"][where[0, 0] : where[1, 1]] == "runs"


def test_windows_cover_the_context_and_know_the_answer(make_tokenizer, task):
    """Every label, read back as characters, is the answer; every token of the context is in some window."""
    tokenizer, frame = make_tokenizer(), rows(40, 1, sentences=5)
    folder = task(train=frame)
    for max_length, stride in ((64, 10), (30, 4), (24, 1)):
        windows = encode_windows(folder / "train.parquet", tokenizer, max_length, stride, 8)
        assert windows.lengths.max() <= max_length and windows.rows(3) == (windows.question < 3).sum()
        assert (len(windows) > 40) == (max_length < 64)
        found = set()
        for i in range(len(windows)):
            begin, end, first = windows.labels[i]
            ids, length, owner = windows.ids[i].tolist(), windows.lengths[i], windows.question[i]
            assert ids[0] == CLS and ids[first - 1] == SEP == ids[length - 1] and first <= 10
            assert len(windows.spans[i]) == length - 1 - first
            if end:
                where = windows.spans[i][[begin - first, end - first]]
                assert windows.contexts[owner][where[0, 0] : where[1, 1]] == windows.answers[owner][0]
                found.add(owner)
        assert found == {i for i in range(40) if i % 3}
        for owner in range(40):
            covered = np.concatenate([s for s, o in zip(windows.spans, windows.question, strict=True) if o == owner])
            kept = {i for a, b in covered for i in range(a, b)}
            assert kept == {i for i, c in enumerate(windows.contexts[owner]) if c != " "}


def test_bad_rows_are_named(make_tokenizer, task):
    frame = rows(3, 1)
    for change, said in (
        ({"starts": [2]}, "row 2: the answer 'The .*' does not stand at character 2"),
        ({"context": "", "answers": [], "starts": []}, "row 2: the context is empty"),
    ):
        bad = frame.copy()
        for key, value in change.items():
            bad.at[1, key] = value
        folder = task(str(len(change)), train=bad)
        with pytest.raises(MaskLabError, match=said):
            encode_windows(folder / "train.parquet", make_tokenizer(), 40, 8, 8)
    with pytest.raises(MaskLabError, match="leaves no room in 10 tokens"):
        encode_windows(task("x", train=frame) / "train.parquet", make_tokenizer(), 10, 8, 8)


def test_best_span_is_the_best_of_all():
    generator = torch.Generator().manual_seed(0)
    for length, longest in ((9, 3), (9, 30), (1, 2)):
        scores = torch.randn(20, length, 2, generator=generator)
        scores[:, : length // 3] = NEVER
        value, span = best_spans(scores, longest)
        for row in range(20):
            tried = {
                (i, j): float(scores[row, i, 0] + scores[row, j, 1])
                for i in range(length) for j in range(i, min(i + longest, length))
            }  # fmt: skip
            assert value[row] == pytest.approx(max(tried.values())) == pytest.approx(tried[tuple(span[row])])


@torch.no_grad()
def test_no_answer_begins_in_the_question_or_the_padding(make_checkpoint):
    model = SpanModel(load_checkpoint(make_checkpoint())).eval()
    model.reset_head(torch.Generator().manual_seed(1))
    ids, lengths, first = torch.randint(5, 50, (2, 12)), torch.tensor([12, 9]), torch.tensor([4, 6])
    allowed = (model(ids, lengths, first) > NEVER).all(-1)
    assert allowed[0].nonzero()[:, 0].tolist() == [0, *range(4, 11)]
    assert allowed[1].nonzero()[:, 0].tolist() == [0, 6, 7]


def test_where_every_question_has_an_answer_each_is_answered():
    """SQuAD 1.1's script knows no threshold: a doubt costs nothing there."""

    def split(*answers):
        return SimpleNamespace(answers=list(answers), answerable=np.array([bool(own) for own in answers]))

    def means(test, valid):
        given = Answers(["a cat", "dog"], np.array([2.0, -1.0]))  # in doubt about the first
        return {
            row["metric"]: row["value"]
            for row in Extraction("f1").rows((test, given), (valid, given))
            if "value" in row
        }

    have, lack = split(["cat"], ["dog"]), split([], ["dog"])
    assert means(have, have)["exact"] == means(have, have)["exact_untuned"] == 1
    assert means(lack, lack)["exact"] == means(lack, lack)["exact_untuned"] == 1  # none given where none is there
    assert means(have, lack)["exact"] == means(have, lack)["f1_untuned"] == 0.5


def test_learns_to_extract_answers_and_to_give_none(make_checkpoint, task):
    probe = FinetuneProbe(
        kind="finetune", tasks=["spans"], seeds=[1], lr=3e-3, batch_size=16, epochs=12, max_length=32, stride=8,
        evaluate_every=60, rank=0.9,
    )  # fmt: skip
    folder = task(train=rows(320, 2), valid=rows(90, 3), test=rows(90, 4))
    made = measure(Context(probe, make_checkpoint("absolute"), {"spans": folder}))
    found = scores(made)
    values = {row["metric"]: row["value"] for row in found}
    assert values["majority"] == values["majority_f1"] == pytest.approx(1 / 3)
    kept = {metric: item for item in items(made) for metric in item["metrics"]}
    assert set(kept) == {"exact", "f1", "exact_untuned", "f1_untuned", "majority", "majority_f1"}
    assert set(kept["exact"]["predictions"]) <= {0, 1} and len(kept["exact"]["predictions"]) == 90
    assert np.all(np.array(kept["f1"]["predictions"]) >= kept["exact"]["predictions"])
    assert kept["majority"]["predictions"] == [float(number % 3 == 0) for number in range(90)]
    assert values["exact"] > 0.85 and values["f1"] > 0.9 and values["exact_untuned"] > 0.8
    assert {(row["layer"], row["split"]) for row in found if row["metric"].startswith("rank")} == {(2, "test")}
    assert 1 <= values["rank_centred"] <= 32
