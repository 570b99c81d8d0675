import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForMaskedLM

from checked_run import items, run, scores
from masklab import probes
from masklab.config.schema import MinimalPairsProbe
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint
from masklab.models.words import Words, save_words
from masklab.probes import Context
from masklab.probes.minimal_pairs import pseudo_log_likelihood
from masklab.tokenizers import MASK, load_tokenizer


def naive(folder, texts):
    """One token at a time, one sentence at a time, with the transformers package."""
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(folder).eval(), load_tokenizer(folder)
    scores = []
    for text in texts:
        ids, total = tokenizer.encode(text).ids, 0.0
        for position in range(1, len(ids) - 1):
            masked = torch.tensor([ids])
            masked[0, position] = MASK
            with torch.no_grad():
                logits = model(input_ids=masked).logits[0, position]
            total += logits.log_softmax(-1)[ids[position]].item()
        scores.append(total)
    return np.array(scores)


@pytest.mark.parametrize("positions", ["disentangled", "absolute"])
def test_equals_the_naive_loop(make_checkpoint, positions, sentences):
    folder = make_checkpoint(positions)
    texts = sentences(30)
    model, tokenizer = load_checkpoint(folder), load_tokenizer(folder)
    wanted = naive(folder, texts)
    assert wanted.std() > 1
    for batch_tokens in (16384, 40):
        scores = pseudo_log_likelihood(model, tokenizer, texts, batch_tokens)
        np.testing.assert_allclose(scores, wanted, atol=1e-4)


def test_equals_minicons(make_checkpoint, sentences):
    from minicons.scorer import MaskedLMScorer

    folder = make_checkpoint(seed=3)
    texts = sentences(400)
    scorer = MaskedLMScorer(str(folder), "cpu")
    wanted = []
    for start in range(0, 400, 50):
        # Encoded by the scorer's tokenizer here: its own call is one that transformers 5 no longer has.
        batch = scorer.tokenizer(texts[start : start + 50], padding=True)
        wanted += scorer.sequence_score(batch, reduction=lambda row: row.sum().item(), PLL_metric="original")
    scores = pseudo_log_likelihood(load_checkpoint(folder), load_tokenizer(folder), texts)
    np.testing.assert_allclose(scores, wanted, atol=1e-3)
    assert ((scores[::2] > scores[1::2]) == (np.array(wanted[::2]) > np.array(wanted[1::2]))).all()


def test_full_width_normalises_over_latent_logits_too(make_checkpoint, sentences):
    folder = make_checkpoint(latent=17)
    model, tokenizer = load_checkpoint(folder).eval(), load_tokenizer(folder)
    texts = sentences(6)
    narrow = pseudo_log_likelihood(model, tokenizer, texts)
    wide = pseudo_log_likelihood(model, tokenizer, texts, full_width=True)
    np.testing.assert_allclose(narrow, naive(folder, texts), atol=1e-4)
    for text, score in zip(texts, wide, strict=True):
        ids, total = tokenizer.encode(text).ids, 0.0
        for position in range(1, len(ids) - 1):
            masked = torch.tensor([ids])
            masked[0, position] = MASK
            with torch.no_grad():
                output = model(masked, torch.tensor([len(ids)]), at=torch.tensor([position]))
            logits = torch.cat([output.logits[0], output.latent[0]])
            total += logits.log_softmax(-1)[ids[position]].item()
        assert score == pytest.approx(total, abs=1e-4)
    assert (wide < narrow).all()


def test_repeated_sentences_and_order_change_nothing(make_checkpoint, sentences):
    folder = make_checkpoint()
    model, tokenizer = load_checkpoint(folder), load_tokenizer(folder)
    texts = sentences(40)
    alone = np.concatenate([pseudo_log_likelihood(model, tokenizer, [text]) for text in texts])
    picks = np.random.default_rng(0).integers(0, 40, 200)
    together = pseudo_log_likelihood(model, tokenizer, [texts[i] for i in picks])
    np.testing.assert_allclose(together, alone[picks], atol=1e-4)
    assert pseudo_log_likelihood(model, tokenizer, []).shape == (0,)
    assert pseudo_log_likelihood(model, tokenizer, ["", texts[0]])[0] == 0


def test_equal_masked_inputs_run_once(make_checkpoint):
    folder = make_checkpoint()
    model, tokenizer = load_checkpoint(folder), load_tokenizer(folder)
    texts = ["The cat sleeps.", "The dog sleeps."]
    first, second = (tokenizer.encode(text, add_special_tokens=False).ids for text in texts)
    differing = sum(a != b for a, b in zip(first, second, strict=True))
    assert len(first) == len(second)
    assert differing == 1
    rows = []
    model.register_forward_pre_hook(lambda _, inputs: rows.append(len(inputs[0])))
    pseudo_log_likelihood(model, tokenizer, texts)
    assert sum(rows) == 2 * len(first) - 1


def test_texts_that_hold_a_mask_themselves(make_checkpoint):
    """What spells [MASK] is <unk>, not a token that the model fills in."""
    folder = make_checkpoint()
    model, tokenizer = load_checkpoint(folder), load_tokenizer(folder)
    texts = ["[MASK]s", "s[MASK]"]
    lengths = {len(tokenizer.encode(text).ids) for text in texts}
    alone = [pseudo_log_likelihood(model, tokenizer, [text])[0] for text in texts]
    assert len(lengths) == 1
    np.testing.assert_allclose(pseudo_log_likelihood(model, tokenizer, texts), alone, atol=1e-4)


def test_rows_and_ties(make_checkpoint, write_pairs, sentences):
    folder = make_checkpoint(latent=9)
    good, bad = sentences(40)[::2], sentences(40)[1::2]
    rows = [("agreement", *pair) for pair in zip(good, bad, strict=True)]
    # Both versions spell the same ids: a tie, right whichever is called good (argmax of the published pipeline).
    rows += [("ties", "The cat 猫.", "The cat 犬."), ("ties", "The cat 犬.", "The cat 猫.")]
    rows += [("ties", "The cat sees a dog.", "The cat sees a dog.")]  # seven of BLiMP's pairs are equal
    probe = MinimalPairsProbe(kind="minimal_pairs", tasks=["blimp"])
    made = probes.run(Context(probe=probe, checkpoint=folder, tasks={"blimp": write_pairs("blimp", rows)}))
    found = scores(made)
    outcomes = {(item["task"], item["metrics"][0]): item["predictions"] for item in items(made)}
    assert {row["task"] for row in found} == {"blimp/agreement", "blimp/ties"}
    values = {(row["task"], row["metric"]): (row["value"], row["n"]) for row in found}
    model, tokenizer = load_checkpoint(folder), load_tokenizer(folder)
    for metric, wide in (("accuracy", False), ("accuracy_full_width", True)):
        scored = [pseudo_log_likelihood(model, tokenizer, side, full_width=wide) for side in (good, bad)]
        assert outcomes["blimp/agreement", metric] == (scored[0] > scored[1]).astype(float).tolist()
        assert values["blimp/agreement", metric] == (pytest.approx((scored[0] > scored[1]).mean()), 20)
        assert values["blimp/ties", metric] == (1.0, 3)


@pytest.mark.parametrize("positions", ["none", "absolute"])
def test_an_encoder_without_positions_guesses_where_order_alone_differs(make_checkpoint, write_pairs, positions):
    """Rounding alone would decide."""
    folder = make_checkpoint(positions=positions)
    words = ["the", "dog", "sees", "a", "cat", "near", "the", "old", "house"]
    shuffled = [" ".join(np.random.default_rng(seed).permutation(words)) for seed in range(30)]
    rows = [("order", f"{one} .", f"{other} .") for one, other in zip(shuffled[::2], shuffled[1::2], strict=True)]
    rows += [("same", "The dog sleeps.", "The dog sleeps."), ("word", "The dog sleeps.", "The dogs sleeps.")]
    probe = MinimalPairsProbe(kind="minimal_pairs", tasks=["blimp"])
    made = probes.run(Context(probe=probe, checkpoint=folder, tasks={"blimp": write_pairs("blimp", rows)}))
    right = {item["task"]: item["predictions"] for item in items(made) if item["metrics"][0] == "accuracy"}
    assert right["blimp/same"] == [1.0] and right["blimp/word"][0] in (0.0, 1.0)
    assert (right["blimp/order"] == [0.5] * 15) == (positions == "none")
    assert positions == "none" or set(right["blimp/order"]) == {0.0, 1.0}


def test_without_latent_logits_both_accuracies_are_equal(make_checkpoint, write_pairs, sentences):
    rows = [("a", *pair) for pair in zip(sentences(20)[::2], sentences(20)[1::2], strict=True)]
    probe = MinimalPairsProbe(kind="minimal_pairs", tasks=["x"])
    found = run(Context(probe=probe, checkpoint=make_checkpoint(), tasks={"x": write_pairs("x", rows)}))
    assert [row["metric"] for row in found] == ["accuracy", "accuracy_full_width"]
    assert found[0]["value"] == found[1]["value"]


def test_too_long_a_sentence_and_wrong_tasks_are_named(make_checkpoint, write_pairs, write_task):
    probe = MinimalPairsProbe(kind="minimal_pairs", tasks=["x"])
    folder = make_checkpoint()
    long = "The cat sees the dog and " * 8
    task = write_pairs("x", [("a", long + "sleeps.", long + "sleep.")])
    with pytest.raises(MaskLabError, match=r"'The cat sees.* model takes 32 \(`max_positions` of its encoder\)$"):
        run(Context(probe=probe, checkpoint=folder, tasks={"x": task}))
    labels = write_task("y", [("a", None, 0)], classes=2)
    with pytest.raises(MaskLabError, match="'y' holds labels; a minimal_pairs probe needs pairs"):
        run(Context(probe=probe, checkpoint=folder, tasks={"y": labels}))


# --- text that is given, items of several sentences --------------------------------


def naive_rest(folder, text, given):
    """As the pipeline of 2025 does it: tokens whose characters end beyond the given text, one at a time."""
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(folder).eval(), load_tokenizer(folder)
    encoding, total = tokenizer.encode(text), 0.0
    for position, (_, end) in enumerate(encoding.offsets):
        if end > len(given):
            masked = torch.tensor([encoding.ids])
            masked[0, position] = MASK
            with torch.no_grad():
                logits = model(input_ids=masked).logits[0, position]
            total += logits.log_softmax(-1)[encoding.ids[position]].item()
    return total


GIVEN = [("The cat sees", " the dog."), ("The dog ", "sleeps."), ("", "The cat sleeps."), ("The cat sl", "eeps.")]


def test_what_is_given_is_read_and_not_scored(make_checkpoint):
    folder = make_checkpoint()
    model, tokenizer = load_checkpoint(folder), load_tokenizer(folder)
    texts, given = [start + end for start, end in GIVEN], [start for start, _ in GIVEN]
    found = pseudo_log_likelihood(model, tokenizer, texts, given=given)
    wanted = [naive_rest(folder, text, start) for text, start in zip(texts, given, strict=True)]
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    whole = pseudo_log_likelihood(model, tokenizer, texts)
    assert (found[:2] > whole[:2]).all() and found[2] == pytest.approx(whole[2], abs=1e-4)
    assert pseudo_log_likelihood(model, tokenizer, texts[:1], given=texts[:1]) == [0], "nothing is left to score"


def test_an_item_is_right_if_the_good_sentence_beats_every_other(make_checkpoint, write_pairs, sentences):
    folder = make_checkpoint(seed=5)
    texts = sentences(40)
    items_of = [texts[at : at + 4] for at in range(0, 40, 4)]  # the first of four is right
    rows = [("a", good, bad) for good, *others in items_of for bad in others]
    task = write_pairs("x", rows)
    frame = pd.read_parquet(task / "test.parquet")
    frame.assign(item=np.repeat(np.arange(10), 3), given="").to_parquet(task / "test.parquet")
    probe = MinimalPairsProbe(kind="minimal_pairs", tasks=["x"])
    found = run(Context(probe=probe, checkpoint=folder, tasks={"x": task}))
    scored = pseudo_log_likelihood(load_checkpoint(folder), load_tokenizer(folder), texts).reshape(10, 4)
    wanted = (scored[:, 0] >= scored[:, 1:].max(1)).mean()
    assert 0 < wanted < 1 and found[0]["value"] == pytest.approx(wanted) and found[0]["n"] == 10
    assert [row["metric"] for row in found] == ["accuracy", "accuracy_full_width", "majority"]
    assert found[2]["value"] == 0.25 and found[2]["n"] == 10  # one of four options, guessed


def test_words_guess_among_the_options_that_tie(tmp_path, write_pairs, tokenizer_folder):
    """Of words as frequent as each other a score is the number of words, less than none."""
    vocabulary = load_tokenizer(tokenizer_folder).get_vocab_size()
    uniform = Words(np.full(vocabulary, 1 / vocabulary, np.float32), False, 16)
    save_words(tmp_path / "words", uniform, tokenizer_folder=tokenizer_folder, metadata={})
    items_of = [(3, (3, 3, 4)), (3, (4, 2)), (2, (3,)), (2, (2,))]  # words of the good and of the bad sentences
    rows = [("a", " ".join(["cat"] * good), " ".join(["cat"] * bad)) for good, others in items_of for bad in others]
    task = write_pairs("x", rows)
    frame = pd.read_parquet(task / "test.parquet")
    frame.assign(item=[0, 0, 0, 1, 1, 2, 3], given="").to_parquet(task / "test.parquet")
    probe = MinimalPairsProbe(kind="minimal_pairs", tasks=["x"])
    made = probes.run(Context(probe=probe, checkpoint=tmp_path / "words", tasks={"x": task}))
    assert items(made)[0]["predictions"] == pytest.approx([1 / 3, 0, 1, 1 / 2])
    assert {row["metric"]: row["value"] for row in scores(made)}["majority"] == pytest.approx(
        (1 / 4 + 1 / 3 + 1 / 2 + 1 / 2) / 4
    )
