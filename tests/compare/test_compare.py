"""Two runs side by side, from synthetic results: config, facts, scores with intervals, claims."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from masklab.claims.verdict import COLUMNS as CLAIM
from masklab.cli import main
from masklab.compare import claims_of_run, compare
from masklab.compare.entries import entries, shared
from masklab.compare.printed import _clearly, told
from masklab.compare.scores import score_changes
from masklab.errors import MaskLabError
from masklab.files import read_json, read_table, write_json, write_parquet
from masklab.rng import replicate_seed
from masklab.scores.facts import COLUMNS as FACT
from masklab.scores.facts import rows as fact_rows
from masklab.scores.schema import rows_to_frame

GAINS = (0.02, 0.05, 0.03)  # of the second run, replicate by replicate


def scores(gains=(0.0, 0.0, 0.0), recipes=("m", "n"), noise=0.1):
    """`m` gains, `n` stays; two seeds of a probe, in two studies that share the recipes."""
    rng, rows = np.random.default_rng(1), []
    for recipe in recipes:
        for replicate, gain in enumerate(gains, 1):
            level = 0.6 + noise * rng.standard_normal()
            for seed, shift in ((1, -0.01), (2, 0.01)):
                value = level + shift + (gain if recipe == "m" else 0)
                asked = {"probe": "p", "task": "t", "split": "test", "metric": "accuracy", "step": 5, "n": 100}
                rows.append(asked | {"recipe": recipe, "replicate": replicate, "seed": seed, "value": float(value)})
    return pd.concat([rows_to_frame(rows, study) for study in ("one", "two")], ignore_index=True)


def claim(name, verdict, why="", value=0.1):
    row = {column: kind.replace("str", "").replace("float64", "0").replace("int64", "0").replace("bool", "") or ""
           for column, kind in CLAIM.items()}  # fmt: skip
    row |= {"study": "s", "claim": name, "text": f"About {name}.", "verdict": verdict, "corrected": verdict, "why": why}
    row |= {"value": value, "low": value - 0.1, "high": value + 0.1, "replicates": 3, "headline": False, "items": False}
    return row


def run(root, weight, scored, claims, seed=1, extra=None):
    """A folder of a run whose objective has this weight."""
    model = {"objective": "o", "encoder": "e", "steps": 5}
    config = {"seed": seed, "model": model, "objective": {"term": {"weight": weight}}, "encoder": {"hidden": 8}}
    records = {"models/m/r1": ("pretrain", {"recipe": "m", "replicate": "1"}, config)}
    records["models/gone/r1"] = (
        "pretrain",
        {"recipe": "gone", "replicate": "1"},
        config | {"model": model | {"x": weight}},
    )
    if extra:
        records[f"corpora/{extra}"] = ("corpus", {"corpus": extra}, {"corpus": {"kind": "text"}})
    for place, (rule, names, resolved) in records.items():
        record = {"rule": rule, "wildcards": names, "config": resolved, "finished": True}
        write_json(record, root / "made" / f"{place}.json")
    facts = [*fact_rows("recipe", "m", {"objective": {"weight": weight}, "steps": 5})]
    facts += [row for k in (1, 2) for row in fact_rows("recipe", "m", {"flops": 10.0 * k}, k)]
    write_parquet(pd.DataFrame(facts, columns=FACT), root / "facts.parquet")
    write_parquet(scored, root / "scores.parquet")
    write_parquet(pd.DataFrame(claims, columns=list(CLAIM)).astype(CLAIM), root / "claims.parquet")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(
        tmp_path / "results",
        0.1,
        scores(),
        [claim("a", "inconclusive"), claim("b", "supported"), claim("old", "untested")],
    )
    run(tmp_path / "results/two", 0.3, scores(GAINS), [claim("a", "untested", "learned no more than its null"),
                                                       claim("b", "supported")], extra="more")  # fmt: skip
    return tmp_path


def test_config_by_entry_and_key_of_what_is_declared(runs):
    found = compare("results", "two")
    assert found.config.to_dict("records") == [
        {"entry": "objectives.o", "key": "term.weight", "before": "0.1", "after": "0.3"}
    ], "not of a recipe that only a record remembers"
    assert found.only["entries"] == ([], ["corpora.more"])


def test_more_replicates_are_no_other_seed(runs):
    file = runs / "results/two/made/models/m/r1.json"
    record = read_json(file)
    write_json(record | {"wildcards": {"recipe": "m", "replicate": "2"}}, file.with_name("r2.json"))
    assert "seed" not in compare("results", "two").config["entry"].tolist()


def test_another_root_seed_is_one_difference(runs):
    """As far as a record of what all replicates share holds it; else the seed of each replicate is another."""
    for root, seed in ((runs / "results", 1), (runs / "results/two", 2)):
        run(root, 0.1, scores(), [], seed=replicate_seed(seed, 1))
        record = read_json(root / "made/models/m/r1.json")
        second = {"config": record["config"] | {"seed": replicate_seed(seed, 2)}}
        write_json(record | {"wildcards": {"recipe": "m", "replicate": "2"}} | second, root / "made/models/m/r2.json")
        corpus = {"rule": "corpus", "wildcards": {"corpus": "c"}, "config": {"seed": seed, "corpus": {}}}
        write_json(corpus | {"finished": True}, root / "made/corpora/c.json")
    found = compare("results", "two")
    assert found.config.to_dict("records") == [{"entry": "seed", "key": "root", "before": "1", "after": "2"}]
    assert "config: 1 key differs" in told(found)
    (runs / "results/two/made/corpora/c.json").unlink()
    assert compare("results", "two").config["key"].tolist() == ["r1", "r2"]


def test_facts_that_differ(runs):
    assert compare("results", "two").facts.to_dict("records") == [
        {"noun": "recipe", "name": "m", "key": "objective.weight", "before": "0.1", "after": "0.3"}
    ]


def test_facts_that_are_the_same_are_counted(runs):
    assert compare("results", "two").alike == 2, "steps, and the mean of flops"
    for file in (runs / "results/facts.parquet", runs / "results/two/facts.parquet"):
        facts = read_table(file).to_pandas()
        write_parquet(facts[facts["key"] == "steps"], file)
    assert "facts: all 1 of both runs are the same" in told(compare("results", "two"))
    write_parquet(facts[:0], file)
    assert "facts: the runs have none in common" in told(compare("results", "two"))


def test_facts_of_replicates_that_are_no_numbers_are_compared(runs):
    """The precision that each model was trained in, say."""
    for root, precisions in (("results", ("fp32", "fp32")), ("results/two", ("fp32", "bf16"))):
        file = runs / root / "facts.parquet"
        own = [row for k, said in enumerate(precisions, 1) for row in fact_rows("recipe", "m", {"precision": said}, k)]
        write_parquet(pd.concat([read_table(file).to_pandas(), pd.DataFrame(own, columns=FACT)]), file)
    found = compare("results", "two")
    assert found.facts.set_index("key").loc["precision", ["before", "after"]].tolist() == [
        '"fp32"',
        '"bf16" or "fp32"',
    ]
    assert found.alike == 2


def test_scores_are_paired_by_replicate(runs):
    found = compare("results", "two").scores.set_index("recipe")
    mean = np.mean(GAINS)
    low, high = stats.t.interval(0.95, 2, mean, stats.sem(GAINS))
    row = found.loc["m"]
    assert row[["difference", "low", "high"]].tolist() == pytest.approx([mean, low, high]) and row["replicates"] == 3
    assert row["clear"] == (low > 0) and not row["equal"], "though replicates differ far more than the runs do"
    assert found.loc["n", "equal"] and found.loc["n", "difference"] == 0 and not found.loc["n", "clear"]


def test_scores_under_other_seeds_are_not_paired(runs):
    run(runs / "results/two", 0.3, scores(GAINS), [], seed=2)
    found = compare("results", "two")
    assert found.config["entry"].tolist() == ["objectives.o", "seed"]
    paired = compare("two", "results").scores
    row = found.scores.set_index("recipe").loc["m"]
    assert row["difference"] == pytest.approx(np.mean(GAINS)) and not row["clear"]
    assert row["high"] - row["low"] > 0.1 and not paired["clear"].any()


def test_tables_alone_say_nothing_of_configs_and_seeds(runs):
    """As in folders of results that were kept without the records of their jobs, of two root seeds for example."""
    frames = scores(), scores(GAINS)
    for name, frame in zip("ab", frames, strict=True):
        write_parquet(frame, runs / name / "scores.parquet")
    found = compare("a", "b")
    pd.testing.assert_frame_equal(found.scores, score_changes(*frames, shared_seeds=False)[0])
    row = found.scores.set_index("recipe").loc["m"]
    assert row["high"] - row["low"] > 0.1 and found.only["entries"] == ([], [])
    assert "config: not compared; a and b keep no records of their jobs" in told(found)
    found = compare("results", "a")
    assert "config: not compared; a keeps no records of its jobs" in told(found) and "entries only" not in told(found)


def test_what_is_no_result_is_not_counted(runs):
    """Standard errors and costs: neither among those that are equal nor among those that differ."""
    for root, gains in (("results", (0.0, 0.0, 0.0)), ("results/two", GAINS)):
        frame = scores(gains)
        more = [frame.assign(metric=metric) for metric in ("accuracy_se", "seconds")]
        write_parquet(pd.concat([frame, *more], ignore_index=True), runs / root / "scores.parquet")
    assert "1 of 2 measurements are equal; 1 differs" in told(compare("results", "two"))
    for root in ("results", "results/two"):
        write_parquet(more[1], runs / root / "scores.parquet")
    assert "scores: the runs have nothing in common but what measuring cost" in told(compare("results", "two"))


def test_accuracies_of_the_full_width_count_where_they_are_others(runs):
    """A model without latent logits has one accuracy, written twice; one with them has two."""
    for root, gains in (("results", (0.0, 0.0, 0.0)), ("results/two", GAINS)):
        frame = scores(gains)
        full = frame.assign(metric="accuracy_full_width")
        other = full.assign(task="latent", value=full["value"] + 0.05)
        more = [frame, frame.assign(task="latent"), full, other]
        write_parquet(pd.concat(more, ignore_index=True), runs / root / "scores.parquet")
    found = compare("results", "two")
    assert len(found.scores) == 8  # the tables keep all
    assert "3 of 6 measurements are equal; 3 differ" in told(found)


def test_texts_that_were_replaced_are_no_measurements(runs):
    """They are rows of scores, as examples to look at: each model has others."""
    for root, text, gains in (("results", "a fine [good] film", (0.0, 0.0, 0.0)), ("results/two", "a bad film", GAINS)):
        frame = scores(gains)
        examples = frame.assign(split="word drawn, replaced", metric=text)
        write_parquet(pd.concat([frame, examples], ignore_index=True), runs / root / "scores.parquet")
    found = compare("results", "two")
    assert found.only["measurements"] == ([], []) and set(found.scores["split"]) == {"test"}


def test_what_one_run_alone_measured_is_named(runs):
    """Else equal measurements of one task would look like all that there are."""
    more = pd.concat([scores(), scores(recipes=("m",)).assign(task="u", train_size=8)], ignore_index=True)
    write_parquet(more, runs / "results/scores.parquet")
    found = compare("results", "two")
    assert found.only["measurements"] == (["m@5 p u test accuracy train_size 8"], [])
    assert "measurements only in results: m@5 p u test accuracy train_size 8\n" in told(found)


def test_welch_against_scipy():
    from scipy.stats import ttest_ind

    before, after = scores(recipes=("m",)), scores((0.1, 0.25, 0.2, 0.0), recipes=("m",), noise=0.05)
    row = score_changes(before, after, shared_seeds=False)[0].iloc[0]
    one, two = (frame[frame["study"] == "one"].groupby("replicate")["value"].mean() for frame in (before, after))
    interval = ttest_ind(two, one, equal_var=False).confidence_interval(0.95)
    assert [row["low"], row["high"]] == pytest.approx([interval.low, interval.high])


def test_claims_whose_verdict_changed_with_the_reason(runs):
    found = compare("results", "two")
    assert found.claims.set_index("claim")["changed"].to_dict() == {"a": True, "b": False}
    assert found.only["claims"] == (["s/old"], [])
    text = told(found)
    assert "s/a: inconclusive -> untested" in text and "after: learned no more than its null" in text
    assert "s/b" not in text and "claims only in results: s/old" in text
    assert "1 of 2 measurements are equal" in text and "+0.0333" in text


def test_the_command_prints_and_writes(runs, capsys):
    assert main(["compare", "results", "results/two", "--output", "out"]) == 0
    assert "term.weight" in capsys.readouterr().out
    assert sorted(path.name for path in (runs / "out").iterdir()) == [
        "claims.csv", "config.csv", "facts.csv", "scores.csv"]  # fmt: skip
    assert len(pd.read_csv(runs / "out/scores.csv")) == 2
    assert main(["compare", "results", "thre"]) == 1
    assert "thre: no run lies in results/thre or thre (runs below results/: two)" in capsys.readouterr().err


def test_scores_that_nobody_has_gathered_are_those_of_the_probes_files(runs):
    """As after a run that asked for one figure."""
    gathered = compare("results", "two").scores
    table = runs / "results/two/scores.parquet"
    of_one = pd.read_parquet(table).query("study == 'one'").drop(columns="study")
    for (recipe, replicate), frame in of_one.groupby(["recipe", "replicate"]):
        file = runs / f"results/two/scores/p/{recipe}/r{replicate}/all.parquet"
        file.parent.mkdir(parents=True)
        write_parquet(frame, file)
        write_parquet(frame[:0], file.with_name("all.items.parquet"))
    table.unlink()
    pd.testing.assert_frame_equal(compare("results", "two").scores, gathered)


@pytest.mark.parametrize(
    ("changed", "clear", "shared", "said"),
    [
        (1, 0, [], "1 differs, not clearly: no 95 % interval over replicates leaves out 0"),
        (1, 1, [], "1 differs, clearly (*): its 95 % interval over replicates leaves out 0"),
        (2, 1, [], "2 differ, 1 of them clearly (*): the 95 % interval over replicates leaves out 0"),
        (40, 9, [], "40 differ, 9 of them clearly (*): the 95 % interval over replicates leaves out 0; by luck alone"
                    " about 2 would"),
        (40, 9, ["c", "t"], "40 differ, 9 of them clearly (*): the 95 % interval over replicates leaves out 0; by luck"
                            " alone about 2 would, or more: all replicates of a run share c, t (no `redraw`), and"
                            " another run may have others: of that luck the intervals say nothing"),
        (2, 1, ["c"], "2 differ, 1 of them clearly (*): the 95 % interval over replicates leaves out 0; all replicates"
                      " of a run share c (no `redraw`), and another run may have others: of that luck the intervals say"
                      " nothing"),
        (40, 9, None, "40 differ, 9 of them clearly (*): the 95 % interval over replicates leaves out 0"),
    ],
)  # fmt: skip
def test_how_many_differ_in_words(changed, clear, shared, said):
    assert _clearly(changed, clear, shared) == said


def test_what_replicates_share_is_said_where_the_seeds_of_runs_differ(runs):
    """Of a corpus of their own it may be the law; what the config no longer declares is left out."""
    scored, after = runs / "results/scores.parquet", runs / "results/two"
    before = read_table(scored).to_pandas().assign(value=0.1)
    write_parquet(before.assign(value=before["value"] + 0.01 * before["replicate"]), scored)
    records = {
        "corpora/c": {},
        "corpora/own/r1": {},
        "corpora/half/r1": {"law_seed": 2},
        "tasks/t": {},
        "tasks/gone": {},
    }
    for place, config in records.items():
        section, name = place.split("/", 1)
        record = {"rule": section, "wildcards": {section: name}, "config": config, "finished": True}
        write_json(record, after / f"made/{place}.json")
    facts = read_table(after / "facts.parquet").to_pandas()
    named = [row for name in ("c", "half", "own") for row in fact_rows("corpus", name, {"kind": "text"})]
    named += fact_rows("task", "t", {"kind": "x"})
    write_parquet(pd.DataFrame([*facts.to_dict("records"), *named], columns=FACT), after / "facts.parquet")
    assert compare("results", "two").shared == [], "as the seeds agree, so do data"
    record = read_json(after / "made/models/m/r1.json")
    write_json(record | {"config": record["config"] | {"seed": 2}}, after / "made/models/m/r1.json")
    (after / "made/models/gone/r1.json").unlink()
    found = compare("results", "two")
    assert found.shared == ["c", "t", "the law of half"]
    assert "all replicates of a run share c, t, the law of half (no `redraw`)" in told(found)
    (after / "made").rename(after / "nothing")
    assert compare("results", "two").shared is None


@pytest.mark.parametrize("paired", [True, False])
def test_what_is_alike_in_all_replicates_has_no_interval(runs, paired):
    """As a floor of a corpus that all of them share: however far apart the runs are, that says nothing of luck."""
    for root, gain in (("results", 0.0), ("results/two", 0.3)):
        frame = scores((gain,) * 3, recipes=("m",), noise=0.0)
        write_parquet(
            pd.concat([frame, scores(GAINS).assign(task="u", value=0.5 + gain)]), runs / root / "scores.parquet"
        )
    if not paired:
        (runs / "results/two/made").rename(runs / "results/two/nothing")
    found = compare("results", "two")
    assert not found.scores["equal"].any() and not found.scores["clear"].any()
    text = told(found)
    assert "3 differ, none clearly" in text and "+0.3000 [replicates alike]" in text and "*" not in text


def test_claims_of_which_the_csv_alone_was_kept_are_compared(runs):
    """As published results keep them; a verdict's empty `why` stays text, an empty value no number."""
    before = compare("results", "two").claims
    for root in (runs / "results", runs / "results/two"):
        read_table(root / "claims.parquet").to_pandas().to_csv(root / "claims.csv", index=False)
        (root / "claims.parquet").unlink()
    pd.testing.assert_frame_equal(compare("results", "two").claims, before, check_dtype=False)
    for name in ("one", "other"):  # of which nothing else was kept
        (runs / name).mkdir()
        (runs / f"{name}/claims.csv").write_bytes((runs / "results/two/claims.csv").read_bytes())
    assert len(compare("one", "other").claims) == 2
    table = pd.read_csv(runs / "results/claims.csv")
    table.drop(columns="verdict").to_csv(runs / "results/claims.csv", index=False)
    with pytest.raises(MaskLabError, match=r"^results/claims\.csv: no column 'verdict'"):
        compare("results", "two")


def test_claims_that_nobody_has_gathered_are_those_of_the_studies(runs):
    """`snakemake <study>` makes the claims of that study alone."""
    before = compare("results", "two").claims
    for root in (runs / "results", runs / "results/two"):
        (root / "claims").mkdir()
        (root / "claims.parquet").rename(root / "claims/s.parquet")
    pd.testing.assert_frame_equal(compare("results", "two").claims, before)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b'study\n"a,b\n', b"study\na,b\nc,d,e,f\n"], ids=str)
def test_claims_that_are_no_csv_are_said_in_a_line(content, tmp_path):
    (tmp_path / "claims.csv").write_bytes(content)
    with pytest.raises(MaskLabError) as caught:
        claims_of_run(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}/claims.csv: ") and "\n" not in str(caught.value)


def test_a_run_without_a_table_is_compared_in_the_others(runs):
    (runs / "results/two/claims.parquet").unlink()
    found = compare("results", "two")
    assert found.claims is None and found.scores is not None
    assert "claims: not compared; two has no claims.parquet. `snakemake claims --cores all` with its config" in told(
        found
    )
    (runs / "results/facts.parquet").unlink()
    (runs / "results/two/facts.parquet").unlink()
    assert "facts: not compared; results and two have no facts.parquet" in told(compare("results", "two"))
    with pytest.raises(MaskLabError, match="are one run"):
        compare("two", "results/two")


def test_a_folder_is_one_wherever_it_lies(runs, monkeypatch):
    here = runs / "copy"
    here.mkdir()
    (runs / "results/two").rename(here / "results")
    monkeypatch.chdir(here)
    assert len(compare("results", "../results").scores)
    with pytest.raises(MaskLabError, match=r"^\.\./more: no run lies in \.\./more$"):
        compare("results", "../more")
    with pytest.raises(MaskLabError, match=rf"^{here}/more: no run lies in {here}/more$"):
        compare("results", str(here / "more"))


def test_the_last_checkpoint_is_that_of_all_that_was_measured(runs):
    """Where only an earlier one differs, nothing is said of it under that heading."""
    before = pd.concat([scores(), scores().assign(step=9)], ignore_index=True)
    after = pd.concat([scores(GAINS), scores().assign(step=9)], ignore_index=True)
    for root, frame in (("results", before), ("results/two", after)):
        write_parquet(frame, runs / root / "scores.parquet")
    text = told(compare("results", "two"))
    assert "3 of 4 measurements are equal" in text and "None of them is at the last checkpoint" in text
    assert "last checkpoint that both measured (step)" not in text


def test_of_runs_of_other_lengths_the_last_checkpoint_of_both_is_compared(runs):
    """One run went on to 20 updates, the other to 30: what is printed is of 10, and says so."""
    for root, frame, last in (("results", scores(), 20), ("results/two", scores(GAINS), 30)):
        later = frame.assign(step=last, value=0.9)
        write_parquet(pd.concat([frame.assign(step=10), later], ignore_index=True), runs / root / "scores.parquet")
    text = told(compare("results", "two"))
    at = text[text.index("last checkpoint that both measured (step)") :].splitlines()
    head, row = at[1].split(), at[2].split()
    assert head[:2] == ["recipe", "step"] and row[1] == "10" and "0.9000" not in text


@pytest.mark.parametrize("table", ["facts", "claims"])
def test_a_table_of_another_version_is_said(runs, table):
    """By each column that is read of it."""
    file = runs / f"results/two/{table}.parquet"
    whole = pd.read_parquet(file)
    for column in ("noun", "name", "key", "value") if table == "facts" else ("study", "claim", "why"):
        write_parquet(whole.drop(columns=column), file)
        with pytest.raises(MaskLabError, match=rf"^results/two/{table}\.parquet: no column '{column}'; make it again"):
            compare("results", "two")


@pytest.mark.parametrize(
    "record",
    [
        {"config": None},
        {"config": {}},
        {"wildcards": {}},
        {"config": {"probe": "p"}},
        {"rule": ["probe"]},
        {"rule": "pretrain", "wildcards": {"recipe": "m", "replicate": "3"}, "config": {"model": {}}},
    ],
    ids=str,
)
def test_a_record_that_says_no_config_is_passed_over(runs, record):
    before = compare("results", "two")
    whole = {"rule": "probe", "wildcards": {"probe": "p"}, "config": {"probe": {}}, "finished": True}
    write_json(whole | record, runs / "results/two/made/a.json")
    after = compare("results", "two")
    pd.testing.assert_frame_equal(after.config, before.config)
    assert after.only == before.only


def test_a_folder_of_an_entry_that_is_called_as_records_are_is_none(runs):
    """Every replicate has a task `words.json` of its own."""
    record = {"rule": "task", "wildcards": {"task": "words.json/r1"}, "finished": True}
    for root in ("results", "results/two"):
        write_json(record | {"config": {"task": {"kind": "k"}}}, runs / root / "made/tasks/words.json/r1.json")
    assert "tasks.words.json" in entries(runs / "results") and shared(runs / "results", None) == set()
    assert compare("results", "two").config["entry"].tolist()


def test_values_that_are_no_numbers_in_both_runs_are_equal():
    """Of losses that diverged."""
    lost, found = scores(), scores()
    lost["value"] = math.nan
    both, one = (score_changes(lost, other)[0] for other in (lost.copy(), found))
    assert both["equal"].all() and not both["clear"].any() and not one["equal"].any()


def test_a_difference_that_is_no_number_is_not_called_one_of_a_single_replicate(runs):
    file = runs / "results/two/scores.parquet"
    frame = read_table(file).to_pandas()
    frame.loc[(frame["recipe"] == "m") & (frame["replicate"] == 2), "value"] = math.nan
    write_parquet(frame, file)
    text = told(compare("results", "two"))
    assert "none [no number in some replicate] 3" in text and "one replicate" not in text


@pytest.mark.parametrize(
    ("table", "column"),
    [("scores", "recipe"), ("scores", "split"), ("scores", "replicate"), ("facts", "name"), ("facts", "replicate")],
)
def test_an_empty_cell_of_a_table_is_refused_in_a_line(runs, table, column):
    file = runs / f"results/two/{table}.parquet"
    frame = read_table(file).to_pandas()
    write_parquet(frame.assign(**{column: frame[column].where(frame.index != 1)}), file)
    with pytest.raises(MaskLabError, match=rf"^results/two/{table}\.parquet: row 1: {column} is empty; make it again "):
        compare("results", "two")


@pytest.mark.parametrize(
    ("table", "column", "cells", "line"),
    [
        ("scores", "value", "high", "scores.parquet: column 'value': must hold numbers (got "),
        (
            "scores",
            "metric",
            3,
            "scores.parquet: column 'metric': must hold text (got int64); make it again with this v",
        ),
        ("facts", "number", "many", "facts.parquet: column 'number': must hold numbers (got "),
        ("claims", "low", "-", "claims.parquet: column 'low': must hold numbers (got "),
        ("claims", "verdict", None, "claims.parquet: no column 'verdict'; make it again with this version"),
    ],
)
def test_a_table_of_other_cells_is_refused_in_a_line(runs, table, column, cells, line):
    file = runs / f"results/two/{table}.parquet"
    frame = pd.read_parquet(file)
    write_parquet(frame.drop(columns=column) if cells is None else frame.assign(**{column: cells}), file)
    with pytest.raises(MaskLabError) as caught:
        compare("results", "two")
    assert str(caught.value).startswith(f"results/two/{line}") and "\n" not in str(caught.value)
