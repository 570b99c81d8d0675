"""Tables of `implicit-bias`: values, deviations, and shapes."""

import pytest

import synthetic_ib as ib
from masklab.config.schema import Config
from masklab.figures.saturation import shapes
from masklab.tables import TABLES
from masklab.tables.write import write_table


def make(name, scores, **given):
    return TABLES["implicit-bias"][name].function()(scores, ib.STUDY, {}, {}, **given)


def test_ways_of_training_side_by_side(tmp_path):
    scores = ib.ib_scores(noise=0.001)
    frame = make("table1", scores).set_index(["row", "label"])
    assert set(frame.index.get_level_values(0)) == {"Loss", "Task A", "Task B"}
    assert frame.value["Task B", "AdamW"] == pytest.approx(0.64, abs=0.003) and frame.seeds["Task B", "AdamW"] == 5
    assert frame.value["Task B", "adversarial"] == pytest.approx(0.54, abs=0.003)
    assert frame.value["Loss", "lookup table"] == 3.2 and frame["std"]["Loss", "AdamW"] == 0.001
    frame = make("table2", scores)
    write_table(frame, tmp_path / "table2")
    text = (tmp_path / "table2.md").read_text()
    assert "| Trace | trace | 1000 | 15.9" in text and text.count("**0.") == 1  # the best accuracy alone is bold
    assert text.splitlines()[-1].endswith("| – |")  # a lookup table has no Hessian


def test_shapes(tmp_path):
    base = {"corpus": "c", "tokenizer": "t", "objective": "mlm", "steps": 10}
    config = Config(
        encoders={
            "wide": {"hidden": 128, "heads": 2, "layers": 3},
            "lstm": {"kind": "lstm", "hidden": 64, "layers": 4},
        },
        models={
            name: base | {"encoder": "lstm" if panel == "hmm" else "wide"}
            for panel in ("pcfg", "hmm", "causal")
            for name in ib.PANELS[panel].values()
        },
    )
    frame = make("table3", ib.ib_scores(), **shapes(ib.STUDY, config))
    cells = frame[frame.panel == "PCFG"].set_index(["row", "label"]).value
    assert (cells["Parameters", "m"], cells["heads", "m"], cells["intermediate", "m"]) == (1e5, 2, 512)
    assert set(frame[frame.panel == "HMM"].row) == {"Parameters", "hidden", "layers"}
    write_table(frame, tmp_path / "table3")
    assert "100,000" in (tmp_path / "table3.md").read_text()
