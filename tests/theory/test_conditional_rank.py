"""The rank of a law's log conditionals: of every context of small laws, counted by enumeration, and by their code."""

from itertools import product

import numpy as np
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from masklab.config.schema import HiddenMarkov, HmmCorpus
from masklab.corpora.hmm import generate
from masklab.corpora.hmm.law import Law, of_header
from masklab.corpora.hmm.model import draw_model
from masklab.symbols import read_header, rows
from masklab.theory.conditional_rank import conditional_ranks


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


@pytest.mark.parametrize(("symbols", "log_rank", "length"), [(6, 1, 3), (8, 2, 4), (9, 3, 3), (10, 4, 3)])
def test_a_chain_has_the_rank_that_is_claimed_of_it(symbols, log_rank, length):
    config = chain(symbols, log_rank)
    model = draw_model(config, 3)
    everything = by_enumeration(model, length)
    logs = np.log(everything)
    assert numpy_rank(logs - logs.mean(1, keepdims=True)) == config.conditional_rank == 2 * log_rank + 1
    assert conditional_ranks(everything) == {"log": 2 * log_rank + 1, "plain": numpy_rank(everything)}
    # and so do the conditionals of the law, of all sentences
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


@pytest.mark.parametrize(("log_rank", "rank"), [(3, 7), (11, 23), (35, 71)])
def test_laws_of_the_evening_preset_have_it_on_what_they_write(log_rank, rank, tmp_path):
    """Ranks below, near and above the width of 32; the conditionals themselves are of full rank in all three."""
    corpus = HmmCorpus(kind="hmm", hmm=chain(96, log_rank), sequences=20, valid=20, test=400, length=12)
    tables = generate(corpus, "c", 1)
    words, _ = rows(tables["test"]["symbols"])
    pq.write_table(tables["test"], tmp_path / "test.parquet")
    law = of_header(read_header(tmp_path / "test.parquet"))
    found = law.conditionals(words.reshape(-1, 12))
    assert conditional_ranks(found) == {"log": rank, "plain": 96}


@pytest.mark.parametrize("wrong", [{"states": 48}, {"blocks": 2}, {"log_rank": 48}])
def test_what_is_no_chain_of_words_is_refused(wrong):
    with pytest.raises(ValidationError, match="log_rank"):
        HiddenMarkov(**{"symbols": 96, "states": 96, "blocks": 1, "log_rank": 3} | wrong)
