"""The typed config: families, checkpoints, parts of probes, what is resolved, cross-checks."""

import json
from pathlib import Path

import pytest

from masklab.config import checkpoints, layered, load, overlay, plain, probe_steps, resolved
from masklab.config.schema import Config
from masklab.config.units import units
from masklab.errors import MaskLabError

ROOT = Path(__file__).parents[2]
DEFAULT = plain(layered())


def changed(*path, value):
    top = value
    for key in reversed(path):
        top = {key: top}
    return overlay(DEFAULT, top)


def test_families_expand():
    config = load(DEFAULT)
    assert list(config.models)[:3] == ["strict-phase1", "strict-small-phase1", "strict-kd"]
    assert sum(name.startswith("strict") for name in config.models) == 2 + 5 + 3
    assert config.models["strict-small-mlsm+mlm"].init == "strict-small-phase1@1500"


def test_a_whole_placeholder_keeps_its_type():
    config = load({"corpora": {"c{n}": {"for": {"n": [10, 20]}, "kind": "english", "sentences": "{n}"}}})
    assert config.corpora["c20"].sentences == 20


def test_a_mapping_without_places_is_said_to_be_the_config():
    with pytest.raises(MaskLabError) as caught:
        load(changed("models", "strict-kd", "steps", value=-1))
    assert str(caught.value) == "config: models.strict-kd.steps: must be at least 0 (got -1)"


def test_default_checkpoints_are_fifths():
    config = load(changed("models", "strict-kd", "checkpoints", value=[]))
    assert checkpoints(config.models["strict-kd"]) == [80, 160, 240, 320, 400]


def test_steps_and_units_of_a_probe():
    config = load(changed("probes", "finetune", "split", value=["step", "task"]))
    probe, model = config.probes["finetune"], config.models["strict-kd"]
    assert probe_steps(probe, model) == [80, 400]
    names = units(probe, model)
    assert names["step-80.sentiment"] == ([80], ["sentiment"]) and len(names) == 2 * len(probe.tasks)
    assert list(units(config.probes["minimal-pairs"], model)) == ["all"]
    packed = units(probe.model_copy(update={"pack": 4}), model)
    first = probe.tasks[0]
    assert packed[f"step-80.{first}+3"] == ([80], probe.tasks[:4]) and len(packed) == 2 * 2  # 6 tasks: 4, 2
    assert packed[f"step-400.{probe.tasks[4]}+1"] == ([400], probe.tasks[4:])
    assert list(units(probe.model_copy(update={"split": ["task"], "pack": 5}), model))[1] == probe.tasks[5]


def test_schema_file_is_in_step():
    written = json.loads((ROOT / "workflow/schemas/config.schema.json").read_text())
    assert written == Config.model_json_schema(), "run `masklab schema` to write it again"


CHAINS = {
    "chains": {"c": {"synsets": 50}, "other": {"synsets": 50}},
    "corpora": {
        "{dh}": {
            "for": [{"dh": ["with"], "flag": [True]}, {"dh": ["without"], "flag": [False]}],
            "kind": "markov", "chains": "c", "distributional": "{flag}", "length": 32,
        },
    },
    "tokenizers": {"symbols": {"kind": "symbols", "corpus": "with", "max_length": 34}},
    "encoders": {"e": {"layers": 1, "hidden": 32, "heads": 2}},
    "objectives": {"mlm": {"mlm": 1}},
    "embeddings": {"cbow": {"corpus": "with", "tokenizer": "symbols", "size": 32}},
    "models": {
        "mlm": {"corpus": "with", "tokenizer": "symbols", "encoder": "e", "objective": "mlm", "steps": 10},
        "start": {"corpus": "with", "tokenizer": "symbols", "encoder": "e", "objective": "mlm", "steps": 0},
    },
    "tasks": {"p": {"kind": "patterns", "chains": "c"}},
    "probes": {"f": {"kind": "finetune", "tasks": ["p"]}, "loss": {"kind": "loss"}},
    "studies": {"s": {"panels": {"all": ["mlm"]}, "probes": {"f": "all", "loss": "all"}}},
}  # fmt: skip


def test_a_resolved_corpus_holds_its_chains():
    config = load(CHAINS)
    settings = resolved(config, config.corpora["without"])
    assert settings["chains"]["synsets"] == 50 and settings["distributional"] is False
    again = Config(corpora={"x": settings}).corpora["x"]
    assert again.chains == config.chains["c"]
    assert resolved(config, config.tasks["p"])["chains"] == settings["chains"]


def test_a_model_of_no_steps_keeps_step_0():
    config = load(CHAINS)
    assert checkpoints(config.models["start"]) == [0] and checkpoints(config.models["mlm"]) == [2, 4, 6, 8, 10]
    config = load(overlay(CHAINS, {"models": {"mlm": {"init": "start@0"}}}))
    assert config.models["mlm"].init == "start@0"


@pytest.mark.parametrize(
    "path,value,said",
    [
        (("corpora", "{dh}", "chains"), "d", "corpora.with.chains: 'd' is not declared; declared: c, other"),
        (("tasks", "p", "chains"), "cc", "tasks.p.chains: 'cc' is not declared; did you mean 'c'?"),
        (
            ("tokenizers", "symbols", "kind"),
            "unigram",
            "corpus 'with' holds symbols, which tokenizer 'symbols' cannot read; write kind: symbols",
        ),
        (("tokenizers", "symbols", "vocab_size"), 9, "tokenizers.symbols.vocab_size: unknown key for kind 'symbols'"),
        (("models", "mlm", "shuffle"), True, "models.mlm.shuffle: needs weights to shuffle"),
        (("models", "mlm", "embeddings"), "w2v", "models.mlm.embeddings: 'w2v' is not declared"),
        (("embeddings", "cbow", "size"), 16, "models.start.embeddings: size (16) of 'cbow' must be hidden"),
        (("tasks", "p", "chains"), "other", "studies.s.probes.f: task 'p' is of another law than model 'mlm' reads"),
        (("objectives", "mlm"), {"mlm": 1, "mae": 1}, "objectives.mlm: mlm and mae exclude each other: they are"),
        (
            ("objectives", "mlm"),
            {"mlm": 0, "mae": 1},
            "models.mlm.encoder: objective 'mlm' needs an encoder with a `dec",
        ),
        (("encoders", "e", "decoder"), {"layers": 1}, "models.mlm.encoder: 'e' has a decoder, but objective 'mlm'"),
        (("studies", "s", "sets"), {"x": ["y"]}, "studies.s.sets.x: 'y' is not declared; declared: p"),
        (("models", "mlm", "masking"), {"specials": True}, "studies.s.probes.loss: no floor for 'mlm'"),
        (("models", "mlm", "masking"), {"mask": 0.8}, "studies.s.probes.loss: no exact floor for 'mlm'"),
        (("models", "mlm", "steps"), -1, "models.mlm.steps: must be at least 0 (got -1)"),
    ],
)
def test_a_wrong_value_of_a_symbolic_study_is_one_line(path, value, said):
    top = value
    for key in reversed(path):
        top = {key: top}
    raw = overlay(CHAINS, {"models": {"start": {"embeddings": "cbow"}}})
    load(raw)
    with pytest.raises(MaskLabError) as caught:
        load(overlay(raw, top))
    assert said in str(caught.value)


def test_what_reads_predictions_needs_the_decoder():
    mae = {"encoders": {"e": {"decoder": {"layers": 1}}}, "objectives": {"mlm": {"mlm": 0, "mae": 1}}}
    with pytest.raises(MaskLabError, match=r"studies.s.probes.loss: a loss probe reads predictions.*mlm.keep_decoder"):
        load(overlay(CHAINS, mae))
    kept = overlay(mae, {"models": {"mlm": {"keep_decoder": True}}})
    load(overlay(CHAINS, kept))
    with pytest.raises(MaskLabError, match="only with delta 0"):
        load(overlay(CHAINS, overlay(kept, {"objectives": {"mlm": {"mae": {"delta": 0.5}}}})))


def test_a_loss_of_training_masks_is_read_as_in_training():
    """A decoder that resets what stays in the encoder and is not shown as [MASK] is asked with one [MASK] alone."""
    mae = {"encoders": {"e": {"decoder": {"layers": 1}}}, "objectives": {"mlm": {"mlm": 0, "mae": {"reset": True}}}}
    raw = overlay(CHAINS, overlay(mae, {"models": {"mlm": {"keep_decoder": True}}}))
    load(raw)
    shown = overlay(raw, {"models": {"mlm": {"masking": {"mask": 0.8, "count": "bernoulli"}}}})
    with pytest.raises(MaskLabError, match=r"studies.s.probes.loss: 'mlm' was trained with mae.reset.*loss.masks: one"):
        load(shown)
    load(overlay(shown, {"probes": {"loss": {"masks": "one"}}}))


@pytest.mark.parametrize(
    "probe",
    [
        {"kind": "curvature"},
        {"kind": "landscape"},
        {"kind": "replaced", "tasks": ["p"]},
        {"kind": "paraphrased", "tasks": ["p"], "parses": ["parses.txt"], "wordnet": "nltk"},
    ],
    ids=lambda probe: probe["kind"],
)
def test_every_kind_of_probe_that_reads_predictions_needs_the_decoder(probe):
    study = {"panels": {"all": ["mlm"]}, "probes": {"x": "all"}}
    raw = CHAINS | {"probes": {"x": probe}, "studies": {"s": study}}
    mae = {"encoders": {"e": {"decoder": {"layers": 1}}}, "objectives": {"mlm": {"mlm": 0, "mae": 1}}}
    load(raw)
    with pytest.raises(MaskLabError, match=f"studies.s.probes.x: a {probe['kind']} probe reads predictions.*mlm.keep"):
        load(overlay(raw, mae))
    load(overlay(raw, overlay(mae, {"models": {"mlm": {"keep_decoder": True}}})))


def test_a_model_with_a_decoder_is_known_in_no_larger_width():
    study = {"panels": {"all": ["mlm"]}, "probes": {"x": "all"}}
    raw = CHAINS | {"probes": {"x": {"kind": "curvature", "width": 64}}, "studies": {"s": study}}
    load(raw)
    mae = {"encoders": {"e": {"decoder": {"layers": 1}}}, "objectives": {"mlm": {"mlm": 0, "mae": 1}}}
    with pytest.raises(MaskLabError, match=r"studies.s.probes.x: 'mlm' has a decoder, and only .*probes.x.width"):
        load(overlay(raw, overlay(mae, {"models": {"mlm": {"keep_decoder": True}}})))


def test_studies_name_models_by_patterns():
    """In order of declaration; panels and probes that nothing matches are left out, unknown names are not."""
    runs = {"m-{run}": {"for": {"run": [2, 1]}, **CHAINS["models"]["mlm"]}}
    study = {
        "panels": {"M": ["m-*"], "none": ["x-[0-9]"], "named": {"label": "mlm"}},
        "probes": {"f": ["m-*", "m-1"], "loss": ["y*"]},
        "extra": ["start", "m-?"],
        "sets": {"all": ["*"], "none": ["z*"]},
    }
    config = load(overlay(CHAINS, {"models": runs, "studies": {"s": study}}) | {"studies": {"s": study}})
    found = config.studies["s"]
    assert found.panels == {"M": ["m-2", "m-1"], "named": {"label": "mlm"}}
    assert found.sets == {"all": ["p"]}
    assert found.probes == {"f": ["m-2", "m-1"]} and found.extra == ["start", "m-2", "m-1"]
    with pytest.raises(MaskLabError, match="'m-9' is not declared"):
        load(overlay(CHAINS, {"models": runs}) | {"studies": {"s": study | {"panels": {"M": ["m-9"]}}}})
    alone = load(overlay(CHAINS, {"studies": {"none": study | {"panels": {"M": ["m-*"]}, "extra": []}}}))
    assert list(alone.studies) == ["s"]


@pytest.mark.parametrize("lr", ["1e-3", "1E-3", "0.001", "1.0e-3"])
def test_a_number_without_quotes_is_one_however_it_is_written(lr, tmp_path):
    """YAML takes 1e-3 for text."""
    path = tmp_path / "my.yaml"
    path.write_text(f'models:\n  strict-mlm: {{optimiser: {{lr: {lr}}}}}\nrun: "4"\n')
    config = load(layered([path]))
    assert config.models["strict-mlm"].optimiser.lr == 1e-3 and config.run == "4"
