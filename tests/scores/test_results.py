"""What readings pick and how it is summed up, against the same rows in plain pandas and numpy."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from masklab.claims.values import effect_estimate
from masklab.errors import MaskLabError
from masklab.scores.estimate import PLAIN, two_sided
from masklab.scores.per_replicate import NOTHING, difference
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View

SIZES, STEPS, LAYERS = (100, 200, 400, 800, 1600), (10, 20, 40), range(6)
GAPS = {10: 1.0, 20: 0.21, 40: 0.2}  # of a floor of 2


def view(**more):
    kinds = {"p": "linear_probe", "r": "rank", "l": "loss", "c": "cost", "m": "minimal_pairs"}
    tasks = {"t": {"metric": "mcc", "redrawn": False}, "u": {"metric": "mcc", "redrawn": False},
             "blimp": {"metric": "accuracy", "kind": "pairs"}}  # fmt: skip
    measured = {"p": ["t", "u"], "m": ["blimp"]}
    probes = {n: {"kind": kind, "tasks": measured.get(n, []), "recipes": ["a", "b", "n"]} for n, kind in kinds.items()}
    nulls = {"a": {"majority": None, "random": "n"}}
    given = {"recipes": {"a": {"steps": 40}, "b": {}, "n": {}}, "tasks": tasks, "probes": probes, "nulls": nulls}
    return View("s", **given | more)


def estimate(results, reading):
    """Mean and interval of a number."""
    return results.estimated(results.values(reading).evidence.scalar, reading)


@pytest.fixture(scope="module")
def rows():
    rng, found = np.random.default_rng(3), []
    for recipe, replicate, step in itertools.product("abn", (1, 2, 3), STEPS):
        at = {"recipe": recipe, "replicate": replicate, "step": step}
        for task, split, size, seed in itertools.product("tu", ("test", "away"), SIZES, (1, 2, 3)):
            more = {
                "probe": "p",
                "task": task,
                "split": split,
                "train_size": size,
                "seed": seed,
                "n": size + len(split),
            }
            found.append(at | more | {"metric": "mcc", "value": rng.random()})
        for layer in LAYERS:
            more = {"probe": "r", "task": "c", "split": "masked", "layer": layer, "metric": "rank"}
            found.append(at | more | {"value": 1 + rng.random()})
        for metric, value in (("gap", GAPS[step]), ("floor", 2.0)):
            found.append(at | {"probe": "l", "task": "c", "split": "test", "metric": metric, "value": value})
        found.append(at | {"probe": "c", "task": "c", "split": "train", "metric": "flops", "value": 7.0 * step})
        for phenomenon in ("x", "y"):
            found.append(at | {"probe": "m", "task": f"blimp/{phenomenon}", "split": "test", "metric": "accuracy",
                               "value": rng.random()})  # fmt: skip
    return rows_to_frame([{"n": 1} | row for row in found])


@pytest.fixture(scope="module")
def found(rows):
    return Results(view(), rows, models={("a", 1): {"flops": 3.0}, ("a", 2): {"flops": 5.0}, ("b", 1): {"flops": 9.0}})


def by_hand(rows, recipe="a", metric="mcc", how="mean", **kept):
    """[3] by replicate: the mean (or median) over seeds, then the mean over everything else."""
    rows = rows[(rows["recipe"] == recipe) & (rows["metric"] == metric)]
    for column, values in kept.items():
        rows = rows[rows[column].isin(values)]
    cells = rows.groupby(["replicate", "task", "split", "train_size", "layer", "step"])["value"].agg(how)
    return cells.groupby("replicate").mean().to_numpy()


LAST = {"step": [40], "split": ["test"], "task": ["t", "u"]}
RANKS = {"metric": "rank", "split": ["masked"], "step": [40]}
BOTH, RANK = Reading("a", tasks=("t", "u")), Reading("a", "rank", splits=("masked",))


@pytest.mark.parametrize(
    ("reading", "kept"),
    [
        (BOTH, LAST),
        (Reading("b", tasks=("t", "u")), LAST | {"recipe": "b"}),
        (BOTH.of("a", seeds="median"), LAST | {"how": "median"}),
        (BOTH.of("a", splits=("test", "away")), LAST | {"split": ["test", "away"]}),
        (BOTH.of("a", tasks=("u",)), LAST | {"task": ["u"]}),
        (BOTH.of("a", step="first"), LAST | {"step": [10]}),
        (BOTH.of("a", step=20), LAST | {"step": [20]}),
        (BOTH.of("a", step="all"), LAST | {"step": STEPS}),
        (BOTH.of("a", step="converged"), LAST | {"step": [20]}),
        (BOTH.of("a", sizes=400), LAST | {"train_size": [400]}),
        (BOTH.of("a", sizes="small"), LAST | {"train_size": SIZES[:3]}),
        (BOTH.of("a", sizes="large"), LAST | {"train_size": SIZES[3:]}),
        (BOTH.of("a", sizes="largest"), LAST | {"train_size": SIZES[4:]}),
        (RANK, RANKS),
        (RANK.of("a", layers=2), RANKS | {"layer": [2]}),
        (RANK.of("a", layers="first"), RANKS | {"layer": [0]}),
        (RANK.of("a", layers="last"), RANKS | {"layer": [5]}),
        (RANK.of("a", layers="all"), RANKS | {"layer": [1, 2, 3, 4, 5]}),
        (RANK.of("a", layers="shallow"), RANKS | {"layer": [1, 2]}),
        (RANK.of("a", layers="deep"), RANKS | {"layer": [4, 5]}),
        (Reading("a", "flops"), {"metric": "flops", "step": [40]}),
        (Reading("a", tasks=("blimp",)), {"metric": "accuracy", "step": [40]}),
        (Reading("a", tasks=("blimp/x",)), {"metric": "accuracy", "step": [40], "task": ["blimp/x"]}),
    ],
)
def test_a_reading_picks_its_rows(rows, found, reading, kept):
    values = found.values(reading)
    assert values.replicates == (1, 2, 3) and values.x is None
    np.testing.assert_allclose(values.scalar[:, 0], by_hand(rows, **kept), rtol=1e-12)


def test_forms_of_a_value(rows, found):
    np.testing.assert_allclose(found.values(RANK.of("a", form="log")).scalar[:, 0], np.log(by_hand(rows, **RANKS)))
    assert found.values(Reading("a", "gap", form="share of the floor")).scalar[:, 0] == pytest.approx([0.1] * 3)
    assert found.values(Reading("a", "gap", form="share of the floor", step="first")).scalar[0] == pytest.approx(0.5)
    falls = Reading("a", "gap", form="share of the floor", step="all", over="step", reduce="slope")
    curve = found.values(replace(falls, reduce=None))
    slope = np.polyfit(curve.x, curve.data[0, :, 0], 1)[0]  # the floor is one number, and has no slope
    assert found.values(falls).scalar[0, 0] == pytest.approx(slope) and slope < 0
    assert found.values(Reading("a", "gap", step="converged")).scalar[0] == pytest.approx(0.21)
    later = found.values(Reading("a", "gap", step="since converged", over="step"))
    assert later.x.tolist() == [20, 40] and later.data[0, :, 0] == pytest.approx([0.21, 0.2])


def test_shares_of_the_floor_are_of_the_checkpoints_that_have_one(rows):
    part = rows[(rows["metric"] != "floor") | (rows["step"] != 20)]
    share = Results(view(), part).values(Reading("a", "gap", form="share of the floor", step="all", over="step"))
    assert share.x.tolist() == [10, 40] and share.data[:, :, 0] == pytest.approx(np.array([[0.5, 0.1]] * 3))


@pytest.mark.parametrize(("over", "at"), [("train_size", SIZES), ("step", STEPS), ("layer", LAYERS)])
def test_curves_their_slopes_and_their_roughness(rows, found, over, at):
    reading = {"train_size": BOTH, "step": BOTH.of("a", step="all"), "layer": RANK.of("a", layers=None)}[over]
    kept = {"train_size": LAST, "step": LAST, "layer": RANKS}[over]
    curve = found.values(reading.of("a", over=over))
    truth = np.stack([by_hand(rows, **kept | {over: [value]}) for value in at], 1)
    assert curve.x.tolist() == list(at)
    np.testing.assert_allclose(curve.data[:, :, 0], truth, rtol=1e-12)
    with pytest.raises(ValueError):
        _ = curve.scalar
    x = np.log2(at) if over == "train_size" else np.array(at, float)
    slope = found.values(reading.of("a", over=over, reduce="slope")).scalar[:, 0]
    np.testing.assert_allclose(slope, [np.polyfit(x, y, 1)[0] for y in truth], rtol=1e-9)
    rough = found.values(reading.of("a", over=over, reduce="roughness")).scalar[:, 0]
    lines = [[np.interp(x[i], x[[i - 1, i + 1]], y[[i - 1, i + 1]]) for i in range(1, len(x) - 1)] for y in truth]
    np.testing.assert_allclose(rough, np.abs(truth[:, 1:-1] - lines).mean(1), rtol=1e-9)


def test_short_curves_have_no_slope_and_no_roughness(rows):
    kept = Results(view(), rows[rows["step"].isin([10, 40])])
    curve = BOTH.of("a", step="all", over="step")
    assert np.isfinite(kept.values(curve.of("a", reduce="slope")).scalar).all()
    assert np.isnan(kept.values(curve.of("a", reduce="roughness")).scalar).all()
    short = Results(view(), rows[rows["step"] == 40]).values(curve.of("a", reduce="slope"))
    assert short.scalar.shape == (3, 1) and np.isnan(short.scalar).all()


def test_a_summary_of_a_number_and_of_a_curve(rows, found):
    values = by_hand(rows, **LAST)
    summary = found.summary(BOTH)
    assert summary["value"].tolist() == pytest.approx([values.mean()]) and summary["x"].isna().all()
    assert summary["n"].tolist() == [2 * (1600 + 4)]  # of each task's test split, the items of one size
    assert (summary["replicates"].item(), summary["items"].item()) == (3, False)
    assert found.summary(BOTH.of("a", over="train_size"))["x"].tolist() == list(SIZES)
    for replicates in (None, [1, 2]):
        with pytest.raises(MaskLabError, match="nothing was measured of"):
            found.summary(Reading("a", "loss"), replicates)
    assert found.rows(BOTH).columns.tolist() == rows.columns.tolist()
    assert found.values(Reading("a", "loss")) is NOTHING and not len(found.rows(Reading("a", "loss")))
    assert found.items_behind(Reading("a", "loss")) == 0 and NOTHING.data.shape == (0, 1, 1)


def test_of_a_part_that_was_not_measured_those_that_were_are_named(found):
    with pytest.raises(MaskLabError, match=r"on blimp/xx \(did you mean .*\); measured of blimp: blimp/x, blimp/y$"):
        found.summary(Reading("a", tasks=("blimp/xx",)))


def test_items_are_those_of_the_replicate_that_has_the_fewest():
    """Tokens that are masked, synonyms that a coin chose: replicates differ in how many they have."""
    at = {"recipe": "a", "step": 1, "probe": "p", "split": "test", "metric": "mcc", "value": 0.5}
    counts = {("t", 1): 12, ("t", 2): 10, ("t", 3): 11, ("u", 1): 5, ("u", 2): 8, ("u", 3): 6}
    rows = rows_to_frame([at | {"task": t, "replicate": r, "n": n} for (t, r), n in counts.items()])
    found, both = Results(view(), rows), Reading("a", tasks=("t", "u"))
    assert found.items_behind(both) == 17 and found.items_behind(both, [2]) == 18
    assert found.summary(both)["n"].tolist() == [17] and found.summary(both, [2])["n"].tolist() == [18]


def test_an_interval_ends_where_its_metric_does():
    at = {"recipe": "a", "step": 1, "probe": "m", "task": "blimp/x", "split": "test", "metric": "accuracy", "n": 9}
    rows = rows_to_frame([at | {"replicate": r, "value": v} for r, v in enumerate((0.4, 1.0, 0.9), 1)])
    made = estimate(Results(view(), rows), Reading("a", tasks=("blimp/x",)))
    assert made.high == 1 and 0 <= made.low < made.value == pytest.approx(2.3 / 3)


def test_differences_are_taken_within_replicates(rows, found):
    both = difference(found.values(BOTH), found.values(BOTH.of("b")))
    gaps = by_hand(rows, **LAST) - by_hand(rows, recipe="b", **LAST)
    assert both.value == pytest.approx(gaps.mean()) and both.spread == pytest.approx(gaps.std(ddof=1))
    assert difference(found.values(BOTH), NOTHING) is None
    turned = found.values(BOTH).at([3, 1])
    assert turned.replicates == (3, 1) and (turned.data == found.values(BOTH).data[[2, 0]]).all()


def test_nulls_and_facts(rows, found):
    nulls = found.nulls(BOTH)
    assert set(nulls) == {"majority", "random"} and (nulls["majority"].data == 0).all()  # Matthews's
    np.testing.assert_allclose(nulls["random"].scalar[:, 0], by_hand(rows, recipe="n", **LAST))
    pairs = Reading("a", tasks=("blimp",))
    assert (found.majority(pairs).data == 0.5).all() and found.of_pairs(pairs) and not found.of_pairs(BOTH)
    guessed = rows[rows["probe"] == "m"].assign(metric="majority", value=0.2)
    several = Results(view(), pd.concat([rows, guessed]))
    assert several.majority(pairs).data == pytest.approx(0.2) and several.of_pairs(pairs)  # of five options
    assert not found.of_pairs(RANK) and found.majority(RANK) is None
    assert found.majority(pairs.of("a", form="log")) is None
    assert found.null(BOTH.of("b"), "majority") is None
    assert found.majority(BOTH.of("a", over="train_size")).data.shape == (3, 5, 1)
    later = Results(
        view(), rows[(rows["task"] != "u") | (rows["step"] == 40)]
    )  # a task measured at the last step alone
    curve = later.majority(BOTH.of("a", step="all", over="step"))
    assert curve.x.tolist() == [40] and (curve.data == 0).all() and curve.data.shape == (3, 1, 1)
    assert (found.fact("a", "steps"), found.fact("a", "flops"), found.fact("n", "flops")) == (40, 4.0, None)


def test_what_lies_within_the_saturation_is_at_equal_loss(rows, found):
    assert found.gaps("a") == pytest.approx({10: 0.5, 20: 0.105, 40: 0.1}) and found.gaps("nobody") == {}
    assert found.saturated({"p": 0.11, "q": 0.1, "r": 0.1101}) == ["p", "q"]
    worse = rows.copy()
    worse.loc[(worse["recipe"] == "b") & (worse["metric"] == "gap"), "value"] += 0.03
    assert Results(view(), worse).at_equal_loss("abn") == ["a", "n"] and found.at_equal_loss("abn") == ["a", "b", "n"]
    assert found.at_equal_loss("abn", {"a": 10, "b": "all"}) == ["b", "n"]  # by the checkpoint of a that is read


def test_means_are_over_the_replicates_that_all_have(rows):
    gaps = [Reading(name, "gap", step="last") for name in "abn"]
    uneven = rows[~((rows["recipe"] == "b") & (rows["replicate"] == 3))].copy()
    uneven.loc[(uneven["metric"] == "gap") & (uneven["replicate"] == 3), "value"] += 9  # a hard language: b has none
    found = Results(view(), uneven)
    assert found.means(gaps) == pytest.approx([0.2, 0.2, 0.2])
    assert found.means([gaps[0], gaps[2]]) == pytest.approx([3.2, 3.2])
    value = uneven["metric"] == "gap"
    alone = Results(view(), uneven[~value | ~((uneven["recipe"] == "a") & (uneven["replicate"] < 3))])
    assert np.isnan(alone.means(gaps)).all()  # a and b share no replicate
    without = Results(view(), uneven[~value | (uneven["recipe"] != "n")])
    assert without.means(gaps)[:2] == pytest.approx([0.2, 0.2]) and np.isnan(without.means(gaps)[2])


def test_a_task_or_a_split_that_is_lacking_is_not_left_out_of_a_mean(rows):
    kept = rows[~((rows["task"] == "u") & (rows["recipe"] == "a"))]
    assert not Results(view(), kept).values(BOTH).replicates
    assert Results(view(), kept).values(BOTH.of("b")).replicates == (1, 2, 3)
    partly = rows[~((rows["task"] == "u") & (rows["replicate"] == 2))]
    assert np.isnan(Results(view(), partly).values(BOTH).scalar[:, 0]).tolist() == [False, True, False]
    assert not Results(view(), rows).values(BOTH.of("a", splits=("test", "nowhere"))).replicates


def test_two_probes_of_one_thing_are_refused(rows):
    again = pd.concat([rows, rows[(rows["task"] == "t") & (rows["step"] == 40)].head(1)])
    with pytest.raises(MaskLabError, match=r"two probes measured a at step 40 on t \(mcc\)"):
        Results(view(), again).values(BOTH.of("a", splits=("test", "away")))
    other = rows[(rows["task"] == "u") & (rows["step"] == 40) & (rows["recipe"] == "a") & (rows["split"] == "test")]
    with pytest.raises(MaskLabError, match=r"two probes measured a at step 40 on u \(mcc\)"):
        Results(view(), pd.concat([rows, other.tail(1)])).values(BOTH)


@pytest.mark.parametrize(
    ("one", "other", "reading", "twice"),
    [
        ({}, {}, {}, True),
        ({"steps": [10, 20]}, {"steps": [20, 40]}, {"step": "all"}, True),
        ({"steps": [10, 20]}, {"steps": [20, 40]}, {}, False),  # the last of all is one's alone
        ({"steps": [10, 20]}, {"steps": [20, 40]}, {"step": 20}, True),
        ({"steps": [10]}, {"steps": [20, 40]}, {"step": "all"}, False),
        ({"sizes": [100]}, {"sizes": [200]}, {}, False),
        ({"sizes": [100, 200]}, {"sizes": [100]}, {}, True),
        ({"sizes": [100, 200]}, {"sizes": [100]}, {"sizes": "largest"}, False),
        ({"seeds": [1, 2]}, {"seeds": [3]}, {}, False),
        ({"tasks": ["u"]}, {"tasks": ["t"]}, {"tasks": ("t", "u")}, False),
        ({"kind": "finetune", "rank": 0.9}, {"kind": "finetune"}, {"probe": "finetune", "metric": "rank"}, False),
        ({"kind": "mine"}, {"kind": "mine"}, {"probe": "mine"}, False),  # what a user's kind measures, nobody knows
        ({"kind": "loss", "tasks": []}, {"kind": "loss", "tasks": []}, {"tasks": (), "metric": "loss"}, True),
        ({"kind": "loss", "tasks": [], "floor": True}, {"kind": "loss", "tasks": [], "floor": False},
         {"tasks": (), "metric": "gap"}, False),
    ],
)  # fmt: skip
def test_what_two_probes_measure_is_refused_before_it_is_measured(one, other, reading, twice):
    """What `check_unique` refuses of the rows, from what the probes say."""
    said = {"kind": "linear_probe", "tasks": ["t"], "steps": "last", "seeds": [1], "recipes": ["a"]}
    known = view(
        recipes={"a": {"checkpoints": list(STEPS)}}, probes={"one": said | one, "other": said | other}, nulls={}
    )
    read = Reading("a", **{"tasks": ("t",)} | reading)
    assert read.measured(known)
    if not twice:
        assert read.needs(known)
        return
    with pytest.raises(
        MaskLabError, match=r"two probes, one and other, measure the (mcc|loss) of a .*at one checkpoint"
    ):
        read.needs(known)


def test_the_majority_is_of_scores_of_tasks_alone(found):
    assert found.majority(BOTH.of("a", step="all", over="step")).data.shape == (3, 3, 1)
    for other in (
        BOTH.of("a", tasks=()),
        BOTH.of("a", over="layer"),
        BOTH.of("a", over="train_size", reduce="slope"),
        BOTH.of("a", form="log"),
        Reading("a", "rank"),
        BOTH.of("nobody"),
    ):
        assert found.majority(other) is None
    assert not found.majority(BOTH.of("a", metric="mcc")).data.any()
    assert found.majority(BOTH.of("a", metric="flops", splits=("train",))) is None


def test_a_task_of_many_phenomena_counts_as_much_as_one_of_a_single_row(rows, found):
    """Values, the majority and what rounds them alike; among pairs alone, phenomena do."""
    both = Reading("a", tasks=("t", "blimp"), sizes="all", step=40)
    alone = [found.values(both.of("a", tasks=(task,))).scalar for task in both.tasks]
    assert found.values(both).scalar == pytest.approx(np.mean(alone, 0))
    assert found.majority(both).scalar == pytest.approx(np.full((3, 1), (0.0 + 0.5) / 2))
    curve = both.of("a", step="all", over="step")
    alone = [found.values(curve.of("a", tasks=(task,))).data for task in both.tasks]
    assert found.values(curve).data == pytest.approx(np.mean(alone, 0))
    more = rows[rows["task"] == "blimp/x"].assign(task="other/z", value=0.25)
    known = view(tasks=view().tasks | {"other": view().tasks["blimp"]})
    known.probes["m"]["tasks"].append("other")
    pairs = Results(known, pd.concat([rows, more], ignore_index=True))
    read = pairs.values(Reading("a", tasks=("blimp", "other"), step=40)).scalar[:, 0]
    alone = by_hand(rows, metric="accuracy", step=[40])
    assert read == pytest.approx((2 * alone + 0.25) / 3)


def test_one_part_of_a_set_of_pairs_is_pairs_measured_or_not(found):
    assert found.of_pairs(Reading("a", tasks=("blimp/nowhere",)))
    assert found.of_pairs(Reading("a", "accuracy", tasks=("t",), probe="minimal_pairs"))
    assert not found.of_pairs(Reading("a", tasks=("blimp", "t"))) and not found.of_pairs(Reading("a", "rank"))
    assert not found.of_pairs(Reading("nobody", tasks=("blimp",)))


def test_what_a_metric_can_be(found):
    assert found.limits(BOTH) == (-1, 1) and found.limits(Reading("a", tasks=("blimp",))) == (0, 1)
    assert found.limits(BOTH.of("a", tasks=("t", "blimp"))) == (-1, 1)
    for free in (
        RANK,
        BOTH.of("a", form="log"),
        BOTH.of("a", over="train_size", reduce="slope"),
        Reading("a", "flops"),
    ):
        assert found.limits(free) == (-np.inf, np.inf)


def test_an_interval_goes_no_further_than_the_range_that_a_users_probe_states():
    at = {"recipe": "a", "step": 1, "probe": "p", "task": "c", "split": "test", "metric": "filled", "n": 9}
    rows = rows_to_frame([at | {"replicate": k, "value": value} for k, value in enumerate((0.7, 0.95, 1.0), 1)])
    facts = {"kind": "fill", "tasks": [], "recipes": ["a"], "steps": "last"}
    recipes = {"a": {"steps": 1, "corpus": "c", "checkpoints": [1]}}
    ends = []
    for ranges in ({}, {"ranges": {"filled": [0, 1]}}):
        view = View("s", panels={"x": {"A": "a"}}, recipes=recipes, probes={"p": facts | ranges})
        made = estimate(Results(view, rows), Reading("a", "filled", probe="fill"))
        ends.append((made.low, made.high))
    assert ends[0][1] > 1.2 and ends[1] == (ends[0][0], 1)


def test_correlations_with_ratings_have_fishers_interval():
    at = {"recipe": "a", "step": 1, "probe": "p", "task": "t", "split": "test", "metric": "pearson", "n": 9}
    values = np.array([0.9, 0.99, 0.5, 0.97])
    rows = rows_to_frame([at | {"replicate": r, "value": v} for r, v in enumerate(values, 1)])
    results, reading = Results(view(), rows), Reading("a", "pearson", tasks=("t",))
    made, z = estimate(results, reading), np.arctanh(values)
    half = stats.t.ppf(0.975, 3) * z.std(ddof=1) / 2
    assert made.value == pytest.approx(values.mean()), "the mean is of the correlations as they are"
    assert (made.low, made.high) == pytest.approx(tuple(np.tanh([z.mean() - half, z.mean() + half])))
    plain = results.estimated(values[:, None], reading.of("a", metric="mcc"))
    half = stats.t.ppf(0.975, 3) * values.std(ddof=1) / 2
    assert (plain.low, plain.high) == pytest.approx((values.mean() - half, min(1, values.mean() + half)))
    logs = estimate(results, reading.of("a", form="log"))
    assert logs.half == pytest.approx(stats.t.ppf(0.975, 3) * np.log(values).std(ddof=1) / 2) and logs.scale is PLAIN
    both = Results(view(tasks={"t": {"metric": "pearson"}, "u": {"metric": "spearman"}}), rows)
    two = both.estimated(values[:, None], Reading("a", tasks=("t", "u")))
    assert (two.value, two.low, two.high) == (made.value, made.low, made.high)
    skewed = results.estimated(np.array([[0.99999999], [-0.5], [-0.5]]), reading)
    assert skewed.low <= skewed.value <= skewed.high and skewed.value == pytest.approx(-1e-8 / 3)
    assert results.estimated(np.empty((0, 1)), reading).replicates == 0


def test_a_claim_on_a_correlation_gives_the_number_of_the_tables():
    at = {"recipe": "a", "step": 1, "probe": "p", "task": "t", "split": "test", "metric": "pearson", "n": 9}
    values = np.array([0.05, 0.4, 0.2])
    rows = rows_to_frame([at | {"replicate": r, "value": v} for r, v in enumerate(values, 1)])
    results, reading = Results(view(), rows), Reading("a", "pearson", tasks=("t",))
    shown, claimed = results.summary(reading).iloc[0], effect_estimate(reading, results)
    assert claimed.value == shown["value"] == pytest.approx(values.mean())
    assert (claimed.low, claimed.high) == (shown["low"], shown["high"])
    level = stats.ttest_1samp(np.arctanh(values), 0.0).pvalue
    assert two_sided(claimed, 0.0)[0] == pytest.approx(level), "tested on the scale of its interval"


def test_points_that_not_every_replicate_has_are_left_out(rows):
    some = rows[~((rows["step"] == 20) & (rows["replicate"] == 2))]
    curve = BOTH.of("a", step="all", over="step")
    found = Results(view(), some)
    assert np.isnan(found.values(curve).data[:, :, 0]).tolist() == [[False] * 3, [False, True, False], [False] * 3]
    summary = found.summary(curve)
    assert summary["x"].tolist() == [10, 40] and summary["replicates"].tolist() == [3, 3]
    assert found.gaps("a") == pytest.approx({10: 0.5, 40: 0.1})
    last = estimate(found, BOTH)
    assert summary.iloc[1][["value", "low", "high", "spread"]].tolist() == pytest.approx(
        [last.value, last.low, last.high, last.spread]
    )


@pytest.mark.parametrize("top", [1, 2, 3, 4])
def test_halves_of_any_number_of_layers(top):
    at = {
        "recipe": "a",
        "replicate": 1,
        "step": 1,
        "probe": "r",
        "task": "c",
        "split": "test",
        "metric": "rank",
        "n": 9,
    }
    rows = rows_to_frame([at | {"layer": layer, "value": 2.0**layer} for layer in range(top + 1)])
    found, half = Results(view(), rows), top // 2
    layers = {"shallow": range(1, half + 1), "deep": range(top - half + 1, top + 1), "all": range(1, top + 1),
              "first": [0], "last": [top], 1: [1]}  # fmt: skip
    for which, kept in layers.items():
        values = found.values(Reading("a", "rank", layers=which))
        if len(kept):
            assert values.scalar.item() == np.mean([2.0**layer for layer in kept])
        else:
            assert not values.replicates
    sizes = [{**at, "probe": "p", "task": "t", "metric": "mcc", "train_size": 10 * k, "value": 0.1 * k}
             for k in range(1, top + 1)]  # fmt: skip
    found = Results(view(), rows_to_frame(sizes))
    small = found.values(Reading("a", tasks=("t",), sizes="small")).scalar.item()
    assert small == pytest.approx(0.1 * np.mean(range(1, -(-top // 2) + 1)))


def test_the_saturation_is_reached_at_its_limit(found):
    assert found.saturated({}) == [] and found.saturated({"a": 0.25}) == ["a"]
    exact = Results(view(saturation=0.25), found.scores)
    assert exact.saturated({1: 0.5, 2: 0.75, 3: 0.7500001}) == [1, 2]


def test_what_is_the_same_by_necessity_is_still_measured_in_each_replicate():
    """A bag of words has .5 on words that it never saw: in three languages it is three replicates, in one it is one."""

    def measured(seen):
        at = {"recipe": "n", "step": 0, "probe": "p", "task": "t", "metric": "mcc", "n": 100}
        return Results(
            view(recipes={"a": {}, "b": {}, "n": {"encoder.kind": "words"}}),
            rows_to_frame([
                at | {"replicate": replicate, "split": split, "value": value}
                for replicate, value_seen in enumerate(seen, 1)
                for split, value in (("test", value_seen), ("away", 0.5))
            ]),
        )  # fmt: skip

    away = Reading("n", tasks=("t",), splits=("away",))
    (row,) = measured((0.70, 0.74, 0.72)).summary(away).to_dict("records")
    assert (row["replicates"], row["value"], row["low"], row["high"]) == (3, 0.5, 0.5, 0.5)
    (row,) = measured((0.7, 0.7, 0.7)).summary(away).to_dict("records")
    assert row["replicates"] == 1 and np.isnan(row["low"])
