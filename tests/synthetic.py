"""Scores of any study with known values, for tests of figures, tables and claims: every row that its probes write.

    results(config, "mae", level=lambda cell: ...)

`level` gives the value of a cell: a dict with recipe, facts (of the recipe), null (kind, or None), kind (of the probe),
task, split, train_size, step, last (the recipe's last step), layer, metric. None, or no `level`: the default below.
"""

import copy

import numpy as np

from masklab import phrases
from masklab.claims import verdict
from masklab.config import checkpoints, load, overlay, probe_steps
from masklab.config.measured import study_pairs
from masklab.config.replicates import measured_replicates
from masklab.scores.reading import RANKS
from masklab.scores.results import Results
from masklab.scores.schema import LIMITS, rows_to_frame
from masklab.scores.view import View
from masklab.studies import claims_of, find

DOMAINS = ("A-D1", "B-D1", "A-D2", "B-D2")
PHENOMENA = ("agreement", "binding", "ellipsis")
CLASSES = ("accuracy", "mcc", "f1")
METRICS = dict.fromkeys(CLASSES, CLASSES) | dict.fromkeys(("pearson", "spearman"), ("pearson", "spearman"))
METRICS |= {"exact": ("exact", "f1")}
OUTSIDE = ("outside", "outside_beside")
PLACES = ("mask-positions", "random-words", "hidden-words")
RANKED = ("unmasked", "masked", "mask-positions", "real-positions", "with-words", "beside-words")
CHANCE = {"mcc": 0.0, "pearson": 0.0, "spearman": 0.0, "exact": 0.4}


def default(cell) -> float:
    """Trained recipes are well above chance and better at later steps, nulls are at chance."""
    metric, learned = cell["metric"], cell["null"] is None
    if metric in ("majority", "majority_f1"):
        return 0.5 if cell["kind"] != "finetune" or metric == "majority" else 0.6
    share = (1 + cell["step"] / max(cell["last"], 1)) / 2
    plain = {"loss": 3.1 - share, "floor": 2.0, "gap": 1.1 - share, "mean_share": 0.1, "seconds": 10 * share,
             "tokens": 1e4 * share, "flops": 1e9 * share, "valid_loss": 4 - share, "trace": 50 / share,
             "trace_embedded": 80 / share,
             "parameters": 1e5, "best_step": 10, "capped": 0, "tv_pretrained": 0.5, "tv_finetuned": 0.3,
             "tv_from_law": 0.2, "pearson_low": 0.1, "pearson_high": 0.2}  # fmt: skip
    plain |= dict.fromkeys(RANKS, 18 if metric.endswith("centred") else 20) | dict.fromkeys(OUTSIDE, 0.01)
    if metric in plain:
        return plain[metric]
    chance = CHANCE.get(metric, 0.5)
    return chance + (0.3 * share if learned else 0.0)


def results(config, study: str, level=None, noise=0.003, learned=True, seed=7, replicates=None) -> Results:
    """Results of a study: every score its level plus noise by replicate and cell. learned: as `manifests` has it."""
    view = View.of(config, study)
    frame = rows_to_frame(rows(config, view, level, noise, seed, replicates))
    return Results(view, frame, models=manifests(view, learned, replicates))


def config_of(raw: dict, study: str, change: dict | None = None, **keys):
    """A config with one of its studies alone, after a change of any section, and with other `keys` of the study."""
    changed = overlay(copy.deepcopy(raw), {"extends": [], **(change or {})})
    return load(changed | {"studies": {study: changed["studies"][study] | keys}})


def shown(study: str, config, results, section: str, name: str):
    """(figure, data) of a figure, the frame of a table; what is shown needs of a part of the view what it needs of all.

    section: "figures" or "tables".
    """
    item = find(study, config.studies[study], section, name)
    part = item.part(results.view)
    assert item.needs(part) == item.needs(results.view)
    return item.draw(results) if section == "figures" else item.function()(results, item.choose(results.view))


def claims(study: str, config, results):
    """The claims of a study, by name, tested."""
    listed = claims_of(study, config.studies[study], results.view)
    return verdict.test_claims(listed, results).set_index("claim")


def manifests(view, learned=True, replicates=None) -> dict:
    """(recipe, replicate) -> facts: trained recipes are a nat below word frequencies, unless nothing was `learned`."""
    found = {}
    for number, (recipe, facts) in enumerate(view.recipes.items()):
        for replicate in range(1, (replicates or view.replicates[recipe]) + 1):
            loss = 3.0 if learned and facts["steps"] else 4.2
            found[recipe, replicate] = {
                "parameters": 1000 * (number + 1), "vocab_size": 100, "tokens": 1e4, "flops": 1e9, "unigram_loss": 4.0,
                "valid_loss": {
                    str(step): loss + 0.001 * replicate + 1 - (step or 1) / (facts["steps"] or 1)
                    for step in (facts["checkpoints"] if facts["steps"] else [0])
                },
            }  # fmt: skip
    return found


def rows(config, view, level=None, noise=0.003, seed=7, replicates=None) -> list[dict]:
    """Score rows of every (probe, recipe) pair of a study."""
    rng, found = np.random.default_rng(seed), []
    kinds = {null: kind for own in view.nulls.values() for kind, null in own.items() if null}
    for probe, recipe in study_pairs(config, view.study):
        settings, model = config.probes[probe], config.models[recipe]
        for replicate in range(1, (replicates or measured_replicates(config, view.study, recipe)) + 1):
            for step in probe_steps(settings, model):
                at = {"recipe": recipe, "replicate": replicate, "step": step, "probe": probe}
                about = {"facts": view.recipes[recipe], "null": kinds.get(recipe), "kind": settings.kind,
                         "last": checkpoints(model)[-1]}  # fmt: skip
                for cell in _cells(config, settings, model):
                    whole = {"split": "test", "train_size": 0, "layer": -1, "seed": 0} | at | about | cell
                    value = level(whole) if level else None
                    value = default(whole) if value is None else value
                    fixed = cell["metric"] in ("floor", "parameters", "majority", "majority_f1", "tokens", "flops")
                    value = float(value) + (0 if fixed else noise * (1 + abs(value)) * rng.normal())
                    found.append({"n": 100, "split": "test", **at, **cell, "value": _within(cell["metric"], value)})
    return found


def _within(metric, value):
    return float(np.clip(value, *LIMITS.get(metric, (-np.inf, np.inf))))


def _cells(config, probe, model):
    match probe.kind:
        case "finetune" | "linear_probe":
            yield from _tuned(config, probe, model)
        case "replaced":
            yield from _replaced(probe)
        case "paraphrased":
            yield from _paraphrased(probe)
        case "minimal_pairs":
            for task in probe.tasks:
                for phenomenon in PHENOMENA:
                    for metric in ("accuracy", "accuracy_full_width"):
                        yield {"task": f"{task}/{phenomenon}", "metric": metric}
        case "loss":
            for metric in ("loss", "floor", "gap", "parameters"):
                yield {"task": model.corpus, "metric": metric}
        case "curvature":
            for repeat in range(1, probe.repeats + 1):
                for metric in ("trace", *(["trace_embedded"] if probe.width else [])):
                    yield {"task": model.corpus, "metric": metric, "seed": repeat}
        case "rank":
            layers = config.encoders[model.encoder].layers
            for split in RANKED:
                for layer in range(layers + 1):
                    for metric in RANKS:
                        yield {"task": model.corpus, "split": split, "layer": layer, "metric": metric}
            for split in PLACES:
                for layer in range(layers + 1):
                    for metric in OUTSIDE:
                        yield {"task": model.corpus, "split": split, "layer": layer, "metric": metric}
        case "cost":
            for metric in ("seconds", "tokens", "flops", "valid_loss"):
                yield {"task": model.corpus, "split": "valid" if metric == "valid_loss" else "train", "metric": metric}
        case "landscape":
            for direction in range(1, probe.directions + 1):
                for offset in (-0.1, 0.0, 0.1):
                    yield {"task": model.corpus, "layer": direction, "at": offset, "metric": "loss"}
        case "prediction":
            for split in ("vocabulary", "atoms"):
                for place in range(1, 4):
                    yield {"task": probe.sentence, "split": split, "metric": f"word{place}", "n": place}


def _tuned(config, probe, model):
    words = config.encoders[model.encoder].kind == "words"
    for task in probe.tasks:
        entry = config.tasks[task]
        if words and entry.kind in ("english-spans", "squad"):
            continue
        own = getattr(entry, "metric", "accuracy")
        ratings = own in ("pearson", "spearman")
        metrics = (*METRICS[own], *(() if ratings else ("majority", "majority_f1")))
        splits = DOMAINS if entry.kind == "patterns" else ("test",)
        for size in probe.sizes or [getattr(entry, "train", None) or 100]:
            size = size if isinstance(size, int) else 100
            for seed in [0] if words and probe.kind == "finetune" else probe.seeds:
                for split in splits:
                    shared = {"task": task, "split": split, "train_size": size, "seed": seed}
                    yield from ({**shared, "metric": metric} for metric in metrics)
                if probe.kind == "finetune" and not words:
                    ended = {"task": task, "train_size": size, "seed": seed}
                    yield from ({**ended, "metric": metric} for metric in ("best_step", "capped"))
                if getattr(probe, "rank", None) and not words:
                    layer = config.encoders[model.encoder].layers
                    last = {"task": task, "train_size": size, "seed": seed, "layer": layer}
                    yield from ({**last, "metric": metric} for metric in RANKS)


def _replaced(probe):
    for task in probe.tasks:
        for size in probe.sizes:
            for seed in probe.seeds:
                shared = {"task": task, "train_size": size, "seed": seed}
                for domain in (probe.domain, probe.synonyms):
                    yield from ({**shared, "split": domain, "metric": metric} for metric in ("accuracy", "majority"))
                for level in (phrases.level(count, drawn) for drawn in {False, probe.drawn} for count in probe.spans):
                    for part in (None, phrases.SYNONYMS, phrases.OTHERS, phrases.LAW):
                        for metric in ("pearson", "tv_pretrained", "tv_finetuned"):
                            yield {**shared, "split": phrases.split(level, part), "metric": metric}
                    yield {**shared, "split": level, "metric": "tv_from_law"}
                    for updates in probe.updates:
                        where = {"split": phrases.split(level, phrases.COURSE), "at": float(updates)}
                        yield {**shared, **where, "metric": "pearson"}


def _paraphrased(probe):
    for task in probe.tasks:
        for size in probe.sizes:
            for seed in probe.seeds:
                shared = {"task": task, "train_size": size, "seed": seed}
                yield from ({**shared, "metric": metric} for metric in ("accuracy", "majority"))
                levels, untaught = [*phrases.LEVELS, *([phrases.DRAWN_WORD] if probe.drawn else [])], []
                if probe.in_text:
                    words = [level for level in levels if level.startswith(phrases.WORD)]
                    asked = [*words, phrases.SHORT, phrases.LONG]
                    levels += map(phrases.in_text, asked)
                    asked = (*words, *map(phrases.in_text, words))
                    levels += map(phrases.held_fixed, asked)
                    untaught = [*map(phrases.untaught, (*asked, *map(phrases.held_fixed, asked)))]
                    for level in (*words, *map(phrases.in_text, words)):
                        yield {**shared, "split": phrases.split(level, phrases.TOLD), "metric": phrases.TOLD}
                fresh = [phrases.fresh(level) for level in levels if size == max(probe.sizes)]
                for at in fresh and [phrases.fresh("test")]:
                    yield {**shared, "split": at, "metric": "accuracy"}
                for level in (*levels, *untaught, *fresh):
                    for metric in ("pearson", "pearson_low", "pearson_high", "tv_pretrained", "tv_finetuned"):
                        yield {**shared, "split": level, "metric": metric}
                    for updates in () if level in fresh else probe.updates:
                        where = {"split": phrases.split(level, phrases.COURSE), "at": float(updates)}
                        yield {**shared, **where, "metric": "pearson"}
