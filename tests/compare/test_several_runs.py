"""Claims on the replicates of several runs together, against the interval of all of them by scipy."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import bootstrap, t

from masklab.cli import main
from masklab.compare.several_runs import _check_different, leaves_out, shares_data, takes_on_trust, together, told
from masklab.config import read
from masklab.errors import MaskLabError
from masklab.files import write_json, write_parquet, write_table
from masklab.rng import replicate_seed
from masklab.scores import facts
from masklab.scores.items import OUTCOME
from masklab.scores.items import records_to_table as item_table
from masklab.scores.schema import rows_to_frame, rows_to_table
from masklab.scores.view import View

CONFIG = """
studies:
  pair: {replicates: 3, panels: {a: [strict-kd, strict-mlm]}, probes: {minimal-pairs: all}, claims: all}
"""
GAINS = ([0.02, 0.05, 0.03], [0.06, 0.04])


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG, encoding="utf-8")
    return read(file)


def asked(recipe, replicate):
    row = {
        "recipe": recipe,
        "replicate": replicate,
        "probe": "minimal-pairs",
        "task": "blimp",
        "split": "test",
        "step": 2000,
    }
    return row | {"seed": 0}


def scores(gains, seed):
    rng, rows = np.random.default_rng(seed), []
    for replicate, gain in enumerate(gains, 1):
        level = 0.7 + 0.05 * rng.standard_normal()
        for recipe, more in (("strict-kd", 0.0), ("strict-mlm", gain)):
            value = {"metric": "accuracy", "n": 400, "value": float(level + more)}
            rows.append(asked(recipe, replicate) | value)
    return rows


def kept(root, rows, study="pair"):
    write_parquet(rows_to_frame(rows, study), root / "scores.parquet")
    return root


def in_files(root, rows, seed=None):
    """A run's folder with the files of its probe and, where it has a seed, the manifests of its models."""
    for row in rows:
        place = f"{row['recipe']}/r{row['replicate']}"
        write_table(rows_to_table([row]), root / f"scores/minimal-pairs/{place}/all.parquet")
        if seed is not None:
            drawn = {"config": {"seed": replicate_seed(seed, row["replicate"])}}
            write_json(drawn, root / f"models/{place}/manifest.json")
    return root


def test_the_replicates_of_the_second_follow_those_of_the_first(tmp_path, config):
    roots = [kept(tmp_path / str(k), scores(gains, k)) for k, gains in enumerate(GAINS)]
    row = together(config, "pair", roots).iloc[0]
    gains = np.concatenate(GAINS)
    interval = t.interval(0.95, len(gains) - 1, gains.mean(), gains.std(ddof=1) / np.sqrt(len(gains)))
    sign = np.sign(row["value"])  # the claim says which of the two it calls the first
    assert row["replicates"] == 5 and not row["items"]
    assert sorted(sign * row[["low", "high"]].astype(float)) == pytest.approx(interval)
    assert row["value"] == pytest.approx(sign * gains.mean())


def test_kept_facts_say_what_models_learned(tmp_path, config):
    """Where the table of facts was kept, claims about models that learned nothing are untested; without, on trust."""
    verdicts = {}
    for loss in (3.0, 6.0):
        roots = [kept(tmp_path / f"{loss}/{k}", scores(gains, k)) for k, gains in enumerate(GAINS)]
        assert f"{roots[0]} and {roots[1]} have scores alone" in takes_on_trust(config, "pair", roots)
        on_trust = together(config, "pair", roots)["verdict"].iloc[0]
        for root, gains in zip(roots, GAINS, strict=True):
            learned = {"valid_loss": {"2000": loss}, "unigram_loss": 6.0}
            models = [(recipe, k) for recipe in ("strict-kd", "strict-mlm") for k in range(1, len(gains) + 1)]
            table = [row for recipe, k in models for row in facts.rows("recipe", recipe, learned, k)]
            write_parquet(pd.DataFrame(table, columns=facts.COLUMNS), root / "facts.parquet")
        assert takes_on_trust(config, "pair", roots) == ""
        verdicts[loss] = on_trust, together(config, "pair", roots)["verdict"].iloc[0]
    assert verdicts[3.0][0] == verdicts[3.0][1] == verdicts[6.0][0] != "untested"
    assert verdicts[6.0][1] == "untested"


def test_any_number_of_runs_is_put_together(tmp_path, config, capsys):
    gains = (*GAINS, [0.01, 0.02, 0.03])
    runs = [str(kept(tmp_path / str(k), scores(gain, k))) for k, gain in enumerate(gains)]
    row = together(config, "pair", runs).iloc[0]
    assert row["replicates"] == 8 and abs(row["value"]) == pytest.approx(np.concatenate(gains).mean())
    with pytest.raises(MaskLabError, match=r"0 and .*4 have the same replicates"):
        together(config, "pair", [*runs, kept(tmp_path / "4", scores(gains[0], 0))])
    command = ["--configfile", str(tmp_path / "config.yaml"), "--together", "pair"]
    assert main(["compare", *runs, *command]) == 0
    assert capsys.readouterr().out.startswith("claims of pair on the replicates of all 3 together: ")
    for some in (runs, runs[:1]):
        assert main(["compare", *some]) == 1
        assert "takes two, and with --together <study> two or more" in capsys.readouterr().err


def test_test_items_are_resampled_where_both_runs_have_them(tmp_path, config):
    outcomes = []
    for k in range(2):
        rows, items, rng = [], [], np.random.default_rng(k)
        easy = rng.random(400)
        for replicate in (1, 2):
            for recipe, skill in (("strict-kd", 0.5), ("strict-mlm", 0.7)):
                right = (easy < skill + 0.02 * rng.standard_normal()).astype(float)
                key = asked(recipe, replicate)
                rows = rows_to_table([key | {"metric": "accuracy", "n": 400, "value": float(right.mean())}])
                items = item_table([key | {"metrics": ["accuracy"], "targets": [OUTCOME] * 400, "predictions": right}])
                folder = tmp_path / f"{k}/scores/minimal-pairs/{recipe}/r{replicate}"
                write_table(rows, folder / "all.parquet")
                write_table(items, folder / "all.items.parquet")
                outcomes.append(right)
    row = together(config, "pair", [tmp_path / "0", tmp_path / "1"]).iloc[0]
    differences = np.stack(outcomes[1::2]) - np.stack(outcomes[::2])
    assert row["items"] and row["replicates"] == 4
    assert abs(row["value"]) == pytest.approx(differences.mean())
    over_replicates = t.ppf(0.975, 3) * differences.mean(1).std(ddof=1) / 2
    alone = bootstrap((differences.mean(0),), np.mean, random_state=1).confidence_interval
    assert row["high"] - row["low"] > max(2 * over_replicates, 0.5 * (alone.high - alone.low)), "both are in it"


def test_scores_that_the_config_no_longer_asks_for_are_left_alone(tmp_path, config):
    """A file of a checkpoint that was once measured by itself would be the last one."""
    for k, gains in enumerate(GAINS):
        for row in scores(gains, k):
            root = in_files(tmp_path / str(k), [row])
            if row["recipe"] == "strict-mlm":
                folder = root / f"scores/minimal-pairs/strict-mlm/r{row['replicate']}"
                write_table(rows_to_table([row | {"step": 9999, "value": 0.99}]), folder / "step-9999.parquet")
    row = together(config, "pair", [tmp_path / "0", tmp_path / "1"]).iloc[0]
    assert abs(row["value"]) == pytest.approx(np.concatenate(GAINS).mean())


def test_replicates_that_the_config_no_longer_asks_for_are_left_out_and_named(tmp_path, config):
    roots = [in_files(tmp_path / str(k), scores(gains, k), seed=k) for k, gains in enumerate(GAINS)]
    assert leaves_out(config, "pair", roots) == ""
    in_files(roots[0], [row | {"replicate": 9} for row in scores([0.2], 7)], seed=0)
    row = together(config, "pair", roots).iloc[0]
    assert row["replicates"] == 5 and abs(row["value"]) == pytest.approx(np.concatenate(GAINS).mean())
    said = "note: left out are replicates that the config does not ask for: "
    names = "minimal-pairs/strict-kd/r9, minimal-pairs/strict-mlm/r9"
    assert leaves_out(config, "pair", roots) == f"{said}{roots[0]}: {names}"


def test_equal_replicates_are_not_counted_twice(tmp_path, config):
    roots = [kept(tmp_path / str(k), scores(GAINS[0], 1)) for k in range(2)]
    with pytest.raises(MaskLabError, match=r"have the same replicates.*another `seed`"):
        together(config, "pair", roots)


def test_the_seeds_of_models_say_whether_replicates_are_the_same(tmp_path, config):
    """Another config changes scores and no seed; on few items the scores of other seeds may be equal."""
    roots = [in_files(tmp_path / str(k), scores(gains, k), seed=1) for k, gains in enumerate(GAINS)]
    with pytest.raises(MaskLabError, match=r"have the same replicates.*another `seed`"):
        together(config, "pair", roots)
    roots = [in_files(tmp_path / name, scores(GAINS[0], 1), seed) for seed, name in enumerate("ab")]
    assert together(config, "pair", roots)["replicates"].iloc[0] == 6


def test_what_nobody_drew_says_nothing_of_seeds():
    """The majority and a null without a network are the same at every seed."""
    view = View("s", recipes={"m": {"encoder.kind": "transformer"}, "null": {"encoder.kind": "words"}})

    def run(accuracy):
        rows = [asked("m", 1) | {"metric": name, "value": 0.5, "n": 9} for name in ("majority", "best_step", "tokens")]
        rows += [asked("null", k) | {"metric": "accuracy", "value": 0.5, "n": 9} for k in range(1, 9)]
        rows.append(asked("m", 1) | {"metric": "accuracy", "value": accuracy, "n": 9})
        return SimpleNamespace(root=f"of {accuracy}", seeds=set(), scores=rows_to_frame(rows))

    _check_different([run(0.7), run(0.8)], view)
    with pytest.raises(MaskLabError, match="have the same replicates"):
        _check_different([run(0.7), run(0.7)], view)


def test_what_cannot_be_put_together_is_one_line(tmp_path, config):
    root = kept(tmp_path / "a", scores(GAINS[0], 1))
    with pytest.raises(MaskLabError, match=r"second: no study of this config; it has .*pair"):
        together(config, "second", [root, root])
    with pytest.raises(MaskLabError, match="b: has no scores"):
        together(config, "pair", [root, tmp_path / "b"])
    other = kept(tmp_path / "c", scores(GAINS[1], 2), study="other")
    with pytest.raises(MaskLabError, match="c: has no scores of the study pair"):
        together(config, "pair", [root, other])


def test_verdicts_that_are_not_the_same_everywhere_are_told(tmp_path, config):
    roots = [kept(tmp_path / str(k), scores(gains, k)) for k, gains in enumerate(GAINS)]
    frame = together(config, "pair", roots)
    undecided = frame.assign(verdict="inconclusive")
    lines = told(frame, [undecided, frame]).splitlines()
    assert lines[0].startswith("claims of pair on the replicates of both together: ")
    assert len(lines) == 1 + (frame["verdict"] != "inconclusive").sum() > 1
    assert told(frame, [frame, frame]) == told(frame, [frame, undecided[:0]]) == told(frame, [frame, None]) == lines[0]
    alone = frame.assign(low=np.nan, high=np.nan)  # of a single replicate that has all of it
    assert "nan" not in told(alone, [undecided, frame])
    assert told(frame, [frame, undecided, frame]).splitlines()[0] == lines[0].replace("both", "all 3")


def test_the_command_takes_the_config_that_declares_the_study(tmp_path, config, capsys):
    for k, gains in enumerate(GAINS):
        kept(tmp_path / str(k), scores(gains, k))
    runs, file = [str(tmp_path / str(k)) for k in range(2)], str(tmp_path / "config.yaml")
    assert main(["compare", *runs, "--together", "pair", "--configfile", file, "--output", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "claims of pair on the replicates of both together: " in said and "together.csv" in said
    assert "note: all replicates of a run share blimp, strict (no `redraw`)" in said
    assert f"note: {runs[0]} and {runs[1]} have scores alone and no records of models" in said
    assert (pd.read_csv(tmp_path / "out/together.csv")["replicates"] == 5).any()
    assert main(["compare", *runs, "--together", "mlsn", "--configfile", file]) == 1
    assert "mlsn: no study of this config" in capsys.readouterr().err


def test_a_law_that_replicates_share_is_noted(tmp_path):
    """Corpora of their own are of one language then, and another run may have another."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "corpora: {ib-pcfg: {redraw: true}}\ngrammars: {ib: {redraw: false}}\n"
        "studies: {pair: {panels: {a: [ib-pcfg-s, ib-pcfg-m]}, probes: {ib-loss: all}}}\n",
        encoding="utf-8",
    )
    assert "share the law of ib-pcfg (no `redraw`), and" in shares_data(read(file), "pair")


def test_a_study_without_claims_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("one", "two")):
        kept(tmp_path / "results" / name, scores(GAINS[number], number))
    (tmp_path / "none.yaml").write_text(CONFIG.replace(", claims: all", ""), encoding="utf-8")
    assert main(["compare", "one", "two", "--together", "pair", "--configfile", "none.yaml"]) == 1
    said = capsys.readouterr()
    assert "masklab: pair: the study tests no claims; it does with `claims: all`" in said.out + said.err
