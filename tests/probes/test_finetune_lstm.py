"""Fine-tuning reads any encoder: an LSTM trained by SGD with one mask per sequence."""

from checked_run import run
from masklab.config.schema import FinetuneProbe
from masklab.files import read_json
from masklab.probes import Context


def test_an_lstm_is_fine_tuned(table):
    trained = read_json(table.folders["lstm"] / "masklab.json")["config"]
    assert trained["model"]["optimiser"]["kind"] == "sgd" and trained["model"]["masking"]["count"] == "one"
    probe = FinetuneProbe(
        kind="finetune", tasks=["task"], seeds=[1], lr=3e-3, batch_size=16, epochs=20, patience=20,
        evaluate_every="epoch", select="accuracy",
    )  # fmt: skip
    found = {row["metric"]: row["value"] for row in run(Context(probe, table.folders["lstm"], {"task": table.task}))}
    assert found["accuracy"] > found["majority"] + 0.15, found
