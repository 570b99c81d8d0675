"""What can be run, but perhaps not as it was meant; and what the room knows of rooms above it."""

import random
import string
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

from masklab.cli import main
from masklab.config import names, read
from masklab.config.check_corpora import _check_pieces
from masklab.config.check_data import GLUE, check_data
from masklab.config.idle import idle
from masklab.config.layers import DEFAULT
from masklab.config.notices import not_read, notices
from masklab.config.schema.tasks import Phenomenon, Recipe
from masklab.corpora.english.labelled_tasks import RECIPES
from masklab.corpora.english.pairs import PHENOMENA
from masklab.errors import MaskLabError
from masklab.plan.graph import opened
from masklab.tasks.glue import FORMS

ROOT = Path(__file__).parents[2]
CONFIGS = [ROOT / "presets", *(ROOT / "src/masklab/studies").iterdir()]
LINE = "the cat sees a dog that runs far from here\n"


def notes_of(config, folder):
    """Of a config over the default one: with its studies, which take longest to check, if it has to do with them."""
    path = folder / "my.yaml"
    path.write_text(config if "studies:" in config or "extends:" in config else config + "studies: {'*': null}\n")
    return opened([path]).notices


def test_the_default_run_has_none_and_is_looked_at_in_no_time():
    config = read()
    began = time.process_time()
    assert check_data(config) + notices(config) == []
    assert time.process_time() - began < 0.3


def test_a_dictionary_that_spams_is_to_learn_where_it_is_not(tmp_path, monkeypatch):
    """There is no build of it for Linux on arm64."""
    monkeypatch.chdir(tmp_path)
    config = "dictionaries: {strict: {backend: spams}}\n"
    monkeypatch.setattr("masklab.config.notices.find_spec", lambda name: name)
    assert notes_of(config, tmp_path) == []
    monkeypatch.setattr("masklab.config.notices.find_spec", lambda name: None)
    said = "backend: SPAMS is not installed; pip install spams-bin, or set backend: torch"
    assert notes_of(config, tmp_path) == [f"my.yaml:1: dictionaries.strict.{said}"]


def test_a_probe_that_reads_more_than_one_of_its_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    encoder = "encoders: {wide: {like: tiny, max_positions: 300}}\n"
    models = "models: {wide: {like: strict-phase1, encoder: wide}}\n"
    study = "studies: {mlsm: {extra: [wide]}}\n"
    found = notes_of(f"{encoder}{models}{study}probes: {{finetune: {{max_length: 256}}}}\n", tmp_path)
    assert found == ["my.yaml:4: probes.finetune.max_length: 256, but 'strict-kd' has 64 positions, to which it is cut"]


@pytest.mark.parametrize(
    ("task", "tokens"),
    [
        ("{like: ib-hmm-6, length: 16, position: 12}", 18),
        ("{kind: pcfg, grammar: ib, min_length: 20}", 22),
        ("{like: ib-hmm-6}", 0),
    ],
)
def test_sequences_of_a_task_that_no_model_reads_to_their_end(task, tokens, tmp_path, monkeypatch):
    """Their labels depend on all of their words: what is cut off cannot be learned."""
    monkeypatch.chdir(tmp_path)
    recipe = "ib-pcfg-s" if "pcfg" in task else "ib-hmm-s"
    study = f"studies: {{mine: {{panels: {{a: [{recipe}]}}, probes: {{mine: all}}}}}}\n"
    longer = "grammars: {ib: {levels: [3, 3, 3, 3, 3, 3]}}\n"  # sentences of 32 words
    found = notes_of(
        f"tasks: {{mine: {task}}}\nprobes: {{mine: {{like: .ib, tasks: [mine]}}}}\n{study}{longer}", tmp_path
    )
    most = read().encoders[read().models[recipe].encoder].max_positions
    said = f"tasks.mine: its sequences have {tokens} tokens at least, and {recipe!r}, which probes.mine measures on it"
    assert found == ([f"my.yaml:1: {said}, reads the first {most}"] if tokens else [])


def test_a_run_that_ends_before_it_has_warmed_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    short = (
        "models: {short: {like: strict-mlm, steps: 90, checkpoints: [], optimiser: {lr: 0.001, warmup_steps: %d}}}\n"
    )
    said = "models.short.steps: 90, but the learning rate warms up for 91 updates (optimiser.warmup_steps)"
    assert notes_of(short % 91, tmp_path) == [f"my.yaml:1: {said}: it never reaches lr (0.001)"]
    assert notes_of(short % 90, tmp_path) == []


def test_a_study_whose_patterns_match_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = 'studies:\n  mine: {panels: {a: ["nope-*"]}, probes: {minimal-pairs: all}}\n'
    assert notes_of(study, tmp_path) == [
        "my.yaml:2: studies.mine: is left out: no recipe matches the patterns of its panels"
    ]


def test_nulls_that_no_probe_of_the_study_measures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = "panels: {a: [strict-mlm]}, probes: {minimal-pairs: all}"
    text = f"studies:\n  mine:\n    {{{study}, nulls: [untrained, bag-of-units, majority]}}\n"
    said = "my.yaml:3: studies.mine.nulls: no probe of the study measures a null 'bag-of-units'"
    assert notes_of(text, tmp_path) == [said]
    assert notes_of(text.replace("bag-of-units", "shuffled"), tmp_path) == []


def test_patterns_of_a_panel_or_probe_that_match_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    panels = '    panels: {a: [strict-mlm], b: ["nope-*"]}\n'
    study = f'studies:\n  mine:\n{panels}    probes:\n      minimal-pairs: ["nope-*"]\n      finetune: all\n'
    assert notes_of(study, tmp_path) == [
        "my.yaml:3: studies.mine.panels.b: is left out: no recipe matches its patterns",
        "my.yaml:5: studies.mine.probes.minimal-pairs: is left out: no recipe matches its patterns",
    ]


def test_a_pattern_that_matches_nothing_beside_names_that_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    panels = '    panels: {all: [strict-mlm, "mea-*"]}\n    extra:\n      - "strict-kd*"\n      - "nope-*"\n'
    study = f'studies:\n  mine:\n{panels}    probes: {{finetune: [strict-mlm, "strict-x?"]}}\n'
    assert notes_of(f'{study}    sets: {{some: [sentiment, "sent?"]}}\n', tmp_path) == [
        "my.yaml:3: studies.mine.panels.all: no recipe matches 'mea-*'",
        "my.yaml:7: studies.mine.probes.finetune: no recipe matches 'strict-x?'",
        "my.yaml:8: studies.mine.sets.some: no task matches 'sent?'",
        "my.yaml:6: studies.mine.extra: no recipe matches 'nope-*'",
    ]


def test_replicates_that_studies_of_other_files_say_themselves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    note = "my.yaml:1: replicates: 1 does not count for mlsm, mae, which say 5 in the study"
    studies = "studies: {dh: {replicates: 1}, implicit-bias: {replicates: 2}, mae-law: {replicates: 5}}\n"
    assert notes_of(f"replicates: 1\n{studies}", tmp_path) == [f"{note} (studies.mlsm.replicates)"]
    assert notes_of(f"replicates: 5\n{studies}", tmp_path) == [] == notes_of(studies, tmp_path)


def test_files_that_are_not_there_and_pieces_that_no_corpus_has(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(LINE * 40)
    corpora = "corpora:\n  a: {kind: text, files: [a.txt], valid: 5, test: 5}\n  b: {kind: text, files: [b.txt]}\n"
    config = corpora + "tokenizers:\n  a: {corpus: a, vocab_size: 4000}\n"
    found = notes_of(config, tmp_path)
    assert found == [
        "my.yaml:5: tokenizers.a.vocab_size: 4000 pieces are asked for; the 10 different words of 'a' give at most 89",
        "my.yaml:3: corpora.b.files: no file matches b.txt",
    ]
    capsys.readouterr()
    assert main(["check", "my.yaml"]) == 0
    assert capsys.readouterr().err == "".join(f"masklab: note: {note}\n" for note in found)


def test_not_all_pieces_of_a_long_word_are_kept():
    """A line of data in base64 is one word with 4.5 million pieces, of which 4,000 are enough to know."""
    word = "".join(random.Random(1).choices(string.ascii_letters, k=3000))
    entry = SimpleNamespace(kind="bpe", corpus="c", rarest_character=1, sample=None, lowercase=False, vocab_size=4000)
    tracemalloc.start()
    try:
        assert _check_pieces(SimpleNamespace(tokenizers={"t": entry}), "c", [word, "a b"], 0) == []
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


def test_at_most_five_missing_files_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = ", ".join(f"{name}.txt" for name in "abcdefgh")
    found = notes_of(f"corpora: {{b: {{kind: text, files: [{files}]}}}}\n", tmp_path)
    more = "... and 3 more files that corpora, tokenizers, tasks and probes name are missing"
    assert len(found) == 6 and found[-1] == more


@pytest.mark.parametrize("rate", [1, 2])
def test_a_large_file_is_not_read_to_its_end(rate, tmp_path, monkeypatch):
    """The mistake in its last line is the job's to find."""
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_bytes(LINE.encode() * 50_000 * rate + b"\xff\n")
    config = "corpora: {a: {kind: text, files: [a.txt]}}\n"
    began = time.process_time()
    assert notes_of(config, tmp_path) == []
    assert time.process_time() - began < 3


def test_lists_that_rooms_above_have_too():
    assert get_args(Recipe) == tuple(RECIPES) and get_args(Phenomenon) == tuple(PHENOMENA)
    assert {task: form.files for task, form in FORMS.items() if form.header is None} == GLUE


def test_no_run_has_the_name_of_a_folder_of_results():
    import paths

    made = {kind.place.split("/")[0].partition(".")[0] for kind in paths.RULES.values()}
    assert made | {"made", "logs", "state"} <= set(names.TAKEN)


@pytest.mark.parametrize("name", ["a", "A-1", "_x", "2M", "a.b+c", "模型", "modèle", "मॉडल", "r1x", "x" * 150])
def test_a_name(name):
    assert names.name_problem(name) is None and names.run_problem(name) is None


@pytest.mark.parametrize(
    "name",
    [".", "..", ".a", "-a", "+a", "r1", "r23", "a/b", "../a", "a b", " a", "a\n", "a\t", "a\0", "a;b", "a&b", "a|b",
     "$a", "`a`", "'a'", '"a"', "a*", "a?", "~a", "#a", "a:b", "a=b", "a,b", "a\\b", "{a}", "(a)", "<a", "a\u200b",
     "\u0301a", "a\u202eb", "x" * 151, "é" * 76],
)  # fmt: skip
def test_no_name(name):
    assert names.name_problem(name) and names.run_problem(name)


IDLE = """optimisers:
  mom: {momentum: 0.9}
encoders:
  cell: {like: tiny, kind: lstm, positions: none, norm: pre, attention_dropout: 0.2, relative_buckets: 8, units: true}
  wide: {like: tiny, kind: lstm, positions: none, norm: pre, intermediate: 512}
corpora:
  lines: {kind: text, files: [a.txt], packed_words: 50}
models:
  strict-mlm: {masking: {count: one, rate: 0.3}}
  warm: {like: strict-kd, optimiser: {warmup: 0.2, warmup_steps: 4}}
probes:
  finetune:
    grid: {lr: [1.0e-3, 1.0e-4]}
    lr: 1.0e-3
    stride: 3
    max_steps: 40
    evaluate_every: 40
    patience: 4
  mae-finetune:
    epochs: 20
  late: {kind: loss, positions: one}
  deep: {kind: rank, masking: {count: one, rate: 0.3}}
causal_models:
  ib: {optimiser: {explosion: 4, momentum: 0.9}}
"""
SHARED = """optimisers:
  mine: {explosion: 4}
causal_models:
  one: {like: ib, optimiser: {like: mine}}
"""


def test_keys_that_do_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(LINE * 3000)
    found = [note for note in notes_of(IDLE, tmp_path) if "does nothing" in note]
    assert found == [
        "my.yaml:7: corpora.lines.packed_words: does nothing: it belongs to unit: packed",
        "my.yaml:24: causal_models.ib.optimiser.momentum: does nothing: it belongs to kind: sgd",
        "my.yaml:24: causal_models.ib.optimiser.explosion: does nothing: the training of a causal model stops at a loss"
        " that is no number, and at no other",
        "my.yaml:4: encoders.cell.attention_dropout: does nothing: an LSTM has no attention",
        "my.yaml:4: encoders.cell.units: does nothing: it belongs to kind: words",
        "my.yaml:4: encoders.cell.relative_buckets: does nothing: it belongs to positions: relative",
        "my.yaml:5: encoders.wide.intermediate: does nothing: an LSTM has no feed-forward layer",
        "my.yaml:2: optimisers.mom.momentum: does nothing: it belongs to kind: sgd",
        "my.yaml:9: models.strict-mlm.masking.rate: does nothing: `one` hides one token whatever the rate",
        "my.yaml:10: models.warm.optimiser.warmup: does nothing: warmup_steps: 4 takes its place",
        "my.yaml:14: probes.finetune.lr: does nothing: grid.lr takes its place",
        "my.yaml:18: probes.finetune.patience: does nothing: evaluate_every: 40 evaluates once, after the last update",
        "my.yaml:15: probes.finetune.stride: does nothing: none of the tasks has answers that are spans",
        "my.yaml:20: probes.mae-finetune.epochs: does nothing: max_steps: 45 takes its place",  # that of a file below
        "my.yaml:21: probes.late.positions: does nothing: it belongs to masks: one",
        "my.yaml:22: probes.deep.masking.rate: does nothing: `one` hides one token whatever the rate",
    ]


def test_a_causal_model_has_no_use_for_an_explosion_that_a_model_may_have(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    note = "my.yaml:2: causal_models.one.optimiser.explosion: does nothing: the training of a causal model"
    assert [found.startswith(note) for found in notes_of(SHARED, tmp_path) if "does nothing" in found] == [True]
    both = f"{SHARED}models:\n  calm: {{like: strict-kd, optimiser: {{like: mine}}}}\n"
    assert not [found for found in notes_of(both, tmp_path) if "does nothing" in found]


def test_keys_that_a_family_shares_and_those_that_a_file_above_replaces_are_no_mistake(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    family = "  .one: {like: strict-mlm, masking: {count: one, rate: 0.3}}\n  one: {like: .one}\n"
    family += "  rate: {like: .one, masking: {count: floor}}\n"
    probe = "probes:\n  mine: {like: finetune, epochs: 7}\n"
    (tmp_path / "low.yaml").write_text(f"models:\n{family}{probe}")
    assert not opened([tmp_path / "low.yaml"]).notices
    above = "extends: low.yaml\nprobes:\n  mine: {max_steps: 50}\n"
    assert notes_of(above, tmp_path) == []
    assert len(notes_of(f"{above}models:\n  rate: null\n", tmp_path)) == 1  # nobody is left who has a use for it


def test_steps_that_no_recipe_keeps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    models = "models: {kept: {like: strict-phase1, steps: 20, checkpoints: [10, 20]}}\n"
    study = "studies: {mine: {panels: {a: [kept]}, probes: {late: all, some: all, good: all}}}\n"
    probes = "probes:\n  late: {like: finetune, steps: [7]}\n  some: {like: finetune, steps: [10, 15]}\n"
    assert notes_of(f"{models}{study}{probes}  good: {{like: finetune, steps: [10]}}\n", tmp_path) == [
        "my.yaml:4: probes.late.steps: no recipe that it measures keeps a step 7: the last is measured; they keep 10,"
        " 20",
        "my.yaml:5: probes.some.steps: no recipe that it measures keeps a step 15: left out; they keep 10, 20",
    ]


@pytest.mark.parametrize(
    "file", sorted(str(path.relative_to(ROOT)) for folder in CONFIGS for path in folder.glob("*.yaml"))
)
def test_no_config_of_ours_says_what_does_nothing(file):
    assert idle(read(ROOT / file), set()) == []


def test_a_config_beside_the_user_that_nobody_has_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not_read() == []
    (tmp_path / "config.yaml").write_text("run: mine\n")
    (note,) = not_read()
    assert note.startswith("config.yaml of this folder is not read, but MaskLab's own (/") and note in opened().notices
    assert not_read()[0] not in opened(["config.yaml"]).notices
    (tmp_path / "config.yaml").unlink()
    (tmp_path / "config.yaml").symlink_to(DEFAULT)
    assert not_read() == []


@pytest.mark.parametrize("place", ["results", "results/mine"])
def test_a_file_in_the_place_of_the_results_is_refused(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text("run: mine\n")
    Path(place).parent.mkdir(exist_ok=True)
    Path(place).touch()
    with pytest.raises(MaskLabError, match=f"^{place}: a file lies where the folder of results goes; move it away$"):
        opened(["my.yaml"])
    Path(place).unlink()
    opened(["my.yaml"])


@pytest.mark.parametrize("place", ["results", "results/mine"])
def test_a_link_of_results_to_a_folder_that_is_gone_is_refused(place, tmp_path, monkeypatch):
    """A disk that is not mounted, say: Snakemake would ask for a folder in the place of the link."""
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text("run: mine\n")
    Path(place).parent.mkdir(exist_ok=True)
    Path(place).symlink_to(tmp_path / "disk/results")
    said = f"^{place}: leads to {tmp_path}/disk/results, where there is no folder; make that folder, or mount its disk$"
    with pytest.raises(MaskLabError, match=said):
        opened(["my.yaml"])
    (tmp_path / "disk/results").mkdir(parents=True)
    opened(["my.yaml"])
