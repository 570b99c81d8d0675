import contextlib
import copy
import dataclasses

import numpy as np
import pytest
import torch

from checked_run import run
from masklab.config.schema import FinetuneProbe
from masklab.jobs.midway import Midway
from masklab.models.checkpoint import load_checkpoint
from masklab.models.stacked import products as stacked_products
from masklab.probes import Context, run_all
from masklab.probes.finetune import measure, settled
from masklab.probes.goals import Classification
from masklab.probes.recipe import Course, EarlyStopping
from masklab.probes.single import OneByOne
from masklab.probes.stacked import STACK, Start, Together, stack_size
from masklab.probes.task_tokens import restricted
from masklab.tasks.encoding import Split
from masklab.tokenizers import PAD


def split(count, seed):
    """Rows of 3 to 14 tokens; label: whether token 7 occurs, sometimes wrong."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, 15, count)
    ids = rng.integers(5, 40, (count, 14))
    ids[:, 0] = 0
    mark = rng.random(count) < 0.5
    ids[mark, 1] = 7
    ids[np.arange(14) >= lengths[:, None]] = PAD
    labels = ((ids == 7).any(1) ^ (rng.random(count) < 0.1)).astype(np.int64)
    return Split(torch.from_numpy(ids.astype(np.int32)), lengths, labels, {})


TRAIN, VALID, TEST = split(150, 1), split(80, 2), split(80, 3)


def courses(size=150, seeds=(1, 2, 3), **changes):
    values = {"lr": 2e-3, "batch_size": 16, "epochs": 6, "evaluate_every": 7, "patience": 2, "warmup": 0.2}
    probe = FinetuneProbe(kind="finetune", tasks=["t"], **(values | changes))
    return [Course(probe, 1, "p", "t", size, seed, TRAIN.lengths[:size]) for seed in seeds]


def side_by_side(pretrained, listed):
    """The outcomes of courses that all begin with one model, in one stack."""
    start = Start(pretrained, Classification(2), TRAIN, VALID, TEST)
    return Together(listed[0].probe).finetune(listed, [start] * len(listed))


@pytest.fixture
def evaluations(monkeypatch):
    """Every value that early stopping was given since the last clear()."""
    found, update = [], EarlyStopping.update

    def watch(self, value, counts_patience):
        found.append(value)
        return update(self, value, counts_patience)

    monkeypatch.setattr(EarlyStopping, "update", watch)
    return found


@pytest.mark.parametrize(
    "positions, pooling, activation, p, keys",
    [
        ("absolute", "cls", None, 0.0, {}),
        ("absolute", "cls", None, 0.1, {}),
        ("absolute", "mean", "gelu", 0.1, {}),
        ("disentangled", "cls", None, 0.1, {}),
        ("disentangled", "mean", None, 0.0, {}),
        ("relative", "cls", "tanh", 0.1, {"relative_buckets": 8, "relative_distance": 12, "norm": "pre"}),
        ("none", "mean", None, 0.1, {"norm": "pre", "embedding_norm": False, "tied_head": False, "head": "linear"}),
    ],
)
def test_runs_side_by_side_are_the_runs_alone(make_checkpoint, evaluations, positions, pooling, activation, p, keys):
    pretrained = load_checkpoint(make_checkpoint(positions, **keys))
    pretrained.config = pretrained.config.model_copy(update={"dropout": p})
    for module in pretrained.modules():
        module.p = p
    # few updates: in the long run the last bits of float32 grow until a prediction flips
    how = {"batches": "length" if positions == "disentangled" else "random"}  # both ways
    how |= {"weight_decay": 0.01, "max_steps": 30, "evaluate_every": 5, "patience": 1}
    listed = courses(pooling=pooling, activation=activation, seeds=(1, 2, 3, 4), **how)
    probe = listed[0].probe
    alone = OneByOne(copy.deepcopy(pretrained), Classification(2), probe).finetune(listed, TRAIN, VALID, TEST)
    wanted = sorted(evaluations)
    evaluations.clear()
    together = side_by_side(pretrained, listed)
    assert sorted(evaluations) == pytest.approx(wanted, abs=0.02)
    assert len(set(wanted)) > 6 and max(wanted) > 0.65  # they learn, and differ
    assert len(wanted) < 4 * 6 and not all(single.capped for single in alone)  # and some leave early
    for found, single in zip(together, alone, strict=True):
        assert (found.best_step, found.capped) == (single.best_step, single.capped)
        assert found.best_value == pytest.approx(single.best_value, abs=0.02)
        assert (found.predictions == single.predictions).mean() > 0.97


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("stacked", [True, False])
def test_killed_midway_courses_end_with_the_same_weights(make_checkpoint, tmp_path, monkeypatch, stacked, precision):
    """Killed after every few updates: before the first evaluation, between two, and when some have left."""
    monkeypatch.setattr("masklab.jobs.midway.EVERY", 0.0)
    pretrained = load_checkpoint(make_checkpoint("absolute"))
    for module in pretrained.modules():
        module.p = 0.1
    pretrained.config = pretrained.config.model_copy(update={"dropout": 0.1})
    how = {"max_steps": 30, "evaluate_every": 5, "patience": 1, "lr": 4e-3, "precision": precision}
    listed = courses(seeds=(1, 2, 3, 4) if stacked else (1,), **how)

    def train(midway):
        if stacked:
            start = Start(pretrained, Classification(2), TRAIN, VALID, TEST)
            return Together(listed[0].probe).finetune(listed, [start] * 4, midway), {}
        one = OneByOne(copy.deepcopy(pretrained), Classification(2), listed[0].probe)
        outcomes = [one.course(listed[0], TRAIN, VALID, TEST, midway, watched=(3, 8, 11))]
        return outcomes, one.snapshots | {"best": one.flat.values}

    wanted, weights = train(Midway())
    assert not stacked or len({each.best_step for each in wanted}) > 1
    begun, last = [], [0]

    def tell(share):
        begun.append(round(30 * share))
        if begun[-1] >= last[0] + 4:
            last[0] = begun[-1]
            raise KeyboardInterrupt

    found = None
    while found is None:
        with contextlib.suppress(KeyboardInterrupt):
            found, again = train(Midway("this", tell, tmp_path / "state.safetensors"))
    assert len(begun) > begun[-1] + 2 and begun.count(0) == 1  # killed more than once, and it never began anew
    for one, other in zip(found, wanted, strict=True):
        assert (one.best_step, one.best_value, one.capped) == (other.best_step, other.best_value, other.capped)
        assert np.array_equal(one.predictions, other.predictions)
        assert stacked or np.array_equal(one.validation, other.validation)
    assert [*again] == [*weights] and all(torch.equal(again[name], weights[name]) for name in weights)


@pytest.mark.parametrize("how", [{}, {"max_steps": 23}, {"epochs": 2, "batches": "random"}])
def test_batches_from_any_update_on(how):
    (course,) = courses(seeds=(1,), **how)
    whole = [*course.batches()]
    assert len(whole) == course.steps
    for first in (0, 1, course.epoch - 1, course.epoch, course.epoch + 3, len(whole) - 1, len(whole)):
        rest = [*course.batches(first)]
        assert len(rest) == len(whole) - first
        assert all(np.array_equal(one, other) for one, other in zip(rest, whole[first:], strict=True))


def test_a_restricted_vocabulary_changes_nothing(make_checkpoint, evaluations):
    pretrained = load_checkpoint(make_checkpoint("disentangled"))
    listed = courses(seeds=(1, 2), weight_decay=0.05)
    whole = OneByOne(copy.deepcopy(pretrained), Classification(2), listed[0].probe).finetune(listed, TRAIN, VALID, TEST)
    wanted = list(evaluations)
    evaluations.clear()
    (model,), splits = restricted([pretrained], [TRAIN, VALID, TEST])
    assert len(model.embeddings.word) == 37 < len(pretrained.embeddings.word)
    for given, found in zip((TRAIN, VALID, TEST), splits, strict=True):
        assert torch.equal(model.embeddings.word[found.ids], pretrained.embeddings.word[given.ids])
    few = OneByOne(model, Classification(2), listed[0].probe).finetune(listed, *splits)
    assert evaluations == pytest.approx(wanted) and len(set(wanted)) > 4
    for a, b in zip(whole, few, strict=True):
        assert (a.predictions == b.predictions).all() and a.best_step == b.best_step


@pytest.mark.parametrize("positions", ["absolute", "disentangled"])
def test_courses_of_other_checkpoints_and_tasks_are_those_alone_too(make_checkpoint, evaluations, positions):
    """From two checkpoints, on two tasks of one size whose rows differ in length: those that stop early leave the
    others, whichever they are."""
    models = [load_checkpoint(make_checkpoint(positions, seed=seed)) for seed in (1, 2)]
    short = dataclasses.replace(TRAIN, ids=TRAIN.ids[:, :9], lengths=TRAIN.lengths.clip(max=9))
    splits = [(TRAIN, VALID, TEST), (short, TEST, split(50, 4))]
    listed = courses(seeds=(1, 2), max_steps=30, evaluate_every=5, patience=1, weight_decay=0.01)
    starts = [Start(model, Classification(2), *parts) for parts in splits for model in models for _ in listed]
    places = [
        dataclasses.replace(course, lengths=start.train.lengths[: course.size])
        for start, course in zip(starts, listed * 4, strict=True)
    ]
    probe = listed[0].probe
    alone = [Together(probe).finetune([course], [start])[0] for course, start in zip(places, starts, strict=True)]
    wanted = sorted(evaluations)
    evaluations.clear()
    together = Together(probe).finetune(places, starts)
    assert sorted(evaluations) == pytest.approx(wanted, abs=0.02) and len(wanted) < 8 * 6
    assert [len(each.predictions) for each in together] == [80] * 4 + [50] * 4
    assert len({each.predictions.tobytes() for each in alone}) > 4  # they differ
    for found, single in zip(together, alone, strict=True):
        assert (found.best_step, found.capped) == (single.best_step, single.capped)
        assert found.best_value == pytest.approx(single.best_value, abs=0.02)
        assert (found.predictions == single.predictions).mean() > 0.97


def test_checkpoints_and_tasks_of_one_size_share_stacks(make_checkpoint, write_task, monkeypatch):
    """The rows of each are those of a measurement of its own, and a task of another size is apart."""
    rng = np.random.default_rng(0)
    words = ["cat", "dog", "bird"]

    def rows(count, wanted):
        texts = [f"the {words[rng.integers(3)]} sees the {words[rng.integers(3)]}" for _ in range(count)]
        return [(text, None, int(wanted in text)) for text in texts]

    tasks = {"a": write_task("a", rows(64, "cat"), 2), "few": write_task("few", rows(40, "dog"), 2)}
    tasks |= {"b": write_task("b", rows(64, "bird"), 2)}
    probe = courses(epochs=2, lr=3e-3, seeds=(1, 2))[0].probe.model_copy(update={"seeds": [1, 2]})
    contexts = [Context(probe=probe, checkpoint=make_checkpoint("absolute", seed=k), tasks=tasks) for k in (1, 2)]
    (apart,) = zip(*[run_all(probe, [context]) for context in contexts], strict=True)
    sizes, finetune = [], Together.finetune
    monkeypatch.setattr(Together, "finetune", lambda *given: sizes.append(len(given[1])) or finetune(*given))
    together = run_all(probe, contexts)
    assert sizes == [4, STACK]
    assert [[key(row) for row in found] for found in together] == [[key(row) for row in found] for found in apart]
    of = [row["task"] for row in together[0] if row.get("metric") == "accuracy"]
    assert of == ["a"] * 2 + ["few"] * 2 + ["b"] * 2  # in the probe's order
    for found, alone in zip(together, apart, strict=True):
        values, wanted = ([row["value"] for row in rows if "value" in row] for rows in (found, alone))
        assert values == pytest.approx(wanted, abs=0.05)
    assert together[0] != together[1]
    monkeypatch.setattr("masklab.probes.finetune.WIDEST", 1)  # models too wide to be held side by side
    sizes.clear()
    assert len(run_all(probe, contexts)) == 2 and sizes == [2, 4, 2, 4]


@pytest.mark.parametrize("how", [{"grid": {"lr": [1e-3, 4e-3]}}, {"sizes": [24, 48]}, {"rank": 0.9}], ids=str)
def test_checkpoints_together_whatever_the_probe_asks_for(make_checkpoint, write_task, how):
    """Several combinations and sizes; ranks, for which each is fine-tuned by itself."""
    rows = [(f"the {'cat' if i % 2 else 'dog'} sees the {'bird' if i % 3 else 'fish'}", None, i % 2) for i in range(48)]
    tasks = {name: write_task(name, rows, 2) for name in ("a", "b")}
    probe = courses(epochs=2, lr=3e-3)[0].probe.model_copy(update={"seeds": [1, 2]} | how)
    contexts = [Context(probe=probe, checkpoint=make_checkpoint("absolute", seed=k), tasks=tasks) for k in (1, 2)]
    (apart,) = zip(*[run_all(probe, [context]) for context in contexts], strict=True)
    first, second = ([row["value"] for row in rows if "value" in row] for rows in apart)
    assert first != pytest.approx(second, abs=0.1)  # what one checkpoint gives is not what the other does
    for found, alone in zip(run_all(probe, iter(contexts)), apart, strict=True):
        assert [key(row) for row in found] == [key(row) for row in alone]
        values, wanted = ([row["value"] for row in rows if "value" in row] for rows in (found, alone))
        assert values == pytest.approx(wanted, abs=0.05)


def key(row):
    return {name: value for name, value in row.items() if name not in ("value", "predictions")} | {
        "targets": row["targets"].tolist() if "targets" in row else None
    }


def noted(monkeypatch, name, rounded):
    """Note in `rounded` what a function of products makes bf16 of."""
    real = getattr(stacked_products, name)

    def noting(*given):
        found = real(*given)
        low = found[0].dtype if isinstance(found, list) else found.dtype
        rounded.extend([name] * (low == torch.bfloat16))
        return found

    monkeypatch.setattr(stacked_products, name, noting)


@pytest.mark.parametrize("positions", ["absolute", "disentangled"])
def test_in_bf16_as_much_is_learned(make_checkpoint, positions, monkeypatch):
    """By hand and by autograd, alone and beside others; and what is computed in bf16 is so."""
    pretrained, rounded = load_checkpoint(make_checkpoint(positions)), []
    for name in ("_rounded", "_factors"):  # for products of libraries, for compiled ones
        noted(monkeypatch, name, rounded)
    values, weights = {}, {}
    for precision in ("fp32", "bf16"):
        listed = courses(precision=precision, epochs=12, patience=20)
        probe = listed[0].probe
        alone = [side_by_side(pretrained, [each]) for each in listed]
        assert bool(rounded) == (precision == "bf16")
        one_by_one = OneByOne(copy.deepcopy(pretrained), Classification(2), probe)
        single = one_by_one.finetune(listed, TRAIN, VALID, TEST)
        weights[precision] = one_by_one.flat.values
        values[precision] = [np.mean([each.best_value for (each,) in alone]), np.mean([e.best_value for e in single])]
        together = side_by_side(pretrained, listed)
        assert [each.best_value for each in together] == pytest.approx([e.best_value for (e,) in alone], abs=0.02)
        tested = [(each.predictions == TEST.labels).mean() for each in together]  # by the best weights, not the first
        assert tested == pytest.approx([(e.predictions == TEST.labels).mean() for e in single], abs=0.05)
        assert min(tested) > 0.75
    assert values["bf16"] == pytest.approx(values["fp32"], abs=0.03) and min(values["fp32"]) > 0.8
    assert not torch.equal(weights["bf16"], weights["fp32"])


def test_auto_is_the_faster_precision(make_checkpoint, tmp_path, monkeypatch):
    narrow = load_checkpoint(make_checkpoint("absolute")).config
    wide = narrow.model_copy(update={"hidden": 64})
    (course,) = courses(seeds=(1,), precision="auto")
    context = Context(probe=course.probe, checkpoint=tmp_path)
    for there, wanted in ((True, {narrow.hidden: "fp32", 64: "bf16"}), (False, {narrow.hidden: "fp32", 64: "fp32"})):
        monkeypatch.setattr("masklab.models.products.has_bf16", lambda there=there: there)
        found = {config.hidden: settled(context, config).probe.precision for config in (narrow, wide)}
        assert found == wanted
        assert settled(context, wide.model_copy(update={"norm": "pre"})).probe.precision == "fp32"


def test_bf16_of_an_encoder_without_a_norm_after_every_sum_is_not_side_by_side(make_checkpoint, write_task, tmp_path):
    """Its states stay in fp32: compiled dropout of such states writes fp32 numbers."""
    rows = [(f"the {word} sees the bird", None, i % 2) for i, word in enumerate(["cat", "dog"] * 32)]
    probe = courses(epochs=1, precision="bf16")[0].probe.model_copy(update={"seeds": [1, 2], "sizes": [32]})
    tasks = {"t": write_task("t", rows, 2)}
    checkpoint = make_checkpoint("absolute", norm="pre", dropout=0.2)
    context = Context(probe=probe, checkpoint=checkpoint, tasks=tasks, state_folder=tmp_path / "state")
    assert {row["seed"] for row in measure(context) if row.get("metric") == "accuracy"} == {1, 2}
    model = load_checkpoint(checkpoint)
    with pytest.raises(ValueError, match="a norm after every sum"):
        side_by_side(model, courses(epochs=1, precision="bf16"))


def test_stacks_are_for_small_batches(make_checkpoint):
    config = load_checkpoint(make_checkpoint("absolute")).config
    assert stack_size(config, 32, 32) == STACK
    assert stack_size(config.model_copy(update={"hidden": 128}), 32, 32) == STACK
    assert stack_size(config.model_copy(update={"hidden": 128}), 32, 33) == 1


def test_a_broken_stack_is_run_again_as_a_whole(make_checkpoint, write_task, tmp_path):
    rng = np.random.default_rng(0)
    words = ["cat", "dog", "bird"]
    rows = [(f"the {words[rng.integers(3)]} sees the {words[rng.integers(3)]}", None, i % 2) for i in range(64)]
    probe = courses(epochs=1)[0].probe.model_copy(update={"seeds": [1, 2, 3], "sizes": [32, 64]})
    tasks = {"t": write_task("t", rows, 2)}
    context = Context(probe=probe, checkpoint=make_checkpoint("absolute"), tasks=tasks, state_folder=tmp_path / "state")

    def kill(done, total, note):
        assert (total, note) == (6, "t")
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(dataclasses.replace(context, progress=kill))
    kept = sorted((tmp_path / "state").iterdir())
    assert len(kept) == 3
    kept[0].unlink()
    whole = run(dataclasses.replace(context, state_folder=None))
    assert run(context) == whole
    assert len(list((tmp_path / "state").iterdir())) == 6
