"""What a reading is called."""

from dataclasses import replace

import pytest

from masklab.claims.effects import Least, difference
from masklab.errors import MaskLabError
from masklab.scores.reading import Reading, leaves, needs, nulls_of, task_names
from masklab.scores.view import View

VIEW = View(
    "s",
    panels={"one": {"A": "a", "B": "b"}},
    tasks={task: {"metric": "mcc" if task == "d" else "accuracy"} for task in "cdefg"},
    sets={"two": ["c", "e"], "three": ["c", "e", "f"], "alone": ["g"]},
)


def said(*tasks, **more):
    return Reading("a", tasks=tasks, **more).words(VIEW)


def test_tasks_are_called_as_the_sets_that_they_are():
    assert said("c", "e") == "A: accuracy on two"
    assert said("c", "e", "f", "g") == "A: accuracy on three + g"
    assert said("g", "c", "e", "d") == "A: score on g + two + d"  # two metrics
    assert said("e", "c") == "A: accuracy on e + c"
    assert said("e", "c", "g", "f") == "A: accuracy on 4 tasks"


def test_a_mean_over_checkpoints_says_so_and_a_curve_over_them_is_one():
    assert said("g", step="all") == "A: accuracy on g, all checkpoints"
    assert said("g", step="all", over="step") == "A: accuracy on g"
    assert said("g", step="first") == "A: accuracy on g, first checkpoint"


def test_of_many_parts_the_first_and_the_last_are_said():
    gaps = [difference(Reading("a", tasks=("g",), step=k), Reading("b", tasks=("g",), step=k)) for k in (1, 2, 3, 4)]
    first, second, _, last = (f"(A - B: accuracy on g, step {k})" for k in (1, 2, 3, 4))
    assert Least(tuple(gaps[:2])).words(VIEW) == f"least of {first}, {second}"
    assert Least(tuple(gaps)).words(VIEW) == f"least of 4: {first}, ..., {last}"


PANELS = View(
    "s",
    panels={"one": {"A": "a"}, "two": {"B": "b", "A again": "a"}},
    nulls={"a": {"majority": None, "random": "n", "bag": "m"}},
    tasks={"g": {"metric": "f1_untuned"}, "h": {"metric": "f1_untuned"}},
    probes={
        "p": {"kind": "finetune", "tasks": ["g"], "recipes": ["a", "n"]},
        "r": {"kind": "rank", "tasks": [], "recipes": ["a", "n"]},
        "l": {"kind": "loss", "tasks": [], "recipes": ["a"]},
    },
)


def test_every_part_in_words_and_in_units():
    g = Reading("a", tasks=("g",))
    assert g.words(PANELS) == "A: f1 untuned on g, in one" and g.of("b").words(PANELS) == "B: f1 untuned on g, in two"
    assert Reading("a", "rank", splits=("x", "y"), layers=3).words(VIEW) == "A: rank, x + y, layer 3"
    assert said("g", sizes=40, seeds="median", layers="last") == "A: accuracy on g, 40 examples, last layer"
    assert said("g", sizes="large", layers="deep", step=5) == "A: accuracy on g, large sizes, deep layers, step 5"
    assert said("g", layers="first", step="converged") == "A: accuracy on g, embeddings, as it converged"
    assert said("g", form="log", over="step", reduce="slope") == "A: log slope of accuracy on g"
    assert g.of("a", over="step", reduce="slope").unit(PANELS) == "f1 untuned per update"
    assert g.of("a", over="train_size", reduce="slope").unit(PANELS) == "f1 untuned per doubling"
    assert g.of("a", over="layer", reduce="slope").unit(PANELS) == "f1 untuned per layer"
    assert g.of("a", over="layer", reduce="roughness").unit(PANELS) == "f1 untuned off a straight course"
    of_log = {"form": "log", "over": "train_size"}
    assert g.of("a", **of_log, reduce="slope").unit(PANELS) == "log f1 untuned per doubling"
    assert g.of("a", **of_log, reduce="roughness").unit(PANELS) == "log f1 untuned off a straight course"
    share = Reading("a", "gap", form="share of the floor", over="step", reduce="slope")
    assert share.unit(PANELS) == "share of the floor per update"
    assert Reading("a", "gap", form="share of the floor").unit(PANELS) == "share of the floor"
    assert Reading("a", "trace", form="log").unit(PANELS) == "log trace"


@pytest.mark.parametrize(("key", "given"), [("tasks", "blimp"), ("splits", "test"), ("tasks", ["blimp"])])
def test_names_in_a_reading_are_a_tuple(key, given):
    """The letters of a word would be tasks else."""
    with pytest.raises(ValueError, match=rf"reading of 'a': {key} must be a tuple .*\(got .*{given[0]}"):
        Reading("a", **{key: given})


def test_which_probes_a_reading_needs():
    g, rank, loss = Reading("a", tasks=("g",)), Reading("a", "rank"), Reading("a", "loss")
    assert (g.needs(PANELS), rank.needs(PANELS)) == ([("p", "a")], [("r", "a")])
    assert rank.of("a", step="converged").needs(PANELS) == [("r", "a"), ("l", "a")]
    assert rank.of("a", form="share of the floor").needs(PANELS) == [("r", "a"), ("l", "a")]
    assert loss.measured(PANELS) and not loss.of("n").measured(PANELS)
    with pytest.raises(MaskLabError, match=r"no loss probe of the study measures n$"):
        loss.of("n").needs(PANELS)
    with pytest.raises(MaskLabError, match=r"no l probe of the study measures a \(`probe` is a kind: 'loss' of 'l'\)$"):
        Reading("a", "loss", probe="l").needs(PANELS)
    with pytest.raises(MaskLabError, match=r"measures a on h$"):
        Reading("a", tasks=("g", "h")).needs(PANELS)
    with pytest.raises(MaskLabError, match="a reading of 'weight' must say which kind of probe measures it"):
        Reading("a", "weight").kinds()
    assert Reading("a", "mean_share", probe="rank").needs(PANELS) == [("r", "a")]
    assert set(nulls_of(g, PANELS)) == {"majority", "random"} and nulls_of(g, PANELS)["majority"] == g
    assert nulls_of(rank, PANELS) == {"random": rank.of("n")} and nulls_of(g.of("b"), PANELS) == {}
    assert nulls_of(g.of("a", metric="rank", step="first"), PANELS) == {"random": g.of("n", metric="rank")}
    structure = {"x": [g, (rank, "text")], "y": difference(g, loss), "z": None, "n": 3}
    assert leaves(structure) == [g, rank, loss] and leaves("text") == []
    assert needs(structure, PANELS) == [("p", "a"), ("p", "n"), ("r", "a"), ("r", "n"), ("l", "a")]
    assert needs(structure, PANELS, with_nulls=False) == [("p", "a"), ("r", "a"), ("l", "a")]


def of_own(**facts):
    """A view with a probe of a user's, which measures the task g too."""
    own = {"kind": "own", "tasks": ["g"], "recipes": ["a"]} | facts
    return replace(PANELS, probes=PANELS.probes | {"own": own})


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        (
            Reading("a", "rankk", probe="rank"),
            "no rank probe, by which a is read, gives a metric 'rankk' (did you mean 'rank'?); there are rank, rank_",
        ),
        (Reading("a", "acuracy", ("g",)), "by which a is read, gives a metric 'acuracy' (did you mean 'accuracy'?)"),
        (Reading("a", "loss", named="r"), "no rank probe, by which a is read, gives a metric 'loss'"),
        (Reading("a", "filed", probe="own"), "gives a metric 'filed' (did you mean 'filled'?); there are filled"),
        (Reading("a", tasks=("g",), probe="own"), "no own probe, by which a is read, gives a metric 'f1_untuned'"),
    ],
)
def test_a_metric_that_no_probe_of_a_reading_gives_is_refused(reading, said):
    view = of_own(ranges={"filled": [0, 1]})
    assert reading.measured(view)
    with pytest.raises(MaskLabError) as caught:
        reading.needs(view)
    assert said in str(caught.value)


def test_a_metric_that_a_probe_of_a_reading_may_give_is_read():
    declared = of_own(ranges={"filled": [0, 1]})
    assert Reading("a", "filled", probe="own").needs(declared) == [("own", "a")]
    assert Reading("a", "anything", probe="own").needs(of_own()) == [("own", "a")]  # it does not say
    words = replace(PANELS, probes={"w": {"kind": "prediction", "tasks": [], "recipes": ["a"]}})
    assert Reading("a", "any word", probe="prediction").needs(words) == [("w", "a")]


def test_names_of_tasks_lack_what_all_begin_with():
    assert task_names(["mae-a_b", "mae-c", "mae-c"]) == {"mae-a_b": "a b", "mae-c": "c"}
    assert task_names(["mae-a"]) == {"mae-a": "mae-a"} and task_names([]) == {}
    assert task_names(["mae-a", "b-c"]) == {"mae-a": "mae-a", "b-c": "b-c"}
    assert task_names(["a_b", "c"]) == {"a_b": "a b", "c": "c"}
