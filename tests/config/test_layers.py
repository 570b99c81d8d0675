"""Files laid over each other, families, `like`, kinds that change, null."""

from pathlib import Path

import pytest

from masklab.config import DEFAULT, layered, load, plain, read
from masklab.config.inherit import DEFAULT_KINDS
from masklab.config.layers import stack
from masklab.config.schema import Config, entry
from masklab.errors import MaskLabError


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def file(text, name="my.yaml"):
        path = Path(name)
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
        return path

    return file


def laid(*files, values=()):
    return plain(layered(files, values))


def said_of(*files, values=()) -> str:
    with pytest.raises(MaskLabError) as caught:
        read(*files, values=values)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- which files ------------------------------------------------------------------------------------------------------


def test_none_is_the_default_and_a_file_lies_over_it(write):
    assert plain(layered()) == laid(DEFAULT)
    write("run: mine\nmodels: {strict-mlm: {batch_size: 16}}")
    config = read("my.yaml")
    assert config.run == "mine" and config.models["strict-mlm"].batch_size == 16 and config.seed == 1
    assert config.models["strict-mlm"].steps == 400 == config.models["strict-kd"].steps


def test_extends(write):
    write("extends: []\nrun: low\nseed: 1\nthreads: 2", "a/low.yaml")
    write("extends: low.yaml\nrun: mid\nseed: 3", "a/mid.yaml")
    write("extends: [a/mid.yaml]\nrun: top")
    assert laid("my.yaml") == {"run": "top", "seed": 3, "threads": 2}
    write(f"extends: {Path('a/low.yaml').resolve()}")
    assert laid("my.yaml") == {"run": "low", "seed": 1, "threads": 2}
    write("extends: [default, a/low.yaml]\n")
    assert laid("my.yaml")["run"] == "low" and "models" in laid("my.yaml")


def test_a_file_that_several_extend_lies_where_it_is_first_named(write):
    write("extends: []\nseed: 1\nrun: base", "base.yaml")
    write("extends: base.yaml\nseed: 2", "one.yaml")
    write("extends: base.yaml\nrun: two", "two.yaml")
    write("extends: [one.yaml, two.yaml]")
    assert laid("my.yaml") == {"seed": 2, "run": "two"} == laid("one.yaml", "two.yaml")


def test_a_further_file_lies_over_the_first_alone(write):
    write("extends: []\nseed: 1", "alone.yaml")
    write("threads: 2")
    assert laid("alone.yaml", "my.yaml") == {"seed": 1, "threads": 2}
    assert "models" in laid("my.yaml", "alone.yaml")
    assert [path.name for path in stack(["alone.yaml", "my.yaml"])] == ["alone.yaml", "my.yaml"]


def test_circles_and_missing_files(write):
    write("extends: other.yaml")
    write("seed: 1\nextends:\n  - my.yaml", "other.yaml")
    assert said_of("my.yaml") == "other.yaml:3: extends: goes round in a circle: my.yaml -> other.yaml -> my.yaml"
    assert said_of("none.yaml") == "none.yaml: no such file"
    write("extends:\n  - default\n  - none.yaml")
    assert said_of("my.yaml") == "my.yaml:3: extends: no such file: none.yaml"
    for name, meant in (("first", "first"), ("evenning", "evening")):  # as in the checkout, in a folder elsewhere
        write(f"extends: presets/{name}.yaml")
        there = f"MaskLab's is {DEFAULT.parent.resolve() / 'presets' / meant}.yaml"
        assert said_of("my.yaml") == f"my.yaml:1: extends: no such file: presets/{name}.yaml; {there}"


def test_values_of_the_command_line_come_on_top(write):
    write("seed: 5\nmodels: {strict-mlm: {steps: 810}}")
    values = ["seed=7", "models={'strict-mlm': {'batch_size': 8}}", "studies={'mae': null}", "run=2024", "device="]
    config = read("my.yaml", values=values)
    assert config.seed == 7 and config.run == "2024" and config.device == "auto" and "mae" not in config.studies
    assert (config.models["strict-mlm"].batch_size, config.models["strict-mlm"].steps) == (8, 810)


@pytest.mark.parametrize("run", ["010", "1.50", "0x1F", "2024_11", "1e5"])
def test_a_run_is_called_as_it_is_written(write, run):
    """One called 010 had lain in results/8, and 1.50 and 1.5 in one folder."""
    write(f"run: {run}")
    assert read("my.yaml").run == read("my.yaml", values=["run=x", f"run={run}"]).run == run
    assert load(plain(read("my.yaml").raw)).run == run


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("models={'strict-mlm': {'steps': -1}}", "--config: models.strict-mlm.steps: must be at least 0 (got -1)"),
        ("models={'strict-mlm': {'corpus': 'x'}}", "--config: models.strict-mlm.corpus: 'x' is not declared"),
        ("seed=x", "--config: seed: must be a whole number (got 'x')"),
        ("sead=1", "--config: sead: unknown key; did you mean 'seed'?"),
        ("studies={'nope': null}", "--config: studies.nope: null removes an entry of the files below"),
        ("models={", "--config: not valid YAML"),
        ("seed", "--config: 'seed' must be written key=value"),
        ("extends=x", "--config: extends: only a file can extend others"),
    ],
)
def test_a_wrong_value_of_the_command_line_is_said_of_it(value, said):
    assert said_of(values=[value]).startswith(said)


def test_what_was_read_stands_alone(write):
    """The workflow leaves it to its jobs."""
    config = read(DEFAULT)
    again = load(plain(config.raw))
    assert again == config and again.model_dump() == config.model_dump()


# --- families ---------------------------------------------------------------------------------------------------------

FAMILY = """\
extends: []
corpora:
  "c{n}":
    for: {n: [1, 2]}
    kind: english
    sentences: 10
    valid: "{n}"
"""


def test_one_member_is_changed_by_its_name(write):
    write(FAMILY, "low.yaml")
    write("extends: low.yaml\ncorpora: {c2: {sentences: 20}}")
    assert laid("my.yaml")["corpora"] == {
        "c1": {"kind": "english", "sentences": 10, "valid": 1},
        "c2": {"kind": "english", "sentences": 20, "valid": 2},
    }
    for order in ("  c2: {sentences: 20}\n" + FAMILY.partition("corpora:\n")[2], None):  # in one file, before and after
        text = "extends: []\ncorpora:\n" + order if order else FAMILY + "  c2: {sentences: 20}\n"
        write(text)
        assert laid("my.yaml")["corpora"]["c2"] == {"kind": "english", "sentences": 20, "valid": 2}


def test_a_member_is_left_out_by_null(write):
    write(FAMILY + "  c1: null\n", "low.yaml")
    write("extends: []\ncorpora: {c1: {kind: text, files: [x]}}")
    assert list(laid("my.yaml", "low.yaml")["corpora"]) == ["c2"]


def test_an_error_in_a_family_is_said_once_where_its_value_stands(write):
    write(FAMILY.replace("sentences: 10", "sentences: 0").replace("[1, 2]", "[1, 2, 3]"))
    assert said_of("my.yaml") == "my.yaml:6: corpora.c1.sentences: must be at least 1 (got 0)"
    write(FAMILY.replace("{n: [1, 2]}", "\n      n:\n        - 1\n        - 0"))
    assert said_of("my.yaml") == "my.yaml:7: corpora.c0.valid: must be at least 1 (got 0)"


# --- like -------------------------------------------------------------------------------------------------------------


def test_like_inherits_mapping_by_mapping_after_all_files_are_laid(write):
    write("""\
extends: []
encoders:
  .base: {layers: 2, heads: 2, decoder: {layers: 1, hidden: 8}}
  a: {like: .base, hidden: 8}
  b: {like: a, decoder: {layers: 3}, dropout: null}
""", "low.yaml")  # fmt: skip
    write("extends: low.yaml\nencoders: {.base: {heads: 4}, a: {norm: pre}}")
    assert laid("my.yaml")["encoders"] == {
        "a": {"layers": 2, "heads": 4, "hidden": 8, "norm": "pre", "decoder": {"layers": 1, "hidden": 8}},
        "b": {
            "layers": 2,
            "heads": 4,
            "hidden": 8,
            "norm": "pre",
            "dropout": None,
            "decoder": {"layers": 3, "hidden": 8},
        },
    }


def test_optimisers_by_name(write):
    write("""\
extends: []
optimisers:
  .all: {warmup: 0.5, clip: null}
  fast: {like: .all, lr: 0.1}
  plain: {kind: sgd, lr: 0.2}
models:
  a: {optimiser: fast}
  b: {optimiser: {like: fast, lr: 0.3}}
  c: {like: b, optimiser: {eps: 1}}
  d: {like: b, optimiser: plain}
  e: {like: b, optimiser: {kind: sgd, lr: 0.4}}
  f: {like: a, optimiser: {lr: 0.5}}
causal_models:
  g: {optimiser: fast}
""", "low.yaml")  # fmt: skip
    models = laid("low.yaml")["models"]
    fast = {"warmup": 0.5, "clip": None, "lr": 0.1}
    assert [models[name]["optimiser"] for name in "abcdef"] == [
        fast, fast | {"lr": 0.3}, fast | {"lr": 0.3, "eps": 1}, {"kind": "sgd", "lr": 0.2}, {"kind": "sgd", "lr": 0.4},
        fast | {"lr": 0.5},
    ]  # fmt: skip
    assert laid("low.yaml")["causal_models"]["g"]["optimiser"] == fast
    write("""\
extends: low.yaml
optimisers: {plain: {lr: 0.9}}
models: {a: {optimiser: {lr: 7}}, b: {optimiser: plain}, c: {optimiser: {kind: sgd}}, d: {optimiser: {momentum: 0.1}}}
""")
    models = laid("my.yaml")["models"]
    assert [models[name]["optimiser"] for name in "abcd"] == [
        fast | {"lr": 7}, {"kind": "sgd", "lr": 0.9}, {"kind": "sgd", "lr": 0.9},
        {"kind": "sgd", "lr": 0.9, "momentum": 0.1},
    ]  # fmt: skip


# --- kinds, null, panels ----------------------------------------------------------------------------------------------


def test_another_kind_replaces(write):
    write("""\
extends: []
corpora:
  .base: {kind: english, valid: 5}
  a: {like: .base, sentences: 10}
  b: {like: .base, sentences: 10}
encoders: {e: {layers: 2, heads: 2}, f: {layers: 2}}
""", "low.yaml")  # fmt: skip
    write("""\
extends: low.yaml
corpora:
  a: {kind: text, files: [x]}
  b: {kind: english, sentences: 20}
  .base: {kind: text, files: [y]}
  .other: {kind: pcfg, grammar: g}
encoders: {e: {kind: lstm, norm: pre}, f: {kind: transformer, heads: 2}}
""")
    found = laid("my.yaml")
    assert found["corpora"] == {
        "a": {"kind": "text", "files": ["x"]},
        "b": {"kind": "english", "sentences": 20},  # what it was like is of another kind now
    }
    assert found["encoders"] == {
        "e": {"kind": "lstm", "norm": "pre"},
        "f": {"kind": "transformer", "layers": 2, "heads": 2},
    }
    write("extends: low.yaml\ncorpora: {a: {like: .text}, .text: {kind: text, files: [z]}}")
    assert laid("my.yaml")["corpora"]["a"] == {"kind": "text", "files": ["z"]}  # a kind may come by `like` too


def test_one_that_is_like_another_keeps_its_keys_whatever_the_kinds_where_these_share_them(write):
    write("""\
extends: []
encoders:
  base: {layers: 2, hidden: 8}
  cell: {like: base, kind: lstm, norm: pre}
optimisers:
  fast: {lr: 0.1, warmup: 0.5}
  plain: {like: fast, kind: sgd}
models:
  a: {optimiser: plain}
  b: {optimiser: {like: fast, kind: sgd, lr: 0.2}}
""")
    found = laid("my.yaml")
    assert found["encoders"]["cell"] == {"kind": "lstm", "layers": 2, "hidden": 8, "norm": "pre"}
    plain = {"kind": "sgd", "lr": 0.1, "warmup": 0.5}
    assert [model["optimiser"] for model in found["models"].values()] == [plain, plain | {"lr": 0.2}]


@pytest.mark.parametrize(
    ("section", "base", "kind"),
    [
        ("corpora", "kind: english", "text"),
        ("probes", "kind: finetune", "rank"),
        ("tokenizers", "vocab_size: 9", "bpe"),
    ],
)
def test_like_of_another_kind_is_refused_where_kinds_have_keys_of_their_own(write, section, base, kind):
    write(f"extends: []\n{section}:\n  .a: {{{base}}}\n  b: {{like: .a}}", "low.yaml")
    write(f"extends: low.yaml\n{section}:\n  c: {{like: b, kind: {kind}}}")
    other = base.removeprefix("kind: ") if "kind" in base else "unigram"
    said = f"my.yaml:3: {section}.c.like: 'b' is of kind {other}, of whose keys an entry of kind {kind} takes none;"
    assert said_of("my.yaml").startswith(said)


def test_default_kinds_are_the_schemas():
    for section, kind in DEFAULT_KINDS.items():
        needed = {"tokenizers": {"corpus": "c"}, "embeddings": {"corpus": "c", "tokenizer": "t", "size": 1}}
        assert entry(section, needed.get(section, {})).kind == kind
    declared = {section for section in Config.model_fields if section in DEFAULT_KINDS}
    assert declared == set(DEFAULT_KINDS)


def test_null_removes_entries_and_those_that_a_pattern_matches(write):
    write("studies: {'mae*': null, 'i*': null}\nprobes:\n")
    config = read("my.yaml")
    assert list(config.studies) == ["mlsm", "dh"] and config.probes
    write("extends: []\nmodels: {.a: {steps: 1}, ab: {like: .a}, ac: {like: .a}}", "low.yaml")
    write("extends: low.yaml\nmodels: {'*': null, ad: {like: .a}}")
    assert laid("my.yaml")["models"] == {"ad": {"steps": 1}}


def test_panels_are_replaced_whole_and_removed_by_null(write):
    write("""\
studies:
  mlsm:
    panels: {strict: [strict-mlm], strict-small: null}
    probes: {finetune: null}
  dh: {panels: {single: {one: dh-single-with}, shared: null, separate: null}}
  copy: {like: mlsm, panels: {mine: [strict-kd]}}
""")
    found = laid("my.yaml")["studies"]
    assert found["mlsm"]["panels"] == {"strict": ["strict-mlm"]} and "finetune" not in found["mlsm"]["probes"]
    assert found["dh"]["panels"] == {"single": {"one": "dh-single-with"}}
    assert found["copy"]["panels"] == {"strict": ["strict-mlm"], "mine": ["strict-kd"]}
    assert found["copy"]["sets"] == found["mlsm"]["sets"]


def test_panels_stand_in_the_order_of_a_file_that_names_them_all(write):
    write("""\
studies:
  a: {like: dh, panels: {separate: null, mine: {one: dh-single-with}, single: {one: dh-single-with}, shared: null}}
  b: {like: a, panels: {single: {two: dh-single-with}, mine: {one: dh-single-with}}}
  c: {like: a, panels: {single: {two: dh-single-with}}}
""")
    found = laid("my.yaml")["studies"]
    assert list(found["a"]["panels"]) == ["mine", "single"]
    assert list(found["b"]["panels"]) == ["single", "mine"]
    assert list(found["c"]["panels"]) == ["mine", "single"] and found["c"]["panels"]["single"] == {
        "two": "dh-single-with"
    }


def test_what_names_a_removed_entry_is_said_of_the_removal(write):
    write("seed: 2\nmodels:\n  strict-mlm: {steps: 810}\n  strict-kd: null")
    assert said_of("my.yaml").startswith(
        "my.yaml:4: models.strict-kd: null removes it, but studies.mlsm.panels.strict.KD ("
    )
    write("models:\n  strict-mlm: {steps: 810}\nstudies:\n  mlsm:\n    panels: {strict: [strict-mlm]}")
    assert said_of("my.yaml").startswith(
        "my.yaml:5: studies.mlsm.panels.strict: does not fit studies.mlsm.probes.figure1: 'strict-mlsm'"
    )


def test_a_change_far_from_where_it_does_not_fit_is_said_first(write):
    """A width of embeddings that no longer fits a model which only the default declares."""
    write("seed: 2\nembeddings:\n  dh-single:\n    size: 16")
    said = said_of("my.yaml")
    assert (
        said == "my.yaml:4: embeddings.dh-single.size: 16 must be hidden (48) of encoder 'dh' in models.dh-single-cbow"
    )
    write("tasks: {patterns-single-0: {kind: english-labels, recipe: sentiment}}")
    assert said_of("my.yaml").startswith(
        "my.yaml:1: tasks.patterns-single-0.kind: does not fit studies.dh.probes.dh-single: task"
    )
