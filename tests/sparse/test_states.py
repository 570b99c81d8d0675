import numpy as np
import pytest
import torch

from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.models.encoder import MaskedLM
from masklab.sparse.codes import CodeStore
from masklab.sparse.dictionary import learn
from masklab.sparse.lasso import lasso, objective
from masklab.sparse.states import BATCH_TOKENS, code_corpus, hidden_states, sample_states
from masklab.tokens import TokenStore

LAYER, VOCAB = 2, 50


@pytest.fixture(scope="module")
def model():
    config = Encoder(layers=2, hidden=32, heads=2, max_positions=32, init_range=0.2)
    return MaskedLM(config, VOCAB, generator=torch.Generator().manual_seed(0)).eval()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    # the files of the format, written by hand; two sequences are empty
    folder, rng = tmp_path_factory.mktemp("tokens"), np.random.default_rng(0)
    lengths = rng.integers(1, 20, 80)
    lengths[[5, 79]] = 0
    np.save(folder / "train.offsets.npy", np.concatenate([[0], lengths]).cumsum().astype(np.int64))
    np.save(folder / "train.ids.npy", rng.integers(5, VOCAB, lengths.sum()).astype(np.uint16))
    return TokenStore(folder, "train")


@pytest.fixture(scope="module")
def truth(model, store):
    """Each sequence alone through the model: [tokens, d]."""
    parts = []
    with torch.no_grad():
        for row in range(len(store)):
            ids, lengths = store.batch(np.array([row]))
            parts.append(model.encode(ids, lengths, layer=LAYER)[0, 1:-1])
    return torch.nn.functional.normalize(torch.cat(parts), dim=1)


@pytest.mark.parametrize("batch_tokens", [1, 100, 100_000])
def test_hidden_states(model, store, truth, batch_tokens, monkeypatch):
    monkeypatch.setitem(BATCH_TOKENS, "cpu", batch_tokens)
    found, sizes = torch.full_like(truth, torch.nan), []
    for positions, states in hidden_states(model, store, np.arange(len(store)), LAYER):
        assert found[positions].isnan().all()
        found[positions] = states
        sizes.append(len(positions))
    torch.testing.assert_close(found, truth, atol=1e-5, rtol=0)
    assert len(sizes) == {1: 78, 100_000: 1}.get(batch_tokens, len(sizes))
    assert batch_tokens == 1 or max(sizes) <= batch_tokens


def test_sample_first(model, store, truth, monkeypatch):
    torch.testing.assert_close(sample_states(model, store, LAYER, 101, "first"), truth[:101], atol=1e-5, rtol=0)
    monkeypatch.setitem(BATCH_TOKENS, "cpu", 64)
    everything = sample_states(model, store, LAYER, 10**6, "first")
    torch.testing.assert_close(everything, truth, atol=1e-5, rtol=0)


def test_sample_random(model, store, truth):
    seen = []
    sample = sample_states(model, store, LAYER, 150, seed=1, progress=lambda done, total: seen.append((done, total)))
    assert sample.shape == (150, 32) and seen[-1] == (150, 150)
    # every vector is that of a token; (nearly) no two are the same token's: a few tokens have equal states
    nearest = (sample @ truth.T).max(1)
    assert nearest.values.min() > 1 - 1e-5 and len(nearest.indices.unique()) > 145
    assert torch.equal(sample, sample_states(model, store, LAYER, 150, seed=1))
    assert not torch.equal(sample, sample_states(model, store, LAYER, 150, seed=2))
    with pytest.raises(MaskLabError, match="draw 'last'"):
        sample_states(model, store, LAYER, 10, "last")


def test_code_corpus(model, store, truth, tmp_path):
    dictionary = learn(truth, 48, 0.05, 30, 100, seed=1)
    counts = code_corpus(model, store, dictionary, LAYER, 0.05, "exact", tmp_path, "train", chunk_tokens=90)
    codes = CodeStore(tmp_path, "train")
    assert len(codes) == counts["rows"] == len(store.ids)
    expected = lasso(truth, dictionary, 0.05)
    written = torch.zeros(len(truth), 48)
    written[np.repeat(np.arange(len(truth)), np.diff(codes.indptr)), codes.indices.astype(np.int64)] = torch.tensor(
        codes.values
    )
    torch.testing.assert_close(written, expected.dense(48), atol=1e-3, rtol=0)
    _, values = codes.gather(np.array([3, 200]))
    assert torch.equal(codes.gather(np.array([200]))[1][0], values[1][: int(codes.indptr[201] - codes.indptr[200])])
    torch.testing.assert_close(values.sum(1), torch.ones(2))


def test_code_corpus_resumes(model, store, truth, tmp_path):
    dictionary = learn(truth, 48, 0.05, 5, 100, seed=1)

    def run(folder, **kwargs):
        return code_corpus(model, store, dictionary, LAYER, 0.05, "exact", folder, "train", chunk_tokens=90, **kwargs)

    run(tmp_path / "whole")
    kept = {"state_folder": tmp_path / "state", "fingerprint": {"a": 1}}

    def stop(done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "codes", progress=stop, **kept)
    assert not list((tmp_path / "codes").glob("*"))
    calls = count_encodes(model, lambda: run(tmp_path / "codes", **kept))
    fresh = count_encodes(model, lambda: run(tmp_path / "again", state_folder=tmp_path / "new", fingerprint={"a": 1}))
    assert 0 < calls < fresh
    for part in ("indptr", "indices", "values"):
        name = f"train.{part}.npy"
        assert (tmp_path / "codes" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    # chunks made under another fingerprint are not used
    assert count_encodes(model, lambda: run(tmp_path / "codes", **(kept | {"fingerprint": {"a": 2}}))) == fresh


def count_encodes(model, action):
    calls, encode = [], model.encode
    model.encode = lambda *args, **kwargs: calls.append(1) or encode(*args, **kwargs)
    try:
        action()
    finally:
        del model.encode
    return len(calls)


def test_learned_on_hidden_states_as_good_as_spams(truth):
    pytest.importorskip("spams")  # some machines have no build of it
    train, test = truth[:600], truth[600:]
    values = []
    for backend in ("torch", "spams"):
        dictionary = learn(train, 64, 0.05, 60, 100, seed=1, backend=backend)
        values.append(objective(test, dictionary, lasso(test, dictionary, 0.05), 0.05).mean().item())
    assert values[0] < 1.01 * values[1], values


def test_codes_of_some_tokens_are_those_of_all_to_the_last_bit(model, store, truth, tmp_path, monkeypatch):
    monkeypatch.setitem(BATCH_TOKENS, "cpu", 60)
    dictionary = learn(truth, 48, 0.05, 30, 100, seed=1)
    only = np.random.default_rng(3).random(len(store.ids)) < 0.15
    only[store.offsets[20] : store.offsets[40]] = False  # whole batches without any

    def run(folder, **kwargs):
        code_corpus(model, store, dictionary, LAYER, 0.05, "exact", folder, "train", chunk_tokens=200, **kwargs)
        return CodeStore(folder, "train")

    calls = []
    for name, kwargs in (("all", {}), ("some", {"only": only})):
        calls.append(count_encodes(model, lambda name=name, kwargs=kwargs: run(tmp_path / name, **kwargs)))
    whole, some = CodeStore(tmp_path / "all", "train"), CodeStore(tmp_path / "some", "train")
    assert calls[1] < calls[0] and len(some) == only.sum() and len(some.indices) < 0.2 * len(whole.indices)
    wanted = np.flatnonzero(only)[::-1]
    for a, b in zip(whole.gather(wanted), some.gather(wanted), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(MaskLabError, match=f"token {np.flatnonzero(~only)[0]} has none"):
        some.gather(np.arange(len(only)))
    # another choice does not go on from the chunks of this one
    kept = {"state_folder": tmp_path / "state"}
    run(tmp_path / "first", only=only, **kept)
    again = run(tmp_path / "again", only=~only, **kept)
    assert torch.equal(again.gather(np.flatnonzero(~only))[1], whole.gather(np.flatnonzero(~only))[1])
    none = run(tmp_path / "none", only=np.zeros_like(only))
    assert len(none) == 0 and none.gather(np.zeros(0, np.int64))[0].shape == (0, 1)
