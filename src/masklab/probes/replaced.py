"""Section 6 of Chiang and Yogatama (2023) on a pseudo-language: features a replaced by b, before and after fine-tuning.

Before: the total variation between what the pre-trained model predicts at the mask of `a [MASK]` and of `b [MASK]`
(the paper's template of nouns). After: that between the fine-tuned model's predictions for an example with a and with b
in its place. The paper correlates the two over noisy paraphrases and infers whether the pre-trained model's knowledge
of synonyms is what the fine-tuned model goes by. Here it is known which b are synonyms, and what the exact conditionals
are at the mask.

Of each example the feature is replaced that is the most salient one to the fine-tuned model (at the largest size), as
in the paper; the same replacements serve all sizes and all points of the fine-tuning. By a coin b is the synonym, the
same synsets in the other form, or a stretch of as many synsets from another example, in the other form too.

Rows, of each level (so many synsets), size and seed: see `replacement.correlated`; split = the level, of all features,
of synonyms or of others alone, with the `law`'s distance in the place of the pre-trained model's (where the law has
one), and, with `at` the number of updates, in the `course` of fine-tuning. `tv_from_law` is the mean total variation of
the pre-trained model's prediction from the exact conditional. And accuracy, mcc, f1, majority, majority_f1 of the
fine-tuned model on the examples, split = their domain, and on the same examples spelt in the other form.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from masklab.corpora.laws import law_of
from masklab.errors import MaskLabError
from masklab.files import read_json, read_table
from masklab.models.checkpoint import load_checkpoint
from masklab.phrases import COURSE, LAW, OTHERS, SYNONYMS, level, split
from masklab.phrases.distances import mask_predictions, template_distances, total_variation
from masklab.phrases.saliency import probabilities, replaced, saliency
from masklab.probes.outcomes import of_classes
from masklab.probes.replacement import classifiers, correlated, of_all_seeds
from masklab.rng import generator
from masklab.symbols import FIRST, rows
from masklab.tasks import UNITS
from masklab.tasks.encoding import encode_split, joined
from masklab.tokenizers import CLS, MASK, SEP

TRIES = 10_000  # draws of another stretch before giving up


def measure(context) -> list[dict]:
    """Score rows and item records of one checkpoint; see the module."""
    tasks = {name: context.task(name, "labels") for name in context.tasks}
    return of_all_seeds(context, tasks, partial(_measured, context, _law(context)))


def _measured(context, law, name, folder, facts, seed, tell):
    probe, device = context.probe, context.device
    model = load_checkpoint(context.checkpoint, device).eval()
    longest = min(probe.max_length, model.config.max_positions)
    splits = [
        encode_split(folder / f"{part}.parquet", None, longest, device, model.vocab_size) for part in ("train", "valid")
    ]
    texts = read_examples(folder / "test.parquet", probe)
    found, levels = [], {}
    for size, updates, classifier in classifiers(context, name, facts, splits, seed, tell):
        shared = {"task": name, "train_size": size, "seed": seed}
        if not levels:  # of the largest size, at its best
            levels = {
                level(count, drawn): _changes(
                    context, name, None if drawn else classifier, model, texts, count, law, longest
                )
                for drawn in (False, True)[: 1 + probe.drawn]
                for count in probe.spans
            }
        if updates is None:
            found += _accuracies(classifier, texts, facts["labels"], longest, context, shared)
        for of, changes in levels.items():
            after = _after(classifier, texts, changes, longest, device)
            found += _rows(context, changes, after, of, updates, shared)
    return found


@dataclass(frozen=True)
class Examples:
    """Test sequences: ids [N][L] as they are and in the other form, the synsets that they spell, and labels [N]."""

    ids: list
    other: list
    synsets: list
    labels: np.ndarray


@dataclass(frozen=True)
class Changes:
    """Replacements of one level: of each example a span and the ids that take its place, [N].

    synonyms [N]: whether they are the same synsets; before [N]: distance at the template; law [N]: the exact one, None
    if the law has none; from_law: mean distance of the model from the law.
    """

    spans: list
    ids: list
    synonyms: np.ndarray
    before: np.ndarray
    law: np.ndarray | None
    from_law: float | None


def read_examples(path, probe) -> Examples:
    """The first `probe.examples` test sequences of `probe.domain`, with their twins in `probe.synonyms`.

    MaskLabError naming the file: it lacks a domain, or features are of several tokens, which have no twins by place.
    """
    table = read_table(path)
    for column in ("domain", UNITS, "symbols"):
        if column not in table.column_names:
            raise MaskLabError(f"{path}: has no column {column!r}: replaced features need a task of kind patterns")
    domains, parts = np.asarray(table["domain"]), []
    for domain in (probe.domain, probe.synonyms):
        own = table.filter(domains == domain)[: probe.examples]
        if not len(own):
            raise MaskLabError(
                f"{path}: no row of domain {domain!r}; domains: {', '.join(dict.fromkeys(domains.tolist()))}"
            )
        values = {column: np.split(*_ends(rows(own[column]))) for column in ("symbols", UNITS)}
        parts.append((values["symbols"], values[UNITS], own["label"].to_numpy()))
    (ids, synsets, labels), (other, twins, _) = parts
    if any(len(row) != len(spelt) for row, spelt in zip(synsets + twins, ids + other, strict=True)):
        raise MaskLabError(f"{path}: features of several tokens; replaced features are of one")
    if len(synsets) != len(twins) or any((own != twin).any() for own, twin in zip(synsets, twins, strict=True)):
        raise MaskLabError(f"{path}: {probe.domain} and {probe.synonyms} do not spell the same synsets row by row")
    ids, other = ([(row.astype(np.int64) + FIRST).tolist() for row in spelt] for spelt in (ids, other))
    return Examples(ids, other, [row.tolist() for row in synsets], labels)


def _ends(flat):
    values, counts = flat
    return values, np.cumsum(counts)[:-1]


def _changes(context, name, classifier, model, texts, count, law, longest) -> Changes:
    """What is replaced by what, and how far both lie apart before fine-tuning; classifier None: drawn features."""
    candidates = [[(0, at, at + count) for at in range(len(row) - count + 1)] for row in texts.ids]
    if not all(candidates):
        raise MaskLabError(f"probes.{context.name}.spans: {count} is more synsets than a test sequence has")
    if classifier is None:
        rng = generator(context.seed, context.name, name, "drawn", count)
        spans = [of[int(rng.integers(len(of)))] for of in candidates]
    else:
        given = saliency(classifier, [(row, None) for row in texts.ids], candidates, longest, context.device)
        spans = [of[int(scores.argmin())] for of, scores in zip(candidates, given, strict=True)]
    rng = generator(context.seed, context.name, name, "replacements", count)
    coins, others = rng.random(len(spans)) < context.probe.share, _others(texts, spans, count, rng)
    twins = [row[begin:end] for row, (_, begin, end) in zip(texts.other, spans, strict=True)]
    ids = [twin if coin else other for twin, other, coin in zip(twins, others, coins, strict=True)]
    features = [row[begin:end] for row, (_, begin, end) in zip(texts.ids, spans, strict=True)]
    pairs = [(template(old), template(new)) for old, new in zip(features, ids, strict=True)]
    changes = Changes(spans, ids, coins, template_distances(model, pairs, context.device), None, None)
    exact = _exact(law, [part for pair in zip(features, ids, strict=True) for part in pair])
    if exact is None:
        return changes
    predicted = mask_predictions(model, [row for pair in pairs for row in pair], context.device)[:, FIRST:]
    return replace(
        changes,
        law=total_variation(exact[0::2], exact[1::2]),
        # what the model gives to special tokens lies on no symbol, and is half of a distance by itself
        from_law=float((total_variation(predicted, exact) + (1 - predicted.sum(1)) / 2).mean()),
    )


def template(feature) -> list[int]:
    """The paper's query for what a noun stands beside: the feature, and a mask after it."""
    return [CLS, *feature, MASK, SEP]


def _others(texts, spans, count, rng):
    """Of each example a stretch of `count` synsets of another one, not the same synsets, in the other form, as ids."""
    chosen = []
    for number, (_, begin, end) in enumerate(spans):
        own = texts.synsets[number][begin:end]
        for _ in range(TRIES):
            row = int(rng.integers(len(texts.other)))
            at = int(rng.integers(len(texts.other[row]) - count + 1))
            if texts.synsets[row][at : at + count] != own:
                chosen.append(texts.other[row][at : at + count])
                break
        else:
            raise MaskLabError(f"{count} synsets: all stretches of the test sequences are the same ones")
    return chosen


def _law(context):
    """The law of the model's corpus where it knows what stands beside a feature; None else."""
    if context.tokens is None:  # a checkpoint by itself: nothing says what law its corpus has
        return None
    law = law_of(read_json(Path(context.tokens) / "meta.json").get("corpus"))
    return law if hasattr(law, "posterior") and not getattr(law, "whole", False) else None


def _exact(law, features):
    """The exact conditional of what follows each feature, [N, symbols]; None where the law calls one impossible."""
    if law is None:
        return None
    seen = np.full((len(features), len(features[0]) + 1), -1)
    seen[:, :-1] = np.asarray(features) - FIRST
    try:
        return law.posterior(seen, np.arange(seen.shape[1])[None] == np.full((len(seen), 1), seen.shape[1] - 1))
    except MaskLabError:
        return None


def _after(classifier, texts, changes, longest, device):
    """Total variation between the predictions for each example and for the changed one, [N]."""
    whole = [joined(row, None, longest) for row in texts.ids]
    new = [
        joined(*replaced((row, None), span, ids), longest)
        for row, span, ids in zip(texts.ids, changes.spans, changes.ids, strict=True)
    ]
    given = probabilities(classifier, whole + new, device)
    return total_variation(given[: len(whole)], given[len(whole) :])


def _accuracies(classifier, texts, classes, longest, context, shared):
    """Rows of the classifier on the examples as they are and in the other form."""
    found = []
    for domain, ids in ((context.probe.domain, texts.ids), (context.probe.synonyms, texts.other)):
        answers = probabilities(classifier, [joined(row, None, longest) for row in ids], context.device).argmax(1)
        found += of_classes(texts.labels, answers, classes, split=domain, **shared)
    return found


def _rows(context, changes, after, level, updates, shared):
    """Rows of one level and one classifier."""

    def of(which, part, before=changes.before, **more):
        address = context.seed, context.name, "features", level, part or "all"
        columns = shared | {"split": split(level, part)}
        own = correlated(before[which], after[which], address, **columns) if which.any() else []
        return [row | more for row in own if not (more and "predictions" in row)]

    every = np.full(len(after), True)
    if updates is not None:
        return of(every, COURSE, at=float(updates))
    found = of(every, None) + of(changes.synonyms, SYNONYMS) + of(~changes.synonyms, OTHERS)
    if changes.law is not None:
        found += of(every, LAW, changes.law)
        far = {"split": split(level), "metric": "tv_from_law", "value": changes.from_law, "n": len(after)}
        found.append(shared | far)
    return found
