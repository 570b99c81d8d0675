import numpy as np
import pytest
import torch
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers

from checked_run import run
from masklab.config.schema import PredictionProbe
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint
from masklab.phrases.queries import verbaliser_ids
from masklab.probes import Context
from masklab.probes.prediction import masked_ids, shown, top_tokens
from masklab.tokenizers import CLS, MASK, SEP, SPECIALS, load_tokenizer

SENTENCE = "The old [MASK] sees the cat."
ATOMS = 12


@pytest.fixture
def coded(tmp_path, make_tokenizer, sentences):
    """Token array and random codes of a small corpus; returns (folder, dense coefficients, ids)."""
    tokenizer, rng = make_tokenizer(), np.random.default_rng(0)
    texts = [*sentences(80), "very small teachers"]
    rows = [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]
    ids = np.concatenate(rows).astype(np.uint16)
    dense = rng.random((len(ids), ATOMS)) * (rng.random((len(ids), ATOMS)) < 0.3)
    dense[:, 4] = 0  # an atom that nothing uses
    dense = dense.astype(np.float32)
    position, atom = np.nonzero(dense)
    np.save(tmp_path / "train.ids.npy", ids)
    np.save(tmp_path / "train.offsets.npy", np.cumsum([0, *map(len, rows)]))
    np.save(tmp_path / "train.indptr.npy", np.searchsorted(position, np.arange(len(ids) + 1)))
    np.save(tmp_path / "train.indices.npy", atom.astype(np.uint16))
    np.save(tmp_path / "train.values.npy", dense[position, atom])
    return tmp_path, dense, ids


def test_rows_equal_direct_computing(make_checkpoint, coded):
    folder, (codes, dense, ids) = make_checkpoint(latent=ATOMS), coded
    probe = PredictionProbe(kind="prediction", sentence=SENTENCE, top=5)
    rows = run(Context(probe=probe, checkpoint=folder, codes=codes, tokens=codes))
    model, tokenizer = load_checkpoint(folder).eval(), load_tokenizer(folder)
    sequence = masked_ids(tokenizer, SENTENCE)
    with torch.no_grad():
        output = model(torch.tensor([sequence]), torch.tensor([len(sequence)]))
    at = sequence.index(MASK)
    for split, logits in (("vocabulary", output.logits[at]), ("atoms", output.latent[at])):
        found = [row for row in rows if row["split"] == split]
        value, index = logits.softmax(-1).topk(5)
        assert [row["n"] for row in found] == [1, 2, 3, 4, 5]
        np.testing.assert_allclose([row["value"] for row in found], value, atol=1e-6)
        assert {row["task"] for row in found} == {SENTENCE}
        if split == "vocabulary":
            assert [row["metric"] for row in found] == [shown(tokenizer, i) for i in index]
        else:
            names = [row["metric"].split(":")[0] for row in found]
            assert names == [f"atom {i}" for i in index.tolist()]
    best = next(row["metric"] for row in rows if row["split"] == "atoms")
    atom = int(best.split(":")[0].split()[1])
    counts = np.bincount(ids)
    means = {i: dense[ids == i, atom].mean() for i in range(len(counts)) if counts[i] >= 5}
    wanted = sorted(means, key=means.get, reverse=True)[:3]
    assert best == f"atom {atom}: " + ", ".join(shown(tokenizer, i) for i in wanted)


@pytest.mark.parametrize("chunk", [7, 1 << 20])
def test_top_tokens_equal_brute_force(coded, chunk):
    folder, dense, ids = coded
    counts = np.bincount(ids)
    found = top_tokens(folder, folder, [3, 4, 9], len(counts), count=4, chunk=chunk)
    for atom, tokens in zip([3, 4, 9], found, strict=True):
        means = {i: dense[ids == i, atom].astype(float).mean() for i in range(len(counts)) if counts[i] >= 5}
        wanted = [i for i in sorted(means, key=means.get, reverse=True)[:4] if means[i] > 0]
        assert tokens == wanted
    assert found[1] == []
    assert (counts[(counts > 0)] < 5).any()  # the rule for rare tokens is exercised


def test_top_tokens_of_codes_of_some_tokens(coded):
    """As if the corpus were the tokens that have a code."""
    folder, dense, ids = coded
    some = np.flatnonzero(np.random.default_rng(1).random(len(ids)) < 0.6)
    position, atom = np.nonzero(dense[some])
    np.save(folder / "train.positions.npy", some)
    np.save(folder / "train.indptr.npy", np.searchsorted(position, np.arange(len(some) + 1)))
    np.save(folder / "train.indices.npy", atom.astype(np.uint16))
    np.save(folder / "train.values.npy", dense[some][position, atom])
    found = top_tokens(folder, folder, [3], int(ids.max()) + 1, count=4)[0]
    counts = np.bincount(ids[some])
    means = {i: dense[some][ids[some] == i, 3].astype(float).mean() for i in range(len(counts)) if counts[i] >= 5}
    assert found == sorted(means, key=means.get, reverse=True)[:4]


def test_a_mask_is_cut_like_a_word_in_its_place(make_tokenizer):
    tokenizer = make_tokenizer()
    word = tokenizer.encode(SENTENCE.replace("[MASK]", "cat")).ids
    masked = masked_ids(tokenizer, SENTENCE)
    inner = tokenizer.encode("cat", add_special_tokens=False).ids
    at = masked.index(MASK)
    assert masked[:at] + inner + masked[at + 1 :] == word
    stop = masked_ids(tokenizer, "The [MASK].")
    assert [tokenizer.id_to_token(i) for i in stop[-3:]] == ["[MASK]", ".", "[SEP]"]
    assert masked_ids(tokenizer, "[MASK] cat")[1] == MASK


@pytest.mark.parametrize("prefix", [False, True])
def test_byte_pairs_keep_the_space_after_a_mask(prefix):
    """As transformers reads a mask that takes the space before it (RoBERTa, ModernBERT)."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    lines = ["the end of France. it said so”. of it, of France ”"] * 50
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=list(SPECIALS), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    for sentence in ("the [MASK] of France.", "it said [MASK]”. of it", "[MASK] said so", "of [MASK], it"):
        left, right = sentence.split("[MASK]")
        wanted = [*tokenizer.encode(left.rstrip()).ids, MASK]
        # without the mask nothing tells where a text begins: cut after a word, less that word
        wanted += tokenizer.encode(f"so{right}").ids[len(tokenizer.encode("so").ids) :]
        found = masked_ids(tokenizer, sentence)
        assert found == [CLS, *wanted, SEP]
        if not prefix:
            assert tokenizer.encode(sentence).ids == found[1:-1]
    assert verbaliser_ids(tokenizer, ["of", "it"], "p") == [tokenizer.token_to_id(word) for word in ("Ġof", "Ġit")]


def test_without_codes_atoms_have_numbers_and_without_latent_logits_no_rows(make_checkpoint):
    probe = PredictionProbe(kind="prediction", sentence=SENTENCE, top=3)
    rows = run(Context(probe=probe, checkpoint=make_checkpoint(latent=4)))
    assert all(row["metric"].removeprefix("atom ").isdigit() for row in rows if row["split"] == "atoms")
    assert {row["split"] for row in run(Context(probe=probe, checkpoint=make_checkpoint()))} == {"vocabulary"}


@pytest.mark.parametrize("sentence", ["No hole.", "[MASK] and [MASK].", "un[MASK] dog"])
def test_bad_sentences_are_named(make_checkpoint, sentence):
    probe = PredictionProbe(kind="prediction", sentence=sentence)
    with pytest.raises(MaskLabError, match="probe sentence"):
        run(Context(probe=probe, checkpoint=make_checkpoint()))
