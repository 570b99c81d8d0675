"""What Snakemake says before the first job: of config files that cannot be read, and of targets that are none."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import snakemake_logger_plugin_masklab as plugin
from masklab.cli import main
from masklab.jobs import store
from masklab.plan.graph import opened

ROOT = Path(__file__).parents[1]
MODEL = "results/models/strict-mlm/r1"
BESIDE = f"ask for {MODEL}/manifest.json, which is made with all that lies beside it"
OF_STUDIES = (
    "studies of this config: mlsm, dh, implicit-bias, mae, mae-law, question; a figure or table of one is"
    " <study>_<name>; docs/targets.md lists all targets"
)
QUESTION = "studies: {question: {panels: {all: [strict-mlm]}, probes: {minimal-pairs: all}, tables: [comparison]}}\n"


def said(folder, *words) -> str:
    """What a dry run that is refused says, but for the profile that Snakemake names."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "-n", "--cores", "1", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 1
    return "".join(line for line in done.stderr.splitlines(True) if not line.startswith("Using "))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the settings of a checkout, and two configs of which one is broken."""
    (tmp_path / "profiles").symlink_to(ROOT / "profiles")
    (tmp_path / "question.yaml").write_text(QUESTION)
    (tmp_path / "broken.yaml").write_text("run: x\nmodels: {a: {like: b}\nstudies: {}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_snakemake_says_it_in_one_line(folder):
    line = "question.yml: no such file\n"
    assert said(folder, "--configfile", "question.yml") == f"masklab: {line}"
    line = "questoin: no such target; did you mean 'question'?\n"
    assert said(folder, "questoin", "--configfile", "question.yaml") == f"masklab: {line}"


@pytest.mark.parametrize(
    ("files", "line"),
    [
        (["questoin.yaml"], "questoin.yaml: no such file; did you mean question.yaml?"),
        (["nothing"], "nothing: no such file"),
        (["questoin"], "questoin: no such file; did you mean question.yaml?"),
        (["broken.yaml"], "broken.yaml:2: not valid YAML: a { is never closed, or a comma is missing in it"),
        (
            ["question.yaml", "question"],
            "question: no such file; --configfile takes every word up to the next option, so that targets stand before"
            " it",
        ),
    ],
)
def test_a_config_file_that_cannot_be_read_is_refused_as_masklab_check_does(files, line, folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["snakemake", "-n", "--configfile", *files])
    assert plugin.wrong_config(str(folder)) == f"masklab: {line}"
    assert main(["check", *files]) == 1 and capsys.readouterr().err == f"masklab: {line}\n"


@pytest.mark.parametrize(
    ("target", "instead"),
    [
        ("question_comparisons", "did you mean 'question_comparison'?"),
        ("tesk", OF_STUDIES),
        ("scoers", "did you mean 'scores'?"),
        ("question_tabel", "study 'question' has question_comparison"),
        ("results/tables/question/comparisson.csv", "did you mean 'results/tables/question/comparison.csv'?"),
        ("results/elsewhere", "no job of this config makes that file; its results lie below results/"),
        ("tables/question/comparison.csv", "did you mean 'results/tables/question/comparison.csv'?"),
        (f"{MODEL}/step-300/model.safetensors", BESIDE),
        (f"{MODEL}/step-400", BESIDE),
    ],
)
def test_a_target_that_is_none_is_a_line_with_what_was_meant(target, instead, folder):
    paths = opened(["question.yaml"])
    from targets import no_target  # of the workflow, which `opened` has made importable

    asked = SimpleNamespace(targets=["question", "results/scores.parquet", target])
    workflow = SimpleNamespace(dag_settings=asked, _rules=dict.fromkeys(("question", "all", "task", "scores")))
    assert no_target(workflow, paths) == f"masklab: {target}: no such target; {instead}"


def test_what_nothing_makes_is_not_looked_for_in_the_store(folder):
    paths = opened(["question.yaml"])
    from shared_work import _files

    none = ["tables/question/comparison.csv", f"{MODEL}/step-300/model.safetensors", f"{MODEL}/step-400"]
    asked = SimpleNamespace(targets=[*none, f"{MODEL}/metrics.parquet"])
    assert _files(SimpleNamespace(dag_settings=asked, _rules={}), paths) == [f"{MODEL}/metrics.parquet"]


def test_an_error_of_another_kind_is_left_alone(folder, monkeypatch):
    """Snakemake may be in another folder by then (`--directory`)."""
    monkeypatch.setattr(sys, "argv", ["snakemake", "--configfile", "question.yaml", "--directory", "elsewhere"])
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert plugin.wrong_config(str(folder)) is None


def test_files_of_a_command_line():
    words = "-n target --configfile a.yaml b.yaml --cores 2 --config x=1 --configfiles=c.yaml d --configfile -n"
    assert plugin.configfiles(words.split()) == ["a.yaml", "b.yaml", "c.yaml"]


def test_a_dry_run_beside_another_run_says_that_it_does_not_look(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(store.VARIABLE, raising=False)
    opened()  # makes the modules of the workflow importable
    from shared_work import _runs

    forces = SimpleNamespace(forceall=False, forcetargets=False, forcerun=set())
    persistence = SimpleNamespace(path=tmp_path / ".snakemake")
    workflow = SimpleNamespace(dag_settings=forces, persistence=persistence, executor_plugin="dryrun", touch=False)
    workflow.dryrun = True
    (tmp_path / ".snakemake/locks").mkdir(parents=True)
    assert _runs(workflow) == "dry"
    (tmp_path / ".snakemake/locks/0.input.lock").touch()
    assert _runs(workflow) == "" and not capsys.readouterr().err, "there is nothing to look at"
    (tmp_path / ".masklab/store").mkdir(parents=True)
    assert _runs(workflow) == "" and "another run holds this folder" in capsys.readouterr().err
    workflow.dryrun = False
    assert _runs(workflow) == "" and not capsys.readouterr().err, "Snakemake itself refuses"
