"""Figures and tables of `mae` show the means over runs of the scores they are given."""

import numpy as np
import pytest
from scipy import stats

from masklab.errors import MaskLabError
from masklab.figures import FIGURES
from masklab.figures.recipes import delta_of, deltas, present
from masklab.figures.write import write_figure
from masklab.tables import TABLES
from masklab.tables.write import write_table


@pytest.fixture(scope="module")
def scores(mae):
    return mae.mae_scores()


def made(kind, name, scores, mae):
    return kind["mae"][name].function()(scores, mae.STUDY, {}, mae.METRICS)


@pytest.mark.parametrize("name", FIGURES["mae"])
def test_drawn_is_the_data(name, scores, mae, tmp_path):
    figure, data = made(FIGURES, name, scores, mae)
    assert np.isfinite(data["value"]).all() and (data["runs"] == 3).all()
    for axes in figure.axes:
        drawn = [line.get_ydata() for line in axes.get_lines() if len(line.get_ydata()) > 2 or name in ("figure3",)]
        assert drawn and axes.get_xlabel()
        for values in drawn:
            if len(values) > 2:
                assert np.isin(np.round(values, 9), np.round(data["value"], 9)).all()
    write_figure(figure, data, tmp_path / name)
    first = {path.suffix: path.read_bytes() for path in tmp_path.iterdir()}
    write_figure(*made(FIGURES, name, scores, mae), tmp_path / name)
    assert first == {path.suffix: path.read_bytes() for path in tmp_path.iterdir()}


def test_figure1_values_and_intervals(scores, mae):
    _, data = made(FIGURES, "figure1a_centred", scores, mae)
    part = data[(data["panel"] == "MLM") & (data["split"] == "masked")].set_index("layer")
    rows = scores[
        (scores["step"] == 100) & scores["model"].str.startswith("MLM") & (scores["metric"] == "rank_centred")
    ]
    for layer in range(5):
        values = rows[(rows["split"] == "masked") & (rows["layer"] == layer)]["value"].to_numpy()
        low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
        assert part.loc[layer, ["value", "low", "high"]].tolist() == pytest.approx([values.mean(), low, high])


def test_figure3_is_against_costs_and_figure4_against_delta(mae):
    clean = mae.mae_scores(noise=0)
    _, data = made(FIGURES, "figure3", clean, mae)
    part = data[(data["panel"] == "MAE-LM") & (data["metric"] == "seconds")]
    assert part["cost"].tolist() == pytest.approx([55, 110]) and part["value"].tolist() == pytest.approx([0.861] * 2)
    _, data = made(FIGURES, "figure4", clean, mae)
    part = data[(data["panel"] == "glue") & (data["recipe"] == "delta")]
    assert part["delta"].tolist() == [0, 0.5, 1] and part["value"].tolist() == pytest.approx([0.861, 0.856, 0.851])
    line = data[(data["panel"] == "glue") & (data["recipe"] == "MLM")]
    assert line["value"].tolist() == pytest.approx([0.852])


def test_figure4_draws_what_has_one_run_and_reads_mlm(scores, mae):
    single = scores[~scores["model"].isin(mae.STUDY.members["kept"][1:])]
    _, data = made(FIGURES, "figure4", single, mae)
    part = data[(data["panel"] == "glue") & (data["recipe"] == "delta")].set_index("delta")
    assert part["runs"].to_dict() == {0: 3, 0.5: 3, 1: 1} and part["low"].isna().to_list() == [False, False, True]
    wanted = FIGURES["mae"]["figure4"].models
    assert set(wanted(mae.STUDY, None)) >= set(mae.STUDY.members["MLM"])
    panels = {title: mae.STUDY.panels[title] for title in ("MLM", "MAE-LM")}
    with pytest.raises(MaskLabError, match="needs 2 of the panels 'MAE-LM'"):  # one share is no curve
        wanted(mae.STUDY.model_copy(update={"panels": panels}), None)


def test_titles_of_figure4(mae):
    assert deltas(mae.STUDY) == {"MAE-LM": 0, "delta-0.5": 0.5, "kept": 1}
    assert delta_of("delta-1") == 1 and delta_of("delta-x") is None and delta_of("MLM") is None
    with pytest.raises(MaskLabError, match="needs 2 of the panels 'MLM', 'none'"):
        present(mae.STUDY, ("MLM", "none"), 2)


@pytest.mark.parametrize("name", TABLES["mae"])
def test_tables_are_written(name, scores, mae, tmp_path):
    frame = made(TABLES, name, scores, mae)
    assert np.isfinite(frame["value"]).all() and (frame["seeds"] == 3).all()
    write_table(frame, tmp_path / name)
    assert (tmp_path / f"{name}.md").read_text().count("| --- |") == frame["panel"].nunique()


def test_table_values(mae):
    clean = mae.mae_scores(noise=0)
    first = made(TABLES, "table1", clean, mae).set_index(["row", "label"])["value"]
    assert first["Average", "MAE-LM"] == pytest.approx(0.861) and first["squad (EM)", "MLM"] == pytest.approx(0.852)
    assert first["squad (F1)", "MLM"] == pytest.approx(0.882) and first["cola", "80-10-10"] == pytest.approx(0.852)
    second = made(TABLES, "table2", clean, mae).set_index(["panel", "label", "row"])["value"]
    for label, value in (("kept", 0.851), ("reset", 0.859), ("random", 0.851)):
        assert second["Handling [MASK]", label, "Average"] == pytest.approx(value)
    assert second["Decoder size", "more-layers", "Answer extraction"] == pytest.approx(0.848)
    assert len(second) == 2 * (5 + 3 + 4 + 5)
    third = made(TABLES, "table3", clean, mae).set_index(["panel", "label", "row"])["value"]
    assert third["Effective rank", "MLM", "Pretrained"] == pytest.approx(30)
    assert third["Effective rank, centred", "MAE-LM", "mnli"] == pytest.approx(32.5)
    found = made(TABLES, "losses", clean, mae).set_index(["label", "row"])["value"]
    assert found["MLM", "loss"] == pytest.approx(2.1) and found["MAE-LM", "gap"] == pytest.approx(0.1)
