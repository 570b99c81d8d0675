"""Hidden Markov corpora: exact conditionals against enumeration of hidden paths, the sampler, the calibration."""

import itertools

import numpy as np
import pyarrow.parquet as pq
import pytest

from masklab import symbols
from masklab.config import load
from masklab.config.schema import HiddenMarkov, HmmCorpus
from masklab.corpora import generate, laws
from masklab.corpora.hmm.law import Law
from masklab.corpora.hmm.model import Model, draw_model
from masklab.errors import MaskLabError
from masklab.intervals import mean_and_error
from masklab.rng import generator

SMALL = HiddenMarkov(symbols=6, states=4, blocks=2)
CALIBRATED = 3.758  # section 2.3 of the paper


def dense(model):
    """(initial [K], transition [K, K], emission [K, V]) with the zeros written out."""
    blocks, k, v = model.emission.shape
    transition, emission = np.zeros((blocks * k, blocks * k)), np.zeros((blocks * k, blocks * v))
    for b in range(blocks):
        transition[b * k : (b + 1) * k, b * k : (b + 1) * k] = model.transition[b]
        emission[b * k : (b + 1) * k, b * v : (b + 1) * v] = model.emission[b]
    return np.full(blocks * k, 1 / (blocks * k)), transition, emission


def paths(model, length):
    """Every hidden path of a length and its probability."""
    initial, transition, _ = dense(model)
    for path in itertools.product(range(len(initial)), repeat=length):
        yield path, initial[path[0]] * np.prod([transition[a, b] for a, b in itertools.pairwise(path)])


def brute(model, words):
    """(Pr(x_t = v | x_-t) [T, V], Pr(z_t = s | x) [T, K]) by summing over every hidden path."""
    _, _, emission = dense(model)
    length = len(words)
    found, hidden = np.zeros((length, emission.shape[1])), np.zeros((length, len(emission)))
    for path, p in paths(model, length):
        emitted = emission[list(path), words]
        for t in range(length):
            found[t] += p * np.prod(np.delete(emitted, t)) * emission[path[t]]
            hidden[t, path[t]] += p * np.prod(emitted)
    return found / found.sum(1, keepdims=True), hidden / hidden.sum(1, keepdims=True)


@pytest.mark.parametrize("config", [SMALL, HiddenMarkov(symbols=5, states=5, blocks=1, concentration=1.0, seed=3)])
def test_conditionals_and_hidden_states_equal_enumeration(config):
    """Sentences of 1 to 5 words in one padded batch, to 1e-10."""
    model, rng = draw_model(config, 1), generator(1, "hmm")
    sequences, lengths = model.sample(30, 5, rng)[0].astype(int), rng.integers(1, 6, size=30)
    sequences[np.arange(5) >= lengths[:, None]] = 0
    law = Law(model)
    found, hidden = law.conditionals(sequences, lengths), law.hidden(sequences, lengths)
    assert found.shape == (30, 5, config.symbols) and hidden.shape == (30, 5, config.states)
    for row, length in enumerate(lengths):
        wanted = brute(model, sequences[row, :length])
        assert np.abs(found[row, :length] - wanted[0]).max() < 1e-10
        assert np.abs(hidden[row, :length] - wanted[1]).max() < 1e-10
        assert not found[row, length:].any() and not hidden[row, length:].any()
    assert set(lengths) == {1, 2, 3, 4, 5}


def test_surprise_equals_entropy_on_sampled_sentences():
    """E[-log q(x_t)] = E[H(q)]: 100,000 sentences, within four standard errors of the difference."""
    model = draw_model(HiddenMarkov(symbols=20, states=12, blocks=2), 1)
    words, law = model.sample(100_000, 8, generator(1, "surprise"))[0].astype(int), Law(model)
    found = law.conditionals(words)
    entropy = -(found * np.log(np.where(found > 0, found, 1))).sum(-1)
    surprise = -np.log(np.take_along_axis(found, words[..., None], -1)[..., 0])
    groups = np.repeat(np.arange(len(words)), 8)
    mean, error = mean_and_error((surprise - entropy).ravel(), groups)
    assert abs(mean) < 4 * error and error < 2e-3
    assert law.mlm_entropy(words[:5000])[0] == pytest.approx(entropy[:5000].mean(), abs=1e-12)


def test_the_sampler_draws_from_the_joint():
    """Words and hidden states of two steps against their exact joint, within five standard errors each."""
    model, count = draw_model(SMALL, 1), 200_000
    initial, transition, emission = dense(model)
    words, hidden = model.sample(count, 2, generator(1, "sample"))
    exact = np.einsum("a,av,ab,bw->avbw", initial, emission, transition, emission)
    seen = np.zeros_like(exact)
    np.add.at(seen, (hidden[:, 0], words[:, 0], hidden[:, 1], words[:, 1]), 1 / count)
    assert (np.abs(seen - exact) < 5 * np.sqrt(exact * (1 - exact) / count) + 5 / count).all()
    assert (seen[exact == 0] == 0).all()


def test_defaults_have_the_entropy_of_the_paper(capsys):
    """3.758 within .03 over three seeds, whose own error is below .01."""
    found = []
    for seed in (1, 2, 3):
        model = draw_model(HiddenMarkov(seed=seed), 1)
        found.append(Law(model).mlm_entropy(model.sample(1500, 16, generator(1, "calibration"))[0]))
    means, errors = np.array(found).T
    with capsys.disabled():
        print(f"\nMLM entropy of the default HMM, nats: {means.round(3)} (standard errors {errors.round(3)})")
    assert abs(means.mean() - CALIBRATED) < 0.03 and errors.max() < 0.01


def test_long_sentences_do_not_underflow():
    model = draw_model(HiddenMarkov(), 1)
    words = model.sample(2, 3000, generator(1, "long"))[0]
    assert np.allclose(Law(model).conditionals(words).sum(-1), 1)


def test_corpora_are_drawn_at_their_address(tmp_path):
    from masklab.files import write_table

    config = HmmCorpus(kind="hmm", hmm=SMALL, sequences=50, valid=20, test=30, length=7)
    tables = generate(config, "a", 1)
    assert {split: len(table) for split, table in tables.items()} == {"train": 50, "valid": 20, "test": 30}
    assert all(table.equals(generate(config, "b", 1)[split]) for split, table in tables.items())
    assert not tables["train"].equals(generate(config.model_copy(update={"seed": 2}), "a", 1)["train"])
    write_table(tables["test"], tmp_path / "t.parquet")
    facts = symbols.read_header(tmp_path / "t.parquet")
    words = symbols.rows(pq.read_table(tmp_path / "t.parquet")["symbols"])[0].reshape(30, 7)
    law = laws.law_of(facts)
    assert facts["names"][-1] == "w5" and law.symbols == 6
    assert law.mlm_entropy(words) == pytest.approx((facts["mlm_entropy"], facts["mlm_entropy_se"]))
    assert (law.conditionals(words) == Law(draw_model(SMALL, 1)).conditionals(words)).all()


def test_bad_input_is_one_line():
    law = Law(draw_model(SMALL, 1))
    with pytest.raises(MaskLabError, match="sequence 1: impossible"):
        law.conditionals([[0, 1], [0, 5]])
    never = Model(np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.array([[[1.0, 0.0], [0.0, 1.0]]]))
    with pytest.raises(MaskLabError, match="sequence 1: impossible"):
        Law(never).conditionals([[1, 1, 1], [0, 1, 0]])
    with pytest.raises(MaskLabError, match="must be 0 to 5"):
        law.conditionals([[0, 6]])
    with pytest.raises(MaskLabError, match="must be 1 to 2"):
        law.hidden([[0, 1]], [0])
    with pytest.raises(MaskLabError, match="states: 7 is not a multiple of blocks"):
        load({"hmms": {"h": {"states": 7, "blocks": 4}}})
    with pytest.raises(MaskLabError, match=r"corpora\.c\.hmm: 'i' is not declared; did you mean 'hi'"):
        load({"hmms": {"hi": {}}, "corpora": {"c": {"kind": "hmm", "hmm": "i"}}})


def test_the_entropy_and_its_error_are_of_all_chunks(monkeypatch):
    """Of sentences of several lengths, more than are taken at a time, word by word from the enumerated law."""
    import masklab.corpora.hmm.law as module

    model, rng = draw_model(SMALL, 1), generator(1, "entropy")
    sequences, lengths = model.sample(25, 4, rng)[0].astype(int), rng.integers(1, 5, size=25)
    values, groups = [], []
    for row, length in enumerate(lengths):
        p = brute(model, sequences[row, :length])[0]
        values += (-(p * np.log(np.where(p > 0, p, 1))).sum(1)).tolist()
        groups += [row] * length
    wanted = mean_and_error(values, groups)
    whole = Law(model).conditionals(sequences, lengths)
    for chunk in (module.CHUNK, 10, 7):
        monkeypatch.setattr(module, "CHUNK", chunk)
        assert Law(model).mlm_entropy(sequences, lengths) == pytest.approx(wanted, rel=1e-12)
        np.testing.assert_allclose(Law(model).conditionals(sequences, lengths), whole, atol=1e-15)


def test_sentences_of_one_length_need_no_lengths():
    model = draw_model(SMALL, 1)
    words = model.sample(6, 3, generator(1, "whole"))[0].astype(int)
    law = Law(model)
    for ways in (law.conditionals, law.hidden):
        np.testing.assert_array_equal(ways(words), ways(words, np.full(6, 3)))
    assert law.mlm_entropy(words) == law.mlm_entropy(words, np.full(6, 3))
    for wrong, said in (([4] * 6, "must be 1 to 3"), ([0] * 6, "must be 1 to 3")):
        with pytest.raises(MaskLabError, match=said):
            law.conditionals(words, wrong)
    for wrong in (words - 6, words + 6):
        with pytest.raises(MaskLabError, match="must be 0 to 5"):
            law.hidden(wrong)
    assert law.conditionals(np.zeros((0, 3), int)).shape == (0, 3, 6)
