"""What a configuration will cost."""

import copy
import dataclasses
import math
from typing import get_args

import pytest
import yaml

from masklab.config import load, read
from masklab.config.schema.tasks import Phenomenon
from masklab.errors import MaskLabError
from masklab.files import write_json
from masklab.models.flops import forward_flops, training_flops
from masklab.plan import make_plan, read_assumptions
from masklab.plan.costs import Device
from masklab.plan.graph import graph, opened
from masklab.plan.table import actual, table

RAW = {
    "chains": {"words": {"synsets": 20}},
    "corpora": {"c": {"kind": "markov", "chains": "words", "distributional": True, "sequences": 100, "length": 30}},
    "tokenizers": {"t": {"kind": "symbols", "corpus": "c", "max_length": 22}},
    "encoders": {"e": {"positions": "absolute", "layers": 2, "hidden": 32, "heads": 2, "max_positions": 32}},
    "objectives": {"mlm": {"mlm": 1}},
    "models": {
        "first": {"corpus": "c", "tokenizer": "t", "encoder": "e", "objective": "mlm", "steps": 50, "batch_size": 8,
                  "checkpoints": [10, 50]},
        "second": {"corpus": "c", "tokenizer": "t", "encoder": "e", "objective": "mlm", "steps": 20, "batch_size": 8,
                   "init": "first@50", "processes": 2, "micro_batch": 2},
    },
    "tasks": {"p": {"kind": "patterns", "chains": "words", "length": 10, "train": 64, "valid": 10, "test": 5}},
    "probes": {
        "loss": {"kind": "loss", "sequences": 10},
        "tune": {"kind": "finetune", "tasks": ["p"], "sizes": [32, 64], "seeds": [1, 2, 3], "epochs": 2,
                 "batch_size": 16, "evaluate_every": 1, "patience": 1, "pooling": "mean"},
    },
    "studies": {
        "a": {"panels": {"x": ["second"]}, "probes": {"loss": "all"}},
        "b": {"panels": {"x": ["first"]}, "probes": {"tune": "all", "loss": "all"}},
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def _empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_small_plan_by_hand():
    """Every number of a plan worked out from the config: 20 + 2 tokens a sequence, cut to 22; 3 of them masked."""
    config, assumed = load(RAW), read_assumptions()
    plan = make_plan(config, "h100", assumptions=assumed)
    assert {key[0]: 0 for key in plan.jobs} == dict.fromkeys(
        ("corpus", "tokenizer", "tokens", "pretrain", "probe", "task", "scores", "facts", "pages"), 0
    )
    encoder, device = config.encoders["e"], assumed["devices"]["h100"]
    vocab, flops = 5 + 40, {}
    for name, steps in (("first", 50), ("second", 20)):
        flops[name] = steps * training_flops(encoder, vocab, 8, 22, 3)
        cost = plan.costs["pretrain", name, "1"]
        assert cost.flops == pytest.approx(flops[name]) and cost.tokens == steps * 8 * 22
        micro = {"first": 1, "second": 4}[name]
        update = flops[name] / steps / (67e12 * 0.6) + 2 * micro * device["layer_seconds"]["training"]
        share = {"first": 1, "second": 2}[name]
        assert cost.gpus == share and cost.seconds == pytest.approx(45 + steps * update / share)
    tuned = plan.costs["probe", "tune", "first", "1", "all"]
    row, stopped = forward_flops(encoder, 0, 1, 12, 12), assumed["stopped_at"]
    wanted = 0.0
    for size in (32, 64):
        updates = 2 * size / 16 * stopped
        wanted += 3 * (3 * row * 16 * updates + row * (updates * 10 + 4 * 5))
    assert tuned.flops == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("kind", "norm", "auto"), [("lstm", "pre", "fp32"), ("transformer", "pre", "fp32"), ("transformer", "post", "bf16")]
)
def test_on_a_cpu_a_wide_transformer_is_planned_in_the_faster_precision_and_an_lstm_is_not(kind, norm, auto):
    seconds, raw = {}, copy.deepcopy(RAW)
    raw["encoders"]["e"] |= {"kind": kind, "hidden": 256, "norm": norm}
    for precision in ("fp32", "bf16", "auto"):
        raw["models"]["first"]["precision"] = precision
        seconds[precision] = make_plan(load(raw), "cpu").costs["pretrain", "first", "1"].seconds
    assert seconds["auto"] == seconds[auto] and seconds["bf16"] != seconds["fp32"]


def test_fine_tuning_is_planned_in_its_precision():
    seconds = {}
    for precision in ("fp32", "bf16", "auto"):
        raw = copy.deepcopy(RAW)
        raw["probes"]["tune"]["precision"] = precision
        plan = make_plan(load(raw), "h100")
        seconds[precision] = plan.costs["probe", "tune", "first", "1", "all"].seconds
    assert seconds["fp32"] > seconds["bf16"] == seconds["auto"]


def test_what_checkpoints_leave_out_is_not_planned_for():
    """A fine-tuning reads the encoder: as long with a decoder in pre-training as without."""
    raw, flops = copy.deepcopy(RAW), {}
    raw["objectives"]["mae"] = {"mae": 1}
    for objective, decoder in (("mlm", None), ("mae", {"layers": 2})):
        raw["encoders"]["e"]["decoder"] = decoder
        for model in raw["models"].values():
            model |= {"objective": objective, "keep_decoder": decoder is not None}
        plan = make_plan(load(raw), "h100")
        flops[objective] = [
            plan.costs[key].flops for key in (("probe", "tune", "first", "1", "all"), ("pretrain", "first", "1"))
        ]
    assert flops["mae"][0] == flops["mlm"][0] and flops["mae"][1] > flops["mlm"][1]


def test_wider_layers_reach_more_of_the_peak():
    """Factors of an entry by width and precision, interpolated between logarithms of widths, level beyond them."""
    entry = {"gpu": False, "peak": {"fp32": 1e9, "bf16": 1e9}, "share": {"fp32": 0.5, "bf16": 1.0},
             "layer_seconds": {"training": 0.0}, "wider": {"fp32": {64: 1.0, 256: 3.0}}}  # fmt: skip
    device = Device("d", entry)
    seconds = [device.seconds(1e9, 0, width) for width in (32, 64, 128, 256, 512)]
    assert seconds == pytest.approx([2, 2, 1, 2 / 3, 2 / 3])
    assert device.seconds(1e9, 0, 128, "bf16") == 1 and device.at(128, "side_by_side") == 1


def test_the_page_of_a_dictionary_is_planned_where_it_is_asked_for():
    """All tokens are coded twice; 3.75 x 50 + 50 mini-batches are learned from, each vector for as long as 3 codes."""
    how = {"model": "first@50", "layer": 2, "atoms": 500, "sample": 600, "iterations": 50, "batch_size": 20}
    config, assumed = load(RAW | {"dictionaries": {"d": how}}), read_assumptions()
    plan = make_plan(config, "cpu", ["a", "dictionaries"])
    assert not any(key[0] == "dictionary_page" for key in plan.study("a"))
    tokens, device = 2 * 100 * 22, assumed["devices"]["cpu"]
    coded = (2 * tokens + 3 * (3.75 + 1) * 50 * 20) / (2 * device["codes_per_second"])
    states = 2 * tokens * forward_flops(config.encoders["e"], 0, 1, 22, 22) / 22 / 40e9 / device["reached"]["forward"]
    launches = 2 / 3 * 2 * tokens / 4096 * device["layer_seconds"]["training"]
    expected = assumed["start_seconds"] + coded + states + launches + tokens / assumed["words_per_second"]
    assert plan.costs["dictionary_page", "d"].seconds == pytest.approx(expected)


def test_a_run_that_only_its_patience_ends_is_not_planned_by_how_long_it_may_last():
    raw = yaml.safe_load(yaml.safe_dump(RAW))
    settings = {"schedule": "constant", "warmup_steps": 40, "patience": 5, "evaluate_every": "epoch"}
    flops = []
    for epochs in (50, 5000, 3):
        raw["probes"]["tune"] |= settings | {"epochs": epochs, "sizes": [32]}
        costs = make_plan(load(raw), "h100").costs
        flops.append(costs["probe", "tune", "first", "1", "all"].flops)
    improves, row = read_assumptions()["improves_for"], forward_flops(load(raw).encoders["e"], 0, 1, 12, 12)
    updates = 40 + improves["updates"] + (5 + improves["evaluations"]) * 2
    assert flops[1] == pytest.approx(3 * row * (3 * 16 * updates + updates / 2 * 10 + 4 * 5))
    assert flops[0] == pytest.approx(flops[1] * 100 / updates, rel=0.05) if updates > 100 else flops[0] == flops[1]
    assert flops[2] < flops[0] / 10  # as long as it may last at most


@pytest.mark.parametrize(("patience", "share"), [(2, None), (3, 1.0), (100, 1.0)])
def test_a_run_that_its_patience_cannot_end_makes_all_its_updates(patience, share):
    """Four evaluations, the first of which always gains: one must be left beyond those that patience waits for."""
    raw, assumed = copy.deepcopy(RAW), read_assumptions()
    raw["probes"]["tune"] |= {"patience": patience, "sizes": [64], "epochs": 4, "evaluate_every": "epoch"}
    flops = make_plan(load(raw), "h100").costs["probe", "tune", "first", "1", "all"].flops
    row, updates = forward_flops(load(raw).encoders["e"], 0, 1, 12, 12), 16 * (share or assumed["stopped_at"])
    assert flops == pytest.approx(3 * row * (3 * 16 * updates + updates / 4 * 10 + 4 * 5))


def test_an_adversarial_term_costs_its_rows_where_it_is_due():
    how = {"weight": 0.1, "task": "p", "support": 24, "query": 8, "every": 4}
    raw = RAW | {"objectives": {"mlm": {"mlm": 1}, "worse": {"mlm": 1, "adversarial": how}}}
    raw["models"] = {"m": RAW["models"]["first"] | {"objective": "worse"}}
    raw["studies"] = {"a": {"panels": {"x": ["m"]}, "probes": {"loss": "all"}}}
    encoder = load(raw).encoders["e"]
    cost = make_plan(load(raw), "h100").costs["pretrain", "m", "1"]
    update = training_flops(encoder, 45, 8, 22, 3) + training_flops(encoder, 0, 32, 22, 22) / 4
    assert cost.flops == pytest.approx(50 * update)


def test_a_causal_model_costs_what_an_encoder_of_its_size_does():
    raw = RAW | {
        "corpora": RAW["corpora"] | {"text": {"kind": "english", "sentences": 100},
                                     "drawn": {"kind": "causal", "causal": "lm", "vocabulary": 50, "sequences": 100}},
        "tokenizers": RAW["tokenizers"] | {"pieces": {"corpus": "text", "vocab_size": 200},
                                           "words": {"kind": "symbols", "corpus": "drawn", "max_length": 32}},
        "causal_models": {"lm": {"corpus": "text", "tokenizer": "pieces", "layers": 2, "hidden": 32, "steps": 30}},
        "models": {"m": RAW["models"]["first"] | {"corpus": "drawn", "tokenizer": "words"}},
        "studies": {"a": {"panels": {"x": ["m"]}, "probes": {"loss": "all"}}},
    }  # fmt: skip
    raw["probes"] = {"loss": {"kind": "loss", "sequences": 10, "floor": False}}
    config = load(raw)
    plan = make_plan(config, "h100")
    cost = plan.costs["causal_model", "lm"]
    length = round(cost.tokens / 30 / 64)
    assert cost.flops == 30 * training_flops(config.encoders["e"], 200, 64, length, length)
    assert (
        cost.gpus == 1 and cost.stored > 4 * 200 * 32 and cost.seconds > plan.costs["pretrain", "m", "1"].seconds / 10
    )


@pytest.mark.parametrize(
    ("causal", "sizes"),
    [
        ("lm", {"layers": 2, "hidden": 32, "heads": 2}),
        ("./made", {"layers": 3, "hidden": 48, "heads": 4}),
        ("nobody/nothing", {"layers": 12, "hidden": 768, "heads": 12}),
    ],
)
def test_sentences_of_a_causal_model_cost_its_passes(causal, sizes):
    """1,050 sentences of 12 words in 11 batches, and 200 texts in 2 that its tokens are counted in."""
    write_json({"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}, "made/config.json")
    drawn = {"kind": "causal", "causal": causal, "vocabulary": 50, "sequences": 1000, "valid": 20, "test": 30,
             "length": 12, "batch_size": 100, "frequency": "sampled", "counted": 200}  # fmt: skip
    raw = RAW | {
        "corpora": {"text": {"kind": "english", "sentences": 100}, "drawn": drawn},
        "tokenizers": {"pieces": {"corpus": "text", "vocab_size": 200},
                       "words": {"kind": "symbols", "corpus": "drawn", "max_length": 32}},
        "causal_models": {"lm": {"corpus": "text", "tokenizer": "pieces", "layers": 2, "hidden": 32, "steps": 30}},
        "models": {"m": RAW["models"]["first"] | {"corpus": "drawn", "tokenizer": "words"}},
        "probes": {"loss": {"kind": "loss", "sequences": 10, "floor": False}},
        "studies": {"a": {"panels": {"x": ["m"]}, "probes": {"loss": "all"}}},
    }  # fmt: skip
    config, assumed = load(raw), read_assumptions()
    cost, encoder = make_plan(config, "h100").costs["corpus", "drawn"], config.encoders["e"].model_copy(update=sizes)
    vocabulary = 200 if causal == "lm" else assumed["folder_vocabulary"]
    flops = 1050 * forward_flops(encoder, 50, 1, 12, 12) + 200 * forward_flops(encoder, vocabulary, 1, 12, 12)
    calls = 13 * 12 * encoder.layers / 3 * assumed["devices"]["h100"]["layer_seconds"]["training"]
    assert cost.flops == flops and cost.gpus == 1
    assert cost.seconds == pytest.approx(45 + calls + flops / (67e12 * 0.6) + 1000 * 14 / assumed["tokens_per_second"])


@pytest.mark.parametrize(("positions", "pairs"), [("one", 30), ("all", 30 * 12)])
def test_exact_conditionals_under_a_causal_model_cost_a_pass_for_each_word_that_might_stand_there(positions, pairs):
    """Of 30 test sentences of 12 words, 50 words: from the one that is asked about to the end."""
    drawn = {"kind": "causal", "causal": "nobody/nothing", "vocabulary": 50, "sequences": 1000, "valid": 20, "test": 30,
             "length": 12}  # fmt: skip
    raw = RAW | {
        "corpora": {"drawn": drawn},
        "tokenizers": {"words": {"kind": "symbols", "corpus": "drawn", "max_length": 32}},
        "models": {"m": RAW["models"]["first"] | {"corpus": "drawn", "tokenizer": "words"}},
        "probes": {"loss": {"kind": "loss", "sequences": 500, "masks": "one", "positions": positions}},
        "studies": {"a": {"panels": {"x": ["m"]}, "probes": {"loss": "all"}}},
    }
    config, assumed = load(raw), read_assumptions()
    encoder = config.encoders["e"].model_copy(update={"layers": 12, "hidden": 768, "heads": 12})
    tail = sum(forward_flops(encoder, 50, 1, n, n) for n in range(1, 13)) / 12
    flops = pairs * (50 * tail + forward_flops(encoder, 50, 1, 12, 1))
    costs = {device: make_plan(config, device).costs["conditionals", "drawn", "words", "500", positions]
             for device in ("h100", "cpu")}  # fmt: skip
    for cost in costs.values():
        assert cost.flops == pytest.approx(flops) and cost.stored == 4 * pairs * 50
    told = 360 / assumed["read_by_law_per_second"] + pairs / assumed["conditionals_per_second"]
    assert costs["h100"].gpus == 1 and costs["h100"].seconds == pytest.approx(45 + flops / (67e12 * 0.6) + told)
    assert costs["cpu"].gpus == 0 and costs["cpu"].seconds > flops / 4e11


def test_a_grid_is_searched_whole():
    seconds, flops = {}, {}
    for name, keys in (("8", {"batch_size": 8}), ("16", {"batch_size": 16}),
                       ("grid", {"grid": {"lr": [1e-5, 2e-5, 3e-5], "batch_size": [8, 16]}})):  # fmt: skip
        raw = copy.deepcopy(RAW)
        raw["probes"]["tune"] |= keys
        cost = make_plan(load(raw), "h100").costs["probe", "tune", "first", "1", "all"]
        seconds[name], flops[name] = cost.seconds - 45, cost.flops
    assert flops["grid"] == pytest.approx(3 * (flops["8"] + flops["16"]))
    assert seconds["grid"] == pytest.approx(3 * (seconds["8"] + seconds["16"]))


def test_slices_of_the_loss_cost_their_points_in_the_model_as_it_grows():
    from masklab.curvature.trace import SUMMED

    raw = copy.deepcopy(RAW)
    raw["probes"]["loss"] = {"kind": "landscape", "directions": 2, "points": 5, "sentences": 40, "batch_size": 16,
                             "gradients": 7, "width": 64}  # fmt: skip
    config, device = load(raw), read_assumptions()["devices"]["h100"]
    cost = make_plan(config, "h100").costs["probe", "loss", "first", "1", "all"]
    wide = config.encoders["e"].model_copy(update={"hidden": 64, "heads": 4})
    flops = (3 * 5 * 40 + 3 * 7 * SUMMED) * forward_flops(wide, 45, 1, 22, 1)
    calls = 2 * (3 * 5 * 3 / 3 + 7) * device["layer_seconds"]["training"]
    assert cost.flops == flops and cost.seconds == pytest.approx(45 + flops / (67e12 * 0.6) + calls)


@pytest.mark.parametrize("keys", [{"kind": "replaced"}, {"kind": "paraphrased", "parses": ["x"], "wordnet": "nltk"}])
def test_a_fine_tuning_reads_no_decoder_where_predictions_are_read_too(keys):
    raw, flops = copy.deepcopy(RAW), []
    raw["objectives"]["mae"] = {"mae": 1}
    raw["probes"]["tune"] = {"tasks": ["p"], "sizes": [32], "seeds": [1]} | keys
    for objective, decoder in (("mlm", None), ("mae", {"layers": 2})):
        raw["encoders"]["e"]["decoder"] = decoder
        for model in raw["models"].values():
            model |= {"objective": objective, "keep_decoder": decoder is not None}
        flops.append(make_plan(load(raw), "h100").costs["probe", "tune", "first", "1", "all"].flops)
    assert flops[0] == flops[1]


def test_initial_weights_are_fine_tuned_on_the_largest_size_beside_a_model_whose_words_are_replaced():
    tuned, flops = {"tasks": ["p"], "seeds": [1]}, []
    replaced = {"kind": "paraphrased", "parses": ["x"], "wordnet": "nltk", "examples": 1}
    for keys in ({"sizes": [32, 64]}, {"sizes": [64]}, replaced | {"sizes": [32, 64]}):
        raw = copy.deepcopy(RAW)
        raw["probes"]["tune"] = {"kind": "finetune"} | tuned | keys
        flops.append(make_plan(load(raw), "h100").costs["probe", "tune", "first", "1", "all"].flops)
    assert flops[2] == pytest.approx(flops[0] + flops[1], rel=0.05) and flops[2] > flops[0] + flops[1]


def test_the_page_of_a_dictionary_is_made_on_a_cpu_whatever_the_rest_is_made_on():
    how = {"model": "first@50", "layer": 2, "atoms": 500, "sample": 600, "iterations": 50, "batch_size": 20}
    config = load(RAW | {"dictionaries": {"d": how}})
    cpu, gpu = (make_plan(config, name, ["dictionaries"]).costs["dictionary_page", "d"] for name in ("cpu", "h100"))
    assert cpu == gpu and gpu.gpus == 0


@pytest.mark.parametrize("codes", ["on-the-fly", "stored"])
def test_codes_that_are_solved_on_each_batch_take_their_time(codes):
    """20 updates of 8 sequences with 3 hidden tokens each, by two processes; of 500 atoms twice as many a second."""
    raw, assumed, seconds = copy.deepcopy(RAW), read_assumptions(), []
    raw["objectives"]["code"] = {"mlm": 1, "mlsm": 1}
    raw["models"]["second"] |= {"objective": "code", "dictionary": "d", "codes": codes}
    raw["dictionaries"] = {"d": {"model": "first@50", "layer": 2, "atoms": 500, "sample": 600}}
    for rate in (500, 1000):
        assumed["devices"]["h100"]["codes_per_second"] = rate
        seconds.append(make_plan(load(raw), "h100", assumptions=assumed).costs["pretrain", "second", "1"].seconds)
    saved = 20 * 8 * 3 / 2 * (1 / 1000 - 1 / 2000) if codes == "on-the-fly" else 0
    assert seconds[0] - seconds[1] == pytest.approx(saved)


def test_a_study_without_figures_and_tables_is_planned_as_what_it_measures():
    plan = make_plan(load(RAW), "h100", ["a"])
    assert ("probe", "loss", "second", "1", "all") in plan.study("a")
    assert not any(key[1] == "tune" for key in plan.jobs if key[0] == "probe")


def test_totals_are_unions_and_the_chain_is_the_longest():
    plan = make_plan(load(RAW), "h100")
    a, b, both = plan.study("a"), plan.study("b"), plan.total()
    shared = set(a) & set(b)
    assert ("pretrain", "first", "1") in shared and ("pretrain", "second", "1") not in b
    # besides what studies need: the tables of all scores and facts, the pages of results
    assert both["jobs"] == len(set(a) | set(b)) + 3 and both["submitted"] == both["jobs"] - 3
    assert plan.total(a)["tokens"] == 22 * 8 * 70 and plan.total(b)["tokens"] == 22 * 8 * 50
    chain = [("corpus", "c"), ("tokenizer", "t"), ("tokens", "c", "t"), ("pretrain", "first", "1"),
             ("pretrain", "second", "1"), ("probe", "loss", "second", "1", "all")]  # fmt: skip
    assert plan.total(a)["chain"] == pytest.approx(sum(plan.costs[key].seconds for key in chain))
    hours = sum(c.gpus * c.seconds for c in plan.costs.values()) / 3600
    assert both["gpu_hours"] == pytest.approx(hours) and both["cpu_hours"] > 0


def test_threads_share_out_products_and_hold_their_cores():
    """By hand: the products of a job take half as long on two threads, launching its layers does not."""
    raw, key = copy.deepcopy(RAW), ("pretrain", "first", "1")
    device = read_assumptions()["devices"]["cpu"]
    one, two = (make_plan(load(raw | {"threads": threads}), "cpu") for threads in (1, 2))
    launches = 50 * 2 * device["layer_seconds"]["training"]
    alone = one.costs[key].seconds - device["start_seconds"] - launches
    assert two.costs[key].seconds == pytest.approx(device["start_seconds"] + launches + alone / 2)
    assert two.costs[key].cores == 2 and two.costs["corpus", "c"].cores == two.costs["task", "p"].cores == 1
    assert two.costs["pretrain", "second", "1"].cores == 4  # by two processes
    seconds = sum(cost.seconds * cost.cores for cost in two.costs.values())
    assert two.total()["cpu_hours"] == pytest.approx(seconds / 3600)
    assert two.total()["busy"] == pytest.approx(seconds / 2)
    assert one.total()["busy"] == pytest.approx(sum(cost.seconds * cost.cores for cost in one.costs.values()))


def test_on_a_gpu_a_job_is_one_of_those_side_by_side_whatever_its_threads():
    plan = make_plan(load(RAW | {"threads": 4}), "h100")
    wanted = sum(cost.seconds * max(1, cost.gpus) for cost in plan.costs.values())
    assert plan.total()["busy"] == pytest.approx(wanted) and plan.costs["pretrain", "second", "1"].gpus == 2


def test_token_counts_on_disk_are_used():
    counts = {"train": {"sequences": 1000, "tokens": 5000, "truncated": 0}}
    write_json({"vocab_size": 45, "splits": counts}, "results/tokens/c/t/meta.json")
    assert make_plan(load(RAW)).costs["pretrain", "first", "1"].tokens == 50 * 8 * 7


def test_assumptions_can_be_laid_over_and_wrong_ones_are_one_line(tmp_path):
    faster = tmp_path / "mine.yaml"
    faster.write_text(yaml.safe_dump({"devices": {"h100": {"share": {"bf16": 0.6}}}, "stopped_at": 1.0}))
    assumed = read_assumptions(faster)
    assert assumed["devices"]["h100"]["share"] == {"fp32": 0.6, "bf16": 0.6} and assumed["stopped_at"] == 1.0
    faster.write_text("stoped_at: 1\n")
    with pytest.raises(MaskLabError, match=r"mine.yaml: \['stoped_at'\]: allowed are devices, "):
        read_assumptions(faster)
    faster.write_text("devices: {b200: {gpu: true, peak: {fp32: 1.0e+13}, layer_seconds: {training: 0.001}}}\n")
    with pytest.raises(MaskLabError, match=r"mine.yaml: devices.b200: lacks peak.bf16, share, codes_per_second, "):
        read_assumptions(faster)
    with pytest.raises(MaskLabError, match="no device 'b200'; known: h100, a100, cpu"):
        make_plan(load(RAW), "b200")
    with pytest.raises(MaskLabError, match="no study, and no figure or table of one, is called 'c'; studies: a, b"):
        make_plan(load(RAW), "cpu", ["c"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("devices: {h100: {peak: {fp32: 67e12}}}", "devices.h100.peak.fp32: '67e12': must be a number; .* 67.0e[+]12"),
        ("devices: {mine: {peak: {fp32: 67e12}}}", "devices.mine.peak.fp32: '67e12': must be a number; "),
        ("devices: {h100: {gpu: 1}}", "devices.h100.gpu: 1: must be true or false"),
        ("stopped_at: null", "stopped_at: None: must be a number"),
        ("text_sequences: 5", "text_sequences: 5: must be a mapping"),
        ("task_rows: {cola: 5}", "task_rows.cola: 5: must be a list of numbers"),
        ("task_rows: {mine: [5, x]}", "task_rows.mine: 'x': must be a number"),
        ("devices: {cpu: {peak: {fp32: 0}}}", "devices.cpu.peak.fp32: 0: must be above 0 and below 1e[+]30"),
        ("devices: {cpu: {share: {fp32: .nan}}}", "devices.cpu.share.fp32: nan: must be above 0"),
        ("devices: {cpu: {start_seconds: -3}}", "devices.cpu.start_seconds: -3: must be at least 0"),
        ("stopped_at: .inf", "stopped_at: inf: must be above 0"),
        ("devices: {cpu: {share: {fp16: .5}}}", "devices.cpu: 'fp16' is no precision that is planned; .* fp32, bf16"),
        (
            "devices: {cpu: {wider: {fp32: {wide: 2.0}}}}",
            "devices.cpu.wider.fp32: 'wide': must be a whole number, as 64",
        ),
    ],
)
def test_an_assumption_that_is_no_number_is_one_line(tmp_path, text, said):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(MaskLabError, match=f"mine.yaml: {said}"):
        read_assumptions(tmp_path / "mine.yaml")


def test_a_plan_of_one_figure():
    study = RAW["studies"]["b"] | {"figures": ["bars"], "tables": ["comparison"], "sets": {"x": ["p"]}}
    config = load(RAW | {"studies": {"a": RAW["studies"]["a"], "b": study}})
    plan = make_plan(config, "cpu", ["b_bars"])
    assert {key for key in plan.jobs if key[0] in ("probe", "figure", "table")} == {
        ("probe", "tune", "first", "1", "all"),
        ("figure", "b", "bars"),
    }
    assert table(plan).splitlines()[2].startswith(f"| b_bars | {len(plan.jobs)} |")
    with pytest.raises(MaskLabError, match=r"called 'b_bar'; did you mean 'b_bars'\?"):
        make_plan(config, "cpu", ["b_bar"])


def test_the_table_and_what_was_used():
    config = load(RAW)
    plan = make_plan(config, "cpu")
    lines = table(plan, at_once=2).splitlines()
    assert [line.split(" | ")[0].strip("| ") for line in lines[2:5]] == ["a", "b", "all"]
    assert "elapsed, 2 at once" in lines[0] and "Assumed: " in lines[-1]
    with pytest.raises(MaskLabError, match="no job of this config has ended yet"):
        actual(plan, config)
    planned = plan.costs["pretrain", "first", "1"].seconds
    write_json({"finished": True, "seconds": 2 * planned}, "results/made/models/first/r1.json")
    write_json({"finished": True, "seconds": 9.0, "taken_from": "x"}, "results/made/models/second/r1.json")
    write_json({"finished": False, "seconds": 9.0}, "results/made/tokens/c/t.json")
    write_json({"finished": True}, "results/made/corpora/c.json")  # of no use, as a record by another hand may be
    write_json([True], "results/made/tokenizers/t.json")
    rows = actual(plan, config).splitlines()[2:]
    assert [row.split(" | ")[:2] for row in rows] == [["| pretrain", "1"], ["| all", "1"]]
    assert rows[0].endswith("| 2.00 |")
    plan.costs = {key: dataclasses.replace(cost, seconds=0.0) for key, cost in plan.costs.items()}
    assert actual(plan, config).splitlines()[2].endswith("| – |")


def test_a_plan_of_a_file_laid_over_another(tmp_path):
    (tmp_path / "low.yaml").write_text(yaml.safe_dump({"extends": []} | RAW))
    (tmp_path / "top.yaml").write_text("extends: low.yaml\nmodels:\n  first: {steps: 60, checkpoints: [10, 50]}\n")
    config = read(tmp_path / "top.yaml")
    assert config.models["first"].steps == 60 and math.isclose(make_plan(config).total()["tokens"], 22 * 8 * 80)


def test_a_study_by_its_name_runs_no_probe_that_it_does_not_show(tmp_path):
    """docs/targets.md says so, and that `scores` runs every probe."""
    file = tmp_path / "my.yaml"
    asked = dict.fromkeys(("minimal-pairs", "more"), "all")
    study = {"panels": {"all": ["strict-phase1", "strict-mlm"]}, "probes": asked, "tables": ["comparison"]}
    probes = {"more": {"kind": "loss"}}
    file.write_text(yaml.safe_dump({"probes": probes, "studies": {"*": None, "mine": study}}))
    paths = opened([str(file)])
    run = {}
    for target, files in (
        ("mine", paths.target("mine")),
        ("scores", paths.outputs("scores")),
        ("all", paths.everything()),
    ):
        run[target] = {job.names["probe"] for job in graph(paths, files).values() if job.rule == "probe"}
    assert run == {"mine": {"minimal-pairs"}, "scores": {"minimal-pairs", "more"}, "all": {"minimal-pairs", "more"}}


def test_generated_pairs_have_as_many_phenomena_as_are_made():
    assert read_assumptions()["phenomena"] == len(get_args(Phenomenon))
