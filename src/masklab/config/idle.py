"""Keys that a config says and that do nothing: another key takes their place, or leaves them no use."""

from collections.abc import Callable
from typing import NamedTuple

from masklab.config.check_tasks import holds
from masklab.config.located import as_written, place_of, spelt


class Idle(NamedTuple):
    """A key that does nothing where `when` holds of its entry, on account of the key `by`.

    key, by: below the entry; `grid.lr` is the key `lr` of its mapping `grid`. why: in words; {} is the value of `by`.
    """

    key: str
    by: str
    when: Callable
    why: str


def _is(key: str, *values) -> Callable:
    return lambda entry: getattr(entry, key, None) in values


def _isnt(key: str, *values) -> Callable:
    return lambda entry: getattr(entry, key, None) not in values


def _searched(key: str) -> Callable:
    return lambda entry: key in getattr(entry, "grid", {})


def _evaluated_once(entry) -> bool:
    """Whether a fine-tuning is evaluated after its last update alone."""
    if "epochs" in getattr(entry, "grid", {}):
        return False
    if entry.max_steps is None:
        return entry.evaluate_every == "epoch" and entry.epochs == 1
    return entry.evaluate_every != "epoch" and entry.evaluate_every >= entry.max_steps


INSTEAD = "{} takes its place"
MASKING = [Idle("rate", "count", _is("count", "one"), "`one` hides one token whatever the rate")]
WARMUP = Idle("warmup", "warmup_steps", _isnt("warmup_steps", None), f"warmup_steps: {INSTEAD}")
OPTIMISER = [
    WARMUP,
    Idle("momentum", "kind", lambda entry: entry.kind == "adamw" and entry.momentum, "it belongs to kind: sgd"),
    *(Idle(key, "kind", _is("kind", "sgd"), "it belongs to kind: adamw") for key in ("betas", "eps")),
]
EXPLOSION = "the training of a causal model stops at a loss that is no number, and at no other"
FINETUNING = [
    WARMUP,
    Idle("epochs", "max_steps", _isnt("max_steps", None), f"max_steps: {INSTEAD}"),
    *(
        Idle(key, f"grid.{key}", _searched(key), f"grid.{key} takes its place")
        for key in ("lr", "batch_size", "epochs", "warmup")
    ),
    *(
        Idle(key, "evaluate_every", _evaluated_once, "evaluate_every: {} evaluates once, after the last update")
        for key in ("patience", "threshold", "stop_after_peak")
    ),
]
ENCODER = [
    *(Idle(key, "kind", _is("kind", "lstm"), "an LSTM has no attention") for key in ("heads", "attention_dropout")),
    Idle("intermediate", "kind", _is("kind", "lstm"), "an LSTM has no feed-forward layer"),
    *(Idle(key, "kind", _isnt("kind", "words"), "it belongs to kind: words") for key in ("order", "units")),
    *(
        Idle(key, "positions", _isnt("positions", "relative"), "it belongs to positions: relative")
        for key in ("absolute", "relative_buckets", "relative_distance")
    ),
]
CORPUS = {
    "text": [Idle("packed_words", "unit", _is("unit", "line"), "it belongs to unit: packed")],
    "causal": [Idle("counted", "frequency", _is("frequency", "order"), "it belongs to frequency: sampled")],
}
LOSS = [Idle("positions", "masks", _is("masks", "training"), "it belongs to masks: one")]


def _rules(config, section: str, entry) -> dict[str, list[Idle]]:
    """What may be idle in an entry (""), and below its keys."""
    if section == "corpora":
        return {"": CORPUS.get(entry.kind, [])}
    if section == "probes":
        own = {"loss": LOSS, "finetune": FINETUNING, "replaced": FINETUNING, "paraphrased": FINETUNING}
        spans = [
            Idle(key, "tasks", lambda entry: True, "none of the tasks has answers that are spans")
            for key in ("stride", "max_question", "max_answer")
            if entry.kind == "finetune"
            and {holds(config.tasks[task]) for task in entry.tasks}.isdisjoint({"spans", None})
        ]
        return {"": [*own.get(entry.kind, []), *spans]} | ({"masking": MASKING} if entry.kind == "rank" else {})
    if section == "models":
        used = Idle("explosion", "explosion", lambda entry: False, "")  # of an optimiser that causal models share
        return {"masking": MASKING, "optimiser": [*OPTIMISER, used]}
    if section == "causal_models":
        return {"optimiser": [*OPTIMISER, Idle("explosion", "explosion", lambda entry: True, EXPLOSION)]}
    return {"": {"encoders": ENCODER, "optimisers": OPTIMISER}[section]}


def idle(config, ours: set[str]):
    """A line for each key of a user's files that does nothing in any entry that has it from there.

    Entries of a family, or that are like one, may share keys that some of them have no use for. ours: files that are
    no user's.
    """
    found, used = {}, set()
    for section in ("corpora", "causal_models", "encoders", "optimisers", "models", "probes"):
        raw = config.raw.get(section) or {}
        for name, entry in getattr(config, section).items():
            for part, rules in _rules(config, section, entry).items() if name in raw else ():
                below, said = (getattr(entry, part), raw[name].get(part)) if part else (entry, raw[name])
                for rule in rules if isinstance(said, dict) else ():
                    place = place_of(said, rule.key)
                    if place is None or place.file in ours or said.get(rule.key) is None:
                        continue
                    path = (section, name, *filter(None, [part]), rule.key)
                    at = place.file, place.line, place.path or path, rule.by
                    if not rule.when(below) or _under(config, said, rule.by, place):
                        used.add(at)
                        continue
                    why = rule.why.format(getattr(below, rule.by, None))
                    key = ".".join(map(spelt, as_written(place, path)))
                    found.setdefault(at, f"{place}: {key}: does nothing: {why}")
    return [line for at, line in found.items() if at not in used]


def _under(config, said, by, place) -> bool:
    """Whether a key lies in a file below the one that says `by`, which so replaces it."""
    for part in by.split(".")[:-1]:
        said = said.get(part) or {}
    other, order = place_of(said, by.rpartition(".")[2]), config.raw.files
    if other is None or other.file == place.file:
        return False
    return place.file in order and (other.file not in order or order.index(place.file) < order.index(other.file))
