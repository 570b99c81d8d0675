"""The exact law of features of several tokens against enumeration of every sequence."""

import itertools

import numpy as np
import pytest

from masklab.config.schema import Chains, MarkovCorpus, Masking
from masklab.corpora import generate, laws
from masklab.corpora.markov.chains import draw_chains
from masklab.corpora.markov.features import draw_features
from masklab.corpora.markov.floor import token_floor
from masklab.corpora.markov.law import HIDDEN, Channel, Law
from masklab.corpora.markov.spelt import END, SpeltLaw
from masklab.errors import MaskLabError
from masklab.masking import mask_batch
from masklab.rng import generator
from masklab.symbols import FIRST, read_header, rows
from masklab.tokenizers import CLS, SEP

LENGTH = 3
CHAINS = Chains(synsets=3, edges="released", copies=2, main=0.7, features="multi", alphabet=3, seed=2)
CASES = [
    (CHAINS.model_copy(update=keys), share)
    for keys in ({"vocabularies": "shared", "code": "random", "alphabet": 4}, {"vocabularies": "separate"})
    for share in (0, 0.5, 1)
]


def law_of(config, share):
    return SpeltLaw(draw_chains(config, 1), draw_features(config, 1), LENGTH, share)


def enumerated(config, share):
    """{tokens: probability} of all sequences, walk by walk and form by form."""
    found, chains, features = {}, draw_chains(config, 1), draw_features(config, 1)
    words = features.words()
    for k, chain in enumerate(chains):
        matrix = chain.matrix()
        for path in itertools.product(range(len(chain)), repeat=LENGTH):
            p = 1 / len(chain) / len(chains)
            for a, b in itertools.pairwise(path):
                p *= matrix[a, b]
            for forms in itertools.product((0, 1), repeat=LENGTH) if p else ():
                own = np.prod([1 - share / 2 if form == k % 2 else share / 2 for form in forms])
                spelt = [
                    words[chain.synset[node] + form * config.synsets] for node, form in zip(path, forms, strict=True)
                ]
                tokens = tuple(itertools.chain(*spelt))
                found[tokens] = found.get(tokens, 0) + p * own
    return {tokens: p for tokens, p in found.items() if p}


def padded(sequences, width=LENGTH * 3):
    return np.array([[*tokens, *[END] * (width - len(tokens))] for tokens in sequences])


@pytest.mark.parametrize("config,share", CASES)
def test_sequence_probabilities_equal_enumeration(config, share):
    table = enumerated(config, share)
    assert sum(table.values()) == pytest.approx(1, abs=1e-12)
    found = law_of(config, share).log_probability(padded(table))
    assert np.abs(np.exp(found) - np.array(list(table.values()))).max() < 1e-12


def brute(table, seen, target, channel, symbols):
    """P(token at `target` | seen, chosen there) by summing over every sequence of that many tokens."""
    visible, chosen = channel.seen(symbols), channel.chosen(symbols)
    found = np.zeros(symbols)
    for tokens, p in table.items():
        if len(tokens) != len(seen):
            continue
        for at, (token, shown) in enumerate(zip(tokens, seen, strict=True)):
            base, peak = chosen if at == target else visible
            p *= 1 if shown == HIDDEN else base + peak * (token == shown)
        found[tokens[target]] += p
    return found / found.sum()


@pytest.mark.parametrize("channel", [Channel(), Channel(0.3, 0.8, 0.1)], ids=["mask", "noise"])
@pytest.mark.parametrize("config,share", CASES)
def test_conditionals_equal_enumeration(config, share, channel):
    """Sequences of all lengths in one batch, tokens hidden, kept or swapped, to 1e-10."""
    table, law, rng = enumerated(config, share), law_of(config, share), generator(1, "spelt")
    sequences = [list(table)[i] for i in rng.choice(len(table), 40, p=list(table.values()))]
    assert len({len(tokens) for tokens in sequences}) >= 3
    seen = padded(sequences)
    targets = (rng.random(seen.shape) < 0.4) & (seen != END)
    fate = rng.random(seen.shape)
    seen = np.where(targets & (fate < channel.mask), HIDDEN, seen)
    swapped = targets & (fate >= channel.mask) & (fate < channel.mask + channel.random)
    seen = np.where(swapped, rng.integers(law.symbols, size=seen.shape), seen)
    found = law.posterior(seen, targets, channel)
    for value, row, target in zip(found, *np.nonzero(targets), strict=True):
        wanted = brute(table, [s for s in seen[row] if s != END], target, channel, law.symbols)
        assert np.abs(value - wanted).max() < 1e-10


def test_single_tokens_have_the_same_law():
    config = Chains(synsets=6, edges="released", copies=2)
    chains, rng = draw_chains(config, 1), generator(1, "same")
    corpus = MarkovCorpus(kind="markov", chains=config, distributional=0.5, sequences=20, valid=1, test=1, length=7)
    values, _ = rows(generate(corpus, "c", 1)["train"]["symbols"])
    tokens = values.reshape(-1, 7).astype(int)
    targets = rng.random(tokens.shape) < 0.3
    seen = np.where(targets, HIDDEN, tokens)
    spelt = SpeltLaw(chains, draw_features(config, 1), 7, 0.5)
    assert np.abs(spelt.posterior(seen, targets) - Law(chains, 6, 0.5).posterior(seen, targets)).max() < 1e-12


def test_the_floor_of_a_padded_batch(tmp_path, monkeypatch):
    """From the corpus's own header; a batch of any size gives the same, and an impossible row is named."""
    import masklab.corpora.markov.spelt as module
    from masklab.files import write_table

    corpus = MarkovCorpus(kind="markov", chains=CHAINS, distributional=1, sequences=10, valid=1, test=1, length=5)
    table = generate(corpus, "c", 1)["train"]
    write_table(table, tmp_path / "t.parquet")
    law = laws.law_of(read_header(tmp_path / "t.parquet"))
    tokens = table["symbols"].to_pylist()
    lengths = np.array([len(row) + 2 for row in tokens])
    ids = np.zeros((len(tokens), lengths.max()), int)
    for row, own in zip(ids, tokens, strict=True):
        row[: len(own) + 2] = [CLS, *(np.array(own) + FIRST), SEP]
    masking = Masking(count="bernoulli", rate=0.3, mask=0.8, random=0.1)
    batch = mask_batch(ids, lengths, masking, law.symbols + FIRST, generator(1, "m"))
    losses = token_floor(law, ids, *batch, masking)
    assert len(losses) == len(batch[1]) and np.isfinite(losses).all() and losses.mean() > 0.1
    monkeypatch.setattr(module, "MEMORY", 1)
    assert np.allclose(token_floor(law, ids, *batch, masking), losses, atol=1e-12)
    strange = np.full((1, 2), law.symbols - 1)
    with pytest.raises(MaskLabError, match="sequence 0: impossible"):
        law.posterior(strange, np.array([[True, False]]))
