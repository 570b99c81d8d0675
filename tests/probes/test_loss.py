"""The loss probe: losses by their definition, a floor that training approaches and nothing beats."""

import numpy as np
import pytest
import torch

from checked_run import items, run, scores
from masklab import probes, symbols
from masklab.config.schema import Chains, Encoder, LossProbe, MarkovCorpus, Masking, Model, Objective
from masklab.corpora import generate
from masklab.errors import MaskLabError
from masklab.files import write_json, write_table
from masklab.models.checkpoint import load_checkpoint
from masklab.probes import Context
from masklab.probes.loss import sequence_values, token_losses, training_masking
from masklab.tokenizers import save_tokenizer, symbol_tokenizer
from masklab.tokens import TokenStore, write_symbol_tokens
from masklab.training.loop import Run, train

ENCODER = Encoder(positions="absolute", layers=1, hidden=32, heads=4, max_positions=16, dropout=0.0)
MASKING = {"rate": 0.15, "count": "bernoulli", "mask": 1.0, "random": 0.0}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A Markov corpus, its tokens and a model trained on it; step-0 is its beginning."""
    root = tmp_path_factory.mktemp("markov")
    chains = Chains(synsets=6, chains=1)
    config = MarkovCorpus(
        kind="markov", chains=chains, distributional=True, sequences=4000, valid=50, test=300, length=12
    )
    tokens = root / "tokens" / "corpus" / "symbols"
    for split, table in generate(config, "corpus", 1).items():
        write_table(table, root / f"{split}.parquet")
        facts = symbols.read_header(root / f"{split}.parquet")
        write_symbol_tokens(table["symbols"], 17, 14, tokens, split, facts)
    save_tokenizer(symbol_tokenizer(facts["names"]), root / "tokenizer", 14)
    folders = {}
    for name, steps in (("start", 0), ("trained", 700)):
        model = Model(
            corpus="corpus", tokenizer="t", encoder="e", objective="o", steps=steps, batch_size=64, masking=MASKING,
            optimiser={"lr": 5e-3, "warmup": 0.1}, checkpoints=[steps] if steps else [],
        )  # fmt: skip
        train(
            Run(
                name=name, seed=1, model=model, encoder=ENCODER, objective=Objective(mlm=1), tokens=tokens,
                tokenizer=root / "tokenizer", output=root / name, state=root / "state" / name,
            )
        )  # fmt: skip
        folders[name] = root / name / f"step-{steps}"
    return tokens, folders


def measured(world, name, **keys):
    tokens, folders = world
    probe = LossProbe(kind="loss", **keys)
    rows = run(Context(probe, folders[name], tokens=tokens, name="loss"))
    assert {(row["task"], row["split"]) for row in rows} == {("corpus", "test")} and len(
        {row["n"] for row in rows}
    ) == 1
    return {row["metric"]: row["value"] for row in rows}, rows[0]["n"]


def test_training_approaches_the_floor_and_never_beats_it(world):
    (start, count), (trained, same) = (measured(world, name) for name in ("start", "trained"))
    assert count == same and count == pytest.approx(300 * 12 * 0.15, rel=0.1)
    assert start["floor"] == trained["floor"] and start["floor_se"] == trained["floor_se"]
    assert start["loss"] == pytest.approx(np.log(17), abs=0.1)  # knows nothing
    assert start["gap"] > 1 and -4 * trained["gap_se"] < trained["gap"] < 0.12
    assert trained["gap"] == pytest.approx(trained["loss"] - trained["floor"], abs=1e-12)
    assert trained["floor"] > np.log(2)  # the coin of every hidden token


def test_losses_equal_their_definition(world):
    """Log softmax of the logits of a whole forward pass, to 1e-5."""
    tokens, folders = world
    model = load_checkpoint(folders["trained"]).eval()
    ids, lengths = TokenStore(tokens, "test").batch(np.arange(5))
    rows, columns = np.array([0, 2, 2, 4]), np.array([3, 1, 12, 7])
    corrupted = ids.numpy().copy()
    corrupted[rows, columns] = 4
    with torch.no_grad():
        logits = model(torch.from_numpy(corrupted), lengths).logits.view(5, 14, -1)
    wanted = -logits.log_softmax(-1)[rows, columns, ids[rows, columns]]
    assert np.allclose(token_losses(model, ids.numpy(), corrupted, rows, columns, lengths), wanted, atol=1e-5)


def test_masking_is_the_models_own(world, tmp_path):
    assert training_masking(world[1]["trained"]) == Masking(**MASKING)
    write_json({}, tmp_path / "masklab.json")
    with pytest.raises(MaskLabError, match=r"masklab.json: no 'config'"):
        training_masking(tmp_path)


def test_items_are_sequences_that_spread_as_the_error_says(world):
    tokens, folders = world
    rows = probes.run(Context(LossProbe(kind="loss", sequences=200), folders["start"], tokens=tokens, name="loss"))
    values = {row["metric"]: row["value"] for row in scores(rows)}
    kept = {item["metrics"][0]: np.array(item["predictions"], float) for item in items(rows)}
    assert set(kept) == {"loss", "floor", "gap"} and {len(found) for found in kept.values()} == {len(kept["loss"])}
    assert 100 < len(kept["loss"]) < 200  # of twelve tokens 0.15 each: some sequences have no mask
    for metric, found in kept.items():
        error = found.std(ddof=1) / np.sqrt(len(found))
        assert error == pytest.approx(values[f"{metric}_se"], rel=1e-5)
    assert np.allclose(kept["loss"] - kept["floor"], kept["gap"], atol=1e-5)


def test_a_sequence_stands_for_what_it_adds_to_the_mean():
    values, groups = np.array([1.0, 3.0, 2.0, 6.0]), np.array([9, 9, 4, 9])
    found = sequence_values(values, groups)
    assert found == pytest.approx([3 + (2 - 3) / 2, 3 + (10 - 9) / 2]) and found.mean() == 3


def test_without_floor_there_is_a_loss_alone(world):
    found, _ = measured(world, "trained", floor=False, sequences=100)
    assert set(found) == {"loss", "loss_se", "parameters"}


def test_of_one_sequence_there_is_no_error(world):
    found, count = measured(world, "trained", sequences=1, masks="one", floor=False)
    assert set(found) == {"loss", "parameters"} and count == 1


@pytest.mark.parametrize(
    ("masking", "said"),
    [
        ({"count": "floor", "rate": 0.01}, r"probes\.loss: .*symbols: no test sequence has a token to hide"),
        ({"count": "bernoulli", "rate": 1e-9}, "probes.loss: chance hid no token of 20 sequences; raise `sequences`"),
    ],
    ids=["none", "chance"],
)
def test_where_nothing_is_hidden_there_is_no_loss(world, monkeypatch, masking, said):
    monkeypatch.setattr("masklab.probes.loss.training_masking", lambda _: Masking(**masking))
    with pytest.raises(MaskLabError, match=said):
        measured(world, "start", floor=False, sequences=20)
