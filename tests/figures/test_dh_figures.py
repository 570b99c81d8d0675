"""Figures of `dh` show the means and intervals of the scores they are given."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from masklab.config.schema import Chains, MarkovCorpus
from masklab.corpora import generate
from masklab.corpora.markov.chains import draw_chains
from masklab.errors import MaskLabError
from masklab.figures import FIGURES
from masklab.figures.chain import figure1, likeliest_nodes
from masklab.figures.transfer import STARTS, geometric
from masklab.files import write_table
from masklab.symbols import COLUMN

NAMES = [name for name in FIGURES["dh"] if name != "figure1"]


@pytest.fixture(scope="module")
def scores(dh):
    return dh.dh_scores(dh.plausible, sizes=(100, 200, 400))


def draw(name, scores, dh):
    return FIGURES["dh"][name].function()(scores, dh.STUDY, {}, {})


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


@pytest.mark.parametrize("name", NAMES)
def test_curves_are_means_over_seeds_with_t_intervals(name, scores, dh):
    figure, data = draw(name, scores, dh)
    sets = FIGURES["dh"][name].sets
    assert list(dict.fromkeys(data["set"])) == list(sets) and len(figure.axes) == 2 * len(sets)
    for index, axes in enumerate(figure.axes):
        part = data[data["set"] == sets[index // 2]]
        labels = list(STARTS)[2 * (index % 2) :][:2]
        drawn = lines(axes)
        assert set(drawn) == {f"{label}, {domain}" for label in labels for domain in dh.MAJORITY}
        for key, line in drawn.items():
            label, domain = key.split(", ")
            rows = part[(part["label"] == label) & (part["domain"] == domain)]
            np.testing.assert_array_equal(line.get_xydata(), rows[["train_size", "value"]])
        assert len(axes.collections) == len(drawn)  # one band per curve
        levels = {line.get_ydata()[0] for line in axes.get_lines() if line.get_label() == "_chance"}
        assert levels == set(dh.MAJORITY.values())
        low, high = axes.get_ylim()
        assert part["low"].min() >= low and part["high"].max() <= high
    row = data[(data["label"] == "w/ DH") & (data["domain"] == "B-D1") & (data["train_size"] == 200)].iloc[0]
    at = {"metric": "accuracy", "task": row["task"], "model": row["model"], "split": "B-D1", "train_size": 200}
    values = scores.loc[(scores[list(at)] == pd.Series(at)).all(axis=1), "value"]
    assert len(values) == row["seeds"] == 5 and row["n"] == 500
    expected = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert (row["value"], row["low"], row["high"]) == pytest.approx((values.mean(), *expected), rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_overlaps(name, scores, dh):
    figure, _ = draw(name, scores, dh)
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    boxes.append(figure.legends[0].get_window_extent(renderer))
    for i, box in enumerate(boxes):
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])
    said = figure.legends[0].get_title().get_text()
    assert said == "Mean of 5 seeds; 500 test sequences per domain"


def test_few_seeds(dh):
    figure, data = draw("figure2", dh.dh_scores(dh.plausible, seeds=1), dh)
    assert set(data["interval"]) == {"none"} and not figure.axes[0].collections
    assert figure.legends[0].get_title().get_text().startswith("Mean of 1 seed;")
    figure, data = draw("figure2", dh.dh_scores(dh.plausible, seeds=2), dh)
    assert set(data["interval"]) == {"range"} and len(figure.axes[0].collections) == 8
    assert "range of seeds" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_size_axis():
    assert geometric([100, 200, 400]) and geometric([125, 500, 2000]) and geometric([250, 1000])
    assert not geometric(range(10_000, 100_001, 10_000)) and not geometric([100, 200]) and not geometric([100])


def test_wrong_scores(scores, dh):
    with pytest.raises(MaskLabError, match="no accuracy on A-D1, B-D1, A-D2, B-D2 of single-patterns-50"):
        draw("figure2", scores[scores["task"] != "single-patterns-50"], dh)
    with pytest.raises(MaskLabError, match="no majority of the test set"):
        draw("figure2", scores[scores["metric"] != "majority"], dh)
    twice = pd.concat([scores, scores.assign(probe="again")])
    with pytest.raises(MaskLabError, match="two probes measured"):
        draw("figure2", twice, dh)


# --- Figure 1 ---------------------------------------------------------------


def corpora(folder, edges, **changes):
    paths = []
    for distributional in (True, False):
        settings = {"sequences": 3, "valid": 1, "test": 1, "length": 20} | (changes if not distributional else {})
        config = MarkovCorpus(
            kind="markov", chains=Chains(synsets=12, edges=edges), distributional=distributional, **settings
        )
        paths.append(folder / f"{distributional}.parquet")
        write_table(generate(config, "c", 5)["train"], paths[-1])
    return paths


@pytest.mark.parametrize("edges", ["paper", "released"])
def test_figure1_shows_the_corpus_and_its_chain(edges, tmp_path):
    paths = corpora(tmp_path, edges)
    figure, data = figure1(None, None, {}, {}, corpora=paths)
    chains = draw_chains(Chains(synsets=12, edges=edges), 5)
    for k, chain in enumerate(chains):
        part = data[data["chain"] == k + 1]
        for path, column in zip(paths, ("with", "without"), strict=True):
            row = pd.read_parquet(path).query("chain == @k").iloc[0]
            names = [f"{'ab'[symbol // 12]}{symbol % 12}" for symbol in row[COLUMN][:8]]
            assert list(part[column]) == names
            drawn = {text.get_text() for text in figure.axes[k].texts}
            assert set(names) <= drawn
        assert all(name[0] == "ab"[k] for name in part["without"])
        matrix = np.zeros((12, 12), bool)
        matrix[chain.synset, chain.synset[chain.targets[:, 0]]] = True
        matrix[chain.synset, chain.synset[chain.targets[:, 1]]] = True
        assert matrix[part["synset"], part["next"]].all() and matrix[part["synset"], part["other"]].all()
        assert list(part["next"])[:-1] == list(part["synset"])[1:]
        assert set(part["probability"] + part["other_probability"]) == {1.0}


def test_hidden_nodes_are_the_likeliest_of_all():
    """Viterbi against every path of a small chain of the released kind."""
    import itertools

    (chain,) = draw_chains(Chains(synsets=4, edges="released", copies=2, chains=1), 3)
    matrix = chain.matrix()
    rng = np.random.default_rng(0)
    for _ in range(20):
        node = rng.integers(8)
        nodes = [node]
        for _ in range(4):
            node = rng.choice(8, p=matrix[node])
            nodes.append(node)
        synsets = chain.synset[nodes]
        options = itertools.product(*(np.flatnonzero(chain.synset == synset) for synset in synsets))

        def chance(path):
            return np.prod([matrix[a, b] for a, b in itertools.pairwise(path)])

        assert chance(likeliest_nodes(chain, synsets)) == pytest.approx(max(map(chance, options)))


def test_figure1_of_other_corpora(tmp_path):
    with pytest.raises(MaskLabError, match="needs two corpora with the same walks"):
        figure1(None, None, {}, {}, corpora=corpora(tmp_path, "paper", seed=2))
