"""The rank of a law's log conditionals: of every context of small laws, counted by enumeration, and by their code."""

from itertools import product

import numpy as np
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from masklab.config import layered, load, plain
from masklab.config.schema import HiddenMarkov, HmmCorpus
from masklab.corpora.hmm import generate
from masklab.corpora.hmm.law import Law, of_header
from masklab.corpora.hmm.model import draw_model
from masklab.corpora.laws import conditional_rank
from masklab.errors import MaskLabError
from masklab.symbols import read_header, rows
from masklab.theory.conditional_rank import counted_rank, shifted_logs


def chain(symbols, log_rank, **more):
    return HiddenMarkov(symbols=symbols, states=symbols, blocks=1, log_rank=log_rank, **more)


def by_enumeration(model, length):
    """Pr(x_t | x_-t) of all contexts, [contexts, V], from the probability of every sentence there is."""
    hidden_words = product(range(model.symbols), repeat=length)
    joint = np.zeros((model.symbols,) * length)
    for words in hidden_words:
        messages = np.full(model.states, 1 / model.states)
        for t, word in enumerate(words):
            messages = (messages if t == 0 else messages @ model.transition[0]) * model.emission[0][:, word]
        joint[words] = messages.sum()
    rows = []
    for place in range(length):
        flat = np.moveaxis(joint, place, -1).reshape(-1, model.symbols)
        rows.append(flat / flat.sum(1, keepdims=True))
    assert joint.sum() == pytest.approx(1)
    return np.concatenate(rows)


def numpy_rank(matrix):
    return np.linalg.matrix_rank(matrix, tol=1e-8 * np.linalg.norm(matrix))


def conditional_ranks(conditionals):
    """As the probe counts them: of the logarithms without the mean of each row, and of the conditionals themselves."""
    p = conditionals.reshape(-1, conditionals.shape[-1])
    return {"log": counted_rank(shifted_logs(p)), "plain": counted_rank(p[p.sum(1) > 0])}


@pytest.mark.parametrize(("symbols", "log_rank", "length"), [(6, 1, 3), (8, 2, 4), (10, 3, 3), (12, 4, 3)])
def test_a_chain_has_the_rank_that_is_claimed_of_it(symbols, log_rank, length):
    config = chain(symbols, log_rank)
    model = draw_model(config, 3)
    everything = by_enumeration(model, length)
    logs = np.log(everything)
    assert numpy_rank(logs - logs.mean(1, keepdims=True)) == config.conditional_rank == 2 * log_rank + 2
    assert conditional_ranks(everything) == {"log": 2 * log_rank + 2, "plain": numpy_rank(everything)}
    assert numpy_rank(logs) == 2 * log_rank + 3  # as docs/config.md says of them as they are
    # one less where both neighbours are there, and log_rank + 1 of first words and of last ones
    one = symbols ** (length - 1)  # contexts of a place
    ranks = [numpy_rank(each - each.mean(1, keepdims=True)) for each in (logs[:one], logs[one:-one], logs[-one:])]
    assert ranks == [log_rank + 1, 2 * log_rank + 1, log_rank + 1]
    # the conditionals of the law, of all sentences, have it too
    sentences = np.array(list(product(range(symbols), repeat=length)))
    found = Law(model).conditionals(sentences)
    assert conditional_ranks(found)["log"] == config.conditional_rank
    # no shift of rows brings it further down than by one
    for shift in (0.0, 1.0, -2.5):
        assert numpy_rank(logs + shift) >= config.conditional_rank


@pytest.mark.parametrize(("states", "symbols"), [(2, 6), (3, 6), (4, 6)])
def test_conditionals_of_a_hidden_markov_model_are_mixtures_of_its_emissions(states, symbols):
    config = HiddenMarkov(symbols=symbols, states=states, blocks=1, concentration=1.0)
    assert config.conditional_rank is None
    everything = by_enumeration(draw_model(config, 1), 3)
    assert conditional_ranks(everything)["plain"] == numpy_rank(everything) == states


def test_contexts_in_which_a_word_is_impossible_have_no_logarithm():
    p = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [0.0, 0.0, 0.0]])
    assert conditional_ranks(p) == {"log": 2, "plain": 3}
    assert conditional_ranks(p[:1]) == {"log": 0, "plain": 1}
    assert conditional_ranks(p[3:]) == {"log": 0, "plain": 0}


@pytest.fixture(scope="module")
def laws():
    """log_rank -> the entry of `hmms`, of the evening preset, which has those of the default run too."""
    raw = plain(layered(["presets/evening.yaml"]))
    hmms = load(raw | {"extends": [], "studies": {"mae-law": raw["studies"]["mae-law"]}}).hmms
    return {law.log_rank: law for law in hmms.values() if law.log_rank is not None}


def test_laws_of_the_presets_have_their_rank_on_what_they_write(laws, tmp_path):
    """Below, at and above the width of 24; the conditionals themselves are of full rank in all three."""
    ranks = []
    for law in laws.values():
        corpus = HmmCorpus(kind="hmm", hmm=law, sequences=20, valid=20, test=400, length=8)
        tables = generate(corpus, "c", 1)
        words, _ = rows(tables["test"]["symbols"])
        pq.write_table(tables["test"], tmp_path / "test.parquet")
        header = read_header(tmp_path / "test.parquet")
        found = conditional_ranks(of_header(header).conditionals(words.reshape(-1, 8)))
        ranks.append(found["log"])
        assert found == {"log": conditional_rank(header), "plain": 64}
    assert sorted(ranks) == [8, 24, 48]


def test_as_much_can_be_known_under_every_law_of_the_presets(laws):
    """Nats by which both neighbours tell a word: means of 24 draws within .1 of 1.62, every draw within .35.

    From the joint probabilities of all triples, each word being as frequent as any other.
    """
    assert set(laws) == {3, 11, 23}
    for law in laws.values():
        known = []
        for seed in range(24):
            (p,) = draw_model(law, seed).transition
            joint = p[:, :, None] * p[None] / 64  # left, word, right
            known.append((joint * np.log(64 * joint / joint.sum(1, keepdims=True))).sum())
        assert np.mean(known) == pytest.approx(1.62, abs=0.1)
        assert known == pytest.approx([1.62] * 24, abs=0.35)


@pytest.mark.parametrize("symbols", [9, 96])
@pytest.mark.parametrize("contrast", [0.5, 2.0, 4.0])
def test_all_words_of_a_chain_are_equally_frequent_in_every_place(symbols, contrast):
    """Rows and columns sum to 1 (1e-12), and the one stationary law is uniform, as the eigenvectors have it."""
    (transition,) = draw_model(chain(symbols, 3, contrast=contrast), 5).transition
    assert transition.min() > 0
    np.testing.assert_allclose(transition.sum(0), 1, atol=1e-12, rtol=0)
    np.testing.assert_allclose(transition.sum(1), 1, atol=1e-12, rtol=0)
    values, vectors = np.linalg.eig(transition.T)
    stationary = vectors[:, values.real.argmax()].real
    np.testing.assert_allclose(stationary / stationary.sum(), 1 / symbols, atol=1e-10, rtol=0)
    assert np.sort(np.abs(values))[-2] < 1 - 1e-3
    # scaling leaves the logarithms what was drawn but for rows and columns: of rank 3 without their means
    logs = np.log(transition)
    logs = logs - logs.mean(0) - logs.mean(1, keepdims=True) + logs.mean()
    assert numpy_rank(logs) == 3 and logs.std() == pytest.approx(contrast, rel=0.4)


def test_sampled_words_are_equally_frequent():
    """Of 30,000 sentences, in the first, a middle and the last place: chi squared of 11 degrees below its .9999."""
    words, _ = draw_model(chain(12, 2), 5).sample(30_000, 6, np.random.default_rng(0))
    for place in (0, 3, 5):
        counts = np.bincount(words[:, place], minlength=12)
        assert ((counts - 2500) ** 2 / 2500).sum() < 37.4
    assert draw_model(chain(12, 2), 5).transition.max() > 0.3  # and are not so whatever comes before


def test_a_contrast_at_which_frequencies_cannot_be_equal_is_said():
    with pytest.raises(MaskLabError, match="log_rank: no equal frequencies of words at so high a `contrast`"):
        draw_model(chain(12, 3, contrast=1e4), 1)


@pytest.mark.parametrize("wrong", [{"states": 48}, {"blocks": 2}, {"log_rank": 47}])
def test_what_is_no_chain_of_words_is_refused(wrong):
    with pytest.raises(ValidationError, match="log_rank"):
        HiddenMarkov(**{"symbols": 96, "states": 96, "blocks": 1, "log_rank": 3} | wrong)
