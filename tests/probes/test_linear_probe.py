"""Linear probes: features by their definition, scores that tell tasks apart, one record per task and size."""

import dataclasses
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from checked_run import items, run
from masklab import probes
from masklab.config.schema import LinearProbe
from masklab.corpora.pcfg.law import Law
from masklab.corpora.pcfg.read import parse_rules
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint
from masklab.models.lookup import load_lookup
from masklab.probes import Context
from masklab.probes.linear_probe import SPLITS
from masklab.probes.representations import EncoderSource, LookupSource, projected, projections
from masklab.rng import generator
from masklab.tasks.encoding import Split, encode_split
from masklab.tokenizers import CLS, SEP, UNK

PROBE = LinearProbe(
    kind="linear_probe", tasks=["task"], seeds=[1, 2, 3], projection=40, epochs=30, batch_size=64, lr=0.01
)


def context(table, name="bert", **changes):
    return Context(PROBE.model_copy(update=changes), table.folders[name], {"task": table.task}, name="probe")


def values(rows, metric="accuracy", split="test"):
    return [row["value"] for row in rows if row["metric"] == metric and row["split"] == split]


def naive(table, name, pooling, split, longest):
    """Features of every row of a split, one row, one token at a time."""
    found = []
    model = None if name == "lookup" else load_checkpoint(table.folders[name]).eval()
    for row in range(len(split)):
        ids, lengths, _ = split.batch(np.array([row]))
        count = int(lengths[0]) - 2
        if name == "lookup":
            symbols = ids[:, 1:-1].numpy() - 5
            states = [torch.from_numpy(table.law.conditionals(symbols)[0, t]).float() for t in range(count)]
            width = 4
        else:
            with torch.no_grad():
                hidden = model.encode(ids, lengths)[0]
            if pooling == "cls":
                found.append(hidden[0])
                continue
            states, width = [hidden[t + 1] for t in range(count)], 32
        if pooling == "mean":
            found.append(sum(states) / count)
        else:
            found.append(torch.cat(states + [torch.zeros(width)] * (longest - count)))
    return torch.stack(found)


@pytest.mark.parametrize(
    ("name", "pooling"),
    [
        ("bert", "concat"),
        ("bert", "mean"),
        ("bert", "cls"),
        ("lstm", "concat"),
        ("lookup", "concat"),
        ("lookup", "mean"),
    ],
)
def test_features_equal_a_loop_over_tokens(table, name, pooling):
    split = encode_split(table.task / "test.parquet", None, 8, vocab_size=9)
    longest = int(split.lengths.max()) - 2
    assert longest == 4 and split.lengths.min() < 5
    if name == "lookup":
        source = LookupSource(load_lookup(table.folders[name]), pooling)
    else:
        source = EncoderSource(load_checkpoint(table.folders[name]), pooling)
    wanted = naive(table, name, pooling, split, longest)
    assert torch.allclose(projected(source, split, longest)[:, 0], wanted, atol=1e-5)
    size = source.size(longest)
    assert size == wanted.shape[1]
    matrices = projections(size, 7, [torch.Generator().manual_seed(seed) for seed in (1, 2)])
    found = projected(source, split, longest, matrices)
    assert found.shape == (len(split), 2, 7)
    assert torch.allclose(found, torch.einsum("nf,fsp->nsp", wanted, matrices), atol=1e-4)


def test_a_lookup_table_shares_its_sums_among_the_threads_and_reads_no_unknown_token(monkeypatch):
    law = Law(parse_rules("S A B 1\nA a .5\nA b .5\nB a .5\nB b .5\n", "test"))
    run, seen, before = Law._run, [], torch.get_num_threads()
    monkeypatch.setattr(Law, "_run", lambda law, *given: (seen.append(given[2]), run(law, *given)))
    ids = torch.tensor([[CLS, 5, 6, SEP], [CLS, 6, 6, SEP]], dtype=torch.int32)
    split, source = Split(ids, np.array([4, 4]), np.array([0, 1]), {}), LookupSource(law, "concat")
    try:
        torch.set_num_threads(2)
        found = projected(source, split, 2)
    finally:
        torch.set_num_threads(before)
    assert seen == [2] and found.flatten().tolist() == pytest.approx([0.5] * 8)
    ids[1, 1] = UNK
    with pytest.raises(MaskLabError, match="a lookup table knows nothing of <unk>"):
        projected(source, split, 2)


def test_projections_keep_lengths():
    matrices = projections(300, 400, [torch.Generator().manual_seed(seed) for seed in (1, 2)])
    assert matrices.shape == (300, 2, 400) and not torch.equal(matrices[:, 0], matrices[:, 1])
    assert matrices.var() * 300 == pytest.approx(1, abs=0.02)
    again = projections(300, 400, [torch.Generator().manual_seed(2)])
    assert torch.equal(again[:, 0], matrices[:, 1])


@pytest.mark.parametrize("name", ["bert", "lstm", "lookup"])
def test_reads_a_task_off_frozen_representations(table, name):
    rows = run(context(table, name))
    assert [(row["seed"], row["metric"]) for row in rows] == [
        (seed, metric)
        for seed in (1, 2, 3)
        for metric in ("accuracy", "mcc", "f1", "majority", "majority_f1", "best_step")
    ]
    assert {(row["task"], row["train_size"]) for row in rows} == {("task", 300)}
    (majority,) = set(values(rows, "majority"))
    assert min(values(rows)) > majority + 0.1
    assert values(rows, "best_step") == [150.0] * 3
    assert run(context(table, name)) == rows  # dropout is off


def test_seeds_do_not_touch_each_other_and_differ(table):
    rows, (two,) = run(context(table)), values(run(context(table, seeds=[2])))
    assert values(rows)[1] == pytest.approx(two, abs=0.01)  # products of other shapes round differently
    assert len(set(values(rows))) > 1


def test_sizes_are_first_rows_and_records_are_kept(table, tmp_path):
    sized = context(table, sizes=[50, 300])
    kept = dataclasses.replace(sized, state_folder=tmp_path)
    rows = run(kept)
    assert [row["train_size"] for row in rows] == 18 * [50] + 18 * [300]
    assert rows[18:] == run(context(table))
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(times) == 2 and run(kept) == rows
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == times
    run(dataclasses.replace(context(table, sizes=[50], lr=0.02), state_folder=tmp_path))
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(MaskLabError, match=r"probes.probe.sizes: 301 is more than the 300 training rows of 'task'"):
        run(context(table, sizes=[301]))


@pytest.mark.parametrize("projection", [40, None])
def test_each_seed_draws_examples_of_its_own(table, tmp_path, projection):
    """A seed that draws its rows does as one that is given them as the first ones; another seed draws others."""
    drawn = context(table, seeds=[1, 2], sizes=[50], examples="drawn", projection=projection)
    rows = run(drawn)
    assert [(row["seed"], row["train_size"]) for row in rows[::6]] == [(1, 50), (2, 50)]
    train, used = pq.read_table(table.task / "train.parquet"), []
    for seed in (1, 2):
        order = generator(drawn.seed, "probe", "task", seed, "examples").permutation(300)
        used.append(set(order[:50].tolist()))
        folder = shutil.copytree(table.task, tmp_path / str(seed))
        pq.write_table(train.take(order), folder / "train.parquet")
        given = context(table, seeds=[seed], sizes=[50], projection=projection)
        (alone,) = values(run(dataclasses.replace(given, tasks={"task": folder})))
        assert values(rows)[seed - 1] == pytest.approx(alone, abs=0.01)  # products of other shapes round differently
    assert len(used[0] & used[1]) < 20
    with pytest.raises(ValueError, match="examples: drawn needs sizes"):
        LinearProbe(kind="linear_probe", tasks=["task"], examples="drawn")


def test_items_are_kept_too(table, tmp_path):
    sized = dataclasses.replace(context(table, sizes=[10], seeds=[1, 2]), state_folder=tmp_path)  # few: seeds differ
    found = items(probes.run(sized))
    assert [item["seed"] for item in found] == [1, 2] and {len(item["targets"]) for item in found} == {120}
    assert found[0]["targets"] == found[1]["targets"] and found[0]["predictions"] != found[1]["predictions"]
    assert items(probes.run(sized)) == found and len(list(tmp_path.iterdir())) == 1


def test_variants(table):
    best = run(context(table, select="valid"))
    assert all(step % 5 == 0 for step in values(best, "best_step")) and set(values(best, "best_step")) != {150.0}
    plain = run(context(table, projection=None, standardise=False, pooling="mean"))
    assert min(values(plain)) > values(plain, "majority")[0]
    with pytest.raises(MaskLabError, match=r"probes.probe.pooling: a lookup table has no \[CLS\]"):
        run(context(table, "lookup", pooling="cls"))
    assert SPLITS == ("train", "valid", "test")
