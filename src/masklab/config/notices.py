"""What can be run, but perhaps not as it was meant to be: notes for check, plan and the start of the workflow."""

import math
from importlib.util import find_spec
from pathlib import Path

from masklab.config.check_tasks import positions
from masklab.config.idle import idle
from masklab.config.inherit import PARTS, is_pattern, matching
from masklab.config.layers import DEFAULT
from masklab.config.located import find, place_of
from masklab.config.nulls import null_measurements, null_recipes
from masklab.config.places import noted
from masklab.config.references import checkpoints, study_models

SHIPPED = DEFAULT.parent


def notices(config) -> list[str]:
    """A line for each, with file, line and key."""
    return [
        *_left_out(config),
        *_empty(config),
        *_without_nulls(config),
        *_overruled(config),
        *_cut(config),
        *_unread(config),
        *_cold(config),
        *_not_kept(config),
        *_without_spams(config),
        *idle(config, _ours()),
    ]


def not_read() -> list[str]:
    """A line on the current folder's config.yaml, which nobody has named, where it is not the checkout's."""
    own = Path.cwd() / DEFAULT.name
    if not own.is_file() or own.samefile(DEFAULT):
        return []
    return [f"{own.name} of this folder is not read, but MaskLab's own ({DEFAULT}): no file is named"]


def _left_out(config):
    """Studies of a user's whose panels are patterns that match no recipe."""
    raw = config.raw.get("studies") or {}
    for name in raw:
        place = place_of(raw, name)
        if name not in config.studies and place and place.file not in _ours():
            yield f"{place}: studies.{name}: is left out: no recipe matches the patterns of its panels"


def _empty(config):
    """A user's patterns that match nothing, and what is left out of a study since it has only such."""
    raw, ours = config.raw.get("studies") or {}, _ours()
    known = {"recipe": config.raw.get("models") or {}, "task": config.raw.get("tasks") or {}}

    def unmatched(where, listed, noun):
        for at, pattern in enumerate(listed if isinstance(listed, list) else ()):
            place = place_of(listed, at)
            if is_pattern(pattern) and not matching(known[noun], pattern) and place and place.file not in ours:
                yield f"{place}: {where}: no {noun} matches {pattern!r}"

    for name, study in config.studies.items():
        for key, (_, names) in PARTS.items():
            stated, noun = (raw.get(name) or {}).get(key) or {}, names.partition(";")[0]
            for part, listed in stated.items():
                place, where = place_of(stated, part), f"studies.{name}.{key}.{part}"
                if part in getattr(study, key):
                    yield from unmatched(where, listed, noun)
                elif listed and place and place.file not in ours:
                    yield f"{place}: {where}: is left out: no {noun} matches its patterns"
        yield from unmatched(f"studies.{name}.extra", (raw.get(name) or {}).get("extra"), "recipe")


def _without_nulls(config):
    """Kinds of nulls that a user's study asks for and none of its probes measures."""
    raw, ours = config.raw.get("studies") or {}, _ours()
    for name, study in config.studies.items():
        place = place_of(raw.get(name) or {}, "nulls")
        if place is None or place.file in ours:
            continue
        measured = {null for listed in null_measurements(config, name).values() for null in listed}
        kinds = {kind for own in null_recipes(config, name).values() for kind, null in own.items() if null in measured}
        for kind in dict.fromkeys(study.nulls):
            if kind not in {*kinds, "majority"}:
                yield f"{place}: studies.{name}.nulls: no probe of the study measures a null {kind!r}"


def _overruled(config):
    """Replicates that a user's file asks for, where studies of other files say their own."""
    place, raw = place_of(config.raw, "replicates"), config.raw.get("studies") or {}
    untouched = place is not None and place.file == str(DEFAULT) and config.replicates == 1  # as config.yaml is shipped
    if place is None or place.file in _ours() or untouched:
        return
    saying = {}
    for name, study in config.studies.items():
        own = place_of(raw.get(name), "replicates")
        if own is not None and own.file != place.file and study.replicates not in (None, config.replicates):
            saying.setdefault(study.replicates, []).append(name)
    for count, names in saying.items():
        says = "says" if len(names) == 1 else "say"
        yield (
            f"{place}: replicates: {config.replicates} does not count for {', '.join(names)}, which {says} {count} in"
            f" the study (studies.{names[0]}.replicates)"
        )


def _ours() -> set[str]:
    return {str(path) for folder in ("presets", "src/masklab/studies/*") for path in SHIPPED.glob(f"{folder}/*.yaml")}


def _cut(config):
    """Probes that say a longer `max_length` than a model has positions: what is longer is cut to these."""
    raw = config.raw.get("probes") or {}
    for study in config.studies.values():
        for probe, listed in study.probes.items():
            entry = config.probes[probe]
            if "max_length" not in (raw.get(probe) or {}):
                continue  # the default, which nobody has chosen
            for model in study_models(study) if listed == "all" else listed:
                if (most := positions(config, model)) < entry.max_length:
                    place = place_of(raw[probe], "max_length")
                    key = f"probes.{probe}.max_length"
                    yield f"{place}: {key}: {entry.max_length}, but {model!r} has {most} positions, to which it is cut"
                    break


def _unread(config):
    """Tasks of symbols all of whose sequences are longer than what is read of them, while labels depend on the rest."""
    least = {"hmm": "length", "patterns": "length", "pcfg": "min_length"}  # words of the shortest sequence
    found = {}
    for study in config.studies.values():
        for probe, listed in study.probes.items():
            entry = config.probes[probe]
            tasks = [(name, config.tasks[name]) for name in entry.tasks if config.tasks[name].kind in least]
            for model in (study_models(study) if listed == "all" else listed) if tasks else ():
                table = config.encoders[config.models[model].encoder].kind == "lookup"  # of any number of positions
                longest = getattr(entry, "max_length", None) or math.inf
                most = longest if table else min(longest, positions(config, model))
                for name, task in tasks:
                    if (tokens := getattr(task, least[task.kind]) + 2) > most:
                        said = f"its sequences have {tokens} tokens at least, and {model!r}, which probes.{probe}"
                        found.setdefault(name, f"tasks.{name}: {said} measures on it, reads the first {most}")
    return [noted(line, config.raw) for line in found.values()]


def _cold(config):
    """Recipes of a user's that end before the learning rate has warmed up."""
    for name, model in config.models.items():
        warm = model.optimiser.warmup_steps or 0
        places = [find(config.raw, ("models", name, *key))[0] for key in (("steps",), ("optimiser", "warmup_steps"))]
        place = next((place for place in places if place and place.file not in _ours()), None)
        if warm > model.steps > 0 and place:
            yield (
                f"{place}: models.{name}.steps: {model.steps}, but the learning rate warms up for {warm} updates"
                f" (optimiser.warmup_steps): it never reaches lr ({model.optimiser.lr:g})"
            )


def _without_spams(config):
    """Dictionaries that SPAMS is to learn, of which some machines have no build."""
    for name, entry in config.dictionaries.items():
        if entry.backend == "spams" and find_spec("spams") is None:
            line = f"dictionaries.{name}.backend: SPAMS is not installed; pip install spams-bin, or set backend: torch"
            yield noted(line, config.raw)


def _not_kept(config):
    """Steps that a user's probe lists and that none of the recipes which it measures keeps."""
    raw, kept = config.raw.get("probes") or {}, {}
    for study in config.studies.values():
        for probe, listed in study.probes.items():
            for model in study_models(study) if listed == "all" else listed:
                kept.setdefault(probe, set()).update(checkpoints(config.models[model]))
    ours = _ours()
    for probe, steps in kept.items():
        stated, place = (raw.get(probe) or {}).get("steps"), place_of(raw.get(probe), "steps")
        if not isinstance(stated, list) or place is None or place.file in ours or steps == {0}:
            continue
        if never := [step for step in stated if step not in steps]:
            what = "the last is measured" if len(never) == len(stated) else "left out"
            never, there = (", ".join(map(str, numbers)) for numbers in (never, sorted(steps)))
            where = f"{place}: probes.{probe}.steps"
            yield f"{where}: no recipe that it measures keeps a step {never}: {what}; they keep {there}"
