import numpy as np
import pytest

from masklab.batches import BatchPlan
from masklab.errors import MaskLabError
from masklab.training.step import rounded

LENGTHS = np.random.default_rng(0).integers(3, 60, 1003)


def test_an_epoch_visits_each_sequence_at_most_once_and_leaves_less_than_a_batch():
    plan = BatchPlan(LENGTHS, 16, 1, "a")
    seen = np.concatenate([plan.batch(step) for step in range(plan.per_epoch)])
    assert len(set(seen)) == len(seen) == len(LENGTHS) // 16 * 16
    second = np.concatenate([plan.batch(plan.per_epoch + step) for step in range(plan.per_epoch)])
    assert not np.array_equal(seen, second)


def test_a_batch_depends_on_seed_and_step_alone():
    one, other = BatchPlan(LENGTHS, 16, 1, "a"), BatchPlan(LENGTHS, 16, 1, "a")
    for step in range(200):
        one.batch(step)
    assert np.array_equal(one.batch(150), other.batch(150))
    assert not np.array_equal(one.batch(150), BatchPlan(LENGTHS, 16, 2, "a").batch(150))


def test_bucketing_leaves_little_padding():
    plan = BatchPlan(LENGTHS, 16, 1, "a")
    padded = sum(16 * LENGTHS[plan.batch(step)].max() for step in range(plan.per_epoch))
    real = sum(LENGTHS[plan.batch(step)].sum() for step in range(plan.per_epoch))
    assert padded / real < 1.06


def test_widths_are_few_and_little_wider_than_needed():
    widths = np.arange(3, 513)
    found = np.array([rounded(int(width)) for width in widths])
    assert (found >= widths).all() and (found < 1.125 * widths).all()
    assert len(set(found[widths <= 128])) < 40 and len(set(found)) < 60


def test_only_eligible_rows_are_drawn_and_too_few_is_one_line():
    plan = BatchPlan(LENGTHS, 8, 1, "a", eligible=LENGTHS >= 7)
    assert all((LENGTHS[plan.batch(step)] >= 7).all() for step in range(plan.per_epoch))
    with pytest.raises(MaskLabError, match="fewer than one batch of 2000"):
        BatchPlan(LENGTHS, 2000, 1, "a")
