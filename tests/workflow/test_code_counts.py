"""The real workflow after edits of its code: what they can change is made again, and nothing else."""

import re

import pytest
from checkout import Checkout
from running import jobs
from test_symbolic import CONFIG, TARGETS

pytestmark = pytest.mark.workflow
NOTHING = "Nothing to be done"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the checkout whose whole small run has ended."""
    copy = Checkout(tmp_path_factory.mktemp("code"))
    copy.snakemake(CONFIG, *TARGETS)
    return copy


@pytest.fixture
def edited(copy):
    """Edit a file of the copy for one test; the output of a dry run after it."""
    files = []

    def edit(file, pattern, replacement):
        files.append(file)
        copy.edit(file, pattern, replacement)
        return copy.snakemake(CONFIG, *TARGETS, "--dry-run")

    yield edit
    for file in files:
        copy.restore(file)


def test_a_docstring_or_comment_edited_anywhere_makes_nothing_again(copy):
    for path in [*(copy.path / "src").rglob("*.py"), *(copy.path / "workflow").rglob("*.py")]:
        text = path.read_text()
        path.write_text(re.sub(r'^( *)"""(?=\w)', r'\1"""In other words: ', text, flags=re.M) + "\n# the end\n")
    for path in [copy.path / "Snakefile", *(copy.path / "workflow/rules").glob("*.smk")]:
        path.write_text(f"# A comment.\n{path.read_text()}")
    assert NOTHING in copy.snakemake(CONFIG, *TARGETS, "--dry-run")


@pytest.mark.parametrize(
    ("file", "pattern", "replacement"),
    [
        ("src/masklab/jobs/progress.py", "^REDRAW = .*$", "REDRAW = 7"),
        ("src/masklab/jobs/store.py", r"^COPIED = .*$", "COPIED = 7"),
        ("src/masklab/cli.py", r"\Z", "\nOTHER = 1\n"),
        ("src/masklab/config/checks.py", r"\Z", "\nOTHER = 1\n"),
        ("src/masklab/config/schema/probes.py", r'"gaussian": 0\.05', '"gaussian": 0.06'),  # a probe of no study here
        ("src/masklab/corpora/english/__init__.py", r"\Z", "\nOTHER = 1\n"),
        ("workflow/scripts/_job.py", r"\Z", "\nOTHER = 1\n"),
    ],
)  # fmt: skip
def test_code_that_no_result_depends_on_makes_nothing_again(edited, file, pattern, replacement):
    assert NOTHING in edited(file, pattern, replacement)


def test_one_probe_s_code_re_runs_that_probe_and_below(copy, edited):
    output = edited("src/masklab/probes/linear_probe.py", r"\Z", "\nOTHER = 1\n")
    assert jobs(output) == {"probe": 2, "scores": 1}
    assert set(re.findall(r"probe (\S+) on", output)) == {"linear"}
    said = copy.why("results/scores.parquet")
    assert "probe linear dh r1 all: " in said and "code     masklab.probes.linear_probe\n" in said
    assert "exact" not in said and "needed by scores" in said


def test_one_term_s_code_re_runs_the_models_that_have_it_and_below(edited):
    output = edited("src/masklab/objectives/adversarial.py", r"\Z", "\nOTHER = 1\n")
    assert jobs(output) == {"pretrain": 1, "probe": 1, "scores": 1}
    assert "pre-training foe r1" in output and re.findall(r"probe (\S+) on (\S+)", output)[0] == ("exact", "foe")


def test_a_class_of_the_schema_re_runs_what_uses_it(edited):
    added = 'class LinearProbe(TrainingProbe):\n    """More."""\n\n    other: int = 1'
    output = edited("src/masklab/config/schema/probes.py", r"^class LinearProbe\(TrainingProbe\):$", added)
    assert jobs(output) == {"probe": 2, "scores": 1} and set(re.findall(r"probe (\S+) on", output)) == {"linear"}


def test_one_kind_of_corpus_re_runs_its_corpora_and_below(edited):
    counts = jobs(edited("src/masklab/corpora/markov/__init__.py", "^CHUNK = 4096", "CHUNK = 4095"))
    assert counts == {"corpus": 1, "tokenizer": 1, "tokens": 1, "conditionals": 1, "embeddings": 1, "pretrain": 5,
                      "probe": 6, "scores": 1}  # fmt: skip


def test_the_law_of_a_corpus_counts_for_probes_that_may_ask_for_it(edited):
    counts = jobs(edited("src/masklab/corpora/markov/law.py", "^MEMORY = 1 << 24", "MEMORY = 1 << 23"))
    assert counts["probe"] == 6 and counts["conditionals"] == 1 and "task" not in counts


def test_a_person_vouches_for_a_change_with_touch(copy):
    """Last: it changes the folder."""
    model = copy.folder / "results/models/dh/r1/step-10/model.safetensors"
    before = model.read_bytes(), model.stat().st_mtime_ns
    copy.edit("src/masklab/training/validation.py", "^ROWS = 512$", "ROWS = 511")
    assert jobs(copy.snakemake(CONFIG, *TARGETS, "--dry-run"))["pretrain"] == 5
    assert "code     masklab.training.validation\n" in copy.why("results/models/dh/r1/manifest.json")
    copy.snakemake(CONFIG, *TARGETS, "--touch")
    assert NOTHING in copy.snakemake(CONFIG, *TARGETS, "--dry-run")
    said = copy.why("results/models/dh/r1/manifest.json")
    assert "nothing to do" in said and "vouched for on" in said
    assert (model.read_bytes(), model.stat().st_mtime_ns) == before
    copy.restore("src/masklab/training/validation.py")
    assert jobs(copy.snakemake(CONFIG, *TARGETS, "--dry-run"))["pretrain"] == 5
