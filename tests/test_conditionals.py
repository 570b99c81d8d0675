"""Stored conditionals are those of the law, at the tokens they say."""

import signal
import subprocess
import sys
import textwrap
from itertools import pairwise

import numpy as np
import pytest

from masklab.conditionals import CHUNK, PARTS, Conditionals, _bounds, chosen, entropy, write_conditionals
from masklab.config.schema import Chains, Grammar, MarkovCorpus, PcfgCorpus
from masklab.corpora import generate
from masklab.corpora.laws import law_of
from masklab.corpora.markov.law import HIDDEN, Channel
from masklab.corpora.markov.law import Law as MarkovLaw
from masklab.corpora.pcfg.law import Law
from masklab.errors import MaskLabError
from masklab.files import write_table
from masklab.rng import generator
from masklab.symbols import read_header
from masklab.tokens import TokenStore, write_symbol_tokens

LENGTH = 8


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    root = tmp_path_factory.mktemp("markov")
    config = MarkovCorpus(kind="markov", chains=Chains(synsets=6), distributional=False, sequences=10, valid=10,
                          test=40, length=LENGTH)  # fmt: skip
    for split, table in generate(config, "corpus", 1).items():
        write_table(table, root / f"{split}.parquet")
        facts = read_header(root / f"{split}.parquet")
        write_symbol_tokens(table["symbols"], 17, LENGTH + 2, root / "tokens", split, facts)
    return root / "tokens", law_of(facts), facts, root


def test_all_positions_hold_the_posterior_of_one_mask(tokens, tmp_path, monkeypatch):
    folder, law, _, root = tokens
    monkeypatch.setattr("masklab.conditionals.CHUNK", 500)  # several chunks
    write_conditionals(folder, tmp_path, 15, "all", 1, root)
    found, store = Conditionals(tmp_path), TokenStore(folder, "test")
    assert len(found) == 15 * LENGTH and found.probabilities.dtype == np.float32
    assert found.rows[0] == 0 and found.rows[-1] == len(store) - 1  # from all over the split
    for pair in (0, 1, 37, 119):
        ids, _ = store.batch(found.rows[[pair]])
        seen = ids.numpy()[:, 1:-1] - 5
        at = np.arange(LENGTH) == found.columns[pair] - 1
        wanted = law.posterior(np.where(at, HIDDEN, seen), at[None], Channel())[0]
        assert np.allclose(found.distributions([pair])[0], wanted, atol=1e-7)
        assert found.entropies[pair] == pytest.approx(
            -(wanted[wanted > 0] * np.log(wanted[wanted > 0])).sum(), abs=1e-6
        )
    assert np.array_equal(found.entropies, entropy(found.distributions(slice(None))))
    assert np.allclose(found.distributions(slice(None)).sum(1), 1, atol=1e-15)


def test_one_position_is_uniform_and_among_all(tokens, tmp_path):
    folder, _, _, _ = tokens
    for positions in ("all", "one"):
        write_conditionals(folder, tmp_path / positions, 40, positions, 1, tmp_path)
    one, every = (Conditionals(tmp_path / positions) for positions in ("one", "all"))
    assert np.array_equal(one.rows, np.unique(every.rows))
    place = {pair: i for i, pair in enumerate(zip(every.rows, every.columns, strict=True))}
    at = [place[pair] for pair in zip(one.rows, one.columns, strict=True)]
    assert np.array_equal(one.probabilities, every.probabilities[at])
    store = TokenStore(folder, "test")
    columns = np.concatenate([chosen(store, 80, "one", generator(s, "x"))[1] for s in range(100)])
    assert np.abs(np.bincount(columns, minlength=LENGTH + 1)[1:] / len(columns) - 1 / LENGTH).max() < 0.015


def test_cut_sequences_and_unknown_laws_are_refused(tokens, tmp_path):
    folder, _, facts, root = tokens
    import pyarrow.parquet as pq

    symbols = pq.read_table(root / "test.parquet")["symbols"]
    write_symbol_tokens(symbols, 17, LENGTH, tmp_path / "cut", "test", facts)
    with pytest.raises(MaskLabError, match="test sequences are cut to max_length 8"):
        write_conditionals(tmp_path / "cut", tmp_path, 5, "all", 1, root)
    write_symbol_tokens(symbols, 17, LENGTH + 2, tmp_path / "bare", "test")
    with pytest.raises(MaskLabError, match="not known"):
        write_conditionals(tmp_path / "bare", tmp_path, 5, "all", 1, root)
    with pytest.raises(MaskLabError, match=r"rows.npy: no such file"):
        Conditionals(tmp_path)
    write_conditionals(folder, tmp_path, 5, "all", 1, root)
    assert sorted(path.stem for path in tmp_path.glob("*.npy")) == sorted(PARTS)


def test_the_threads_of_the_job_share_the_sums_of_a_grammar(tmp_path, monkeypatch):
    """And change none of them."""
    grammar = Grammar(levels=[2, 2, 3], words=5, start_rules=2, rules=3, emissions=3, stop=0.4, stop_words=2)
    table = generate(PcfgCorpus(kind="pcfg", grammar=grammar, sentences=1, valid=1, test=200), "c", 1)["test"]
    write_table(table, tmp_path / "test.parquet")
    write_symbol_tokens(table["symbols"], 10, 6, tmp_path, "test", read_header(tmp_path / "test.parquet"))
    run, seen = Law._run, []

    def counted(law, part, lengths, threads, tops=None):
        seen.append(threads)
        run(law, part, lengths, threads, tops)

    monkeypatch.setattr(Law, "_run", counted)
    for threads in (1, 3):
        write_conditionals(tmp_path, tmp_path / str(threads), 200, "all", 1, tmp_path, threads=threads)
    assert seen == [1, 3]
    one, three = (Conditionals(tmp_path / str(threads)).probabilities for threads in (1, 3))
    assert len(one) > 400 and np.array_equal(one, three)


def test_what_was_computed_before_a_kill_is_not_computed_again(tokens, tmp_path, monkeypatch, caplog):
    """A process killed at the third of its parts, by the signal that none survives; then a whole run."""
    folder = tokens[0]
    monkeypatch.setattr("masklab.conditionals.CHUNK", 500)
    write_conditionals(folder, tmp_path / "whole", 15, "all", 1, tmp_path)
    code = f"""
        import os, signal
        from masklab import conditionals
        from masklab.corpora.markov import law
        conditionals.CHUNK, conditionals.LONG = 500, 0
        compute, calls = law.Law.conditionals, []
        def killed(*given):
            calls.append(0)
            if len(calls) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return compute(*given)
        law.Law.conditionals = killed
        conditionals.write_conditionals({str(folder)!r}, {str(tmp_path / "again")!r}, 15, "all", 1, {str(tmp_path)!r})
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(code)]).returncode == -signal.SIGKILL
    assert not (tmp_path / "again" / "conditionals.json").exists()
    _, second = sorted(tmp_path.glob("*.safetensors"))
    second.write_bytes(second.read_bytes()[:-1])  # is not whole
    asked, compute = [], MarkovLaw.conditionals

    def counted(law, sequences, lengths):
        asked.append(len(sequences))
        return compute(law, sequences, lengths)

    monkeypatch.setattr(MarkovLaw, "conditionals", counted)
    progress = Seen()
    write_conditionals(folder, tmp_path / "again", 15, "all", 1, tmp_path, progress)
    assert 0 < sum(asked) < 15 and progress.start == pytest.approx((15 - sum(asked)) * LENGTH)
    assert progress.seen[-1] == pytest.approx(15 * LENGTH)
    assert caplog.text.count("not a whole state") == 1
    for part in PARTS:
        assert (tmp_path / "again" / f"{part}.npy").read_bytes() == (tmp_path / "whole" / f"{part}.npy").read_bytes()
    asked.clear()
    write_conditionals(folder, tmp_path / "other", 15, "all", 2, tmp_path)  # what is left there is of another seed
    assert sum(asked) == 15


class Seen:
    """A progress that notes what it is told."""

    def __init__(self):
        self.seen, self.start = [], 0

    def __call__(self, done, total):
        self.seen.append(done)


def test_what_takes_long_is_cut_into_parts():
    """And what takes none is cut by the memory alone."""
    none = np.zeros(100)
    assert _bounds(np.full(100, 10), none, 1 << 18) == [0, *range(3, 100, 3), 100]  # 2 ** 23 / (10 x 2 ** 18) = 3.2
    lengths = np.sort(np.r_[np.full(5000, 10), np.full(40, 200), 2000])
    work = Law.work(None, lengths - 2, None)
    bounds = _bounds(lengths, work, 10)
    sizes = np.diff(bounds)
    assert bounds[0] == 0 and bounds[-1] == len(lengths) and (sizes > 0).all()
    for first, last in pairwise(bounds):
        assert last - first == 1 or work[first:last].sum() <= 1
        assert (last - first) * lengths[last - 1] * 10 <= CHUNK
    assert sizes[-1] == 1 and sizes[0] == 5000
