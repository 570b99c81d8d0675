"""What a reading is called."""

from masklab.claims.effects import Least, difference
from masklab.scores.reading import Reading
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
