"""The exact law against enumeration of every sequence, and the floor against its definition."""

import itertools
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from masklab import symbols
from masklab.cli import main
from masklab.config.schema import Chains, MarkovCorpus, Masking
from masklab.corpora import generate, laws
from masklab.corpora.markov.chains import draw_chains
from masklab.corpora.markov.features import draw_features
from masklab.corpora.markov.floor import token_floor
from masklab.corpora.markov.law import HIDDEN, Channel, Law
from masklab.corpora.markov.told import expected_symbols
from masklab.errors import MaskLabError
from masklab.intervals import mean_and_error
from masklab.masking import mask_batch
from masklab.rng import generator
from masklab.tokenizers import CLS, SEP

PAPER = Chains(synsets=3, main=0.7, seed=2)
RELEASED = Chains(synsets=3, edges="released", copies=2, main=0.7, seed=2)


def enumerated(config, distributional, length):
    """{symbols: probability} of all sequences, walk by walk."""
    found = {}
    chains, n = draw_chains(config, 1), config.synsets
    for k, chain in enumerate(chains):
        matrix = chain.matrix()
        for path in itertools.product(range(len(chain)), repeat=length):
            p = 1 / len(chain) / len(chains)
            for a, b in itertools.pairwise(path):
                p *= matrix[a, b]
            if not p:
                continue
            for form in itertools.product((0, 1), repeat=length):
                own = np.prod([1 - distributional / 2 if f == k % 2 else distributional / 2 for f in form])
                sequence = tuple(int(chain.synset[node]) + f * n for node, f in zip(path, form, strict=True))
                found[sequence] = found.get(sequence, 0) + p * own
    return {sequence: p for sequence, p in found.items() if p}


def law_of(config, distributional):
    return Law(draw_chains(config, 1), config.synsets, distributional)


CASES = [(config, flag) for config in (PAPER, RELEASED) for flag in (True, 0.3, False)]


@pytest.mark.parametrize("config,distributional", CASES)
def test_sequence_probabilities_equal_enumeration(config, distributional):
    table = enumerated(config, distributional, 4)
    assert sum(table.values()) == pytest.approx(1, abs=1e-12)
    sequences = np.array(list(table))
    found = law_of(config, distributional).log_probability(sequences)
    assert np.abs(np.exp(found) - np.array(list(table.values()))).max() < 1e-12


@pytest.mark.parametrize(
    ("chains", "distributional", "bound"),
    [
        ({"chains": 1}, True, ""),
        ({}, False, ""),  # forms tell the two chains
        ({}, True, "_at_most"),
        ({"chains": 3}, False, "_at_most"),
        ({"edges": "released", "copies": 1}, False, ""),
        ({"edges": "released", "copies": 2}, False, "_at_most"),
    ],
)
def test_masklab_corpus_calls_a_bound_of_the_entropy_one(tmp_path, capsys, chains, distributional, bound):
    config = PAPER.model_copy(update=chains)
    corpus = MarkovCorpus(
        kind="markov", chains=config, distributional=distributional, sequences=2, valid=1, test=1, length=3
    )
    pq.write_table(generate(corpus, "c", 1)["train"], tmp_path / "train.parquet")
    assert main(["corpus", str(tmp_path / "train.parquet")]) == 0
    said = json.loads(capsys.readouterr().out)
    p = np.array([*enumerated(config, distributional, 3).values()])
    entropy, told = -(p * np.log(p)).sum(), said[f"entropy{bound}"]
    assert told > entropy + 1e-3 if bound else told == pytest.approx(entropy, abs=1e-12)
    assert said[f"entropy_per_symbol{bound}"] == pytest.approx(told / 3)
    assert [key for key in said if key.startswith("entropy")] == [f"entropy{bound}", f"entropy_per_symbol{bound}"]


def test_the_mean_number_of_symbols_is_that_of_drawn_sequences():
    config = Chains(synsets=5, main=0.7, features="multi", seed=2)
    corpus = MarkovCorpus(kind="markov", chains=config, distributional=0.5, sequences=5000, valid=1, test=1, length=4)
    _, counts = symbols.rows(generate(corpus, "c", 1)["train"][symbols.COLUMN])
    expected = expected_symbols(draw_chains(config, 1), draw_features(config, 1), 4, 0.5)
    mean, error = mean_and_error(counts, np.arange(len(counts)))
    assert abs(expected - mean) < 4 * error and abs(expected - 4 * draw_features(config, 1).lengths.mean()) > 8 * error


def brute(table, seen, target, channel, symbols):
    """P(token at `target` | seen, chosen there) by summing over every sequence and choice."""
    base, peak = channel.seen(symbols)
    chosen_base, chosen_peak = channel.chosen(symbols)
    found = np.zeros(symbols)
    for sequence, p in table.items():
        for at, (token, shown) in enumerate(zip(sequence, seen, strict=True)):
            if shown != HIDDEN:
                b, k = (chosen_base, chosen_peak) if at == target else (base, peak)
                p *= b + k * (token == shown)
        found[sequence[target]] += p
    return found / found.sum()


@pytest.mark.parametrize("channel", [Channel(), Channel(0.3, 0.8, 0.1)], ids=["mask", "noise"])
@pytest.mark.parametrize("config,distributional", CASES)
def test_conditionals_equal_enumeration(config, distributional, channel):
    """Every way to hide 1 to 4 of 4 tokens of 6 sequences, and visible targets under noise, to 1e-10."""
    table = enumerated(config, distributional, 4)
    rng = generator(1, "law")
    law = law_of(config, distributional)
    rows = np.array(list(table))[rng.choice(len(table), 6, p=list(table.values()))]
    for row, hidden in itertools.product(rows, itertools.product((False, True), repeat=4)):
        seen = np.where(hidden, HIDDEN, row)
        noisy = channel.mask < 1
        if noisy and not hidden[0]:
            seen[0] = rng.integers(2 * config.synsets)  # perhaps not the token, and chosen
        targets = np.array(hidden) | (np.arange(4) == 0) * noisy
        if not targets.any():
            continue
        found = law.posterior(seen[None], targets[None], channel)
        for value, target in zip(found, np.flatnonzero(targets), strict=True):
            wanted = brute(table, seen, target, channel, law.symbols)
            assert np.abs(value - wanted).max() < 1e-10


def test_batches_of_any_size_give_the_same_conditionals(monkeypatch):
    import masklab.corpora.markov.law as module

    config = Chains(synsets=12, edges="released", copies=3)
    corpus = MarkovCorpus(kind="markov", chains=config, distributional=True, sequences=20, valid=1, test=1, length=15)
    values, counts = symbols.rows(generate(corpus, "c", 1)["train"]["symbols"])
    tokens = values.reshape(len(counts), -1).astype(int)
    targets = generator(1, "t").random(tokens.shape) < 0.3
    law = law_of(config, True)
    whole = law.posterior(np.where(targets, HIDDEN, tokens), targets)
    monkeypatch.setattr(module, "MEMORY", 1500)
    assert np.allclose(law.posterior(np.where(targets, HIDDEN, tokens), targets), whole, atol=1e-14)
    assert np.allclose(whole.sum(1), 1)


def test_an_impossible_sequence_is_refused():
    config = Chains(synsets=8)
    law, chains = law_of(config, True), draw_chains(config, 1)
    bad = [pair for pair in np.ndindex(8, 8) if all(chain.matrix()[pair] == 0 for chain in chains)]
    with pytest.raises(MaskLabError, match="sequence 0: impossible"):
        law.posterior(np.array([[*bad[0], HIDDEN]]), np.array([[False, False, True]]))
    good = next(pair for pair in np.ndindex(8, 8) if all(chain.matrix()[pair] > 0 for chain in chains[:1]))
    several = np.array([[*good, HIDDEN], [*good, HIDDEN], [*bad[0], HIDDEN]])
    with pytest.raises(MaskLabError, match="sequence 2: impossible"):
        law.posterior(several, several == HIDDEN)


def test_noise_by_the_definition_of_the_channel():
    """P(token | seen) over all sequences, each visible token with its share of random ones, by Bayes' rule."""
    law = law_of(Chains(synsets=4), True)
    rate, mask, random, size = 0.4, 0.5, 0.3, law.symbols
    every = np.array(list(np.ndindex(size, size, size)))
    joint, rng = np.exp(law.log_probability(every)), np.random.default_rng(2)
    visible = rate * random / size + np.eye(size) * (1 - rate + rate * (1 - mask - random))
    chosen = random / size + np.eye(size) * (1 - mask - random)
    for _ in range(20):
        seen, column = every[rng.choice(len(every), p=joint)].copy(), int(rng.integers(3))
        seen[(column + 1) % 3] = rng.choice([HIDDEN, *range(size)])
        weights = joint.copy()
        for at, token in enumerate(seen):
            if token != HIDDEN:
                weights *= (chosen if at == column else visible)[every[:, at], token]
        truth = np.bincount(every[:, column], weights, minlength=size)
        found = law.posterior(seen[None], np.arange(3)[None] == column, Channel(rate, mask, random))
        np.testing.assert_allclose(found[0], truth / truth.sum(), atol=1e-12)


@pytest.mark.parametrize("distributional", [True, False])
def test_conditionals_are_ratios_of_joint_probabilities(distributional):
    """Each token given all others: its sequence's probability over the sum of those with any token in its place."""
    config = Chains(synsets=8)
    law, rng = law_of(config, distributional), np.random.default_rng(1)
    sequences = []
    while len(sequences) < 5:
        drawn = rng.integers(0, law.symbols, (500, 4))
        sequences += drawn[np.isfinite(law.log_probability(drawn))].tolist()
    sequences = np.array(sequences[:5])
    found = law.conditionals(sequences)
    for row, column in np.ndindex(*sequences.shape):
        each = np.repeat(sequences[row : row + 1], law.symbols, 0)
        each[:, column] = np.arange(law.symbols)
        joint = np.exp(law.log_probability(each))
        np.testing.assert_allclose(found[row, column], joint / joint.sum(), atol=1e-12)
    np.testing.assert_array_equal(law.conditionals(sequences, [4] * 5), found)
    with pytest.raises(MaskLabError, match="one length"):
        law.conditionals(sequences, [4, 4, 3, 4, 4])


def test_long_sequences_do_not_underflow():
    config = Chains(synsets=40)
    corpus = MarkovCorpus(kind="markov", chains=config, distributional=False, sequences=4, valid=1, test=1, length=2000)
    table = generate(corpus, "c", 1)["train"]
    tokens = symbols.rows(table["symbols"])[0].reshape(8, 2000).astype(int)
    found = law_of(config, False).log_probability(tokens)
    assert np.isfinite(found).all() and (found < -300).all()


def floor(law, rows, masking, rng):
    """Expected MLM loss of the exact posterior under `masking`: (nats per masked token, standard error, tokens).

    rows: [B, T] a sample of sequences, masked as a model's batches are. The error is that of sequences drawn anew.
    """
    ids = np.full((len(rows), rows.shape[1] + 2), CLS, np.int64)
    ids[:, 1:-1], ids[:, -1] = rows + symbols.FIRST, SEP
    lengths = np.full(len(ids), ids.shape[1])
    corrupted, masked, columns = mask_batch(ids, lengths, masking, law.symbols + symbols.FIRST, rng)
    losses = token_floor(law, ids, corrupted, masked, columns, masking)
    return *mean_and_error(losses, masked), len(losses)


@pytest.mark.parametrize("mask,random", [(1.0, 0.0), (0.8, 0.1)])
def test_the_floor_is_the_expected_entropy_of_the_posterior(mask, random):
    """Monte Carlo floor against the exact expectation over sequences, choices and noise, within 4 standard errors."""
    config, masking = (
        Chains(synsets=2, main=0.7, seed=3),
        Masking(rate=0.3, count="bernoulli", mask=mask, random=random),
    )
    table = enumerated(config, True, 3)
    law, size = law_of(config, True), 4
    total = weight = 0.0
    for choice in itertools.product((False, True), repeat=3):
        if not any(choice):
            continue
        cases = []  # (probability, sequence, seen)
        for sequence, p in table.items():
            options = [
                [(HIDDEN, mask)] + [(y, v) for y in range(size) if (v := random / size + kept * (y == x)) > 1e-12]
                if chosen
                else [(x, 1.0)]
                for x, chosen in zip(sequence, choice, strict=True)
                for kept in [1 - mask - random]
            ]
            for shown in itertools.product(*options):
                q = p * np.prod([0.3 if chosen else 0.7 for chosen in choice]) * np.prod([v for _, v in shown])
                cases.append((q, sequence, [y for y, _ in shown]))
        q, sequences, seen = map(np.array, zip(*cases, strict=True))
        targets = np.tile(choice, (len(q), 1))
        found = law.posterior(seen, targets, Channel.of(masking))
        total -= np.repeat(q, sum(choice)) @ np.log(found[np.arange(len(found)), sequences[targets]])
        weight += q.sum() * sum(choice)
    rows = np.array(list(table))[generator(1, "floor").choice(len(table), 20_000, p=list(table.values()))]
    mean, error, count = floor(law, rows, masking, generator(1, "masks"))
    assert abs(mean - total / weight) < 4 * error and 0 < error < 0.01 and count == pytest.approx(18_000, rel=0.05)


def test_noise_on_a_fixed_number_of_tokens_has_no_exact_floor():
    with pytest.raises(MaskLabError, match=r"masking.count: 'floor'"):
        Channel.of(Masking(mask=0.8, random=0.1))
    assert Channel.of(Masking()).mask == 1


def test_the_law_of_a_corpus_comes_from_its_facts(tmp_path):
    from masklab.files import write_table

    config = MarkovCorpus(kind="markov", chains=PAPER, distributional=False, sequences=5, valid=2, test=2, length=9)
    table = generate(config, "c", 1)["test"]
    write_table(table, tmp_path / "t.parquet")
    law = laws.law_of(symbols.read_header(tmp_path / "t.parquet"))
    tokens = symbols.rows(table["symbols"])[0].reshape(4, 9).astype(int)
    assert (law.log_probability(tokens) == law_of(PAPER, False).log_probability(tokens)).all()
    assert laws.law_of(None) is None and laws.law_of({"kind": "text"}) is None


def test_errors_of_grouped_values():
    """Against the spread of means over repeated draws of groups."""
    rng = generator(1, "groups")
    means, errors = [], []
    for _ in range(400):
        shift = rng.normal(size=50)
        groups = np.repeat(np.arange(50), 4)
        mean, error = mean_and_error(shift[groups] + 0.1 * rng.normal(size=200), groups)
        means.append(mean)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.15)


def test_long_sequences_have_posteriors_too():
    """Words in the middle of 1,500 are told by their neighbours alone, as in a window of 61 around them."""
    config = Chains(synsets=6, edges="released", copies=2, chains=2)
    corpus = MarkovCorpus(kind="markov", chains=config, distributional=True, sequences=2, valid=1, test=1, length=1500)
    tokens = symbols.rows(generate(corpus, "c", 1)["train"]["symbols"])[0].reshape(-1, 1500).astype(int)
    law = Law(draw_chains(config, 1)[:1], 6, True)  # of one chain, so that what is far away tells nothing of it
    tokens = tokens[np.isfinite(law.log_probability(tokens))][:1]
    targets = np.zeros(tokens.shape, bool)
    targets[:, [0, 700, 1499]] = True
    seen = np.where(targets, HIDDEN, tokens)
    found = law.posterior(seen, targets)
    np.testing.assert_allclose(found.sum(1), 1)
    window = slice(670, 731)
    near = law.posterior(seen[:, window], targets[:, window])
    np.testing.assert_allclose(found[1], near[0], atol=1e-9)


def test_how_many_sequences_are_taken_at_a_time(monkeypatch):
    """As many as their messages have room for; and those of a wrong one in a later batch are counted from the first."""
    import masklab.corpora.markov.law as module

    law, blind = law_of(Chains(synsets=8), True), Channel(0.0, 0.0, 1.0)
    nodes, sizes = max(len(chain) for chain in law.chains), []
    whole = law._posterior
    monkeypatch.setattr(law, "_posterior", lambda seen, *rest: sizes.append(len(seen)) or whole(seen, *rest))
    monkeypatch.setattr(module, "MEMORY", 3 * nodes * 4 + 1)
    tokens = np.array(list(np.ndindex(8, 8, 8, 8)))
    tokens = tokens[np.isfinite(law.log_probability(tokens))][:7]
    law.posterior(tokens, np.ones((7, 4), bool), blind)
    assert sizes == [3, 3, 1]
    assert law.posterior(tokens[:0], np.ones((0, 4), bool)).shape == (0, law.symbols)
    impossible = next(pair for pair in np.ndindex(8, 8) if not np.isfinite(law.log_probability([pair]))[0])
    with pytest.raises(MaskLabError, match="sequence 5: impossible"):
        bad = np.concatenate([tokens[:5], [[*impossible, *tokens[5, 2:]]], tokens[5:]])
        law.posterior(bad, np.arange(4)[None] == np.full((8, 1), 3), blind)
    sizes.clear()
    monkeypatch.setattr(module, "MEMORY", 1)
    law.posterior(tokens[:2], np.ones((2, 4), bool), blind)
    assert sizes == [1, 1]


def test_chains_take_turns_with_the_forms():
    chains = draw_chains(Chains(synsets=4, chains=3), 1)
    assert Law(chains, 4, False).forms.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert (Law(chains, 4, True).forms == 0.5).all() and Law(chains, 4, True).symbols == 8
