"""The curvature probe: rows that are what the estimators give, the same sentences for every model."""

import numpy as np
import pytest
import torch

from checked_run import items, run
from masklab import probes
from masklab.config.schema import CurvatureProbe, Encoder
from masklab.curvature.per_example import SquaredNorms
from masklab.curvature.trace import draw_places, hide, label_scores, random_signs, sign_scores, summed_norms
from masklab.curvature.width import embedded
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.probes import Context
from masklab.rng import generator
from masklab.tokenizers import load_tokenizer
from masklab.tokens import TokenStore

SIZES = {"positions": "absolute", "layers": 1, "hidden": 16, "heads": 2, "max_positions": 40, "init_range": 0.2}


@pytest.fixture(scope="module")
def folders(english, tmp_path_factory):
    """Two models of the generated language, never trained."""
    found, root = {}, tmp_path_factory.mktemp("models")
    vocabulary = load_tokenizer(english / "tokenizer").get_vocab_size()
    for name, switches in {"bert": {}, "deberta": {"positions": "disentangled"}}.items():
        model = MaskedLM(Encoder(**(SIZES | switches)), vocabulary, generator=torch.Generator().manual_seed(1))
        save_checkpoint(model, root / name, tokenizer_folder=english / "tokenizer", metadata={})
        found[name] = root / name
    return found


def measured(english, folder, seed=1, **keys):
    probe = CurvatureProbe(kind="curvature", **({"sentences": 100, "repeats": 2, "batch_size": 32} | keys))
    rows = run(Context(probe, folder, tokens=english / "tokens", seed=seed, name="curvature"))
    assert {(row["task"], row["split"], row["n"]) for row in rows} == {(english.name, "test", probe.sentences)}
    return {(row["metric"], row["seed"]): row["value"] for row in rows}


def labelled(english, folder, count, draws):
    """[sentences, 3]: squared gradients for labels drawn from the model, at every position of some sentences."""
    model, store = load_checkpoint(folder).eval(), TokenStore(english / "tokens", "test")
    found, generator = [], torch.Generator().manual_seed(3)
    with SquaredNorms(model) as norms:
        for row in range(count):
            ids, lengths = store.batch(np.full(int(store.lengths[row]) - 2, row))
            ids, at = hide(ids, torch.arange(1, len(ids) + 1))
            uniforms = torch.rand(draws, len(ids), generator=generator)
            parts = norms(ids, lengths, at, lambda logits, u=uniforms: [label_scores(logits, each) for each in u])
            found.append(parts.mean((0, 1)))
    return torch.stack(found).double()


def test_rows_are_estimates_of_the_trace(english, folders):
    """Against drawn labels at every position of some sentences: within 4 standard errors of both."""
    truth = labelled(english, folders["bert"], count=50, draws=20)
    found = measured(english, folders["bert"], sentences=1000, width=64)
    for metric, values in (("trace", truth.sum(-1)), ("trace_embedded", embedded(truth, 4.0))):
        error = float(values.std()) / len(values) ** 0.5
        for seed in (1, 2):
            own = found[f"{metric}_se", seed]
            assert abs(found[metric, seed] - float(values.mean())) < 4 * np.hypot(error, own)
    assert 0 < found["trace_se", 1] < 0.05 * found["trace", 1]
    assert found["trace_embedded", 1] > found["trace", 1] != found["trace", 2]


def test_the_same_draws_give_the_same_rows(english, folders):
    """Whatever the size of a batch, but for rounding; and not at another seed."""
    one = measured(english, folders["bert"])
    assert one == measured(english, folders["bert"])
    assert set(one) == {(metric, seed) for metric in ("trace", "trace_se") for seed in (1, 2)}
    assert one["trace", 1] != measured(english, folders["bert"], seed=2)["trace", 1]


def test_items_are_sentences_in_the_order_drawn(english, folders):
    """The order in which they are measured, by length, is not that of the items."""
    probe = CurvatureProbe(kind="curvature", sentences=60, repeats=1, batch_size=16, width=32)
    rows = probes.run(Context(probe, folders["bert"], tokens=english / "tokens", name="curvature"))
    kept = {item["metrics"][0]: item["predictions"] for item in items(rows)}
    assert set(kept) == {"trace", "trace_embedded"} and len(kept["trace"]) == 60
    store, address = TokenStore(english / "tokens", "test"), (1, "curvature", "sentences", 1)
    drawn, columns = draw_places(store.lengths, 60, generator(*address))
    order = np.argsort(store.lengths[drawn], kind="stable")
    model = load_checkpoint(folders["bert"]).eval()
    for place in (0, 17, 59):
        ids, lengths = store.batch(drawn[order][place : place + 1])
        ids, at = hide(ids, torch.from_numpy(columns[order][place : place + 1]))
        start = place - place % 16
        signs = random_signs(generator(*address, start), min(16, 60 - start), model.vocab_size)
        parts = summed_norms(model, ids, lengths, at, signs[place - start, None], sign_scores)
        assert kept["trace"][order[place]] == pytest.approx(float(parts.sum()), rel=1e-4)
    groups = probes.run(Context(probe, folders["deberta"], tokens=english / "tokens", name="curvature"))
    assert {len(item["predictions"]) for item in items(groups)} == {8}  # three batches of 16 and one of 12, by 8s


def test_a_trace_in_a_width_in_which_the_model_is_not_known_is_refused(english, folders, tmp_path):
    """With a tied head and embeddings that are not normalised no wider model computes the same."""
    model = load_checkpoint(folders["bert"])
    config = model.config.model_copy(update={"embedding_norm": False})
    save_checkpoint(MaskedLM(config, model.vocab_size), tmp_path / "m", metadata={})
    assert measured(english, tmp_path / "m", width=config.hidden)
    with pytest.raises(MaskLabError, match=r"probes.curvature.width: .*m: a tied head needs embedding_norm"):
        measured(english, tmp_path / "m", width=2 * config.hidden)


def test_one_group_of_sentences_has_no_error(english, folders):
    """A model with tables of distances is measured by eights."""
    found = measured(english, folders["deberta"], sentences=8, repeats=1, width=32)
    assert set(found) == {("trace", 1), ("trace_embedded", 1)}


def test_models_with_tables_of_distances_are_measured_too(english, folders):
    """Against one backward pass per sentence and drawn label."""
    found = measured(english, folders["deberta"], sentences=400, width=32)
    model, store = load_checkpoint(folders["deberta"]).eval(), TokenStore(english / "tokens", "test")
    rng, values = np.random.default_rng(1), []
    for row in rng.integers(len(store), size=200):
        ids, lengths = store.batch([row])
        ids, at = hide(ids, torch.from_numpy(rng.integers(1, lengths.numpy() - 1)))
        values.append(summed_norms(model, ids, lengths, at, torch.from_numpy(rng.random(1)), label_scores)[0])
    values = torch.stack(values)
    for metric, each in (("trace", values.sum(-1)), ("trace_embedded", embedded(values, 2.0))):
        error = np.hypot(float(each.std()) / len(each) ** 0.5, found[f"{metric}_se", 1])
        assert error < 0.1 * float(each.mean()) and abs(found[metric, 1] - float(each.mean())) < 4 * error
