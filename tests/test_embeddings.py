"""CBOW against a plain implementation, and what it finds in a corpus with the distributional property."""

import contextlib
import itertools

import numpy as np
import pytest

from masklab import embeddings
from masklab.config.schema import Chains, Embeddings, MarkovCorpus
from masklab.corpora import generate
from masklab.embeddings import alias_table, train
from masklab.errors import MaskLabError
from masklab.jobs.midway import Midway
from masklab.rng import generator
from masklab.tokens import TokenStore, write_symbol_tokens

N = 50


def store_of(folder, distributional=True, sequences=800):
    config = MarkovCorpus(
        kind="markov", chains=Chains(synsets=N), distributional=distributional, sequences=sequences, valid=1, test=1,
        length=32,
    )  # fmt: skip
    write_symbol_tokens(generate(config, "c", 1)["train"]["symbols"], 2 * N + 5, 34, folder, "train")
    return TokenStore(folder, "train")


def settings(**keys):
    return Embeddings(**{"corpus": "c", "tokenizer": "t", "size": 32, "epochs": 5, **keys})


def cosines(vectors):
    unit = vectors[5:] / np.linalg.norm(vectors[5:], axis=1, keepdims=True)
    return unit @ unit.T


def test_synonyms_are_neighbours_with_the_property_and_not_without(tmp_path):
    vectors, facts = train(store_of(tmp_path / "with"), 2 * N + 5, settings(), "e", 1)
    found = cosines(vectors)
    pairs = found[np.arange(N), N + np.arange(N)]
    np.fill_diagonal(found, -1)
    assert pairs.mean() > 0.95 and abs(np.median(found)) < 0.3
    assert (found.argmax(1) == (np.arange(2 * N) + N) % (2 * N)).mean() > 0.95
    assert facts["losses"] == sorted(facts["losses"], reverse=True)
    assert vectors[5:].std() == pytest.approx(0.03, rel=1e-5) and not vectors[:5].any()
    assert np.array_equal(train(store_of(tmp_path / "with"), 2 * N + 5, settings(), "e", 1)[0], vectors)
    other = cosines(train(store_of(tmp_path / "without", distributional=False), 2 * N + 5, settings(), "e", 1)[0])
    assert other[np.arange(N), N + np.arange(N)].mean() < 0.5


def test_what_was_killed_midway_goes_on_to_the_same_vectors(tmp_path, monkeypatch):
    """Killed every few blocks, within an epoch and between two."""
    store = store_of(tmp_path, sequences=60)
    wanted, facts = train(store, 2 * N + 5, settings(), "e", 1)
    monkeypatch.setattr(embeddings, "BLOCK", 300)
    monkeypatch.setattr("masklab.jobs.midway.EVERY", 0.0)
    told, found = [], None

    def tell(share):
        told.append(share)
        if len(told) % 6 == 0:
            raise KeyboardInterrupt

    while found is None:
        with contextlib.suppress(KeyboardInterrupt):
            found = train(
                store, 2 * N + 5, settings(), "e", 1, Midway("e", tell, tmp_path / "s.safetensors", {"of": 1})
            )
    assert len(told) > 30 and told.count(told[0]) == 1 and told[-1] == 1
    assert np.array_equal(found[0], wanted) and found[1] == facts
    again = train(store, 2 * N + 5, settings(), "e", 1, Midway("e", None, tmp_path / "s.safetensors", {"of": 2}))
    assert np.array_equal(again[0], wanted)  # a state of something else is none


def test_the_released_layout_scrambles_rows(tmp_path):
    store = store_of(tmp_path)
    rows, scrambled = (train(store, 2 * N + 5, settings(layout=way), "e", 1)[0][5:] for way in ("rows", "scrambled"))
    assert np.array_equal(np.stack(list(rows), axis=1).reshape(2 * N, 32), scrambled)


def test_an_epoch_equals_a_plain_implementation(tmp_path):
    """Same draws, one formula at a time in double precision, to 1e-4 after one epoch."""
    store = store_of(tmp_path, sequences=20)
    ids, offsets = np.asarray(store.ids, np.int32), np.asarray(store.offsets)
    size, window, negative = 8, 3, 4
    start = generator(1, "start").normal(size=(2 * N + 5, size)).astype(np.float32) * 0.1
    accept, alias = alias_table(np.bincount(ids, minlength=2 * N + 5) ** 0.75)
    vectors, outputs = start.copy(), start[::-1].copy()
    loss, _ = embeddings._epoch(
        ids, offsets, 0, len(ids), vectors, outputs, accept, alias,
        window, negative, 0.1, 0.02, np.uint64(12345), 0.0,
    )  # fmt: skip

    state, total = 12345, 0.0
    v, u = start.astype(float), start[::-1].astype(float)

    def draw(limit):
        nonlocal state
        state = (state * 25214903917 + 11) % 2**64
        return ((state >> 16) % 2**32) * limit >> 32

    for begin, end in itertools.pairwise(offsets.tolist()):
        for at in range(begin, end):
            reach = 1 + draw(window)
            context = [ids[j] for j in range(max(begin, at - reach), min(end, at + reach + 1)) if j != at]
            tokens = [(ids[at], 1)]
            for _ in range(negative):
                slot = draw(2 * N + 5)
                token = slot if draw(1 << 31) < accept[slot] * (1 << 31) else alias[slot]
                tokens += [(token, 0)] * int(token != ids[at])
            mean, change = v[context].mean(0), np.zeros(size)
            rate = 0.1 + (0.02 - 0.1) * at / len(ids)
            for token, label in tokens:
                score = 1 / (1 + np.exp(-mean @ u[token]))
                total -= np.log(score if label else 1 - score)
                change += rate * (label - score) * u[token]
                u[token] = u[token] + rate * (label - score) * mean
            for token in context:
                v[token] += change
    assert np.abs(vectors - v).max() < 1e-4 and np.abs(outputs - u).max() < 1e-4
    assert loss == pytest.approx(total, rel=1e-5)
    assert np.abs(v - start).max() > 0.05


def test_alias_draws_are_in_proportion():
    weights = np.array([0.0, 1, 2, 3.5, 10, 0.01])
    accept, alias = alias_table(weights)
    found = accept / 6 + np.bincount(alias, (1 - accept) / 6, minlength=6)
    assert np.allclose(found, weights / weights.sum(), atol=1e-12)


def test_with_a_negative_exponent_rare_tokens_are_drawn_the_most(tmp_path, monkeypatch):
    store, given = store_of(tmp_path, sequences=5), []
    monkeypatch.setattr(embeddings, "alias_table", lambda weights: given.append(weights) or alias_table(weights))
    train(store, 2 * N + 5, settings(exponent=-0.5, epochs=1), "e", 1)
    counts, (weights,) = store.counts(2 * N + 5), given
    counts[:5] = 0
    assert (counts[5:] == 0).any() and counts.max() > 1
    assert (weights[counts == 0] == 0).all()
    assert weights[counts > 0] == pytest.approx(counts[counts > 0] ** -0.5)


def test_a_corpus_without_tokens_is_refused(tmp_path):
    import pyarrow as pa

    write_symbol_tokens(pa.array([[]], pa.list_(pa.uint16())), 10, 34, tmp_path, "train")
    with pytest.raises(MaskLabError, match=r"embeddings.e: the corpus has no tokens"):
        train(TokenStore(tmp_path, "train"), 10, settings(), "e", 1)


def test_a_corpus_in_parts_gives_the_same_vectors(tmp_path, monkeypatch):
    store = store_of(tmp_path, sequences=50)
    whole = train(store, 2 * N + 5, settings(), "e", 1)
    monkeypatch.setattr(embeddings, "BLOCK", 37)
    parts = train(store, 2 * N + 5, settings(), "e", 1)
    assert len(list(store.blocks(37))) > 5
    assert (parts[0] == whole[0]).all() and parts[1]["losses"] == whole[1]["losses"]
