"""What checkpoints cost: tokens and seconds as recorded, FLOPs as counted for every sequence."""

import pandas as pd
import pytest

from checked_run import scores
from masklab.config.schema import CostProbe, Decoder, Encoder, Masking, Model, Objective
from masklab.files import read_json
from masklab.models.flops import pretraining_flops_per_token, training_flops
from masklab.probes import Context
from masklab.probes.cost import measure
from masklab.training.loop import Run, train

SMALL = {"positions": "absolute", "layers": 1, "hidden": 16, "heads": 1, "max_positions": 40}


def test_costs_of_a_run(english, tmp_path):
    encoder = Encoder(**SMALL, decoder=Decoder(layers=1))
    model = Model(
        corpus="c", tokenizer="t", encoder="e", objective="o", steps=6, batch_size=32, checkpoints=[2, 6], log_every=1,
        masking=Masking(count="rounded"),
    )  # fmt: skip
    run = Run("m", 1, model, encoder, Objective(mae=1), english / "tokens", english / "tokenizer", tmp_path / "m",
              tmp_path / "state")  # fmt: skip
    train(run)
    metrics = pd.read_parquet(tmp_path / "m" / "metrics.parquet")
    found = {}
    for step in (2, 6):
        context = Context(CostProbe(kind="cost"), tmp_path / "m" / f"step-{step}", tokens=english / "tokens")
        rows = measure(context)
        assert scores(rows) == rows
        found[step] = {row["metric"]: row["value"] for row in rows}
        upto = metrics[metrics["step"] <= step]
        assert found[step]["valid_loss"] == upto["valid_loss"].iloc[-1] < 9
        assert found[step]["tokens"] == upto["tokens"].sum() and found[step]["seconds"] == upto["seconds"].iloc[-1]
    each = found[6]["flops"] / found[6]["tokens"]
    assert found[2]["flops"] == pytest.approx(each * found[2]["tokens"]) and found[2]["tokens"] < found[6]["tokens"]
    vocab_size = read_json(english / "tokens" / "meta.json")["vocab_size"]
    one = training_flops(encoder, vocab_size, 1, 20, 3) / 20
    assert 0.5 * one < each < 2 * one


def test_flops_per_token_is_the_mean_over_tokens():
    encoder, plain = Encoder(**SMALL, decoder=Decoder(layers=2)), Encoder(**SMALL)
    masking = Masking(count="rounded")
    lengths = [10, 10, 30]
    for form, objective, dropped in (
        (plain, Objective(mlm=1), (None, None)),
        (encoder, Objective(mae=1), (2, 4)),
        (encoder, Objective(mae={"delta": 0.5}), (1, 2)),
    ):
        parts = [
            training_flops(form, 50, 1, n, round(0.15 * n), **({} if d is None else {"dropped": d}))
            for n, d in zip((10, 30), dropped, strict=True)
        ]
        truth = (2 * parts[0] + parts[1]) / 50
        assert pretraining_flops_per_token(form, objective, masking, 50, 8, lengths) == pytest.approx(truth)
